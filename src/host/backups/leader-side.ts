/**
 * What the leaders of groups do for a backup: they prove what meta says, put marks into their logs,
 * and pause for a coordinated cut.
 *
 * Invariants: 1. What is said of a group is of a leadership that is proved: an applied mark, or a
 * round begun after the question came (P-132). 2. Every question is answered once, by its deadline,
 * or not at all. 3. Nothing is kept between two questions but what the groups keep.
 */
import { partitionId, type PartitionId } from "../../base/ids.js";
import { CUT_PAUSE_MAX_MS } from "../../base/limits.js";
import { commandSizeBytes } from "../../machine/commands/codec.js";
import type { MarkCommand } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { Group, ProposalResult } from "../group/group.js";
import type {
  BackupAnswer,
  CloseAsk,
  MarkAsk,
  MarkItem,
  PrepareAsk,
  ReleaseWord,
  VerifyAsk,
} from "./backup-messages.js";

export interface LeaderSideDeps {
  nowMs(): number;
  wallMs(): number;
  find(partition: PartitionId): Group | null;
  /** The meta group and its records; null before there are any, and after. */
  meta(): { readonly group: Group; readonly reads: MetaReads } | null;
}

type Answer = (answer: BackupAnswer) => void;

const NOT_LEADER: BackupAnswer = { kind: "no", why: "not-leader" };

/** Answers once when each of `count` parts has been told of. */
class Gathering<T> {
  private readonly parts: T[] = [];

  constructor(
    private readonly count: number,
    private readonly done: (parts: readonly T[]) => void,
  ) {
    if (count === 0) done([]);
  }

  add(part: T): void {
    this.parts.push(part);
    if (this.parts.length === this.count) this.done(this.parts);
  }
}

function unmarked(partition: number, end: MarkItem["end"]): MarkItem {
  return { partition, mark: null, end };
}

export class LeaderSide {
  constructor(private readonly deps: LeaderSideDeps) {}

  private serving(partition: number): Group | null {
    const group = this.deps.find(partitionId(partition));
    return group?.isServing() === true ? group : null;
  }

  topology(deadlineMs: number, answer: Answer): void {
    const meta = this.deps.meta();
    if (meta?.group.isServing() !== true) return answer(NOT_LEADER);
    meta.group.read(deadlineMs, ({ status }) => {
      const now = this.deps.meta();
      const cluster = now?.reads.cluster() ?? null;
      if (status !== "confirmed" || now === null || cluster === null) return answer(NOT_LEADER);
      const living = now.reads.partitions().filter(({ state }) => state !== "Removed");
      const ids = new Set([0, ...living.map((record) => record.partitionId)]);
      answer({
        kind: "topology",
        term: now.group.term(),
        topologyVersion: cluster.topologyVersion,
        level: cluster.level,
        lineage: cluster.clusterId,
        partitions: [...ids].sort((a, b) => a - b),
        isMoving: now.reads.moves().length > 0,
      });
    });
  }

  mark({ backupId, round, partitions }: MarkAsk, deadlineMs: number, answer: Answer): void {
    const command: MarkCommand = { kind: "mark", backupId, round };
    const gathering = this.gathering(partitions.length, answer);
    for (const partition of partitions) {
      const group = this.serving(partition);
      if (group === null) gathering.add(unmarked(partition, "not-led"));
      else {
        group.proposeFinal(command, commandSizeBytes(command), deadlineMs, (result) => {
          gathering.add(this.marked(group, command, result));
        });
      }
    }
  }

  private gathering(count: number, answer: Answer): Gathering<MarkItem> {
    return new Gathering(count, (items) => {
      answer({ kind: "marks", wallMs: Math.max(0, Math.floor(this.deps.wallMs())), items });
    });
  }

  /** What came of a mark: the digest is the one that this replica had right behind it. */
  private marked(group: Group, command: MarkCommand, result: ProposalResult): MarkItem {
    const { partition } = group;
    if (result.status !== "applied") {
      return unmarked(partition, result.status === "refused" ? "not-led" : "failed");
    }
    const mark = group.machine.marks.find(
      ({ index, backupId }) => index === result.index && backupId === command.backupId,
    );
    if (mark === undefined) return unmarked(partition, "failed");
    const { index, term, stamp, chain } = mark;
    return { partition, end: "marked", mark: { index, term, stamp, chain } };
  }

  prepare({ partitions }: PrepareAsk, answer: Answer): void {
    let stampMs = 0;
    for (const partition of partitions) {
      const group = this.serving(partition);
      stampMs = group === null ? -1 : Math.max(stampMs, group.lastStamp.l);
      if (group === null) break;
    }
    answer({ kind: "prepared", wallMs: Math.max(0, Math.floor(this.deps.wallMs())), stampMs });
  }

  close(ask: CloseAsk, deadlineMs: number, answer: Answer): void {
    const { epochTerm: term, round, at, backupId, partitions } = ask;
    const command: MarkCommand = { kind: "mark", backupId, round };
    const untilMs = Math.min(deadlineMs, this.deps.nowMs() + CUT_PAUSE_MAX_MS);
    const gathering = this.gathering(partitions.length, answer);
    for (const partition of partitions) {
      const group = this.serving(partition);
      if (group === null) {
        gathering.add(unmarked(partition, "not-led"));
        continue;
      }
      const closed = group.closeForCut({ term, round }, command, at, untilMs, (result) => {
        gathering.add(this.marked(group, command, result));
      });
      if (closed === "closing" || closed === "refused") continue;
      gathering.add(unmarked(partition, closed === "passed" ? "passed" : "failed"));
    }
  }

  verify(
    { epochTerm: term, round, partitions }: VerifyAsk,
    deadlineMs: number,
    answer: Answer,
  ): void {
    const gathering = new Gathering<boolean>(partitions.length, (proofs) => {
      answer({ kind: "verified", isProved: proofs.every((isProved) => isProved) });
    });
    for (const partition of partitions) {
      const group = this.serving(partition);
      if (group === null) gathering.add(false);
      else group.proveCutPause({ term, round }, deadlineMs, (isProved) => gathering.add(isProved));
    }
  }

  release({ epochTerm: term, round, partitions }: ReleaseWord): void {
    for (const partition of partitions) {
      this.deps.find(partitionId(partition))?.releaseCutPause({ term, round });
    }
  }
}
