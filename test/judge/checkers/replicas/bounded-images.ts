/**
 * Property (P-106): never are more snapshots and new replicas on their way than there may be: to a
 * node, from a node, and in the cluster.
 *
 * Invariant: what somebody ordered by hand is no order of the allocator, and is not counted. How
 * many of a size may be on their way at a time is for the tables of the planner: no partition of a
 * simulated world is large.
 */
import { ARRIVING_MAX, MOVES_MAX } from "../../../../src/base/limits.js";
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

export class BoundedImages {
  private readonly findings: Findings;
  private readonly byHand = new Set<string>();

  constructor(
    /** Snapshots that a node takes, and sends, at the same time. */
    private readonly receiversMax: number,
    private readonly sendersMax: number,
    minimum: Readonly<Record<string, number>> = { "snapshots on their way": 1, arrivals: 5 },
  ) {
    this.findings = new Findings("few replicas are on their way", minimum);
  }

  /** Somebody orders by hand what makes the generation after `generation`. */
  ordered(partition: number, generation: number): void {
    this.byHand.add(`${partition}/${generation + 1}`);
  }

  /** The whole newest map. */
  records(records: readonly PartitionRecord[]): void {
    const arriving = new Map<number, number>();
    let moves = 0;
    for (const { partitionId, replicas } of records) {
      const moved = replicas.filter(({ role, incarnation }) => {
        return role === "learner" && incarnation > 0;
      });
      for (const { nodeId, incarnation } of moved) {
        if (this.byHand.has(`${partitionId}/${incarnation}`)) continue;
        moves++;
        arriving.set(nodeId, (arriving.get(nodeId) ?? 0) + 1);
      }
    }
    for (const [node, count] of arriving) {
      this.findings.count("arrivals", count);
      this.bound(`replicas come to node ${node}`, count, ARRIVING_MAX);
    }
    this.bound("replicas are on their way", moves, MOVES_MAX);
  }

  /** Snapshots that a node takes in and sends, at one moment. */
  transfers(node: number, incoming: number, outgoing: number): void {
    this.findings.count("snapshots on their way", incoming);
    this.bound(`snapshots come to node ${node}`, incoming, this.receiversMax);
    this.bound(`snapshots leave node ${node}`, outgoing, this.sendersMax);
  }

  private bound(what: string, count: number, most: number): void {
    if (count > most) this.findings.violation(`${count} ${what}, ${most} at most`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
