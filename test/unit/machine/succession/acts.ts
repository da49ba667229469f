/**
 * What can happen in a world of heirs, each as a kind and two numbers: all that is left to chance.
 *
 * Invariant: an act that is not possible now changes nothing and is false.
 */
import { askAgain, begin, giveUp, prolong, receive, release, vanish } from "./clients.js";
import { commit, giveBack, learn, lengthen, rewrite, serve, take, takeOver } from "./leader.js";
import {
  DRIFT_TICKS,
  Kind,
  LEASES,
  LEASE_MIN,
  type Machine,
  type Message,
  NONE,
  type World,
  clientAt,
  isTried,
  machineAt,
  send,
} from "./parts.js";

export const Act = {
  /** A message arrives; `b` 1: and will once more. */
  deliver: 0,
  lose: 1,
  /** A grant is not heard, and its leader knows. */
  undeliverable: 2,
  commit: 3,
  serve: 4,
  lengthen: 5,
  /** `b`: how many heirs are kept. */
  rewrite: 6,
  /** A machine takes over; `b`: how many entries it has of its predecessor, and which clock. */
  takeOver: 7,
  /** A leader that was deposed learns it. */
  stepDown: 8,
  tick: 9,
  suspend: 10,
  /** `b` 1: its clock loses a tick, otherwise it gains one. */
  drift: 11,
  begin: 12,
  askAgain: 13,
  giveUp: 14,
  release: 15,
  prolong: 16,
  vanish: 17,
  freeze: 18,
  /** An administrator ends the grant that the machine `a` knows of. */
  force: 19,
  /** A leader that was deposed hears that the oldest of its entries is committed. */
  learn: 20,
} as const;

function isRunning(world: World, { term, suspendedUntil }: Machine): boolean {
  return term > 0 && suspendedUntil <= world.time;
}

function takeOut(world: World, index: number): Message {
  const { messages } = world;
  const message = messages[index] as Message;
  const last = messages.pop() as Message;
  if (last !== message) messages[index] = last;
  return message;
}

function deliver(world: World, index: number, isAgain: boolean): boolean {
  const message = world.messages[index];
  if (message === undefined) return false;
  if (message.kind < Kind.granted) {
    const machine = machineAt(world, message.machine);
    if (machine.term > 0 && !isRunning(world, machine)) return false;
    if (!isAgain) takeOut(world, index);
    if (machine.term > 0) take(world, machine, message);
    return true;
  }
  const client = clientAt(world, message.client);
  if (client.frozenUntil > world.time) return false;
  // A grant comes once: one that came is not undeliverable.
  if (!isAgain || message.kind === Kind.granted) takeOut(world, index);
  receive(world, client, message);
  return true;
}

function undeliverable(world: World, index: number): boolean {
  const message = world.messages[index];
  // What its owner had before, or another one of its attempts may have heard of, it keeps.
  if (message?.kind !== Kind.granted || message.isGood === 0) return false;
  const machine = machineAt(world, message.machine);
  if (!isRunning(world, machine) || machine.term !== message.term) return false;
  const isOnce = machine.told.filter((token) => token === message.token).length === 1;
  if (!isOnce || isTried(machine, message.owner)) return false;
  takeOut(world, index);
  giveBack(world, machine, message.owner, message.token);
  return true;
}

function tick(world: World): boolean {
  // The clock of a machine that is suspended stands still.
  for (const machine of world.machines) if (machine.suspendedUntil > world.time) machine.clock--;
  world.time++;
  return true;
}

function drift(world: World, machine: Machine, by: number): boolean {
  if (world.margin === 0 || machine.term === 0) return false;
  if (world.time < machine.driftedAt + DRIFT_TICKS) return false;
  machine.driftedAt = world.time;
  world.counts.drifts++;
  machine.clock += by;
  return true;
}

function stepDown(world: World, index: number): boolean {
  const machine = machineAt(world, index);
  if (index === world.active || machine.term === 0) return false;
  machine.term = 0;
  return true;
}

function force(world: World, index: number): boolean {
  const machine = machineAt(world, index);
  if (machine.term === 0 || !machine.row.isHeld) return false;
  const { base } = machine.row;
  send(world, Kind.force, index, NONE).token = base.token;
  return true;
}

function actOfClient(world: World, act: number, a: number, b: number): boolean {
  const client = clientAt(world, a);
  if (client.frozenUntil > world.time) return false;
  switch (act) {
    case Act.begin:
      return begin(world, client, b % world.machines.length, LEASE_MIN + (b % LEASES));
    case Act.askAgain:
      return askAgain(world, client, b);
    case Act.giveUp:
      return giveUp(world, client);
    case Act.release:
      return release(world, client, b);
    case Act.prolong:
      return prolong(world, client, b);
    case Act.vanish:
      return vanish(world, client);
    default:
      client.frozenUntil = world.time + 1 + b;
      return true;
  }
}

/** Carries out an act; returns whether it was possible. */
export function perform(world: World, act: number, a: number, b: number): boolean {
  switch (act) {
    case Act.deliver:
      return deliver(world, a, b === 1);
    case Act.lose:
      if (a >= world.messages.length) return false;
      takeOut(world, a);
      return true;
    case Act.undeliverable:
      return undeliverable(world, a);
    case Act.commit: {
      const machine = machineAt(world, world.active);
      if (!isRunning(world, machine) || machine.entries.length === 0) return false;
      commit(world, machine);
      return true;
    }
    case Act.serve:
      return isRunning(world, machineAt(world, a)) && serve(world, machineAt(world, a));
    case Act.lengthen:
      return isRunning(world, machineAt(world, a)) && lengthen(world, machineAt(world, a));
    case Act.rewrite:
      return isRunning(world, machineAt(world, a)) && rewrite(world, machineAt(world, a), b);
    case Act.takeOver:
      takeOver(world, a, b >> 1, (b & 1) === 1);
      return true;
    case Act.stepDown:
      return stepDown(world, a);
    case Act.tick:
      return tick(world);
    case Act.suspend:
      if (!isRunning(world, machineAt(world, a))) return false;
      world.counts.suspensions++;
      machineAt(world, a).suspendedUntil = world.time + 1 + b;
      return true;
    case Act.drift:
      return drift(world, machineAt(world, a), b === 1 ? -1 : 1);
    case Act.force:
      return force(world, a);
    case Act.learn:
      return isRunning(world, machineAt(world, a)) && learn(world, machineAt(world, a));
    default:
      return actOfClient(world, act, a, b);
  }
}
