/**
 * Property (P-095): nobody is removed by force whom the leader of meta hears, itself or through
 * another node that it hears.
 *
 * Invariant: who hears whom is looked at now and then; only what every look of some time showed
 * counts, the last one before the removal included.
 */
import { Findings, type Verdict } from "../verdict.js";

/** Who was heard in every look of so long was heard when the removal was decided (ms). */
const SURELY_MS = 12_000;

/** One look: who has heard whom without a break, as far as both were undisturbed. */
export interface Look {
  readonly atMs: number;
  /** Who leads meta; 0 = nobody does. */
  readonly metaLeader: number;
  /** "a/b": a has a link with b. */
  readonly links: ReadonlySet<string>;
}

export class NoLiveEviction {
  private readonly findings: Findings;
  private since = new Map<string, number>();
  private leader = 0;
  private leaderSinceMs = 0;

  constructor(minimum: Readonly<Record<string, number>> = { removals: 1 }) {
    this.findings = new Findings("nobody who is heard is removed", minimum);
  }

  look({ atMs, metaLeader, links }: Look): void {
    const before = this.since;
    this.since = new Map([...links].map((link) => [link, before.get(link) ?? atMs]));
    if (metaLeader !== this.leader) this.leaderSinceMs = atMs;
    this.leader = metaLeader;
  }

  /** Somebody asks for the removal of `node`, which refuses for a living one. */
  refused(): void {
    this.findings.count("refused");
  }

  /** `node` is to leave, and did not ask for it itself. */
  removed(node: number, atMs: number): void {
    this.findings.count("removals");
    const { leader } = this;
    const isSure = (from: number, to: number): boolean => {
      const sinceMs = this.since.get(`${from}/${to}`);
      return sinceMs !== undefined && sinceMs <= atMs - SURELY_MS;
    };
    if (leader === 0 || this.leaderSinceMs > atMs - SURELY_MS) return;
    const heard = [...this.since.keys()].map((link) => Number(link.split("/")[0]));
    const by = [...new Set(heard)].find((other) => {
      return isSure(other, node) && (other === leader || isSure(leader, other));
    });
    if (by === undefined) return;
    const text = `node ${node} is removed by force, and node ${by} hears it`;
    this.findings.violation(`${text}; node ${leader} leads meta`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
