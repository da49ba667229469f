/**
 * Property (P-205): the members of the newest configuration of a placed group are in the newest
 * record of its partition.
 *
 * Invariants: 1. What any node has applied counts: a leader knows the record before it changes the
 * group, and reports what it has applied. 2. In full mode there is no list to be in.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

interface Config {
  readonly index: number;
  readonly nodes: readonly number[];
}

export class ConfigInMap {
  private readonly findings: Findings;
  private readonly records = new Map<number, PartitionRecord>();
  private readonly configs = new Map<number, Config>();

  constructor(minimum: Readonly<Record<string, number>> = { configurations: 10, "of moves": 5 }) {
    this.findings = new Findings("members are in the map", minimum);
  }

  record(record: PartitionRecord): void {
    const { partitionId, generation } = record;
    const known = this.records.get(partitionId);
    if (known !== undefined && known.generation >= generation) return;
    this.records.set(partitionId, record);
    this.compare(partitionId);
  }

  /** Some node has applied the configuration of the entry at `index`; 0 = the first. */
  membership(group: number, index: number, membership: Membership): void {
    const known = this.configs.get(group);
    if (known !== undefined && known.index >= index) return;
    const { voters, votersOutgoing, learners, learnersNext } = membership;
    const nodes = [...new Set([...voters, ...votersOutgoing, ...learners, ...learnersNext])];
    this.configs.set(group, { index, nodes });
    this.compare(group);
  }

  private compare(partition: number): void {
    const record = this.records.get(partition);
    const config = this.configs.get(partition);
    if (record?.mode !== "placed" || config === undefined) return;
    this.findings.count("configurations");
    if (record.replicas.some(({ role }) => role !== "voter")) this.findings.count("of moves");
    const listed = record.replicas.map(({ nodeId }) => nodeId);
    const strangers = config.nodes.filter((node) => !listed.includes(node));
    if (strangers.length === 0) return;
    const members = `the configuration at ${config.index} has ${config.nodes.join()}`;
    const list = `generation ${record.generation} lists ${listed.join()}`;
    this.findings.violation(`partition ${partition}: ${members}, ${list}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
