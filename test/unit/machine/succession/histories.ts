/**
 * Random histories of heirs, each of its own seed, and the peace after some of them, in which
 * everybody who waits must get the lock.
 *
 * Invariants: 1. A history is the same for the same seed and number. 2. Each has a mood: some kinds
 * of acts never happen in it, so that others come closer together.
 */
import { Act, perform as performAct } from "./acts.js";
import { Violation, violated } from "./judge.js";
import { ENTRIES_MAX, LEASES, LEASE_MIN, Phase, World, machineAt } from "./parts.js";
import { restart } from "./worlds.js";

const ACTS = 120;
const MOODS = 64;
const SLOTS = 128;
/** Ticks within which peace serves everybody: a lease, a list, and the leases of who vanished. */
const PEACE_TICKS = 80;
/** One history in as many ends in peace. */
const PEACE_EVERY = 8;

const WEIGHTS: readonly (readonly [act: number, weight: number, isNeeded?: true])[] = [
  [Act.deliver, 40, true],
  [Act.commit, 14, true],
  [Act.tick, 9],
  [Act.release, 8, true],
  [Act.lengthen, 4, true],
  [Act.takeOver, 1, true],
  [Act.askAgain, 6],
  [Act.begin, 6, true],
  [Act.prolong, 4],
  [Act.rewrite, 3],
  [Act.serve, 5, true],
  [Act.stepDown, 1],
  [Act.suspend, 1],
  [Act.drift, 2],
  [Act.lose, 3],
  [Act.undeliverable, 2],
  [Act.giveUp, 2],
  [Act.vanish, 2],
  [Act.freeze, 1],
  [Act.force, 1],
  [Act.learn, 3],
];

/** xoroshiro64*: one of 32 bits would go around many times in a long search. */
let low = 1;
let high = 1;

function below(bound: number): number {
  const drawn = Math.imul(low, 0x9e3779bb) >>> 8;
  high ^= low;
  low = (low << 26) | (low >>> 6);
  low ^= high ^ (high << 9);
  high = (high << 13) | (high >>> 19);
  return drawn % bound;
}

function seedOf(seed: number, number: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return mixed ^ (mixed >>> 16) || 1;
}

/** What may happen in a mood, as often as its weight. */
function mood(): Uint8Array {
  const pool: number[] = [];
  for (const [act, weight, isNeeded] of WEIGHTS) {
    if (isNeeded !== true && below(3) === 0) continue;
    const times = weight * (1 + below(3));
    for (let i = 0; i < times; i++) pool.push(act);
  }
  return Uint8Array.from({ length: SLOTS }, (_, at) => {
    const scaled = Math.floor(((at + 0.5) * pool.length) / SLOTS);
    return pool[scaled] as number;
  });
}

low = 12345;
const moods = Array.from({ length: MOODS }, mood);

/** Called with each act that happens; for who looks into a history. */
let told: ((act: number, a: number, b: number) => void) | null = null;

function perform(world: World, act: number, a: number, b: number): boolean {
  told?.(act, a, b);
  return performAct(world, act, a, b);
}

/** The machine that led before: it does not know that it is deposed. */
let former = 0;

function machineFor(world: World): number {
  const choice = below(4);
  if (choice === 0) return below(world.machines.length);
  return choice === 1 ? former : world.active;
}

/** A client in that phase, if there is one; any other one now and then. */
function clientIn(world: World, phase: number): number {
  const { clients } = world;
  const from = below(clients.length);
  for (let i = 0; i < clients.length; i++) {
    const at = (from + i) % clients.length;
    if (clients[at]?.phase === phase) return at;
  }
  return from;
}

