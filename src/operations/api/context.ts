/**
 * What accompanies every request on its way through a node.
 *
 * Pure. Invariants: 1. A front end bounds the deadline once, where it takes the request in; nobody
 * below makes it later.
 */
import type { Leaving } from "../../host/waiting/queue.js";
import { Trace, type TraceParent } from "./tracing.js";

/** Who asks, for limits and the log. */
export interface CallerName {
  /** Of the token or certificate; where nobody has to show any, the address. */
  readonly name: string;
  /** As forced releases are recorded; absent: nobody has to say who they are. */
  readonly actor?: string;
  /** Requests per second of its own, 0 = no limit; null = as all. */
  readonly rate: number | null;
}

export interface RequestContext {
  /**
   * When the answer must have been given, on the monotonic clock (ms); never later than the
   * server's own bound.
   */
  readonly deadlineMs: number;
  /** Number of forwards so far; at 1 or more the request is not forwarded again. */
  readonly forwardHops: number;
  /** Named in log lines, on every node that the request comes to. */
  readonly requestId: string;
  /** Absent where another node asks. */
  readonly caller?: CallerName;
  /**
   * Has `callback` called when the caller has gone away, if it goes before its answer. Absent where
   * nobody can tell.
   */
  readonly whenGone?: (callback: () => void) => void;
  /** Of a request that may wait for a lock: how whoever asked has it wait no more. */
  readonly wait?: WaitControl;
  /** Of a request whose caller named the trace that it belongs to. */
  readonly trace?: Trace | undefined;
}

/** Whoever has a request that waits. */
export interface WaitHolder {
  /** Nobody waits any more. False: the end is decided, or on its way. */
  leave(how: Leaving): boolean;
}

/** The thread between a request that waits and who asked: told of the first word only. */
export class WaitControl {
  /** What it was told; null: it may wait on. */
  leaving: Leaving | null = null;
  private holder: WaitHolder | null = null;

  /** When the wait is over (monotonic ms, whole). */
  readonly waitUntilMs: number;

  /** `sinceMs`: when the node took the request in. */
  constructor(
    readonly sinceMs: number,
    waitUntilMs: number,
  ) {
    // A fraction would be an object of its own for each of thousands.
    this.waitUntilMs = Math.ceil(waitUntilMs);
  }

  /** Whoever has the request now; null: nobody waits. Told at once of what was said before. */
  heldBy(holder: WaitHolder | null): void {
    this.holder = holder;
    if (this.leaving !== null) holder?.leave(this.leaving);
  }

  /** False: its end is decided, or on its way. */
  leave(how: Leaving): boolean {
    if (this.leaving !== null) return false;
    this.leaving = how;
    return this.holder === null || this.holder.leave(how);
  }
}

/**
 * The context of item `number` of a stream. The id of the item is made when somebody names it: few
 * are ever named.
 */
export class ItemContext implements RequestContext {
  readonly trace: Trace | undefined;

  constructor(
    readonly deadlineMs: number,
    readonly forwardHops: number,
    private readonly streamId: string,
    private readonly number: number,
    readonly caller: CallerName,
    parent: TraceParent | null,
  ) {
    this.trace = parent === null ? undefined : new Trace(parent);
  }

  get requestId(): string {
    return `${this.streamId}/${this.number}`;
  }
}

/** `context` with another deadline. */
export function withDeadline(context: RequestContext, deadlineMs: number): RequestContext {
  const { forwardHops, requestId, trace } = context;
  return { deadlineMs, forwardHops, requestId, trace };
}

/** `given` with the thread to a request that may wait: of those there are thousands at a time. */
export class WaitContext implements RequestContext {
  constructor(
    private readonly given: RequestContext,
    readonly wait: WaitControl,
  ) {}

  get deadlineMs(): number {
    return this.given.deadlineMs;
  }

  get forwardHops(): number {
    return this.given.forwardHops;
  }

  get requestId(): string {
    return this.given.requestId;
  }

  get trace(): Trace | undefined {
    return this.given.trace;
  }
}

/** True while another node may be asked: the request was not forwarded yet. */
export function mayForward({ forwardHops }: RequestContext): boolean {
  return forwardHops < 1;
}
