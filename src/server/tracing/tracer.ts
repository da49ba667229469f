/**
 * What this node records of the requests of a trace: one span for each request that it takes in,
 * and below it one for each node that is asked and for each step of a command through the log.
 *
 * Invariants: 1. A request whose caller does not record it costs a look at its flags. 2. All spans
 * of a request go by one reading of the time of day: they lie within each other as they did. 3.
 * Names of keys, owners and values are in none of them.
 */
import { TRACE_PROPOSALS_MAX } from "../../base/limits.js";
import type { ProposalMarks } from "../../host/requests/results.js";
import type {
  RequestSpan,
  TraceHop,
  TraceParent,
  TracerPort,
} from "../../operations/api/tracing.js";
import type { ClockPort } from "../../ports.js";
import { type EndedSpan, type SpanSink, SpanKind } from "./spans.js";

const SAMPLED = 1;

export interface TracerPorts {
  readonly clock: ClockPort;
  /** 16 hexadecimal digits that nobody had before. */
  readonly spanId: () => string;
}

export class Tracer implements TracerPort {
  constructor(
    private readonly ports: TracerPorts,
    private readonly sink: SpanSink,
  ) {}

  begin(parent: TraceParent, name: string, requestId: string, hops: number): RequestSpan | null {
    if ((parent.flags & SAMPLED) === 0) return null;
    const attributes = { "svc.request_id": requestId, "svc.hops": hops };
    return new Recording(this.ports, this.sink, parent, name, attributes);
  }
}

class Recording implements RequestSpan {
  private readonly spanId: string;
  private readonly startMs: number;
  /** From the monotonic clock to the time of day. */
  private readonly offsetMs: number;
  private readonly proposals: ProposalMarks[] = [];

  constructor(
    private readonly ports: TracerPorts,
    private readonly sink: SpanSink,
    private readonly parent: TraceParent,
    private readonly name: string,
    private readonly attributes: Readonly<Record<string, string | number>>,
  ) {
    this.spanId = ports.spanId();
    this.startMs = ports.clock.monotonicMs();
    this.offsetMs = ports.clock.wallMs() - this.startMs;
  }

  hop(to: number): TraceHop {
    const { traceId, flags } = this.parent;
    const spanId = this.ports.spanId();
    const startMs = this.ports.clock.monotonicMs();
    const ended = (status: string): void => {
      const attributes = { "svc.to_node": to, "svc.status": status };
      const endMs = this.ports.clock.monotonicMs();
      this.add({ spanId, name: "forward", kind: SpanKind.client, attributes }, startMs, endMs);
    };
    return { parent: { traceId, spanId, flags }, ended };
  }

  proposal(): ProposalMarks | null {
    if (this.proposals.length >= TRACE_PROPOSALS_MAX) return null;
    const marks = { queuedMs: 0, proposedMs: 0, committedMs: 0, appliedMs: 0 };
    this.proposals.push(marks);
    return marks;
  }

  ended(type: number | null, refusal: string | null): void {
    for (const marks of this.proposals) this.followed(marks);
    const outcome = {
      ...(type === null ? {} : { "svc.type": type }),
      ...(refusal === null ? {} : { "svc.refusal": refusal }),
    };
    const { spanId, name, parent } = this;
    const attributes = { ...this.attributes, ...outcome };
    const span = { spanId, name, kind: SpanKind.server, attributes, parentId: parent.spanId };
    this.add(span, this.startMs, this.ports.clock.monotonicMs());
  }

  /** The steps of a command that was applied; of others nobody told. */
  private followed({ queuedMs, proposedMs, committedMs, appliedMs }: ProposalMarks): void {
    if (appliedMs === 0) return;
    this.step("queue", queuedMs, proposedMs);
    this.step("replicate", proposedMs, committedMs);
    this.step("apply", committedMs, appliedMs);
  }

  private step(name: string, fromMs: number, untilMs: number): void {
    const spanId = this.ports.spanId();
    this.add({ spanId, name, kind: SpanKind.internal, attributes: {} }, fromMs, untilMs);
  }

  /** A child of this request, unless it says whose it is. */
  private add(
    span: Pick<EndedSpan, "spanId" | "name" | "kind" | "attributes"> & { parentId?: string },
    startMs: number,
    endMs: number,
  ): void {
    const { offsetMs, parent } = this;
    this.sink.add({
      traceId: parent.traceId,
      parentId: this.spanId,
      ...span,
      startMs: startMs + offsetMs,
      endMs: Math.max(startMs, endMs) + offsetMs,
    });
  }
}
