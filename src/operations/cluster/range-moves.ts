/**
 * Splits and merges of key ranges (contract 6.3): every check is real, the move itself is not made.
 *
 * Invariants: 1. `determinate` is true only for what was read in a proved turn. 2. No further
 * partition can be made in this version: a split that passes every check ends in
 * PartitionCreationFailed, with nothing changed.
 */
import { partitionId } from "../../base/ids.js";
import { PAGE_LIMIT_MAX } from "../../base/limits.js";
import { type SplitCase, isRangeKeySpace, splitCase } from "../../control/ranges.js";
import { KvType, type RangeDescriptor } from "../../machine/commands/command.js";
import type { GroupAccess } from "../api/host-view.js";
import type { MergeRangesAnswer, SplitRangeAnswer } from "../api/administration.js";
import { Forwarder } from "../forwarding/forwarder.js";
import { isOpenName } from "../api/names.js";
import { gather } from "../kv/kv-gather.js";
import { Durability, type RequestContext } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";

type SplitDone = (answer: SplitRangeAnswer) => void;

export class RangeMoves {
  constructor(private readonly serving: Serving) {}

  split(
    request: { readonly keySpace: string; readonly splitKey: string },
    context: RequestContext,
    done: SplitDone,
  ): void {
    const { keySpace, splitKey } = request;
    const { node, ports } = this.serving;
    if (!isRangeKeySpace(keySpace) || !isOpenName(splitKey)) {
      const reason = "The key space or the split key is not acceptable.";
      return ports.timer.soon(() => done(refusal("InvalidInput", reason)));
    }
    // A node that does not know the partitions of the cluster yet does not lead it either.
    if (this.serving.placement.hashHome(keySpace) === null) {
      return ports.timer.soon(() => done(this.notLeading()));
    }
    node.metaGroup().read(context.deadlineMs, (result) => {
      if (result.status !== "confirmed") return done(this.notLeading());
      const { meta } = node.metaGroup().machine;
      const found = splitCase(keySpace, meta.ranges(keySpace), meta.move(keySpace), splitKey);
      if (found.kind !== "begins") return done(notBegun(found));
      this.probe(keySpace, found.range, context, (count) => done(this.splitVerdict(count)));
    });
  }

  private notLeading(): SplitRangeAnswer {
    const reason = "This node did not prove that it leads the meta partition.";
    return { ...refusal("NotLeader", reason), leaderHint: this.serving.leaders.metaEndpoint() };
  }

  private splitVerdict(count: number | null): SplitRangeAnswer {
    const { rangeSplitMinSize } = this.serving.settings;
    if (count === null) {
      return refusal("ProbeIndeterminate", "The size of the range could not be read.");
    }
    if (count < rangeSplitMinSize) {
      const reason = `The range holds ${count} keys, fewer than ${rangeSplitMinSize}.`;
      return refusal("BelowMinRangeSize", reason);
    }
    const reason = "This version cannot make a further partition; nothing was changed.";
    return refusal("PartitionCreationFailed", reason);
  }

  /**
   * Counts the live keys of a range at the node that leads its partition, up to the smallest size
   * that may be split; null = unknown.
   */
  private probe(
    keySpace: string,
    range: RangeDescriptor,
    context: RequestContext,
    then: (count: number | null) => void,
  ): void {
    const { serving } = this;
    const { deadlineMs, requestId } = context;
    const probe = { keySpace, range, deadlineMs };
    const count = (group: GroupAccess): void => this.countHere(group, probe, 0, null, then);
    const group = serving.node.group(partitionId(range.partitionId));
    if (group?.isLeader() === true) return count(group);
    new Forwarder(serving, {
      partition: partitionId(range.partitionId),
      request: {
        kind: "kv-range",
        prefix: keySpace,
        startKey: range.startKey,
        startInclusive: true,
        endKey: range.endKey,
        endInclusive: false,
        limit: Math.min(PAGE_LIMIT_MAX, Math.max(1, serving.settings.rangeSplitMinSize)),
        cursor: null,
        durability: Durability.persistent,
        plain: true,
      },
      requestId,
      deadlineMs,
      reading: true,
      here: count,
      answered: (answer) => {
        const found = answer.kind === "kv-page" && answer.type === KvType.got ? answer : null;
        // A page that ended early says nothing about what lies behind it.
        const enough = (found?.items.length ?? 0) >= serving.settings.rangeSplitMinSize;
        then(found === null || (found.hasMore && !enough) ? null : found.items.length);
      },
      failed: () => then(null),
    }).go();
  }

