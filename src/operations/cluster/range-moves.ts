/**
 * Splits of key ranges by hand (contract 6.3), on the leader of the meta partition.
 *
 * Invariants: 1. `determinate` is true only for what was read in a proved turn, or decided in apply
 * (P-108). 2. A repeat of a split that runs waits with it. 3. What is only for want of room right
 * now is tried again until the deadline; nothing is begun twice.
 */
import { type SplitCase, isRangeKeySpace, splitCase } from "../../control/ranges.js";
import type { MetaStatus, MoveEnd, RangeDescriptor } from "../../machine/commands/command.js";
import type { SplitRangeAnswer } from "../api/administration.js";
import { isOpenName } from "../api/names.js";
import type { RequestContext } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";
import { type BeginResult, beginMove } from "./range-begin.js";
import { type MoveResult, followMove } from "./range-progress.js";
import type { RangeSizes } from "./range-sizes.js";

type SplitStatus = SplitRangeAnswer["status"];
type SplitDone = (answer: SplitRangeAnswer) => void;

interface SplitRequest {
  readonly keySpace: string;
  readonly splitKey: string;
}

/** Between two tries to begin (ms), unless the map changes before. */
const AGAIN_MS = 100;

export class RangeMoves {
  constructor(
    private readonly serving: Serving,
    private readonly sizes: RangeSizes,
  ) {}

  split(request: SplitRequest, context: RequestContext, done: SplitDone): void {
    const { placement, ports } = this.serving;
    if (!isRangeKeySpace(request.keySpace) || !isOpenName(request.splitKey)) {
      const reason = "The key space or the split key is not acceptable.";
      return ports.timer.soon(() => done(refusal("InvalidInput", reason)));
    }
    // A node that does not know the partitions of the cluster yet does not lead it either.
    if (placement.hashHome(request.keySpace) === null) {
      return ports.timer.soon(() => done(this.notLeading()));
    }
    this.prove(request, context, done);
  }

  private prove(request: SplitRequest, context: RequestContext, done: SplitDone): void {
    const { keySpace, splitKey } = request;
    const group = this.serving.node.metaGroup();
    group.read(context.deadlineMs, (result) => {
      if (result.status !== "confirmed") return done(this.notLeading());
      const { meta } = group.machine;
      const found = splitCase(keySpace, meta.ranges(keySpace), meta.move(keySpace), splitKey);
      if (found.kind === "refused") return done(refused(found.status));
      if (found.kind === "runs") {
        return followMove(this.serving, found.move, context.deadlineMs, (end) => done(ended(end)));
      }
      if (meta.isLeaving(keySpace)) {
        return done(open("ConcurrentSplit", "The key space is being unregistered."));
      }
      this.sizes.atLeast(keySpace, found.range, context.deadlineMs, (keys) => {
        const refusedFor = this.tooSmall(keys);
        if (refusedFor === null) this.begin(request, found.range, context, done);
        else done(refusedFor);
      });
    });
  }

  private tooSmall(keys: number | null): SplitRangeAnswer | null {
    const { rangeSplitMinSize } = this.serving.settings;
    if (keys === null) {
      return refusal("ProbeIndeterminate", "The size of the range could not be read.");
    }
    if (keys >= rangeSplitMinSize) return null;
    const reason = `The range holds ${keys} keys, fewer than ${rangeSplitMinSize}.`;
    return refusal("BelowMinRangeSize", reason);
  }

  private begin(
    request: SplitRequest,
    range: RangeDescriptor,
    context: RequestContext,
    done: SplitDone,
  ): void {
    const { serving } = this;
    const { keySpace, splitKey: startKey } = request;
    const { endKey, partitionId: source, generation } = range;
    const of = { keySpace, startKey, endKey, source, target: 0, generation };
    const command = { kind: "begin-move", move: "split", ...of } as const;
    beginMove(serving, command, context.deadlineMs, (result) => {
      if (result.kind === "begun") {
        return followMove(serving, result.move, context.deadlineMs, (end) => done(ended(end)));
      }
      if (result.kind === "not-leader") return done(this.notLeading());
      const isLater = result.kind === "refused" && MAY_CHANGE.has(result.status);
      if (!isLater) return done(notBegun(result));
      this.again(request, context, done);
    });
  }

