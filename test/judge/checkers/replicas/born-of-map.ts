/**
 * Property (P-097): a node has a replica of a partition only in a life that some committed record of
 * that partition gave it.
 *
 * Invariant: a record counts from the moment at which any node has applied it.
 */
import { META_PARTITION } from "../../../../src/base/ids.js";
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

export class BornOfMap {
  private readonly findings: Findings;
  /** Lives that were placed, by partition: "node/life"; "*": everybody, in the founding life. */
  private readonly placed = new Map<number, Set<string>>();
  private readonly known = new Set<string>();

  constructor(minimum: Readonly<Record<string, number>> = { replicas: 5, "later lives": 3 }) {
    this.findings = new Findings("replicas are born of the map", minimum);
  }

  record({ partitionId, mode, replicas }: PartitionRecord): void {
    let lives = this.placed.get(partitionId);
    if (lives === undefined) this.placed.set(partitionId, (lives = new Set()));
    if (mode === "full") lives.add("*");
    for (const { nodeId, incarnation } of replicas) lives.add(`${nodeId}/${incarnation}`);
  }

  /** `node` has a replica of `group` in this life of it. */
  replica(node: number, group: number, incarnation: number): void {
    const life = `${group}/${node}/${incarnation}`;
    if (group === META_PARTITION || this.known.has(life)) return;
    this.known.add(life);
    this.findings.count("replicas");
    if (incarnation > 0) this.findings.count("later lives");
    const lives = this.placed.get(group);
    const isPlaced =
      lives?.has(`${node}/${incarnation}`) === true || (incarnation === 0 && lives?.has("*"));
    if (isPlaced === true) return;
    const text = `node ${node} has a replica of partition ${group}, life ${incarnation}`;
    this.findings.violation(`${text}, which no record placed`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
