/**
 * The command line of the simulator.
 */
import { FAULT_KINDS, type FaultKind, SPECIAL_FAULTS } from "../faults/kinds.js";
import type { PlanOverrides } from "./plan.js";
import { PROFILES } from "./profiles.js";
import { numbersOf } from "../run/report.js";

export interface Options {
  readonly seed: number;
  /** null: one seed. */
  readonly seeds: number | null;
  readonly profile: string;
  readonly overrides: PlanOverrides;
  readonly workers: number;
  /** Print every event. */
  readonly words: boolean;
  readonly shrinks: boolean;
  /** File that the sweep is written down in. */
  readonly record: string | null;
  /** File of which the sums are printed. */
  readonly totals: string | null;
  /** Measures how cost grows over these sizes of cluster; null: runs seeds. */
  readonly growth: readonly GrowthSize[] | null;
}

export interface GrowthSize {
  readonly nodes: number;
  readonly groups: number;
  /** Replicas of each data partition; 0 = on every node. */
  readonly factor: number;
}

/** Nodes and groups of a growth without sizes. */
export const GROWTH_SIZES = "3x500,9x50,9x250,9x500,9x1000,9x2000,25x50,25x500";

export const USAGE = `npm run sim -- [options]
  --seed N        the seed to run (default 1), or the first of a sweep
  --seeds N       sweeps N seeds on all workers
  --profile P     ${Object.keys(PROFILES).join(", ")}
                  (default five); several with commas take turns over the seeds
  --ticks T       simulated milliseconds with faults (default 60000)
  --clients N     so many clients instead of the drawn number
  --nodes N       so many nodes instead of the drawn number
  --groups N      so many data partitions instead of the drawn number
  --faults A,B    these faults instead of the drawn ones; "none" for none
  --without 3,7-9 leaves these faults of the schedule out
  --workers N     processes of a sweep (default 2)
  --words         prints everything that happens
  --no-shrink     does not make a failing run smaller
  --record FILE   appends what a sweep showed to a file, as one line
  --totals FILE   prints what all sweeps of such a file showed together, as tables
  --grow          measures how cost grows with nodes and groups, and prints a table
  --sizes A,B     what it measures, as nodes x groups, or nodes x groups x replicas (default
                  ${GROWTH_SIZES})`;

const VALUED = [
  "seed",
  "seeds",
  "profile",
  "ticks",
  "clients",
  "nodes",
  "groups",
  "faults",
  "without",
  "workers",
  "sizes",
  "record",
  "totals",
];

/** "9x500,25x2000x3" for nodes, groups and, if any, replicas of each. */
export function sizesOf(text: string): GrowthSize[] {
  return text.split(",").map((size) => {
    const numbers = size.split("x").map(Number);
    const isSize = (number: number): boolean => Number.isSafeInteger(number) && number >= 1;
    const [nodes = 0, groups = 0, factor = 0] = numbers;
    if (numbers.length < 2 || numbers.length > 3 || !numbers.every(isSize)) {
      throw new Error(`no size of a cluster: ${size}`);
    }
    return { nodes, groups, factor };
  });
}

export function sizeText({ nodes, groups, factor }: GrowthSize): string {
  return factor === 0 ? `${nodes}x${groups}` : `${nodes}x${groups}x${factor}`;
}

/** Throws an Error that says what is wrong. */
export function parseOptions(args: readonly string[]): Options {
  const values = new Map<string, string>();
  const flags = new Set<string>();
  for (let at = 0; at < args.length; at++) {
    const name = (args[at] as string).replace(/^--/, "");
    if (["words", "no-shrink", "help", "grow"].includes(name)) {
      flags.add(name);
      continue;
    }
    if (!VALUED.includes(name)) throw new Error(`no option ${args[at] ?? ""}`);
    const value = args[++at];
    if (value === undefined) throw new Error(`--${name} takes a value`);
    values.set(name, value);
  }
  const number = (name: string): number | null => {
    const given = values.get(name);
    if (given === undefined) return null;
    const parsed = Number(given);
    if (!Number.isSafeInteger(parsed) || parsed < 0) throw new Error(`--${name} takes a number`);
    return parsed;
  };
  if (flags.has("help")) throw new Error("");
  const profile = values.get("profile") ?? "five";
  for (const name of profile.split(",")) {
    if (!(name in PROFILES)) throw new Error(`no profile ${name}`);
  }
  return {
    seed: number("seed") ?? 1,
    seeds: number("seeds"),
    profile,
    overrides: overridesOf(values, number),
    workers: Math.max(1, number("workers") ?? 2),
    words: flags.has("words"),
    shrinks: !flags.has("no-shrink"),
    record: values.get("record") ?? null,
    totals: values.get("totals") ?? null,
    growth: flags.has("grow") ? sizesOf(values.get("sizes") ?? GROWTH_SIZES) : null,
  };
}

function overridesOf(
  values: ReadonlyMap<string, string>,
  number: (name: string) => number | null,
): PlanOverrides {
  const overrides: { -readonly [K in keyof PlanOverrides]: PlanOverrides[K] } = {};
  const ticks = number("ticks");
  const clients = number("clients");
  const nodes = number("nodes");
  if (ticks !== null) overrides.ticks = ticks;
  if (clients !== null) overrides.clients = clients;
  if (nodes !== null) overrides.nodes = nodes;
  const groups = number("groups");
  if (groups !== null) overrides.groups = groups;
  const without = values.get("without");
  if (without !== undefined) overrides.without = numbersOf(without);
  const faults = values.get("faults");
  if (faults !== undefined) {
    const names = faults === "none" ? [] : faults.split(",");
    const known = { ...FAULT_KINDS, ...SPECIAL_FAULTS };
    for (const name of names) if (!(name in known)) throw new Error(`no fault ${name}`);
    overrides.faults = names as FaultKind[];
  }
  return overrides;
}
