/**
 * Property (P-093): a partition that is not as it is to be has a step or a reason in each pass of
 * the allocator.
 *
 * Invariant: what is to be done is reckoned here, from records and the member list.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";
import { wishedVoters } from "./converged.js";

/** A pass of the allocator, with what it looked at. */
export interface SeenPass {
  readonly node: number;
  readonly records: readonly PartitionRecord[];
  readonly factor: number;
  readonly members: readonly { readonly nodeId: number; readonly role: string }[];
  /** Partitions that the pass ordered something for, or gave a reason. */
  readonly told: ReadonlySet<number>;
}

/** Something is to be done about it. */
function isOpen(record: PartitionRecord, { factor, members }: SeenPass): boolean {
  if (record.mode !== "placed" || record.state === "Removed") return false;
  const voters = members.filter(({ role }) => role === "voter").length;
  const wished = wishedVoters(record, factor, voters);
  const stays = (node: number): boolean => {
    return members.some(({ nodeId, role }) => nodeId === node && role !== "leaving");
  };
  const isWhole = record.replicas.every(({ role, nodeId }) => role === "voter" && stays(nodeId));
  return !isWhole || record.replicas.length !== wished;
}

export class WhyTold {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { passes: 20, "open partitions": 20 }) {
    this.findings = new Findings("what waits has a reason", minimum);
  }

  pass(pass: SeenPass): void {
    this.findings.count("passes");
    for (const record of pass.records) {
      if (!isOpen(record, pass)) continue;
      this.findings.count("open partitions");
      if (pass.told.has(record.partitionId)) continue;
      const listed = record.replicas.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
      const where = `partition ${record.partitionId}, generation ${record.generation}`;
      this.findings.violation(`${where} (${listed}): node ${pass.node} tells nothing of it`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
