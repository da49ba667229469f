/**
 * Trials of one planted bug: seeds in a row, from a different first seed each time, until one shows a
 * violation that the real code does not show.
 *
 * Invariants: 1. A violation counts only if the same seed passes without the bug. 2. Each trial is
 * bounded.
 */
import type { Found } from "./found.js";
import { planOf } from "../plan/plan.js";
import type { Mutation } from "./mutation.js";
import { PlantedTree, type SeedVerdict } from "./plant.js";

export interface TrialBounds {
  readonly trials: number;
  readonly seedsMax: number;
  readonly firstSeed: number;
}

/** Trials begin so many seeds apart. */
const TRIAL_STRIDE = 10_000;
/** Lengths of runs (ms) that are tried when the shortest one is looked for. */
const SHORT_TICKS = [3000, 8000, 16_000, 30_000];

export class Trials {
  /** `real`: null where it is known already that the real code passes. */
  constructor(
    private readonly mutation: Mutation,
    private readonly planted: PlantedTree,
    private readonly real: PlantedTree | null,
  ) {}

  /** The verdict of one seed; without violations if the real code has some there too. */
  async judge(seed: number, ticks: number | null): Promise<SeedVerdict> {
    const { profile, overrides } = this.mutation;
    const order = {
      seed,
      profile,
      overrides: ticks === null ? overrides : { ...overrides, ticks },
    };
    const verdict = await this.planted.run(order);
    if (verdict.violations.length === 0 || this.real === null) return verdict;
    const clean = await this.real.run(order);
    return clean.violations.length === 0 ? verdict : { ...verdict, violations: [] };
  }

  async run({ trials, seedsMax, firstSeed }: TrialBounds): Promise<Found> {
    const seeds: (number | null)[] = [];
    const witnesses = new Map<string, number>();
    let quickest: number | null = null;
    let quickestMs = Infinity;
    for (let trial = 0; trial < trials; trial++) {
      const first = firstSeed + trial * TRIAL_STRIDE;
      let count: number | null = null;
      for (let seed = first; seed < first + seedsMax && count === null; seed++) {
        const { violations, usedMs } = await this.judge(seed, null);
        const [violation] = violations;
        if (violation === undefined) continue;
        count = seed - first + 1;
        const witness = witnessOf(violation);
        witnesses.set(witness, (witnesses.get(witness) ?? 0) + 1);
        if (usedMs < quickestMs) quickest = seed;
        quickestMs = Math.min(quickestMs, usedMs);
      }
      seeds.push(count);
    }
    const [most] = [...witnesses].sort((a, b) => b[1] - a[1]);
    const run = quickest === null ? null : await this.shorten(quickest);
    return { seeds, seedsMax, witness: most?.[0] ?? "", quickest: run };
  }

  /** The shortest of some lengths with which the seed still shows the bug. */
  private async shorten(seed: number): Promise<NonNullable<Found["quickest"]>> {
    for (const ticks of SHORT_TICKS) {
      const { violations } = await this.judge(seed, ticks);
      if (violations.length > 0) return { seed, ticks };
    }
    const { profile, overrides } = this.mutation;
    return { seed, ticks: planOf(seed, profile, overrides).ticks };
  }
}

const LENGTH_MAX = 90;

function shortened(text: string): string {
  const line = (text.split("\n")[0] as string)
    .replace(/[0-9a-f]{16}/g, "#")
    .replace(/\b\d[\d.]*\b/g, "#");
  return line.length <= LENGTH_MAX ? line : `${line.slice(0, LENGTH_MAX - 1)}…`;
}

/** `violation`: as the judge gives it. */
export function witnessOf(violation: string): string {
  const line = violation.split("\n")[0] as string;
  const refusal = /^node \d+ refuses to start: (?:the )?(?:log|node): ([a-z-]+):/.exec(line);
  if (refusal !== null) return `start refused: ${refusal[1] ?? ""}`;
  const assertion = /^AssertionError: (.*)$/.exec(line);
  if (assertion !== null) return `assertion: ${shortened(assertion[1] ?? "")}`;
  const fatal = /^node \d+ met a fatal fault: ([^{:]*)/.exec(line);
  if (fatal !== null) return `fatal fault: ${shortened(fatal[1] ?? "").trim()}`;
  if (line.startsWith("the healed cluster does not come to rest")) {
    return `peace: ${shortened(line.replace(/^.* ms: /, ""))}`;
  }
  const checker = /^([a-z ,-]+): /.exec(line);
  return checker === null ? shortened(line) : `checker: ${checker[1] ?? ""}`;
}
