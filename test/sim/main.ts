/**
 * `npm run sim -- --seed N [--ticks T] [--profile P]`: runs one seed and prints what it saw, with
 * the hash of its trace.
 */
import { planOf, type PlanOverrides } from "./plan.js";
import { runPlan } from "./run.js";

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

interface Options {
  readonly seed: number;
  readonly profile: string;
  readonly overrides: PlanOverrides;
  readonly words: boolean;
}

function parse(args: readonly string[]): Options {
  const value = (name: string): string | undefined => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? undefined : args[at + 1];
  };
  const number = (name: string): number | undefined => {
    const given = value(name);
    if (given === undefined) return undefined;
    const parsed = Number(given);
    if (!Number.isSafeInteger(parsed) || parsed < 0) throw new Error(`--${name} takes a number`);
    return parsed;
  };
  const ticks = number("ticks");
  const clients = number("clients");
  const without = value("without");
  return {
    seed: number("seed") ?? 1,
    profile: value("profile") ?? "one",
    overrides: {
      ...(ticks === undefined ? {} : { ticks }),
      ...(clients === undefined ? {} : { clients }),
      ...(without === undefined ? {} : { without: without.split(",").map(Number) }),
    },
    words: args.includes("--words"),
  };
}

/** Returns the exit code. */
export function main(args: readonly string[]): number {
  const options = parse(args);
  const plan = planOf(options.seed, options.profile, options.overrides);
  const started = process.hrtime.bigint();
  const result = runPlan(plan, { linesMax: options.words ? Infinity : 0 });
  const tookMs = Number(process.hrtime.bigint() - started) / 1e6;
  for (const line of result.words) print(line);
  print(
    `seed ${plan.seed}, profile ${plan.profile}: ${plan.nodes} node(s), ${plan.clients} client(s)`,
  );
  print(`clients ${JSON.stringify(result.clients)}`);
  print(`faults ${JSON.stringify(result.faults)}`);
  print(`effects ${JSON.stringify(result.effects)}`);
  const speed = Math.round(result.simulatedMs / tookMs);
  const rate = Math.round((result.events / tookMs) * 1000);
  print(`${result.starts} starts, ${result.samples} samples, ${result.events} events`);
  print(
    `${Math.round(result.simulatedMs)} ms in ${Math.round(tookMs)} ms: ${speed} x, ${rate} events/s`,
  );
  for (const violation of result.violations) print(`VIOLATION: ${violation}`);
  print(`trace ${result.traceHash}`);
  return result.violations.length > 0 ? 1 : 0;
}
