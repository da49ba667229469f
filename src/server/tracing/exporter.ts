/**
 * Sends spans to the collector, in batches and beside everything else.
 *
 * Owns the spans that wait. Invariants: 1. Those that wait and those on their way are bounded; what
 * is more is dropped and counted. 2. One batch is on its way at a time; one that the collector did
 * not take is sent again, one that it refused is dropped. 3. Nobody ever waits for it: not a
 * request, not the stop. 4. Without spans there is no timer and no connection.
 */
import { TRACE_BATCH_MAX, TRACE_EVERY_MS, TRACE_SPANS_MAX } from "../../base/limits.js";
import type { LoggerPort, TimerHandle, TimerPort } from "../../ports.js";
import { type EndedSpan, type SpanSink, spansDocument } from "./spans.js";

/** "failed": it may take it another time. */
export type Posted = "taken" | "refused" | "failed";

/** The way to the collector. */
export interface CollectorPort {
  /** `done` comes once, in a later turn, unless it is closed before. `why`: where it failed. */
  post(document: string, done: (end: Posted, why: string) => void): void;
  close(): void;
}

/** Who recorded the spans. */
type Resource = Readonly<Record<string, string | number>>;

export class SpanExporter implements SpanSink {
  /** Since the start. */
  readonly count = { sent: 0, dropped: 0 };
  private waiting: EndedSpan[] = [];
  private onTheirWay: readonly EndedSpan[] = [];
  private timer: TimerHandle | null = null;
  private isClosed = false;
  private hasFailed = false;

  constructor(
    private readonly collector: CollectorPort,
    private readonly resource: Resource,
    private readonly timers: Pick<TimerPort, "after">,
    private readonly logger: LoggerPort,
  ) {}

  add(span: EndedSpan): void {
    if (this.isClosed || this.waiting.length + this.onTheirWay.length >= TRACE_SPANS_MAX) {
      this.count.dropped++;
      return;
    }
    this.waiting.push(span);
    if (this.waiting.length >= TRACE_BATCH_MAX && !this.hasFailed) this.flush();
    else this.later();
  }

  /** Sends now what waits, unless a batch is on its way. */
  flush(): void {
    if (this.isClosed || this.onTheirWay.length > 0 || this.waiting.length === 0) return;
    this.timer?.cancel();
    this.timer = null;
    const batch = this.waiting.slice(0, TRACE_BATCH_MAX);
    this.waiting = this.waiting.slice(TRACE_BATCH_MAX);
    this.onTheirWay = batch;
    this.collector.post(spansDocument(batch, this.resource), (end, why) => this.posted(end, why));
  }

  /** What has not been sent is dropped. */
  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    this.collector.close();
    this.count.dropped += this.waiting.length + this.onTheirWay.length;
    this.waiting = [];
    this.onTheirWay = [];
  }

  private posted(end: Posted, why: string): void {
    if (this.isClosed) return;
    const batch = this.onTheirWay;
    this.onTheirWay = [];
    this.tell(end, why);
    if (end === "taken") this.count.sent += batch.length;
    else if (end === "refused") this.count.dropped += batch.length;
    else this.waiting = [...batch, ...this.waiting];
    if (end !== "failed" && this.waiting.length >= TRACE_BATCH_MAX) this.flush();
    else this.later();
  }

  private later(): void {
    if (this.waiting.length === 0 || this.timer !== null || this.onTheirWay.length > 0) return;
    this.timer = this.timers.after(TRACE_EVERY_MS, () => {
      this.timer = null;
      this.flush();
    });
  }

  /** One line when it begins to fail, and one when it works again. */
  private tell(end: Posted, why: string): void {
    const failed = end !== "taken";
    if (failed && !this.hasFailed) {
      this.logger.log("warn", "the trace collector does not take spans", { end, why });
    } else if (!failed && this.hasFailed) {
      this.logger.log("info", "the trace collector takes spans again", {
        dropped: this.count.dropped,
      });
    }
    this.hasFailed = failed;
  }
}
