/**
 * Property (P-094): each change of a partition's record is one of those that there are: a factor, a
 * list, an order about one replica, a report of what was applied, or a step of a move of a key
 * range; and raises its generation by one, which is noted with each role that it gives.
 *
 * Invariant: where a generation between two was not seen, nothing is said about them.
 */
import type { PartitionRecord, ReplicaRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

type Edge = "factors" | "lists" | "moves" | "orders" | "reports";
type Replicas = readonly ReplicaRecord[];

function at(replicas: Replicas, node: number): ReplicaRecord | undefined {
  return replicas.find(({ nodeId }) => nodeId === node);
}

function isSame(one: ReplicaRecord, other: ReplicaRecord | undefined): boolean {
  return (
    one.role === other?.role &&
    one.incarnation === other.incarnation &&
    one.since === other.since &&
    one.replaces === other.replaces
  );
}

function isVoter({ role }: ReplicaRecord): boolean {
  return role === "voter";
}

type Change = readonly [before: ReplicaRecord | undefined, after: ReplicaRecord | undefined];

/** The replicas of which anything differs. */
function changesOf(before: Replicas, after: Replicas): readonly Change[] {
  const nodes = new Set([...before, ...after].map(({ nodeId }) => nodeId));
  const pairs = [...nodes].map((node): Change => [at(before, node), at(after, node)]);
  return pairs.filter(([one, other]) => one === undefined || !isSame(one, other));
}

function isOrder(from: PartitionRecord, to: PartitionRecord): boolean {
  const changes = changesOf(from.replicas, to.replicas);
  const [before, after] = changes[0] ?? [];
  if (changes.length !== 1 || after === undefined) return false;
  const isQuiet = from.replicas.every(isVoter);
  if (before === undefined) {
    const { role, incarnation, replaces } = after;
    const goes = at(from.replicas, replaces);
    const isFree = replaces === 0 || goes?.role === "voter";
    return isQuiet && isFree && role === "learner" && Number(incarnation) === to.generation;
  }
  if (after.incarnation !== before.incarnation || after.replaces !== 0) return false;
  if (before.role === "removing") return after.role === "voter";
  if (after.role !== "removing") return false;
  return before.role === "learner" || (isQuiet && from.replicas.length > 1);
}

/** Each replica as a report may have changed it. */
function isReport(from: PartitionRecord, to: PartitionRecord): boolean {
  if (to.configIndex <= from.configIndex) return false;
  const risen = to.replicas.filter(({ nodeId, role }) => {
    return role === "voter" && at(from.replicas, nodeId)?.role === "learner";
  });
  const replaced = risen.map(({ nodeId }) => at(from.replicas, nodeId)?.replaces ?? 0);
  return changesOf(from.replicas, to.replicas).every(([before, after]) => {
    if (before === undefined) return false;
    if (after === undefined) return before.role === "removing";
    if (after.incarnation !== before.incarnation || after.replaces !== 0) return false;
    if (before.role === "learner") return after.role === "voter";
    return before.role === "voter" && after.role === "removing" && replaced.includes(before.nodeId);
  });
}

/** Who has another role, or is new, has it since now. */
function isDated(from: PartitionRecord, to: PartitionRecord): boolean {
  const changes = changesOf(from.replicas, to.replicas);
  return changes.every(([, after]) => after === undefined || after.since === to.generation);
}

function isList(from: PartitionRecord, to: PartitionRecord): boolean {
  // A learner that is about to leave the cluster, or has left it, is listed as one that goes.
  const isFounding = to.replicas.every(({ incarnation, replaces }) => {
    return incarnation === 0 && replaces === 0;
  });
  return from.mode === "full" && to.replicas.some(isVoter) && isFounding;
}

function headOf({ state, generation }: PartitionRecord): Partial<PartitionRecord> {
  return { state, generation };
}

/** States by the move of a key range that takes keys from the partition, or made it. */
function isStep({ state: from }: PartitionRecord, { state: to }: PartitionRecord): boolean {
  if (from === "Active") return to === "Splitting" || to === "Draining";
  return from !== "Removed" && (to === "Active" || to === "Removed");
}

/** Which kind of change it is; null = none that there is. */
export function edgeOf(from: PartitionRecord, to: PartitionRecord): Edge | null {
  const isFixed = from.founders.join() === to.founders.join();
  if (!isFixed || from.bornVersion !== to.bornVersion || !isDated(from, to)) return null;
  if (from.state !== to.state) {
    const isAsBefore = JSON.stringify(from) === JSON.stringify({ ...to, ...headOf(from) });
    return isAsBefore && isStep(from, to) ? "moves" : null;
  }
  if (from.mode !== to.mode) {
    return from.replicationOverride === to.replicationOverride && isList(from, to) ? "lists" : null;
  }
  const isQuiet = changesOf(from.replicas, to.replicas).length === 0;
  const isOfNow = from.configIndex === to.configIndex;
  if (from.replicationOverride !== to.replicationOverride) {
    return isQuiet && isOfNow ? "factors" : null;
  }
  // A factor may be set to what it is.
  if (isQuiet && isOfNow) return "factors";
  if (to.mode === "full") return null;
  if (isOfNow) return isOrder(from, to) ? "orders" : null;
  return isReport(from, to) ? "reports" : null;
}

export class LegalEdges {
  private readonly findings: Findings;
  private readonly records = new Map<number, Map<number, PartitionRecord>>();

  constructor(minimum: Readonly<Record<string, number>> = { orders: 5, reports: 5 }) {
    this.findings = new Findings("records change by orders and reports", minimum);
  }

  record(record: PartitionRecord): void {
    const { partitionId, generation } = record;
    let known = this.records.get(partitionId);
    if (known === undefined) this.records.set(partitionId, (known = new Map()));
    const other = known.get(generation);
    if (other !== undefined) {
      const isEqual = JSON.stringify(other) === JSON.stringify(record);
      if (!isEqual) this.tell("two records of one generation", other, record);
      return;
    }
    known.set(generation, record);
    this.compare(known.get(generation - 1), record);
    this.compare(record, known.get(generation + 1));
  }

  /** An order that was decided on `generation` was carried out, and made generation `made`. */
  ordered(partition: number, generation: number, made: number): void {
    this.findings.count("orders by hand");
    if (made === generation + 1) return;
    const text = `an order decided on generation ${generation} makes ${made}`;
    this.findings.violation(`partition ${partition}: ${text}`);
  }

  private compare(from: PartitionRecord | undefined, to: PartitionRecord | undefined): void {
    if (from === undefined || to === undefined) return;
    const edge = edgeOf(from, to);
    if (edge !== null) this.findings.count(edge);
    else this.tell("no order or report does that", from, to);
  }

  private tell(what: string, from: PartitionRecord, to: PartitionRecord): void {
    const both = `${JSON.stringify(from)}, then ${JSON.stringify(to)}`;
    this.findings.violation(`partition ${to.partitionId}: ${what}: ${both}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
