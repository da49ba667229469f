/**
 * Sweeps add up: `--record FILE` appends what a sweep showed as one line, `--totals FILE` prints
 * the sum of all lines as tables.
 *
 * Invariants: 1. A line says of which commit and profiles it is. 2. Nothing is left out of a sum:
 * failed seeds are in the tables as such.
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import type { SweepResult } from "./sweep.js";

/** One sweep, as it is kept. */
interface Line {
  readonly commit: string;
  readonly profiles: string;
  readonly firstSeed: number;
  readonly seeds: number;
  readonly failed: number;
  readonly undecided: number;
  readonly simulatedMs: number;
  readonly events: number;
  readonly usedMs: number;
  readonly numbers: Readonly<Record<string, number>>;
  readonly evidence: Readonly<Record<string, number>>;
}

function commitOf(): string {
  try {
    const hash = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" });
    const changes = execFileSync("git", ["status", "--porcelain", "-uno"], { encoding: "utf8" });
    return hash.trim() + (changes === "" ? "" : "+");
  } catch {
    return "unknown";
  }
}

export function record(path: string, profiles: string, firstSeed: number, sum: SweepResult): void {
  const line: Line = {
    commit: commitOf(),
    profiles,
    firstSeed,
    seeds: sum.seeds,
    failed: sum.failed.length,
    undecided: sum.undecided,
    simulatedMs: sum.simulatedMs,
    events: sum.events,
    usedMs: Math.round(sum.usedMs),
    numbers: Object.fromEntries(sum.numbers),
    evidence: Object.fromEntries(sum.evidence),
  };
  appendFileSync(path, `${JSON.stringify(line)}\n`);
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** The tables of all sweeps in the file at `path`, as lines of Markdown. */
export function totals(path: string): string[] {
  const text = readFileSync(path, "utf8");
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
  const out = [
    "| Commit | Profiles | Seeds | Failed | Undecided | Simulated days | Events | Processor s |",
    "|---|---|---|---|---|---|---|---|",
  ];
  const row = (first: string, profiles: string, of: readonly Line[]): string => {
    const sum = (part: (line: Line) => number): number =>
      of.reduce((all, line) => all + part(line), 0);
    const days = sum((line) => line.simulatedMs) / 86_400_000;
    const cells = [
      first,
      profiles,
      whole(sum((line) => line.seeds)),
      whole(sum((line) => line.failed)),
      whole(sum((line) => line.undecided)),
      days < 100 ? days.toFixed(2) : whole(days),
      whole(sum((line) => line.events)),
      whole(sum((line) => line.usedMs) / 1000),
    ];
    return `| ${cells.join(" | ")} |`;
  };
  for (const line of lines) {
    out.push(row(line.commit, `${line.profiles}, from ${line.firstSeed}`, [line]));
  }
  out.push(row("all", "", lines), "");
  out.push(...counts("Done, and gone wrong", lines, (line) => line.numbers));
  out.push(...counts("Seen by checkers", lines, (line) => line.evidence));
  return out;
}

function counts(
  title: string,
  lines: readonly Line[],
  part: (line: Line) => Readonly<Record<string, number>>,
): string[] {
  const sums = new Map<string, number>();
  for (const line of lines) {
    for (const [name, count] of Object.entries(part(line))) {
      sums.set(name, (sums.get(name) ?? 0) + count);
    }
  }
  const rows = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    `| ${title} | Count |`,
    "|---|---|",
    ...rows.map(([name, count]) => `| ${name} | ${whole(count)} |`),
    "",
  ];
}
