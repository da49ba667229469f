/**
 * Property: at every look at most one partition would accept a key, judged by the newest leader that
 * serves it; and exactly one, but between the freeze and the adoption of a move, or while the owner has
 * no leader.
 *
 * Invariants: 1. Who owns a key is followed from the steps of moves, beginning at its hash partition.
 * 2. A leader counts only if no later term of its group is known, and when it has applied all that it
 * has committed: what is asked of it before is answered then.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenInterval, holds } from "./seen-moves.js";

const MINIMUM = { probes: 1000, "of keys that moved": 100, "while nobody owns": 5 };

export class OneOwner {
  private readonly findings: Findings;
  /** Null: nobody, an interval moves. */
  private readonly owners = new Map<string, number | null>();
  private readonly moved = new Set<string>();

  /** `keys`: those that are looked at. `homeOf`: the hash partition of a key. */
  constructor(
    private readonly keys: readonly string[],
    private readonly homeOf: (key: string) => number,
    minimum: Readonly<Record<string, number>> = MINIMUM,
  ) {
    this.findings = new Findings("a key has one owner", minimum);
  }

  /** From now on the keys of the interval belong to `partition`; null: to nobody. */
  owns(interval: SeenInterval, partition: number | null): void {
    for (const key of this.keys) {
      if (!holds(interval, key)) continue;
      this.owners.set(key, partition);
      this.moved.add(key);
    }
  }

  /**
   * A look at all keys. `accepting`: the partitions whose leader would accept a key now. `isServed`: a
   * partition has a leader of its newest term, which has applied all that was told here.
   */
  look(
    atMs: number,
    accepting: (key: string) => readonly number[],
    isServed: (partition: number) => boolean,
  ): void {
    for (const key of this.keys) {
      const own = this.owners.get(key);
      const owner = own === undefined ? this.homeOf(key) : own;
      this.probe(atMs, key, owner, accepting(key), isServed);
    }
  }

  private probe(
    atMs: number,
    key: string,
    owner: number | null,
    accepting: readonly number[],
    isServed: (partition: number) => boolean,
  ): void {
    this.findings.count("probes");
    if (this.moved.has(key)) this.findings.count("of keys that moved");
    if (owner === null) this.findings.count("while nobody owns");
    if (accepting.length > 1) {
      const at = `at ${atMs.toFixed(0)} ms`;
      this.findings.violation(`${key} is accepted by partitions ${accepting.join(", ")} ${at}`);
      return;
    }
    const [accepts] = accepting;
    if (accepts !== undefined && accepts !== owner) {
      const at = `at ${atMs.toFixed(0)} ms`;
      const whose = owner === null ? "nobody's" : `that of ${owner}`;
      this.findings.violation(`${key} is accepted by partition ${accepts} ${at}, and is ${whose}`);
    } else if (accepts === undefined && owner !== null && isServed(owner)) {
      const at = `at ${atMs.toFixed(0)} ms`;
      this.findings.violation(`${key} is accepted by nobody ${at}, and is that of ${owner}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
