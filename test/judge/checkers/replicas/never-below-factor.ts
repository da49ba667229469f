/**
 * Property (P-096): no order to remove a replica leaves a partition with fewer voters than it is to
 * have; but for a member that is removed by force, one that leaves while nothing may be moved, and
 * for what somebody ordered by hand.
 *
 * Invariants: 1. What is to be is reckoned here, from the committed factor and the member list. 2.
 * An order was decided on the member list of a moment before: the lowest of the last ones counts.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

/** An order is decided on lists that are at most so old (ms). */
const DECIDED_WITHIN_MS = 15_000;
const VOTERS_MAX = 9;

/** The line of a member that counts here. */
export interface Line {
  readonly nodeId: number;
  readonly role: string;
  /** It is removed by force. */
  readonly evicted?: boolean;
}

interface Listed {
  readonly atMs: number;
  readonly voters: number;
}

export class NeverBelowFactor {
  private readonly findings: Findings;
  private readonly records = new Map<number, Map<number, PartitionRecord>>();
  private readonly byHand = new Set<string>();
  private lists: Listed[] = [];
  private members: readonly Line[] = [];
  private factor = 0;

  constructor(
    /** Replicas of members that leave are moved, not just removed. */
    private readonly isMoved: boolean,
    minimum: Readonly<Record<string, number>> = { removals: 1 },
  ) {
    this.findings = new Findings("removals leave as many as there are to be", minimum);
  }

  /** A newer member list, and the factor of the cluster. */
  cluster(members: readonly Line[], factor: number, atMs: number): void {
    this.members = members;
    this.factor = factor;
    const voters = members.filter(({ role }) => role === "voter").length;
    this.lists.push({ atMs, voters });
    // The last one before the time that counts was in force when it began.
    while ((this.lists[1]?.atMs ?? Infinity) < atMs - DECIDED_WITHIN_MS) this.lists.shift();
  }

  /** Somebody orders by hand what makes the generation after `generation`. */
  ordered(partition: number, generation: number): void {
    this.byHand.add(`${partition}/${generation + 1}`);
  }

  record(record: PartitionRecord, atMs: number): void {
    const { partitionId, generation } = record;
    let known = this.records.get(partitionId);
    if (known === undefined) this.records.set(partitionId, (known = new Map()));
    if (known.has(generation)) return;
    known.set(generation, record);
    const before = known.get(generation - 1);
    if (before !== undefined) this.compare(before, record, atMs);
  }

  private compare(from: PartitionRecord, to: PartitionRecord, atMs: number): void {
    const isVoter = ({ role }: { readonly role: string }): boolean => role === "voter";
    if (from.mode !== "placed" || !from.replicas.every(isVoter)) return;
    const goes = to.replicas.find(({ role }) => role === "removing");
    if (goes === undefined || this.byHand.has(`${to.partitionId}/${to.generation}`)) return;
    this.findings.count("removals");
    const rest = to.replicas.filter(isVoter).length;
    const wished = this.wishedOf(to, atMs);
    if (rest >= wished) return;
    const line = this.members.find(({ nodeId }) => nodeId === goes.nodeId);
    if (line === undefined || line.evicted === true) return;
    if (!this.isMoved && line.role === "leaving") return;
    const where = `partition ${to.partitionId}, generation ${to.generation}`;
    const text = `node ${goes.nodeId} is to go, ${rest} of ${wished} voters stay`;
    this.findings.violation(`${where}: ${text}`);
  }

  private wishedOf({ replicationOverride }: PartitionRecord, atMs: number): number {
    const isOld = (at: number): boolean => {
      return (this.lists[at + 1]?.atMs ?? Infinity) < atMs - DECIDED_WITHIN_MS;
    };
    const counted = this.lists.filter((_, at) => !isOld(at)).map(({ voters }) => voters);
    const factor = replicationOverride > 0 ? replicationOverride : this.factor;
    return Math.min(factor > 0 ? factor : VOTERS_MAX, ...counted);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