function happen(world: World, act: number): boolean {
  switch (act) {
    case Act.deliver: {
      const { length } = world.messages;
      if (length === 0) return false;
      return perform(world, act, below(length), below(8) === 0 ? 1 : 0);
    }
    case Act.lose:
    case Act.undeliverable:
      return world.messages.length > 0 && perform(world, act, below(world.messages.length), 0);
    case Act.commit:
    case Act.tick:
      return perform(world, act, 0, 0);
    case Act.takeOver: {
      former = world.active;
      // Half of the time none of its predecessor's entries are committed.
      return perform(world, act, below(world.machines.length), below(below(2) === 0 ? 2 : 8));
    }
    case Act.serve:
    case Act.lengthen:
    case Act.stepDown:
    case Act.force:
    case Act.learn:
      return perform(world, act, machineFor(world), 0);
    case Act.rewrite:
    case Act.drift:
      return perform(world, act, machineFor(world), below(2));
    case Act.suspend:
      return perform(world, act, machineFor(world), below(10));
    case Act.begin:
      return perform(world, act, clientIn(world, Phase.idle), below(18));
    case Act.askAgain:
    case Act.giveUp:
      return perform(world, act, clientIn(world, Phase.waiting), machineFor(world));
    case Act.release: {
      // One that is on its way already is repeated as often.
      const phase = below(2) === 0 ? Phase.holding : Phase.releasing;
      return perform(world, act, clientIn(world, phase), machineFor(world));
    }
    case Act.prolong:
      return perform(world, act, clientIn(world, Phase.holding), machineFor(world));
    case Act.freeze:
      return perform(world, act, below(world.clients.length), below(8));
    default:
      return perform(world, act, below(world.clients.length), machineFor(world));
  }
}

/** All messages arrive, all entries are committed, as long as more come of it. */
function settle(world: World): void {
  const leader = machineAt(world, world.active);
  for (let i = 0; i < 200; i++) {
    if (world.messages.length > 0) perform(world, Act.deliver, 0, 0);
    else if (!perform(world, Act.commit, 0, 0)) return;
    if (leader.entries.length >= ENTRIES_MAX) perform(world, Act.commit, 0, 0);
  }
  violated("a leader and its clients never come to rest");
}

/** Faults have ended: whoever waits gets the lock within the time of a list and of leases. */
function peace(world: World): void {
  world.counts.peaces++;
  for (const machine of world.machines) {
    if (machine.index !== world.active) machine.term = 0;
    machine.suspendedUntil = 0;
  }
  for (const client of world.clients) client.frozenUntil = 0;
  for (let ticks = 0; ticks < PEACE_TICKS; ticks++) {
    settle(world);
    let waiting = 0;
    for (const { id, phase } of world.clients) {
      if (phase === Phase.waiting) {
        waiting++;
        if (ticks % 4 === 0) perform(world, Act.askAgain, id, world.active);
      } else if (phase !== Phase.idle) {
        perform(world, Act.release, id, world.active);
      }
    }
    settle(world);
    if (waiting === 0) return;
    if (ticks % 2 === 0) perform(world, Act.lengthen, world.active, 0);
    perform(world, Act.serve, world.active, 0);
    settle(world);
    perform(world, Act.tick, 0, 0);
  }
  violated("somebody waits for ever in peace");
}

/** One history; throws a `Violation`. `trace`: called before each act. */
export function runHistory(
  world: World,
  seed: number,
  number: number,
  trace: ((act: number, a: number, b: number) => void) | null = null,
): void {
  told = trace;
  former = 0;
  low = seedOf(seed, number);
  high = seedOf(low, number);
  const slots = moods[below(MOODS)] as Uint8Array;
  const heirs = Math.min(below(5) - 1, world.clients.length - 1);
  const isTold = below(3) > 0;
  restart(world, below(2), LEASE_MIN + below(LEASES), heirs, isTold);
  const vague = below(6);
  for (const client of world.clients) client.isVague = client.id === vague ? 1 : 0;
  for (let i = 0; i < ACTS; i++) {
    const act = slots[below(SLOTS)] as number;
    happen(world, act);
  }
  if (number % PEACE_EVERY === 0) peace(world);
}

export interface Found {
  /** The number of the history, or how many there were. */
  readonly number: number;
  readonly violation: string | null;
}

/** Runs histories `first` to `first + count - 1`, up to the first that breaks a promise. */
export function search(world: World, seed: number, first: number, count: number): Found {
  for (let number = first; number < first + count; number++) {
    try {
      runHistory(world, seed, number);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return { number, violation: error.message };
    }
  }
  return { number: first + count, violation: null };
}

export function newWorld(clients = 3): World {
  return new World(clients);
}
