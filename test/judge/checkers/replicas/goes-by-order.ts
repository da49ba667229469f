/**
 * Property (P-097): nobody goes from the configuration of a placed group whom no record of its present life told to go, or
 * to be replaced. A leader that takes absence from the record it knows for an order would do so.
 *
 * Invariants: 1. A record counts from when any node has applied it: its group's leader has, before it changes the group.
 * 2. Whoever was told to go and then to stay may have gone meanwhile.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

interface Config {
  readonly index: number;
  readonly nodes: readonly number[];
}

export class GoesByOrder {
  private readonly findings: Findings;
  private readonly configs = new Map<number, Config>();
  /** Present life of each replica that was listed, by partition and node. */
  private readonly lives = new Map<string, number>();
  private readonly told = new Set<string>();

  constructor(minimum: Readonly<Record<string, number>> = { departures: 5 }) {
    this.findings = new Findings("replicas go by order", minimum);
  }

  record({ partitionId, mode, replicas }: PartitionRecord): void {
    if (mode !== "placed") return;
    for (const { nodeId, incarnation, role } of replicas) {
      const place = `${partitionId}/${nodeId}`;
      this.lives.set(place, Math.max(this.lives.get(place) ?? 0, incarnation));
      const isReplaced = replicas.some(({ replaces }) => replaces === nodeId);
      if (role === "removing" || isReplaced) this.told.add(`${place}/${incarnation}`);
    }
  }

  /** Some node has applied the configuration of the entry at `index`; 0 = the first. */
  membership(group: number, index: number, membership: Membership): void {
    const known = this.configs.get(group);
    if (known !== undefined && known.index >= index) return;
    const { voters, votersOutgoing, learners, learnersNext } = membership;
    const nodes = [...new Set([...voters, ...votersOutgoing, ...learners, ...learnersNext])];
    this.configs.set(group, { index, nodes });
    for (const node of known?.nodes ?? []) {
      const place = `${group}/${node}`;
      const life = this.lives.get(place);
      if (nodes.includes(node) || life === undefined) continue;
      this.findings.count("departures");
      if (this.told.has(`${place}/${life}`)) continue;
      const change = `${known?.nodes.join()} became ${nodes.join()}`;
      this.findings.violation(`partition ${group}, entry ${index}: ${change}, by no order`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
