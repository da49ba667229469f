/**
 * How a move of a key range ends, as the applied records of the meta partition tell.
 *
 * Invariants: 1. An end is told only of what was applied here: it stays true whoever leads meta. 2.
 * Time that is over says nothing about the move, which goes on by itself.
 */
import type { MoveEnd, RangeDescriptor, RangeMove } from "../../machine/commands/command.js";
import { findRange } from "../../control/ranges.js";
import type { Serving } from "../serving/serving.js";

export type MoveResult =
  /** `range`: what the target has since. */
  | { readonly kind: "cut"; readonly range: RangeDescriptor }
  /** Nothing was moved; "none": why is not known any more. */
  | { readonly kind: "aborted"; readonly reason: MoveEnd }
  /** It goes on. */
  | { readonly kind: "open" };

/**
 * Calls `then` in a later turn when the move is aborted, or cut and its target serves; a cut whose
 * target does not until `deadlineMs` is one all the same.
 */
export function followMove(
  serving: Serving,
  move: RangeMove,
  deadlineMs: number,
  then: (result: MoveResult) => void,
): void {
  const follower = new Follower(serving, move);
  const taken = serving.leaders.wait({
    untilMs: deadlineMs,
    isOver: () => follower.look(),
    resume: () => {
      follower.look();
      then(follower.result);
    },
  });
  if (!taken) serving.ports.timer.soon(() => then({ kind: "open" }));
}

class Follower {
  result: MoveResult = { kind: "open" };

  constructor(
    private readonly serving: Serving,
    private readonly move: RangeMove,
  ) {}

  /** True when there is no need to look again. */
  look(): boolean {
    const { node } = this.serving;
    if (node.closing) return true;
    const { keySpace, moveId } = this.move;
    const { meta } = node.metaGroup().machine;
    const found = meta.move(keySpace);
    const now = found?.moveId === moveId ? found : null;
    if (now?.phase === "copying") return false;
    if (now?.phase === "aborting") {
      this.result = { kind: "aborted", reason: now.reason };
      return true;
    }
    if (this.result.kind !== "cut") this.result = this.outcome();
    return now === null || now.targetDone;
  }

  /** Of a move that is not copying any more: whether the target has the range. */
  private outcome(): MoveResult {
    const { keySpace, startKey, kind, target } = this.move;
    const ranges = this.serving.node.metaGroup().machine.meta.ranges(keySpace);
    const range = startKey === null ? (ranges[0] ?? null) : findRange(ranges, startKey);
    const isThere = range?.partitionId === target;
    const isWhole = kind !== "split" || range?.startKey === startKey;
    if (range !== null && isThere && isWhole) return { kind: "cut", range };
    return { kind: "aborted", reason: "none" };
  }
}

/** Calls `then` when no move of the key space is under way: with false when the time was over. */
export function untilStill(
  serving: Serving,
  keySpace: string,
  deadlineMs: number,
  then: (isStill: boolean) => void,
): void {
  const { node, leaders, ports } = serving;
  const isOver = (): boolean =>
    node.closing || node.metaGroup().machine.meta.move(keySpace) === null;
  if (isOver()) return ports.timer.soon(() => then(!node.closing));
  const taken = leaders.wait({ untilMs: deadlineMs, isOver, resume: then });
  if (!taken) ports.timer.soon(() => then(false));
}
