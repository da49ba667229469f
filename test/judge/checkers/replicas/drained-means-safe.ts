/**
 * Property (P-096): a node that was told that it has left may be killed at that moment: no record
 * and no configuration counts on its vote, and afterwards each partition is served. (A partition
 * that is listed at that moment may bring it along as a learner, which then goes.)
 *
 * What was acknowledged is there: that is for the checkers of histories. Invariants: 1. The newest
 * record and the newest configuration that any node has applied count. 2. A node that joins anew is
 * another one. 3. What was removed for good keeps its list and its last configuration, and needs
 * nobody.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

export class DrainedMeansSafe {
  private readonly findings: Findings;
  private readonly records = new Map<number, PartitionRecord>();
  private readonly configs = new Map<number, { readonly index: number; readonly is: Membership }>();
  private hasLeft = false;

  constructor(minimum: Readonly<Record<string, number>> = { left: 1 }) {
    this.findings = new Findings("who has left is not needed", minimum);
  }

  record(record: PartitionRecord): void {
    const known = this.records.get(record.partitionId);
    if (known !== undefined && known.generation >= record.generation) return;
    this.records.set(record.partitionId, record);
  }

  membership(group: number, index: number, is: Membership): void {
    const known = this.configs.get(group);
    if (known === undefined || index > known.index) this.configs.set(group, { index, is });
  }

  /** `node` was told that it has left. `isDrained`: that its replicas have gone to others. */
  left(node: number, isDrained: boolean): void {
    this.findings.count(isDrained ? "drained" : "left with nothing");
    this.findings.count("left");
    this.hasLeft = true;
    for (const { partitionId, replicas, state } of this.records.values()) {
      if (state === "Removed") continue;
      if (!replicas.some(({ nodeId, role }) => nodeId === node && role === "voter")) continue;
      this.findings.violation(`node ${node} has left, partition ${partitionId} lists it`);
    }
    for (const [group, { is }] of this.configs) {
      if (this.records.get(group)?.state === "Removed") continue;
      if (![...is.voters, ...is.votersOutgoing].includes(node)) continue;
      this.findings.violation(`node ${node} has left and votes in group ${group}`);
    }
  }

  /** In peace these partitions are led, of all that there are. */
  settled(all: Iterable<number>, served: ReadonlySet<number>): void {
    if (!this.hasLeft) return;
    for (const partition of all) {
      if (served.has(partition)) continue;
      this.findings.violation(`nodes have left, and nobody serves partition ${partition}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
