/**
 * The table of README.md: which bug, which pitfall, who catches it, and how far that had to go.
 * `node dist/test/planted/table.js --write` makes it anew.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Catcher, Mutation } from "./mutation.js";
import { mutations } from "./mutations.js";
import { plant } from "./plant.js";

export const readme = join(
  dirname(fileURLToPath(import.meta.url)),
  ...["..", "..", "..", "test", "planted", "README.md"],
);

const heading = "| Planted bug | Pitfall | Caught by | Effort |\n|---|---|---|---|\n";

function catcherInWords(catcher: Catcher): string {
  switch (catcher.by) {
    case "walk":
      return "walks";
    case "explorer":
      return `explorer: ${catcher.plan}`;
    case "golden":
      return `scenario ${catcher.scenario}`;
    case "check":
      return `check ${catcher.check}`;
  }
}

/** The row of a mutation up to the last column. */
export function rowOf(mutation: Mutation): string {
  return `| ${mutation.name} | ${mutation.pitfall} | ${catcherInWords(mutation.catcher)} |`;
}

/** The effort in words, as the last column has it. */
export function effortOf({ by }: Catcher, effort: number): string {
  if (by === "walk") return `${effort} steps`;
  return by === "explorer" ? `${effort} states` : "1 run";
}

/** The rows that the file has now, without their last column. */
export function writtenRows(): string[] {
  const text = readFileSync(readme, "utf8");
  const body = text.slice(text.indexOf(heading) + heading.length);
  const rows = body.split("\n").filter((line) => line.startsWith("| "));
  return rows.map((row) => row.replace(/[^|]+\|$/, "").trimEnd());
}

async function write(): Promise<void> {
  const rows: string[] = [];
  for (const mutation of mutations) {
    const { effort, said } = await plant(mutation);
    if (said === null) throw new Error(`"${mutation.name}" is not caught`);
    rows.push(`${rowOf(mutation)} ${effortOf(mutation.catcher, effort)} |`);
  }
  const text = readFileSync(readme, "utf8");
  const before = text.slice(0, text.indexOf(heading));
  writeFileSync(readme, `${before}${heading}${rows.join("\n")}\n`);
}

const started = process.argv[1];
if (started !== undefined && import.meta.url === pathToFileURL(started).href) {
  if (process.argv.includes("--write")) await write();
  else process.stdout.write("usage: node dist/test/planted/table.js --write\n");
}
