/**
 * Property U2, P-030: levels rise together. The level of a group, and that of the cluster, is a
 * function of the log index alone, never falls, and no group is above the cluster.
 */
import { Findings, type Verdict } from "../verdict.js";

/** What `LevelSteps` must have seen at least. */
const MINIMUM = { "groups that rose": 1, "clusters that rose": 1 };

class Steps {
  /** Level by index, as anybody had it. */
  private readonly levels = new Map<number, number>();
  private readonly last = new Map<string, number>();

  /** Why this cannot be; null when it can. */
  see(life: string, index: number, level: number): string | null {
    const known = this.levels.get(index);
    if (known !== undefined && known !== level) {
      return `at index ${index} it is ${level}, and ${known} elsewhere`;
    }
    this.levels.set(index, level);
    const before = this.last.get(life) ?? 0;
    this.last.set(life, level);
    return level < before ? `at index ${index} it falls from ${before} to ${level}` : null;
  }

  /** It was more than one level. */
  get rose(): boolean {
    return new Set(this.levels.values()).size > 1;
  }
}

export class LevelSteps {
  private readonly findings: Findings;
  private readonly groups = new Map<number, Steps>();
  private readonly cluster = new Steps();
  private clusterLevel = 1;

  constructor(private readonly minimum: Readonly<Record<string, number>> = MINIMUM) {
    this.findings = new Findings("levels rise together", minimum);
  }

  /** A life of `node` has applied the meta partition up to `index`. */
  clusterAt(node: number, life: number, index: number, level: number): void {
    this.findings.count("looks");
    const fault = this.cluster.see(`${node}/${life}`, index, level);
    this.clusterLevel = Math.max(this.clusterLevel, level);
    if (fault !== null) this.findings.violation(`the level of the cluster: node ${node}: ${fault}`);
  }

  /** A life of `node` has applied `group` up to `index`. */
  groupAt(node: number, life: number, group: number, index: number, level: number): void {
    this.findings.count("looks");
    let steps = this.groups.get(group);
    if (steps === undefined) this.groups.set(group, (steps = new Steps()));
    const fault = steps.see(`${node}/${life}`, index, level);
    if (fault !== null) this.findings.violation(`group ${group}: node ${node}: ${fault}`);
    if (level > this.clusterLevel) {
      const both = `level ${level}, and the cluster is at ${this.clusterLevel}`;
      this.findings.violation(`group ${group}: node ${node}: it is at ${both}`);
    }
  }

  verdict(): Verdict {
    const findings = new Findings("levels rise together", this.minimum);
    findings.count("groups that rose", [...this.groups.values()].filter(({ rose }) => rose).length);
    findings.count("clusters that rose", this.cluster.rose ? 1 : 0);
    const { violations, seen, kind } = this.findings.verdict();
    for (const [name, count] of Object.entries(seen)) {
      if (!(name in this.minimum)) findings.count(name, count);
    }
    if (kind === "fail") for (const violation of violations) findings.violation(violation);
    return findings.verdict();
  }
}
