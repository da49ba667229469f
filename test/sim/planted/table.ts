/**
 * The table of README.md: which bug, on which floor, which pitfall, in which profile, how many seeds
 * it takes, and who sees it first.
 *
 * `node dist/test/sim/planted/table.js [--trials 3] [--seeds-max 300] [--first-seed 1] [--only PATTERN]
 * [--missing] [--append] [--open] [--write]`
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Found, readFound, writeFound } from "./found.js";
import type { Mutation } from "./mutation.js";
import { mutations, openMutations } from "./mutations.js";
import { WHY_OPEN } from "./open.js";
import { PlantedTree } from "./plant.js";
import { Trials } from "./trials.js";

const readme = join(
  dirname(fileURLToPath(import.meta.url)),
  ...["..", "..", "..", "..", "test", "sim", "planted", "README.md"],
);
const HEADING =
  "| Planted bug | Floor | Pitfall | Profile | Seeds: median | Most | First seen by |\n" +
  "|---|---|---|---|---|---|---|\n";

function profileOf({ profile, overrides }: Mutation): string {
  const { faults, operations } = overrides;
  const own = operations === undefined ? [] : ["calls of its own"];
  return [profile, ...own, ...(faults ?? [])].join(", ");
}

const OPEN_HEADING =
  "| Planted bug | Floor | Pitfall | Why no seed shows it |\n|---|---|---|---|\n";

/** Median and most of the trials, in words. */
export function seedsInWords({ seeds, seedsMax }: Found): [string, string] {
  const sorted = seeds.map((count) => count ?? Infinity).sort((a, b) => a - b);
  const inWords = (count: number | undefined): string =>
    count === undefined || count === Infinity ? `> ${seedsMax}` : String(count);
  return [inWords(sorted[Math.floor((sorted.length - 1) / 2)]), inWords(sorted.at(-1))];
}

/** The row of a bug. */
export function rowOf(mutation: Mutation, found: Found | undefined): string {
  const { name, floor, pitfall } = mutation;
  const [median, most] = found === undefined ? ["?", "?"] : seedsInWords(found);
  const witness = found?.witness ?? "";
  const cells = [name, floor, pitfall, profileOf(mutation), median, most, witness];
  return `| ${cells.map((cell) => cell.replaceAll("|", "/")).join(" | ")} |`;
}

/** The rows of the bugs that are not caught. */
export function openRows(): string[] {
  return openMutations.map(({ name, floor, pitfall }) => {
    return `| ${[name, floor, pitfall, WHY_OPEN.get(name) ?? ""].join(" | ")} |`;
  });
}

/** The file as it is now. */
export function readmeText(): string {
  return readFileSync(readme, "utf8");
}

/** The rows that the file has now, of both tables. */
export function writtenRows(): string[] {
  const text = readmeText();
  return [HEADING, OPEN_HEADING].flatMap((heading) => {
    const from = text.indexOf(heading);
    if (from < 0) return [];
    const [table] = text.slice(from + heading.length).split("\n\n");
    return (table ?? "").split("\n").filter((line) => line.startsWith("| "));
  });
}

function write(found: ReadonlyMap<string, Found>): void {
  writeFound(new Map(mutations.flatMap(({ name }) => entryOf(found, name))));
  const rows = mutations.map((mutation) => rowOf(mutation, found.get(mutation.name)));
  const text = replaced(readmeText(), HEADING, rows);
  writeFileSync(readme, replaced(text, OPEN_HEADING, openRows()));
}

/** `text` with other rows below `heading`. */
function replaced(text: string, heading: string, rows: readonly string[]): string {
  const from = text.indexOf(heading);
  const rest = text.slice(from + heading.length - 1);
  const end = rest.indexOf("\n\n");
  const behind = end < 0 ? "\n" : rest.slice(end);
  return `${text.slice(0, from)}${heading}${rows.join("\n")}${behind}`;
}

/** More trials of a bug; what was known stays the quickest run. */
function merged(known: Found | undefined, more: Found): Found {
  if (known === undefined) return more;
  const { seedsMax, witness, quickest } = known.quickest === null ? more : known;
  return { seeds: [...known.seeds, ...more.seeds], seedsMax, witness, quickest };
}

function entryOf(found: ReadonlyMap<string, Found>, name: string): [string, Found][] {
  const known = found.get(name);
  return known === undefined ? [] : [[name, known]];
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(args: readonly string[]): Promise<void> {
  const valueOf = (option: string): string | undefined => {
    const at = args.indexOf(option);
    return at < 0 ? undefined : args[at + 1];
  };
  const bounds = {
    trials: Number(valueOf("--trials") ?? 3),
    seedsMax: Number(valueOf("--seeds-max") ?? 300),
    firstSeed: Number(valueOf("--first-seed") ?? 1),
  };
  const only = new RegExp(valueOf("--only") ?? "");
  const found = readFound();
  const real = await PlantedTree.grow(null);
  for (const mutation of args.includes("--open") ? openMutations : mutations) {
    if (!only.test(mutation.name)) continue;
    if (args.includes("--missing") && found.has(mutation.name)) continue;
    const planted = await PlantedTree.grow(mutation);
    const result = await new Trials(mutation, planted, real).run(bounds);
    planted.close();
    const all = merged(args.includes("--append") ? found.get(mutation.name) : undefined, result);
    found.set(mutation.name, all);
    print(rowOf(mutation, all));
    if (args.includes("--write")) write(found);
  }
  real.close();
  if (args.includes("--write")) write(found);
}

const started = process.argv[1];
if (started !== undefined && import.meta.url === pathToFileURL(started).href) {
  await main(process.argv.slice(2));
}
