/**
 * Runs scenario files and compares byte for byte: `npm run golden -- DIR [--rewrite]`.
 *
 * Every file is run with election timeouts of 3, 4, 5 ticks and with random ones; none of its
 * outputs may depend on that.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setDraws, type Draws } from "./addnodes.js";
import { runCommand } from "./commands.js";
import { Environment } from "./environment.js";
import { formatScenario, normalise, parseScenario, type Scenario } from "./scenario.js";

const allDraws: readonly Draws[] = [
  { seed: 1, fixedTicks: 3 },
  { seed: 1, fixedTicks: 4 },
  { seed: 1, fixedTicks: 5 },
  { seed: 1, fixedTicks: 0 },
  { seed: 2, fixedTicks: 0 },
];

/** What every scenario has; a text file of the folder without it is something else, a licence say. */
const separatorLine = /^----$/m;

export interface Verdict {
  readonly name: string;
  /** Null if every output is as expected. */
  readonly failure: string | null;
}

export function runScenario(scenario: Scenario, draws: Draws): string[] {
  setDraws(draws);
  const environment = new Environment();
  return scenario.blocks.map((block) => runCommand(environment, block.command));
}

/** The lines around the first difference, with the line of the file. */
function describeDifference(expected: string, actual: string, outputLine: number): string {
  const wanted = expected.split("\n");
  const found = actual.split("\n");
  let at = 0;
  while (at < wanted.length && wanted[at] === found[at]) at++;
  const lines = [`  first difference in line ${outputLine + at}`];
  for (let near = Math.max(0, at - 3); near < at; near++) lines.push(`      ${wanted[near] ?? ""}`);
  for (const line of wanted.slice(at, at + 6)) lines.push(`  -   ${line}`);
  for (const line of found.slice(at, at + 6)) lines.push(`  +   ${line}`);
  return lines.join("\n");
}

/** The first difference of a run, or null. */
function compare(scenario: Scenario, outputs: readonly string[], path: string): string | null {
  for (let at = 0; at < scenario.blocks.length; at++) {
    const block = scenario.blocks[at];
    if (block === undefined) continue;
    const actual = normalise(outputs[at] ?? "");
    if (actual === block.expected) continue;
    const place = `${path}:${block.line}: ${block.command.name}`;
    return `${place}\n${describeDifference(block.expected, actual, block.outputLine)}`;
  }
  return null;
}

/** Runs one file with every draw. */
export function checkFile(path: string, name: string): Verdict {
  try {
    const scenario = parseScenario(readFileSync(path, "latin1"));
    if (scenario.blocks.length === 0) return { name, failure: `${path}: no command in it` };
    for (const draws of allDraws) {
      const failure = compare(scenario, runScenario(scenario, draws), path);
      if (failure !== null) {
        const ticks = draws.fixedTicks === 0 ? `seed ${draws.seed}` : `${draws.fixedTicks} ticks`;
        return { name, failure: `${failure}\n  (election timeout: ${ticks})` };
      }
    }
    return { name, failure: null };
  } catch (error) {
    return { name, failure: `${path}: ${error instanceof Error ? (error.stack ?? "") : ""}` };
  }
}

/** Names of the scenario files of a folder, in order. */
export function scenarioNames(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    if (!name.endsWith(".txt")) return false;
    return separatorLine.test(readFileSync(join(folder, name), "latin1"));
  });
  return names.sort();
}

function rewrite(folder: string, names: readonly string[]): void {
  for (const name of names) {
    const path = join(folder, name);
    const scenario = parseScenario(readFileSync(path, "latin1"));
    const text = formatScenario(scenario, runScenario(scenario, { seed: 1, fixedTicks: 0 }));
    writeFileSync(path, text, "latin1");
  }
}

/** The command line. Returns the exit code. */
export function main(args: readonly string[]): number {
  const folders = args.filter((arg) => !arg.startsWith("--"));
  const unknown = args.filter((arg) => arg.startsWith("--") && arg !== "--rewrite");
  if (folders.length === 0 || unknown.length > 0) {
    process.stderr.write("usage: npm run golden -- DIR… [--rewrite]\n");
    return 2;
  }
  const missing = folders.filter((folder) => !existsSync(folder));
  if (missing.length > 0) {
    process.stderr.write(`no such folder: ${missing.join(", ")}\n`);
    return 2;
  }
  const verdicts: Verdict[] = [];
  for (const folder of folders) {
    const names = scenarioNames(folder);
    if (args.includes("--rewrite")) rewrite(folder, names);
    verdicts.push(...names.map((name) => checkFile(join(folder, name), name)));
  }
  for (const { name, failure } of verdicts) {
    process.stdout.write(failure === null ? `ok   ${name}\n` : `FAIL ${name}\n${failure}\n`);
  }
  const failed = verdicts.filter(({ failure }) => failure !== null).length;
  process.stdout.write(`${verdicts.length - failed} passed, ${failed} failed\n`);
  return failed === 0 && verdicts.length > 0 ? 0 : 1;
}