  /** The map is not what it was proved to be, or there is no room for a move right now. */
  private again(request: SplitRequest, context: RequestContext, done: SplitDone): void {
    const { moveWaits, placement, node } = this.serving;
    const { nowMs } = moveWaits;
    if (nowMs >= context.deadlineMs || node.shuttingDown) {
      return done(open("ConcurrentSplit", "Other moves left no room for this one."));
    }
    const untilMs = Math.min(context.deadlineMs, nowMs + AGAIN_MS);
    moveWaits.add(placement.mapVersion, untilMs, () => this.prove(request, context, done));
  }

  private notLeading(): SplitRangeAnswer {
    return {
      ...refusal("NotLeader", NOT_LEADING),
      leaderHint: this.serving.leaders.metaEndpoint(),
    };
  }
}

export const NOT_LEADING = "This node did not prove that it leads the meta partition.";

/** Refusals of a begin that another look at the map may turn into something else. */
const MAY_CHANGE: ReadonlySet<MetaStatus> = new Set(["busy", "stale"]);

const REASONS: Readonly<Record<Extract<SplitCase, { kind: "refused" }>["status"], string>> = {
  NoRange: "The key space has no range that covers the key.",
  InvalidSplitKey: "The split key is outside the key space, or the start of its range.",
  UnsettledMovingIntents: "Rows of an earlier move of the key space are still being removed.",
  ConcurrentSplit: "Another range of the key space is being split, merged or moved.",
};

function refused(status: keyof typeof REASONS): SplitRangeAnswer {
  const reason = REASONS[status];
  return status === "ConcurrentSplit" ? open(status, reason) : refusal(status, reason);
}

/** Of a begin that no other look at the map would change. */
function notBegun(
  result: Exclude<BeginResult, { kind: "begun" | "not-leader" }>,
): SplitRangeAnswer {
  if (result.kind === "open") {
    return open("Indeterminate", "The begin was not confirmed in time; read the ranges again.");
  }
  if (result.kind === "not-at-level") {
    const reason = "The level of the cluster knows no moves of ranges yet; nothing was changed.";
    return refusal("PartitionCreationFailed", reason);
  }
  switch (result.status) {
    case "too-many-partitions":
      return refusal("PartitionCreationFailed", "There is no room for another partition.");
    case "not-founded":
      return refusal("KeyRangeDisabled", "The cluster has no data partition.");
    default:
      return refusal("InvalidInput", "The key space or the split key was refused.");
  }
}

/** Status and reason of a split that was given up, by why. */
const GIVEN_UP: Readonly<Record<MoveEnd, readonly [status: SplitStatus, reason: string]>> = {
  none: ["TransferFailed", "The move ended without the keys."],
  deadline: ["TransferFailed", "The copy of the keys did not end in time."],
  "no-target": ["PartitionCreationFailed", "The new partition had no leader that serves."],
  "transfer-failed": ["TransferFailed", "The copy of the keys did not come to an end."],
  "quiesce-failed": ["QuiesceFailed", "The range could not be frozen in time."],
  mismatch: ["TransferFailed", "The copy of the keys differs from them."],
  "cutover-failed": ["CutoverFailed", "The map could not be changed."],
};

function ended(result: MoveResult): SplitRangeAnswer {
  switch (result.kind) {
    case "cut": {
      const { partitionId: newPartitionId, generation: newGeneration } = result.range;
      const done = { success: true, status: "Succeeded", determinate: true } as const;
      return { ...done, newPartitionId, newGeneration, leaderHint: "", reason: "" };
    }
    case "aborted": {
      const [status, reason] = GIVEN_UP[result.reason];
      // The new partition never was: that is settled with the abort.
      if (status === "PartitionCreationFailed") return refusal(status, reason);
      return open(status, reason);
    }
    case "open":
      return open("Indeterminate", "The split goes on; read the ranges again.");
  }
}

/** The map does not change by this call. */
function refusal(status: SplitStatus, reason: string): SplitRangeAnswer {
  const nothing = { success: false, newPartitionId: 0, newGeneration: 0, leaderHint: "" };
  return { ...nothing, status, determinate: true, reason };
}

/** The map may still change. */
function open(status: SplitStatus, reason: string): SplitRangeAnswer {
  return { ...refusal(status, reason), determinate: false };
}
