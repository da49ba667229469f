/**
 * Property (P-083, P-092): the committed configurations of a group follow each other so that any
 * majority of one and any majority of the next have a member in common; no two nodes ever have
 * different ones of one entry, and none goes back within a life of the process and of the replica.
 *
 * A configuration is applied by its leader before the next one can be proposed, so that each one
 * is seen. Invariant: a majority of a joint configuration is a majority of both halves.
 */
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

interface Step {
  readonly index: number;
  readonly text: string;
  readonly node: number;
  readonly membership: Membership;
}

/** Whether `ids` decide in a configuration. */
function decides(membership: Membership, ids: ReadonlySet<number>): boolean {
  return [membership.voters, membership.votersOutgoing].every((half) => {
    return half.length === 0 || half.filter((id) => ids.has(id)).length * 2 > half.length;
  });
}

/** Two groups of nodes that share nobody, and decide one in each; null when there are none. */
export function splitOf(a: Membership, b: Membership): readonly [number[], number[]] | null {
  const ids = [...new Set([a, b].flatMap((each) => [...each.voters, ...each.votersOutgoing]))];
  for (let mask = 0; mask < 1 << ids.length; mask++) {
    const here = ids.filter((_, at) => (mask >> at) & 1);
    const there = ids.filter((_, at) => ((mask >> at) & 1) === 0);
    if (decides(a, new Set(here)) && decides(b, new Set(there))) return [here, there];
  }
  return null;
}

export class ConfigSteps {
  private readonly findings: Findings;
  private readonly groups = new Map<number, Step[]>();
  private readonly last = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = { steps: 5, compared: 20 }) {
    this.findings = new Findings("majorities of successive configurations meet", minimum);
  }

  /**
   * A life of `node` has applied the configuration of the entry at `index`; 0 = the first.
   * `incarnation` counts the lives of its replica: one that comes again begins with a snapshot, which
   * may be older than what the former one had applied.
   */
  membership(
    node: number,
    life: number,
    group: number,
    index: number,
    membership: Membership,
    incarnation = 0,
  ): void {
    const place = `${node}/${life}/${group}/${incarnation}`;
    const before = this.last.get(place) ?? 0;
    this.last.set(place, index);
    if (index < before) {
      this.findings.violation(`node ${node} life ${life} group ${group}: ${index} after ${before}`);
    }
    const { voters, votersOutgoing, learners, learnersNext } = membership;
    const text = JSON.stringify({ voters, votersOutgoing, learners, learnersNext });
    let steps = this.groups.get(group);
    if (steps === undefined) this.groups.set(group, (steps = []));
    let at = steps.length;
    while (at > 0 && (steps[at - 1] as Step).index >= index) at--;
    const known = steps[at];
    if (known?.index === index) {
      this.findings.count("compared");
      if (known.text === text) return;
      const both = `node ${known.node} has ${known.text}, node ${node} has ${text}`;
      this.findings.violation(`group ${group}, entry ${index}: ${both}`);
      return;
    }
    const step = { index, text, node, membership };
    steps.splice(at, 0, step);
    this.meet(group, steps[at - 1], step);
    this.meet(group, step, steps[at + 1]);
  }

  private meet(group: number, from: Step | undefined, to: Step | undefined): void {
    if (from === undefined || to === undefined) return;
    this.findings.count("steps");
    const split = splitOf(from.membership, to.membership);
    if (split === null) return;
    const [here, there] = split;
    const halves = `${here.join()} decide in the one, ${there.join()} in the other`;
    const both = `entry ${from.index} ${from.text}, entry ${to.index} ${to.text}`;
    this.findings.violation(`group ${group}: ${both}: ${halves}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
