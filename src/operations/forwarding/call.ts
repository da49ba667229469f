/** One call to another node, and how it may end. */
import type { TraceHop } from "../api/tracing.js";
import type { CallAnswer } from "../wire/calls.js";

export type CallResult =
  | { readonly status: "answered"; readonly answer: CallAnswer }
  /** It never left, or was not taken: the link is down, or is about to be. */
  | { readonly status: "unsent" }
  /** It never left: too much is in flight or queued to that node, which can be reached. */
  | { readonly status: "overloaded" }
  /** It left, and nobody knows what became of it. */
  | { readonly status: "lost" };

/** A class, so that all of them have one shape: `Calls` looks at many at once. */
export class Call {
  /** Since when the partition is known to have another leader; 0 = it is not. */
  movedMs = 0;

  constructor(
    readonly to: number,
    readonly partition: number,
    readonly requestId: string,
    readonly deadlineMs: number,
    readonly sizeBytes: number,
    /** It may wait for long: for a lock, or for something to tell. */
    readonly waits: boolean,
    readonly done: (result: CallResult) => void,
  ) {}
}

/** As `done`; and the hop has ended. */
export function hopEnding(
  hop: TraceHop,
  done: (result: CallResult) => void,
): (result: CallResult) => void {
  return (result) => {
    hop.ended(result.status === "answered" ? result.answer.kind : result.status);
    done(result);
  };
}
