/**
 * `npm run explore -- [--steps N] [--seed S] [--each N] [--depth D] [--states N]`: the long version of
 * what the tests do. Explorations go D levels deeper than in the tests; then walks, N steps in all.
 * Prints figures; on a violation how to replay it and a shortened trace.
 */
import { defaultConfig } from "../../../../src/raft/state/config.js";
import { RaftCore } from "../../../../src/raft/core.js";
import { vacuous } from "./counts.js";
import { explore } from "./explore.js";
import type { Library } from "./node.js";
import { plans } from "./plans.js";
import { replayInWords } from "./replay.js";
import { shrink } from "./shrink.js";
import { swarmOf } from "./swarm.js";
import { walk, walks } from "./walk.js";

const library: Library = { RaftCore, defaultConfig };

function option(args: readonly string[], name: string, otherwise: number): number {
  const at = args.indexOf(`--${name}`);
  if (at < 0) return otherwise;
  const value = Number(args[at + 1]);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`);
  return value;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function seconds(since: bigint): number {
  return Number(process.hrtime.bigint() - since) / 1e9;
}

function exploreAll(deeper: number, maxStates: number): boolean {
  let good = true;
  let states = 0;
  const begun = process.hrtime.bigint();
  for (const plan of plans) {
    const started = process.hrtime.bigint();
    const found = explore(library, { ...plan, depth: plan.depth + deeper, maxStates });
    const took = seconds(started);
    states += found.states;
    const extent = found.complete ? `all to depth ${found.depth}` : `into depth ${found.depth + 1}`;
    const speed = `${Math.round(found.states / took)} states/s`;
    print(`${plan.name}: ${found.states} states, ${found.events} events, ${extent}, ${speed}`);
    if (found.violation === null) continue;
    good = false;
    print(`VIOLATION: ${found.violation}`);
    print(replayInWords(library, plan.settings, found.trace, plan));
  }
  const took = seconds(begun);
  print(`${states} states in ${took.toFixed(1)} s, ${Math.round(states / took)} states/s`);
  return good;
}

function walkAll(seed: number, steps: number, each: number): boolean {
  const started = process.hrtime.bigint();
  const { total, found } = walks(library, seed, steps, each);
  const took = seconds(started);
  print(JSON.stringify(total));
  print(`${total.steps} steps in ${took.toFixed(1)} s, ${Math.round(total.steps / took)} steps/s`);
  if (found !== null) {
    print(`VIOLATION in walk ${found.seed}, step ${found.steps}: ${found.violation}`);
    print(
      `replay: npm run explore -- --depth 0 --states 1 --seed ${found.seed} --steps ${each} --each ${each}`,
    );
    const { settings } = swarmOf(found.seed);
    const { events } = walk(library, found.seed, each, {}, true);
    const short = shrink(library, settings, events);
    print(`shortened from ${events.length} to ${short.length} events:`);
    print(replayInWords(library, settings, short).split("\n").slice(-60).join("\n"));
    return false;
  }
  const least = { elections: steps / 2000, truncations: steps / 50_000, snapshots: steps / 50_000 };
  const idle = steps < 1_000_000 ? [] : vacuous(total, least);
  if (idle.length > 0) print(`VACUOUS: ${idle.join(", ")}`);
  return idle.length === 0;
}

/** Returns the exit code. */
export function main(args: readonly string[]): number {
  const seed = option(args, "seed", 1);
  const steps = option(args, "steps", 10_000_000);
  const explored = exploreAll(option(args, "depth", 1), option(args, "states", 150_000));
  const walked = walkAll(seed, steps, option(args, "each", 5000));
  return explored && walked ? 0 : 1;
}
