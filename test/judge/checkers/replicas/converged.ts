/**
 * Property (P-094): in peace every placed partition gets as many voters as it is to have, all on
 * nodes that may have replicas, evenly, and nothing is on its way any more.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

export interface Placement {
  /** Placed partitions. */
  readonly records: readonly PartitionRecord[];
  /** Of the cluster. */
  readonly factor: number;
  /** Voters of the member list. */
  readonly voters: number;
  /** Nodes that may have replicas. */
  readonly able: readonly number[];
}

const VOTERS_MAX = 9;

/** How many voters a placed partition is to have. */
export function wishedVoters(
  { replicationOverride }: Pick<PartitionRecord, "replicationOverride">,
  factor: number,
  voters: number,
): number {
  const own = replicationOverride > 0 ? replicationOverride : factor;
  return Math.min(own > 0 ? own : VOTERS_MAX, voters);
}

/** Why replicas are not where they belong; null = they are. */
export function unconverged({ records, factor, voters, able }: Placement): string | null {
  const counts = new Map(able.map((node) => [node, 0]));
  for (const record of records) {
    const { partitionId, replicas } = record;
    const listed = replicas.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
    if (replicas.some(({ role }) => role !== "voter")) return `partition ${partitionId}: ${listed}`;
    const wished = wishedVoters(record, factor, voters);
    if (replicas.length !== wished) return `partition ${partitionId} of ${wished}: ${listed}`;
    for (const { nodeId } of replicas) {
      const count = counts.get(nodeId);
      if (count === undefined) return `partition ${partitionId} is on node ${nodeId}`;
      counts.set(nodeId, count + 1);
    }
  }
  const all = [...counts.values()];
  if (records.length === 0 || Math.max(...all) - Math.min(...all) <= 1) return null;
  return `replicas by node: ${[...counts].map(([node, count]) => `${node}: ${count}`).join(", ")}`;
}

export class Converged {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { settled: 1 }) {
    this.findings = new Findings("replicas come to where they belong", minimum);
  }

  /** The end of peace. `hasAllocator`: somebody puts replicas where they belong. */
  settled(placement: Placement, hasAllocator: boolean): void {
    if (!hasAllocator) return this.findings.count("without the allocator");
    this.findings.count("settled");
    this.findings.count("partitions", placement.records.length);
    const reason = unconverged(placement);
    if (reason !== null) this.findings.violation(reason);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