  private countHere(
    group: GroupAccess,
    probe: {
      readonly keySpace: string;
      readonly range: RangeDescriptor;
      readonly deadlineMs: number;
    },
    counted: number,
    after: Uint8Array | null,
    then: (count: number | null) => void,
  ): void {
    const { rangeSplitMinSize, pageBytes } = this.serving.settings;
    const query = {
      bucket: probe.keySpace,
      startKey: probe.range.startKey,
      startInclusive: true,
      endKey: probe.range.endKey,
      endInclusive: false,
    };
    group.read(probe.deadlineMs, (result) => {
      if (result.status !== "confirmed") return then(null);
      const limit = Math.max(1, rangeSplitMinSize - counted);
      const { persistent } = Durability;
      const wanted = { query, durability: persistent, after, limit, maxBytes: pageBytes };
      const read = { serving: this.serving, group, deadlineMs: probe.deadlineMs };
      gather(read, wanted, (page) => {
        if (typeof page === "string") return then(null);
        const count = counted + page.items.length;
        if (count >= rangeSplitMinSize || page.next === null) return then(count);
        this.countHere(group, probe, count, page.next, then);
      });
    });
  }

  /**
   * One pass over the whole map. Only a split makes neighbours, so a pass of this version finds
   * none to fold.
   */
  merge(deadlineMs: number, done: (answer: MergeRangesAnswer) => void): void {
    const meta = this.serving.node.metaGroup();
    meta.read(deadlineMs, (result) => {
      if (result.status !== "confirmed") {
        const { reason, status, leaderHint } = this.notLeading();
        return done({ success: false, status, determinate: true, merges: 0, leaderHint, reason });
      }
      const spaces = meta.machine.meta.keySpaces();
      const neighbours = spaces.reduce((sum, space) => sum + space.descriptors.length - 1, 0);
      const open = neighbours > 0 && this.serving.settings.rangeMergeMinSize > 0;
      done({
        success: !open,
        status: open ? "Indeterminate" : "Completed",
        determinate: !open,
        merges: 0,
        leaderHint: "",
        reason: open ? "There are neighbouring ranges, and this version folds none." : "",
      });
    });
  }
}

const REASONS: Readonly<Record<Extract<SplitCase, { kind: "refused" }>["status"], string>> = {
  NoRange: "The key space has no range that covers the key.",
  InvalidSplitKey: "The split key is outside the key space, or the start of its range.",
  UnsettledMovingIntents: "Rows of an earlier move of the key space are still being removed.",
  ConcurrentSplit: "Another range of the key space is being split, merged or moved.",
};

/** The end of a split that finds a move of the key space, or no range to split. */
function notBegun(found: Exclude<SplitCase, { kind: "begins" }>): SplitRangeAnswer {
  if (found.kind === "refused") {
    const { status } = found;
    return { ...refusal(status, REASONS[status]), determinate: status !== "ConcurrentSplit" };
  }
  const reason = "The same split is under way; read the ranges again.";
  return { ...refusal("Indeterminate", reason), determinate: false };
}

function refusal(status: string, reason: string): SplitRangeAnswer {
  return {
    success: false,
    status,
    determinate: true,
    newPartitionId: 0,
    newGeneration: 0,
    leaderHint: "",
    reason,
  };
}
