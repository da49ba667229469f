/**
 * How many streams one HTTP/2 connection may take back.
 *
 * A client that opens calls and resets them at once makes a server work without ever having more
 * than the permitted streams open. Invariants: 1. A connection that goes on with that is ended with
 * ENHANCE_YOUR_CALM and counted, once. 2. Streams that end with the connection count for nothing.
 */
import { RESETS_BURST_MAX, RESETS_PER_SECOND } from "./limits.js";

const NO_ERROR = 0;

/** What is asked of a stream of the platform. */
export interface ResettableStream {
  /** It ended before the answer did. */
  readonly aborted: boolean;
  /** With which code it was reset; 0 = without an error. */
  readonly rstCode: number | undefined;
  once(event: "close", listener: () => void): unknown;
}

/** What is asked of a connection of the platform. */
export interface ResettableSession {
  readonly destroyed: boolean;
  on(event: "stream", listener: (stream: ResettableStream) => void): unknown;
}

/** So many at once, and then no more per second than flow back. */
export class ResetAllowance {
  private left = RESETS_BURST_MAX;
  private countedMs: number;

  constructor(private readonly nowMs: () => number) {
    this.countedMs = nowMs();
  }

  /** Counts one; false when it is one too many. */
  take(): boolean {
    const nowMs = this.nowMs();
    const back = ((nowMs - this.countedMs) / 1000) * RESETS_PER_SECOND;
    this.countedMs = nowMs;
    this.left = Math.min(RESETS_BURST_MAX, this.left + back) - 1;
    return this.left >= 0;
  }
}

/**
 * Calls `end` once when the client of `session` takes back too many streams. It comes from inside
 * the library, which reads on: the connection must not be destroyed before the turn has ended.
 */
export function limitResets(
  session: ResettableSession,
  nowMs: () => number,
  end: () => void,
): void {
  const allowance = new ResetAllowance(nowMs);
  let isOver = false;
  const judge = (stream: ResettableStream): void => {
    if (!stream.aborted && (stream.rstCode ?? NO_ERROR) === NO_ERROR) return;
    if (isOver || session.destroyed || allowance.take()) return;
    isOver = true;
    end();
  };
  session.on("stream", (stream) => stream.once("close", () => judge(stream)));
}
