/**
 * How often locks were handed over along lists of heirs while nodes came and went, as they count it.
 *
 * Invariants: 1. What a node had counted since it was looked at last is lost with it: the sum is a
 * least one. 2. Where locks may have heirs a long run in which none was handed over so shows nothing.
 */
import { Findings, type Verdict } from "../../../judge/checkers/verdict.js";
import { sleep } from "../../cluster/server-process.js";
import type { ChaosOptions } from "../chaos.js";
import type { ChaosNodes } from "../nodes.js";

const LOOK_MS = 500;
/** A run that is no matter of one fault. */
const LONG_MS = 60_000;
const COUNTER = 'svc_lock_handoffs_total{path="heir"}';

/** Flags of the nodes: locks may have heirs in two of four seeds. */
export function heirFlags(seed: number): readonly string[] {
  return (seed & 2) === 0 ? [] : ["--lock-succession"];
}

export class HeirTally {
  private readonly counted = new Map<number, number>();
  private sum = 0;

  constructor(private readonly nodes: ChaosNodes) {}

  /** Looks until `isOver` says so. */
  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await sleep(LOOK_MS);
      await Promise.all(this.nodes.all.map((node) => this.look(node)));
    }
  }

  verdict({ seed, durationMs }: Pick<ChaosOptions, "seed" | "durationMs">): Verdict {
    const hasHeirs = heirFlags(seed).length > 0;
    const least = hasHeirs && durationMs >= LONG_MS ? 10 : 0;
    const findings = new Findings("locks are handed over along lists", { "hand-overs": least });
    findings.count("hand-overs", this.sum);
    if (!hasHeirs && this.sum > 0) findings.violation("heirs without the flag");
    return findings.verdict();
  }

  private async look(node: number): Promise<void> {
    try {
      const count = (await this.nodes.metrics(node)).get(COUNTER) ?? 0;
      const before = this.counted.get(node) ?? 0;
      this.counted.set(node, count);
      this.sum += count < before ? count : count - before;
    } catch {
      // It is down, or stands still.
    }
  }
}
