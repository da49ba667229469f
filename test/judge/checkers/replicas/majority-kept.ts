/**
 * Property (P-092): no change of a configuration takes the live majority of its group: where the
 * voters of the configuration before had one, those of the new one have one too. What faults take
 * alone is theirs.
 *
 * Invariants: 1. A voter counts as gone when its process was down, or its data lost, for so long
 * before the entry was written that its leader must have known. 2. Each half of a joint
 * configuration counts.
 */
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

/** So long a leader may take to find out that a voter is gone (ms). */
const KNOWN_AFTER_MS = 15_000;

interface Written {
  readonly term: number;
  readonly atMs: number;
}

interface Step {
  readonly index: number;
  readonly membership: Membership;
}

export class MajorityKept {
  private readonly findings: Findings;
  private readonly goneSince = new Map<number, number>();
  private readonly written = new Map<number, Map<number, Written>>();
  private readonly steps = new Map<number, Step[]>();

  constructor(minimum: Readonly<Record<string, number>> = { changes: 10 }) {
    this.findings = new Findings("changes leave a live majority", minimum);
  }

  /** The process of `node` is down, or what runs there is not the voter that it was. */
  gone(node: number, atMs: number): void {
    if (!this.goneSince.has(node)) this.goneSince.set(node, atMs);
  }

  back(node: number): void {
    this.goneSince.delete(node);
  }

  /** A node writes an entry that changes the members of its group. */
  writes(group: number, index: number, term: number, atMs: number): void {
    let entries = this.written.get(group);
    if (entries === undefined) this.written.set(group, (entries = new Map()));
    const known = entries.get(index);
    if (known === undefined || term > known.term) entries.set(index, { term, atMs });
  }

  /** Some node has applied the configuration of the entry at `index`; 0 = the first. */
  membership(group: number, index: number, membership: Membership): void {
    let steps = this.steps.get(group);
    if (steps === undefined) this.steps.set(group, (steps = []));
    const last = steps.at(-1);
    if (last !== undefined && last.index >= index) return;
    const step = { index, membership };
    steps.push(step);
    if (steps.length > 2) steps.shift();
    const atMs = this.written.get(group)?.get(index)?.atMs;
    if (last !== undefined && atMs !== undefined) this.compare(group, last, step, atMs);
  }

  private compare(group: number, from: Step, to: Step, atMs: number): void {
    this.findings.count("changes");
    if (this.stands(to.membership, atMs) || !this.stands(from.membership, atMs)) return;
    const gone = [...this.goneSince].filter(([, since]) => since <= atMs - KNOWN_AFTER_MS);
    const text = JSON.stringify([from.membership.voters, to.membership.voters]);
    const without = gone.map(([node]) => node).join();
    this.findings.violation(`group ${group}, entry ${to.index}: ${text} without ${without}`);
  }

  private stands({ voters, votersOutgoing }: Membership, atMs: number): boolean {
    const isThere = (node: number): boolean => {
      return (this.goneSince.get(node) ?? Infinity) > atMs - KNOWN_AFTER_MS;
    };
    return [voters, votersOutgoing].every((half) => {
      return half.length === 0 || half.filter(isThere).length * 2 > half.length;
    });
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
