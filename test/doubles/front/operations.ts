/**
 * The operations double of the front ends: records what comes down from REST or gRPC, answers what
 * a test says.
 *
 * Invariants: 1. Every call is answered once. As the port demands, no answer comes in the turn of
 * its call, but for views: calls that a node answers at once of what it has applied. 2. What a test
 * does not say is answered with a blank of type 0 (data) or with what `administrative.ts` holds.
 */
import type { AnswerNamed, CallName } from "../../../src/api/calls.js";
import { CALL_LIST } from "../../../src/api/calls.js";
import { WaitControl, isWaiting } from "../../../src/operations/api/requests.js";
import type {
  Administration,
  BackupRefusal,
  DataAnswer,
  DataRequest,
  DataRequestKind,
  HealthAnswer,
  HealthCheck,
  OperationsPort,
  Refusal,
  RequestContext,
} from "../../../src/operations/api/requests.js";
import { NOWHERE, endAnswer } from "../../../src/operations/api/shapes.js";
import { ADMINISTRATIVE, READY } from "./administrative.js";
import { FakeWatches } from "./watches.js";

/** A data request as it came down; `done` answers it. */
export interface Recorded {
  readonly request: DataRequest;
  readonly context: RequestContext;
  readonly done: (answer: DataAnswer) => void;
}

export type AnsweredName = Exclude<CallName, `backups.${string}`>;
/** What each administrative call answers; backups are refused. */
export type Administrative = { -readonly [N in AnsweredName]: AnswerNamed<N> };

const VIEWS: ReadonlySet<CallName> = new Set<AnsweredName>([
  "cluster.membership",
  "cluster.placement",
  "cluster.routing",
  "ranges.list",
]);

/** An answer of the sort that belongs to `kind` which describes nothing. */
export function blankAnswer(
  kind: DataRequestKind,
  type: number,
  refusal: Refusal | null = null,
): DataAnswer {
  return { ...endAnswer(kind, "errored", NOWHERE, refusal), type };
}

type AnyCall = (
  request: object,
  context: RequestContext,
  done: (end: { readonly answer: unknown } | { readonly refusal: BackupRefusal }) => void,
) => void;

export class FakeOperations implements OperationsPort {
  readonly recorded: Recorded[] = [];
  /** When false, data requests are not recorded (load tests). */
  recording = true;
  /** The next data answers, before `script` is asked. */
  readonly answers: DataAnswer[] = [];
  /** Decides a data answer; null keeps the request open until the test calls `done` of its record. */
  script: (request: DataRequest, context: RequestContext) => DataAnswer | null = (request) =>
    blankAnswer(request.kind, 0);
  /** Unless null, answers wait here for `release`. */
  held: (() => void)[] | null = null;

  /** Administrative calls with their requests, as they came down. */
  readonly administered: (readonly [name: CallName, request: object])[] = [];
  /** Context of the last of them. */
  administeredIn: RequestContext | null = null;
  readonly administrative: Administrative = { ...ADMINISTRATIVE };
  /** How every backup call ends. */
  backupRefusal: BackupRefusal = { outcome: "NotConfigured", message: "no directory" };

  healthNow: HealthAnswer = READY;
  checks: readonly HealthCheck[] = [
    { name: "initialized", failure: null },
    { name: "membership", failure: null },
  ];
  stopping = false;
  fault: string | null = null;
  private round: (() => void)[] = [];

  readonly watches = new FakeWatches();

  /** Of requests that may wait, in the order in which they came. */
  readonly waits: WaitControl[] = [];

  execute(
    request: DataRequest,
    context: RequestContext,
    done: (answer: never) => void,
  ): WaitControl | null {
    const give = done as (answer: DataAnswer) => void;
    if (this.recording) this.recorded.push({ request, context, done: give });
    const answer = this.answers.shift() ?? this.script(request, context);
    if (answer !== null) this.later(() => give(answer));
    if (!isWaiting(request)) return null;
    const wait = new WaitControl(0, context.deadlineMs);
    this.waits.push(wait);
    return wait;
  }

  /** All that was asked for in one turn is answered in one later turn. */
  private later(action: () => void): void {
    if (this.held !== null) return void this.held.push(action);
    this.round.push(action);
    if (this.round.length > 1) return;
    setImmediate(() => {
      const actions = this.round;
      this.round = [];
      for (const one of actions) one();
    });
  }

  release(): void {
    const waiting = this.held ?? [];
    this.held = null;
    for (const answer of waiting) answer();
  }

  invalidInput(kind: DataRequestKind): DataAnswer {
    return endAnswer(kind, "invalidInput", NOWHERE, null);
  }

  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer {
    return endAnswer(kind, "mustRetry", NOWHERE, refusal);
  }

  health(): HealthAnswer {
    return this.healthNow;
  }

  healthChecks(): readonly HealthCheck[] {
    return this.checks;
  }

  isStopping(): boolean {
    return this.stopping;
  }

  fatalFault(): string | null {
    return this.fault;
  }

  readonly administration = Object.fromEntries(
    CALL_LIST.map(([name]) => [name, this.answering(name)]),
  ) as unknown as Administration;

  private answering(name: CallName): AnyCall {
    return (request, context, done) => {
      this.administered.push([name, request]);
      this.administeredIn = context;
      const end =
        name in this.administrative
          ? { answer: this.administrative[name as AnsweredName] }
          : { refusal: this.backupRefusal };
      if (VIEWS.has(name)) done(end);
      else this.later(() => done(end));
    };
  }
}
