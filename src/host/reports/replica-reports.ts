/**
 * Tells the partition map which configuration each placed group really has: the leader of a group
 * reports what was applied, again and again until its own map shows it.
 *
 * Invariants: 1. Only what is applied and established is reported (P-084): a replica that is gone
 * is dropped, and nobody may have to ask for its vote again. Never while two configurations decide
 * together, and never by a leader whose record is older than the configuration (P-205). 2. A report
 * says what it rests on: late and repeated ones change nothing (P-094). 3. Groups that are on every
 * node are never reported; while there are no others a tick costs nothing. 4. One command tells of
 * up to PLACEMENT_ITEMS_MAX groups, and is never larger than what is taken.
 */
import {
  type ConfigIndex,
  type PartitionId,
  type PlacementGeneration,
  partitionId,
} from "../../base/ids.js";
import { dueReport } from "../../control/placed-plan.js";
import { PLACEMENT_ITEMS_MAX } from "../../base/limits.js";
import { commandSizeBytes } from "../../machine/commands/codec.js";
import type {
  PartitionRecord,
  ReplicaReport,
  ReportReplicasCommand,
} from "../../machine/commands/command.js";
import type { Membership } from "../../raft/state/types.js";

/** One group, as its leader reports it; a replica is one. */
export interface LedGroup {
  readonly partition: PartitionId;
  readonly leadership: { readonly isServing: boolean };
  readonly members: {
    readonly membership: Membership;
    /** No restart and no death of a minority makes its majority forget it. */
    readonly isEstablished: boolean;
    establish(nowMs: number): void;
  };
  readonly machine: {
    /** Of the applied configuration. */
    readonly membershipIndex: ConfigIndex;
    /** Highest generation of the record that an applied configuration rests on. */
    readonly placedGeneration: PlacementGeneration;
  };
}

export interface ReplicaReportsDeps {
  /** The records of placed partitions as applied here; another map after each change of them. */
  placed(): ReadonlyMap<number, PartitionRecord>;
  /** Those of this node's groups that were run since the last tick. */
  activeGroups(): Iterable<LedGroup>;
  find(partition: PartitionId): LedGroup | null;
  /** Ends a sleep of the group and gives it a turn. */
  wake(partition: PartitionId): void;
  /** Has the command decided by whoever leads the meta partition; `done` may come late. */
  propose(command: ReportReplicasCommand, deadlineMs: number, done: () => void): void;
  /** A larger command is not taken. */
  readonly maxBytes: number;
}

/** Pause between two reports of the same (ms). */
const AGAIN_MS = 1000;

export class ReplicaReports {
  /** Groups whose record may be behind, and when each is reported next (ms). */
  private readonly due = new Map<PartitionId, number>();
  private seen: ReadonlyMap<number, PartitionRecord> | null = null;

  constructor(private readonly deps: ReplicaReportsDeps) {}

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.due.size > 0;
  }

  /** Once per tick, inside a turn. */
  tick(nowMs: number): void {
    const placed = this.deps.placed();
    if (placed.size === 0) return;
    this.gather(placed, nowMs);
    if (this.due.size === 0) return;
    const reports: ReplicaReport[] = [];
    for (const [partition, atMs] of this.due) {
      const group = this.deps.find(partition);
      const report = group === null ? null : reportOf(group, placed.get(partition));
      if (group === null || report === null) {
        this.due.delete(partition);
        continue;
      }
      if (!group.members.isEstablished) {
        group.members.establish(nowMs);
        this.deps.wake(partition);
        continue;
      }
      if (atMs > nowMs) continue;
      this.due.set(partition, nowMs + AGAIN_MS);
      reports.push(report);
    }
    this.sendAll(reports, nowMs);
  }

  /** In as few commands as may hold them: a group may have many members yet. */
  private sendAll(reports: readonly ReplicaReport[], nowMs: number): void {
    let items: ReplicaReport[] = [];
    let filledBytes = 0;
    for (const report of reports) {
      const sizeBytes = commandSizeBytes({ kind: "report-replicas", items: [report] });
      const isFull = filledBytes + sizeBytes > this.deps.maxBytes;
      if (items.length > 0 && (isFull || items.length === PLACEMENT_ITEMS_MAX)) {
        this.send(items, nowMs);
        items = [];
        filledBytes = 0;
      }
      items.push(report);
      filledBytes += sizeBytes;
    }
    if (items.length > 0) this.send(items, nowMs);
  }

  /** Whatever the end is: only the map that is applied here says that a report arrived. */
  private send(items: readonly ReplicaReport[], nowMs: number): void {
    this.deps.propose({ kind: "report-replicas", items }, nowMs + AGAIN_MS, () => undefined);
  }

  private gather(placed: ReadonlyMap<number, PartitionRecord>, nowMs: number): void {
    const look = (partition: PartitionId): void => {
      if (!this.due.has(partition)) this.due.set(partition, nowMs);
    };
    if (placed !== this.seen) {
      this.seen = placed;
      for (const partition of placed.keys()) look(partitionId(partition));
      return;
    }
    for (const { partition, leadership } of this.deps.activeGroups()) {
      if (leadership.isServing && placed.has(partition)) look(partition);
    }
  }
}

/** null when there is nothing to report, or not by this node. */
function reportOf(
  { leadership, members, machine }: LedGroup,
  record: PartitionRecord | undefined,
): ReplicaReport | null {
  if (record === undefined || !leadership.isServing) return null;
  const { membershipIndex: configIndex, placedGeneration } = machine;
  return dueReport({ record, membership: members.membership, configIndex, placedGeneration });
}
