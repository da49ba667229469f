/**
 * How often locks were handed over along lists of heirs while nodes came and went, as they count it.
 *
 * Invariants: 1. What a node had counted since it was looked at last is lost with it: the sum is a
 * least one. 2. Where locks may have heirs a long run in which none was handed over so shows nothing.
 */
import { Findings, type Verdict } from "../../../judge/checkers/verdict.js";
import { HANDED_TO_HEIRS, Increases } from "../../cluster/metrics.js";
import { sleep } from "../../cluster/server-process.js";
import type { ChaosOptions } from "../chaos.js";
import type { ChaosNodes } from "../nodes.js";

const LOOK_MS = 500;
/** A run that is no matter of one fault. */
const LONG_MS = 60_000;

/** Flags of the nodes: locks may have heirs in two of four seeds. */
export function heirFlags(seed: number): readonly string[] {
  return (seed & 2) === 0 ? [] : ["--lock-succession"];
}

export class HeirTally {
  private readonly counted = new Increases();
  private sum = 0;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly options: Pick<ChaosOptions, "seed" | "durationMs">,
  ) {}

  /** Looks until `isOver` says so; where no lock may have heirs once, in the end. */
  async run(isOver: () => boolean): Promise<void> {
    const { all } = this.nodes;
    while (!isOver()) {
      await sleep(LOOK_MS);
      if (this.hasHeirs || isOver()) await Promise.all(all.map((node) => this.look(node)));
    }
  }

  verdict(): Verdict {
    const least = this.hasHeirs && this.options.durationMs >= LONG_MS ? 10 : 0;
    const findings = new Findings("locks are handed over along lists", { "hand-overs": least });
    findings.count("hand-overs", this.sum);
    if (!this.hasHeirs && this.sum > 0) findings.violation("heirs without the flag");
    return findings.verdict();
  }

  private get hasHeirs(): boolean {
    return heirFlags(this.options.seed).length > 0;
  }

  private async look(node: number): Promise<void> {
    try {
      const count = (await this.nodes.metrics(node)).get(HANDED_TO_HEIRS) ?? 0;
      this.sum += this.counted.of(`${node}`, count);
    } catch {
      // It is down, or stands still.
    }
  }
}
