/**
 * Property (P-092): of the replicas of a partition one at a time is on its way in or out, and the
 * voters of its group change by one at a time, or by one for another in a joint change.
 *
 * Invariants: 1. Learners that a partition brings along when it is listed are its members already,
 * and do not count; not when they go, either, for nobody counts on them. 2. What a late node applies
 * of the time before the list says nothing: what lay between was not looked at.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

interface Step {
  readonly index: number;
  readonly voters: readonly number[];
}

export class SingleMover {
  private readonly findings: Findings;
  private readonly seen = new Map<number, Set<number>>();
  /** Of each group that is placed, by index. */
  private readonly steps = new Map<number, Step[]>();
  /** Since which configuration each partition is placed. */
  private readonly placed = new Map<number, number>();
  /** "partition/node": was brought along as a learner. */
  private readonly brought = new Set<string>();

  constructor(minimum: Readonly<Record<string, number>> = { moves: 5, "changes of voters": 5 }) {
    this.findings = new Findings("one replica moves at a time", minimum);
  }

  record({ partitionId, generation, mode, replicas, configIndex }: PartitionRecord): void {
    if (mode !== "placed") return;
    if (!this.placed.has(partitionId)) this.placed.set(partitionId, configIndex);
    let seen = this.seen.get(partitionId);
    if (seen === undefined) this.seen.set(partitionId, (seen = new Set()));
    if (seen.has(generation)) return;
    seen.add(generation);
    // All replicas have their roles since the same generation: the list is new.
    const isNew = replicas.every(({ since }) => since === replicas[0]?.since);
    for (const { nodeId, role, incarnation } of replicas) {
      const comesAlong = role === "learner" || (role === "removing" && isNew);
      if (comesAlong && incarnation === 0) this.brought.add(`${partitionId}/${nodeId}`);
    }
    const moving = replicas.filter(({ nodeId, role, incarnation }) => {
      const isBrought = incarnation === 0 && this.brought.has(`${partitionId}/${nodeId}`);
      return role !== "voter" && !isBrought;
    });
    if (moving.length > 0) this.findings.count("moves");
    if (moving.length <= 1) return;
    const nodes = moving.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
    this.findings.violation(`partition ${partitionId}, generation ${generation}: ${nodes}`);
  }

  /** Some node has applied the configuration of the entry at `index`. */
  membership(group: number, index: number, membership: Membership): void {
    if (index < (this.placed.get(group) ?? Infinity)) return;
    let steps = this.steps.get(group);
    if (steps === undefined) this.steps.set(group, (steps = []));
    let at = steps.length;
    while (at > 0 && (steps[at - 1] as Step).index >= index) at--;
    if (steps[at]?.index === index) return;
    // A joint change shows its new half; what it comes from is the configuration before.
    const step = { index, voters: membership.voters };
    steps.splice(at, 0, step);
    this.compare(group, steps[at - 1], step);
  }

  private compare(group: number, from: Step | undefined, to: Step): void {
    // Between configurations that were not seen one after the other there may have been more.
    if (from === undefined) return;
    const come = to.voters.filter((node) => !from.voters.includes(node));
    const gone = from.voters.filter((node) => !to.voters.includes(node));
    if (come.length + gone.length === 0) return;
    this.findings.count("changes of voters");
    if (come.length <= 1 && gone.length <= 1) return;
    const text = `${from.voters.join()} at ${from.index}, ${to.voters.join()} at ${to.index}`;
    this.findings.violation(`the voters of group ${group}: ${text}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
