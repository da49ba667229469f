/**
 * Property (P-095): nobody is removed by force whom the leader of meta heard within half a minute,
 * itself or through another voter of the member list that answers it.
 *
 * Invariants: 1. Who hears whom is looked at now and then; looks of shortly before the removal say
 * only who could answer: it was decided some seconds before it was seen. 2. A process remembers what
 * it heard as long as it runs. 3. Who has no vote is not asked, nor who got one after it was decided.
 */
import { Findings, type Verdict } from "../verdict.js";

/** A removal is seen at most so long after it was decided (ms). */
const DECIDED_WITHIN_MS = 8000;
/** Who was heard so long before it was seen was heard lately when it was decided (ms). */
const HEARD_WITHIN_MS = 24_000;

/** One look: who has a link with whom, as far as both are undisturbed. */
export interface Look {
  readonly atMs: number;
  /** Who leads meta; 0 = nobody does. */
  readonly metaLeader: number;
  /** "a/b": a has a link with b. */
  readonly links: ReadonlySet<string>;
}

export class NoLiveEviction {
  private readonly findings: Findings;
  private looks: Look[] = [];
  /** When the present process of a node began. */
  private readonly beganMs = new Map<number, number>();
  private readonly votesSinceMs = new Map<number, number>();

  constructor(minimum: Readonly<Record<string, number>> = { removals: 1 }) {
    this.findings = new Findings("nobody who is heard is removed", minimum);
  }

  look(look: Look): void {
    this.looks.push(look);
    this.looks = this.looks.filter(({ atMs }) => atMs >= look.atMs - HEARD_WITHIN_MS);
  }

  /** From `atMs` on exactly these vote by the member list. */
  voters(nodes: readonly number[], atMs: number): void {
    for (const node of [...this.votesSinceMs.keys()]) {
      if (!nodes.includes(node)) this.votesSinceMs.delete(node);
    }
    for (const node of nodes) {
      if (!this.votesSinceMs.has(node)) this.votesSinceMs.set(node, atMs);
    }
  }

  /** The process of `node` begins. */
  began(node: number, atMs: number): void {
    this.beganMs.set(node, atMs);
  }

  /** Somebody asks for the removal of a member, which is refused for a living one. */
  refused(): void {
    this.findings.count("refused");
  }

  /** `node` is to leave, and did not ask for it itself. */
  removed(node: number, atMs: number): void {
    this.findings.count("removals");
    const late = this.looks.filter((look) => look.atMs >= atMs - DECIDED_WITHIN_MS);
    const early = this.looks.filter((look) => look.atMs < atMs - DECIDED_WITHIN_MS);
    const leader = late[0]?.metaLeader ?? 0;
    if (leader === 0 || late.some(({ metaLeader }) => metaLeader !== leader)) return;
    const answers = (other: number): boolean => {
      if (other === leader) return true;
      const isAsked = (this.votesSinceMs.get(other) ?? Infinity) <= atMs - DECIDED_WITHIN_MS;
      return isAsked && late.every(({ links }) => links.has(`${leader}/${other}`));
    };
    for (const { atMs: lookMs, links } of early) {
      for (const link of links) {
        const [by, heard] = link.split("/").map(Number) as [number, number];
        const remembers = (this.beganMs.get(by) ?? 0) <= lookMs;
        if (heard !== node || !remembers || !answers(by)) continue;
        const text = `node ${node} is removed by force, and node ${by} heard it at ${lookMs} ms`;
        return this.findings.violation(`${text}; node ${leader} leads meta`);
      }
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
