/**
 * Key ranges: list, register, unregister, split, merge (contract 6.2, 6.3).
 *
 * Owns this node's routing-mode flags. May call base, machine, control, host and this folder.
 *
 * Invariants: 1. Descriptors are committed on the meta partition; the flag is local and only permits (P-107): it is
 * derived from the descriptors unless a call on this node left it otherwise. 2. `determinate` is true only for what was
 * decided in apply or read in a proved turn. 3. No further partition can be made in this version: a split that passes
 * every check ends in PartitionCreationFailed, with nothing changed.
 */
import { compareText } from "../base/bytes.js";
import type { RangeDescriptor } from "../machine/command.js";
import type { ProposalResult } from "../host/results.js";
import type { GroupAccess } from "./access.js";
import type {
  KeySpaceView,
  MergeRangesAnswer,
  RangesAnswer,
  RegisterRangeAnswer,
  SplitRangeAnswer,
} from "./administration.js";
import { isOpenName } from "./input.js";
import { VISITS_MAX } from "./kv-pages.js";
import { type Serving, bucketOf } from "./serving.js";

/** Longest time that register waits (contract 6.3). */
const REGISTER_MAX_MS = 10_000;
/** Flags that differ from what the descriptors say, at most; they stem from calls with an open outcome. */
const FLAGS_MAX = 1024;
/** Upper bound of the size of a range command beside its key space. */
const COMMAND_BYTES = 64;

/** True for a key space that may be routed by range (6.2, rule 4). */
export function isKeySpace(keySpace: string): boolean {
  return isOpenName(keySpace) && !keySpace.endsWith("/meta");
}

/** The descriptor that covers `key`; null when none does. Descriptors tile their space. */
export function covering(
  descriptors: readonly RangeDescriptor[],
  key: string,
): RangeDescriptor | null {
  for (const descriptor of descriptors) {
    const { startKey, endKey } = descriptor;
    const fromStart = startKey === null || compareText(startKey, key) <= 0;
    if (fromStart && (endKey === null || compareText(key, endKey) < 0)) return descriptor;
  }
  return null;
}

type RegisterDone = (answer: RegisterRangeAnswer) => void;
type SplitDone = (answer: SplitRangeAnswer) => void;

export class KeyRanges {
  private readonly flags = new Map<string, boolean>();

  constructor(private readonly serving: Serving) {}

  list(keySpace: string): RangesAnswer {
    const { node, settings } = this.serving;
    return {
      initialized: node.initialized,
      localEndpoint: settings.peerEndpoint,
      keySpaces: node.initialized ? this.views(keySpace) : [],
    };
  }

  /** The named key space, also when unknown; with "" all known or registered ones in byte order. */
  views(keySpace: string): readonly KeySpaceView[] {
    if (keySpace !== "") return [this.view(keySpace, this.descriptors(keySpace))];
    const spaces = new Map<string, readonly RangeDescriptor[]>();
    for (const known of this.serving.node.metaGroup().machine.meta.keySpaces()) {
      spaces.set(known.keySpace, known.descriptors);
    }
    for (const flagged of this.flags.keys()) if (!spaces.has(flagged)) spaces.set(flagged, []);
    return [...spaces]
      .sort(([left], [right]) => compareText(left, right))
      .map(([name, descriptors]) => this.view(name, descriptors));
  }

  private view(keySpace: string, ranges: readonly RangeDescriptor[]): KeySpaceView {
    return { keySpace, routingMode: this.mode(keySpace), ranges };
  }

  private descriptors(keySpace: string): readonly RangeDescriptor[] {
    return this.serving.node.metaGroup().machine.meta.ranges(keySpace);
  }

  private mode(keySpace: string): "Hash" | "KeyRange" {
    const flag = this.flags.get(keySpace) ?? this.descriptors(keySpace).length > 0;
    return flag ? "KeyRange" : "Hash";
  }

  /** Sets the flag of this node; it is remembered only while the descriptors say otherwise. */
  private setFlag(keySpace: string, flag: boolean): void {
    this.flags.delete(keySpace);
    if (this.descriptors(keySpace).length > 0 === flag) return;
    this.flags.set(keySpace, flag);
    for (const oldest of this.flags.keys()) {
      if (this.flags.size <= FLAGS_MAX) break;
      this.flags.delete(oldest);
    }
  }

