/**
 * `npm run heirs`: the long form of what the tests do. `SVC_HISTORIES` random histories (1,000,000)
 * of the seed `SVC_SEED` (1), from number `SVC_FIRST` (0) on, of `SVC_CLIENTS` (3) clients; with
 * `SVC_STATES`, the small cases as deep as that many states each allow. A history that breaks a
 * promise is told act by act.
 */
import { Act } from "./acts.js";
import { newWorld, runHistory, search } from "./histories.js";
import { SMALL_CASES, explore } from "./small-cases.js";

const STEP = 100_000;

function whole(name: string, otherwise: number): number {
  const value = Number(process.env[name] ?? otherwise);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${name} is a whole number`);
  return value;
}

const clients = whole("SVC_CLIENTS", 3);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The history once more, with what is before each of its acts. */
function tell(seed: number, number: number): void {
  const world = newWorld(clients);
  const names = Object.keys(Act);
  try {
    runHistory(world, seed, number, (act, a, b) => {
      const { time, row, messages, clients, machines } = world;
      const message = act <= Act.undeliverable ? messages[a] : null;
      print(`${names[act]} ${a} ${b} ${JSON.stringify({ time, row, message, clients, machines })}`);
    });
  } catch (error) {
    print(String(error));
  }
}

function searchAll(seed: number, first: number, count: number): void {
  const world = newWorld(clients);
  const begun = process.cpuUsage().user;
  for (let done = 0; done < count;) {
    const found = search(world, seed, first + done, Math.min(STEP, count - done));
    done = found.number - first;
    if (found.violation !== null) {
      tell(seed, found.number);
      print(`history ${found.number} of seed ${seed}: ${found.violation}`);
      process.exitCode = 1;
      break;
    }
    const speed = Math.round(done / ((process.cpuUsage().user - begun) / 1e6));
    print(`${done} histories, ${speed} a second of processor time`);
  }
  print(JSON.stringify(world.counts));
}

function exploreAll(statesMax: number): void {
  for (const plan of SMALL_CASES) {
    const found = explore(newWorld(), { ...plan, depth: Infinity }, statesMax);
    const { states, transitions, depth, violation, way } = found;
    print(`${plan.name}: ${states} states, ${transitions} acts, all to depth ${depth}`);
    if (violation === null) continue;
    process.exitCode = 1;
    print(`${violation}: ${JSON.stringify(way)}`);
  }
}

const states = whole("SVC_STATES", 0);
if (states > 0) exploreAll(states);
searchAll(whole("SVC_SEED", 1), whole("SVC_FIRST", 0), whole("SVC_HISTORIES", 1_000_000));
