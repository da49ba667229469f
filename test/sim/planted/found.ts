/**
 * What is known of each planted bug: how many seeds it took in which trial, who saw it first, and
 * the shortest run that shows it. Kept in `found.json`, which `table.ts` writes.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Found {
  /** Seeds up to the first violation, by trial; null: not within the bound. */
  readonly seeds: readonly (number | null)[];
  /** Seeds that a trial tries at most. */
  readonly seedsMax: number;
  /** Who saw it first, in most of the trials; "" = nobody. */
  readonly witness: string;
  /** The run that shows it soonest; null as long as none does. */
  readonly quickest: { readonly seed: number; readonly ticks: number } | null;
}

const path = join(
  dirname(fileURLToPath(import.meta.url)),
  ...["..", "..", "..", "..", "test", "sim", "planted", "found.json"],
);

/** By name of the bug. */
export function readFound(): Map<string, Found> {
  const text = readFileSync(path, "utf8");
  return new Map(Object.entries(JSON.parse(text) as Record<string, Found>));
}

/** JSON as the formatter of the house wants it: one line for each member of a bug. */
function textOf(found: ReadonlyMap<string, Found>): string {
  const bugs = [...found].map(([name, known]) => {
    const members = Object.entries(known).map(([member, value]: [string, unknown]) => {
      // What a run said stays as it is, however often the file is written.
      const json = JSON.stringify(value);
      const isWords = typeof value === "string";
      const text = isWords ? json : json.replaceAll(",", ", ").replaceAll('":', '": ');
      return `    ${JSON.stringify(member)}: ${isWords ? text : text.replace("{", "{ ").replace("}", " }")}`;
    });
    return `  ${JSON.stringify(name)}: {\n${members.join(",\n")}\n  }`;
  });
  return `{\n${bugs.join(",\n")}\n}\n`;
}

export function writeFound(found: ReadonlyMap<string, Found>): void {
  writeFileSync(path, textOf(found));
}