  register(keySpace: string, deadlineMs: number, done: RegisterDone): void {
    const home = isKeySpace(keySpace) ? this.serving.bucketGroup(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    this.setFlag(keySpace, true);
    const latestMs = this.serving.ports.clock.monotonicMs() + REGISTER_MAX_MS;
    this.serving.node
      .metaGroup()
      .propose(
        { kind: "register-range", keySpace, partitionId: home.partition },
        COMMAND_BYTES + keySpace.length * 3,
        Math.min(deadlineMs, latestMs),
        (result) => {
          const seeded = metaStatus(result) === "done";
          if (!seeded && metaStatus(result) !== "unchanged") {
            return done(this.openRegister(keySpace, result));
          }
          this.setFlag(keySpace, true);
          const status = seeded ? "Seeded" : "AlreadySeeded";
          done(this.registerAnswer(keySpace, status, true, seeded, ""));
        },
      );
  }

  unregister(keySpace: string, deadlineMs: number, done: RegisterDone): void {
    const home = isKeySpace(keySpace) ? this.serving.bucketGroup(keySpace) : null;
    if (home === null) return this.refuseRegister(keySpace, done);
    if (this.descriptors(keySpace).some((range) => range.partitionId !== home.partition)) {
      const reason = "A range lies outside the hash partition, and this version moves no data.";
      const answer = this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
      return this.serving.ports.timer.soon(() => done(answer));
    }
    this.serving.node
      .metaGroup()
      .propose(
        { kind: "unregister-range", keySpace },
        COMMAND_BYTES + keySpace.length * 3,
        deadlineMs,
        (result) => {
          const status = metaStatus(result);
          if (status !== "done" && status !== "unchanged") {
            return done(this.openRegister(keySpace, result));
          }
          this.setFlag(keySpace, false);
          done(this.registerAnswer(keySpace, "Removed", true, false, ""));
        },
      );
  }

  private refuseRegister(keySpace: string, done: RegisterDone): void {
    const valid = isKeySpace(keySpace);
    const status = valid ? "KeyRangeDisabled" : "InvalidInput";
    const reason = valid
      ? "The cluster has no data partition."
      : "A key space has 1 to 1024 bytes, does not begin with __svc: and does not end in /meta.";
    const answer = this.registerAnswer(keySpace, status, false, false, reason);
    this.serving.ports.timer.soon(() => done(answer));
  }

  /** The end of a range change that was not applied, or that apply refused. */
  private openRegister(keySpace: string, result: ProposalResult): RegisterRangeAnswer {
    const status = metaStatus(result);
    if (status === "not-founded") {
      const reason = "The cluster has no data partition.";
      return this.registerAnswer(keySpace, "KeyRangeDisabled", false, false, reason);
    }
    if (status !== null) {
      const reason = "The key space was refused.";
      return this.registerAnswer(keySpace, "InvalidInput", false, false, reason);
    }
    const reason = "The change was not confirmed in time; read the ranges again.";
    return this.registerAnswer(keySpace, "Indeterminate", false, false, reason);
  }

  private registerAnswer(
    keySpace: string,
    status: string,
    success: boolean,
    seeded: boolean,
    reason: string,
  ): RegisterRangeAnswer {
    return {
      success,
      status,
      seeded,
      routingMode: this.mode(keySpace),
      descriptorCount: this.descriptors(keySpace).length,
      reason,
    };
  }

  split(
    request: { readonly keySpace: string; readonly splitKey: string },
    deadlineMs: number,
    done: SplitDone,
  ): void {
    const { keySpace, splitKey } = request;
    const { node, ports } = this.serving;
    if (!isKeySpace(keySpace) || !isOpenName(splitKey)) {
      const reason = "The key space or the split key is not acceptable.";
      return ports.timer.soon(() => done(splitRefusal("InvalidInput", reason)));
    }
    if (this.serving.dataGroups().length === 0) {
      const reason = "The cluster has no data partition.";
      return ports.timer.soon(() => done(splitRefusal("KeyRangeDisabled", reason)));
    }
    node.metaGroup().read(deadlineMs, (result) => {
      if (result.status !== "confirmed") return done(this.notLeading());
      const descriptors = this.descriptors(keySpace);
      const range = covering(descriptors, splitKey);
      if (range === null) {
        return done(splitRefusal("NoRange", "The key space has no range that covers the key."));
      }
      if (bucketOf(splitKey) !== keySpace || splitKey === range.startKey) {
        const reason = "The split key is outside the key space, or the start of its range.";
        return done(splitRefusal("InvalidSplitKey", reason));
      }
      this.probe(keySpace, range, deadlineMs, (count) => done(this.splitVerdict(count)));
    });
  }

  private notLeading(): SplitRangeAnswer {
    const reason = "This node did not prove that it leads the meta partition.";
    return splitRefusal("NotLeader", reason);
  }

  private splitVerdict(count: number | null): SplitRangeAnswer {
    const { rangeSplitMinSize } = this.serving.settings;
    if (count === null) {
      return splitRefusal("ProbeIndeterminate", "The size of the range could not be read.");
    }
    if (count < rangeSplitMinSize) {
      const reason = `The range holds ${count} keys, fewer than ${rangeSplitMinSize}.`;
      return splitRefusal("BelowMinRangeSize", reason);
    }
    const reason = "This version cannot make a further partition; nothing was changed.";
    return splitRefusal("PartitionCreationFailed", reason);
  }

  /** Counts the live keys of a range in a proved turn, up to the smallest size that may be split; null = unknown. */
  private probe(
    keySpace: string,
    range: RangeDescriptor,
    deadlineMs: number,
    then: (count: number | null) => void,
  ): void {
    const group = this.groupOf(range);
    if (group === null) return then(null);
    const { rangeSplitMinSize } = this.serving.settings;
    const query = {
      bucket: keySpace,
      startKey: range.startKey,
      startInclusive: true,
      endKey: range.endKey,
      endInclusive: false,
    };
    let count = 0;
    const step = (after: Uint8Array | null): void => {
      group.read(deadlineMs, (result) => {
        if (result.status !== "confirmed") return then(null);
        const limit = Math.max(1, rangeSplitMinSize - count);
        const { pageBytes } = this.serving.settings;
        const bounds = { after, limit, maxBytes: pageBytes, maxVisits: VISITS_MAX };
        const reading = group.machine.reads.rangePage(query, bounds, result.leaseMs);
        if (reading.kind === "invalid") return then(null);
        count += reading.page.items.length;
        if (count >= rangeSplitMinSize || reading.page.next === null) return then(count);
        step(reading.page.next);
      });
    };
    step(null);
  }

  private groupOf(range: RangeDescriptor): GroupAccess | null {
    const groups = this.serving.dataGroups();
    return groups.find((group) => group.partition === range.partitionId) ?? null;
  }

  /** One pass over the whole map. Only a split makes neighbours, so a pass of this version finds none to fold. */
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

function metaStatus(result: ProposalResult): string | null {
  if (result.status !== "applied" || result.outcome.kind !== "meta") return null;
  return result.outcome.status;
}

function splitRefusal(status: string, reason: string): SplitRangeAnswer {
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
