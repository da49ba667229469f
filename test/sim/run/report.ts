/**
 * What people read of a run: the summary of one seed, the replay command, and the timeline around a
 * violation.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Judged } from "./judge.js";
import type { Plan } from "../plan/plan.js";

/** Lines before a violation that a timeline keeps. */
export const TIMELINE_LINES = 3000;

/** The one command that runs this plan again. */
export function replayCommand(plan: Plan, drawn: Plan): string {
  const parts = [`npm run sim -- --seed ${plan.seed} --profile ${plan.profile}`];
  if (plan.ticks !== drawn.ticks) parts.push(`--ticks ${plan.ticks}`);
  if (plan.clients !== drawn.clients) parts.push(`--clients ${plan.clients}`);
  const nodes = plan.nodes + plan.joiners;
  if (nodes !== drawn.nodes + drawn.joiners) parts.push(`--nodes ${nodes}`);
  const groups = plan.host.initialPartitions;
  if (groups !== drawn.host.initialPartitions) parts.push(`--groups ${groups ?? 0}`);
  const faults = plan.faults.join(",");
  if (faults !== drawn.faults.join(",")) parts.push(`--faults ${faults === "" ? "none" : faults}`);
  if (plan.without.length > 0) parts.push(`--without ${ranges(plan.without)}`);
  return parts.join(" ");
}

/** "1-4,7" for 1, 2, 3, 4, 7. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length;) {
    let end = at;
    while (sorted[end + 1] === (sorted[end] as number) + 1) end++;
    parts.push(end === at ? `${sorted[at]}` : `${sorted[at]}-${sorted[end]}`);
    at = end + 1;
  }
  return parts.join(",");
}

export function numbersOf(text: string): number[] {
  const numbers: number[] = [];
  for (const part of text.split(",")) {
    const [first, last] = part.split("-").map(Number);
    if (first === undefined || !Number.isSafeInteger(first)) throw new Error(`no number: ${part}`);
    for (let number = first; number <= (last ?? first); number++) numbers.push(number);
  }
  return numbers;
}

function counts(record: Readonly<Record<string, number>>): string {
  return Object.entries(record)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

/** `tookMs`: processor time of the run and of its checkers. */
export function summary(judged: Judged, tookMs: number): string[] {
  const { result } = judged;
  const { plan } = result;
  const speed = Math.round(result.simulatedMs / tookMs);
  const rate = Math.round((result.events / tookMs) * 1000);
  const lines = [
    `seed ${plan.seed}, profile ${plan.profile}: ${plan.nodes + plan.joiners} node(s), ${plan.clients} client(s)`,
    `calls: ${counts({ ...result.clients })}`,
    `faults: ${counts(result.faults) || "none"}`,
    `effects: ${counts(result.effects)}`,
    `${result.starts} starts, ${result.samples} changes of groups, ${result.events} events`,
    `${Math.round(result.simulatedMs)} ms in ${Math.round(tookMs)} ms of processor time: ${speed} times real time, ${rate} events/s`,
  ];
  if (Object.keys(judged.evidence).length > 0) lines.push(`evidence: ${counts(judged.evidence)}`);
  if (judged.vacuous.length > 0) lines.push(`saw too little: ${judged.vacuous.join(", ")}`);
  for (const reason of judged.undecided) lines.push(`undecided: ${reason}`);
  for (const violation of judged.violations) lines.push(`VIOLATION: ${violation}`);
  lines.push(`trace ${result.traceHash}`);
  return lines;
}

/** Writes the words of a run to a file of its own and returns its path. */
export function writeTimeline(judged: Judged, replay: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "svc-sim-")), `seed-${judged.result.plan.seed}.txt`);
  const head = [
    `Timeline of: ${replay}`,
    ...judged.violations.map((violation) => `VIOLATION: ${violation}`),
    "",
    "   time (ms)  who     what",
  ];
  writeFileSync(path, [...head, ...judged.result.words, ""].join("\n"));
  return path;
}
