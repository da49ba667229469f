/**
 * Clients that wait for the lock, hold it, prolong and release it, repeat all of that anywhere, and
 * vanish.
 *
 * Invariants: 1. A client believes by what it was told and when it sent, never by when the answer
 * came. 2. An answer to an attempt that is not its latest is void. 3. Who does not know what became
 * of its release comes again under another name, as the library does.
 */
import { judgeBelief, judgeGrant, judgeRefusal } from "./judge.js";
import {
  type Client,
  DRIFT_TICKS,
  Kind,
  type Message,
  OWNER_STEP,
  Phase,
  type World,
  send,
} from "./parts.js";

function sendAsk(world: World, client: Client, machine: number): void {
  client.attempt++;
  client.asked = machine;
  client.sentAt = world.time;
  const message = send(world, Kind.ask, machine, client.id);
  message.owner = client.owner;
  message.waitId = client.waitId;
  message.attempt = client.attempt;
  message.lease = client.lease;
  message.note = client.owner;
}

function sendGone(world: World, client: Client): void {
  const message = send(world, Kind.gone, client.asked, client.id);
  message.owner = client.owner;
  message.attempt = client.attempt;
}

function sendUnlock(world: World, client: Client, machine: number): void {
  const message = send(world, Kind.unlock, machine, client.id);
  message.owner = client.owner;
  message.token = client.token;
  message.isVague = client.isVague;
}

export function begin(world: World, client: Client, machine: number, lease: number): boolean {
  if (client.phase !== Phase.idle) return false;
  client.phase = Phase.waiting;
  client.waitId++;
  client.lease = lease;
  sendAsk(world, client, machine);
  return true;
}

/** The latest attempt is given up before the new one. */
export function askAgain(world: World, client: Client, machine: number): boolean {
  if (client.phase !== Phase.waiting) return false;
  sendGone(world, client);
  sendAsk(world, client, machine);
  return true;
}

export function giveUp(world: World, client: Client): boolean {
  if (client.phase !== Phase.waiting) return false;
  sendGone(world, client);
  client.attempt++;
  client.phase = Phase.idle;
  return true;
}

export function release(world: World, client: Client, machine: number): boolean {
  if (client.phase !== Phase.holding && client.phase !== Phase.releasing) return false;
  client.phase = Phase.releasing;
  sendUnlock(world, client, machine);
  return true;
}

export function prolong(world: World, client: Client, machine: number): boolean {
  if (client.phase !== Phase.holding || client.until <= world.time) return false;
  const message = send(world, Kind.extend, machine, client.id);
  message.owner = client.owner;
  message.token = client.token;
  message.isVague = client.isVague;
  message.lease = client.lease;
  message.note = client.owner;
  message.sentAt = world.time;
  // A lease that was told may be longer than the one that it asks for.
  client.until = Math.min(client.until, world.time + client.lease - world.margin);
  return true;
}

/** Its program ends, or it does not wait for the end of its release. */
export function vanish(_world: World, client: Client): boolean {
  if (client.phase === Phase.idle) return false;
  if (client.phase === Phase.releasing) {
    client.owner += OWNER_STEP;
    client.waitId = 0;
  }
  client.attempt++;
  client.phase = Phase.idle;
  return true;
}

function hear(world: World, client: Client, message: Message): void {
  const isCurrent = client.phase === Phase.waiting && message.attempt === client.attempt;
  if (!isCurrent || message.owner !== client.owner) return;
  client.attempt++;
  client.token = message.token;
  world.topHeard = Math.max(world.topHeard, client.token);
  // The leader's clock may have drifted all the time that it waited.
  const drifts = 1 + Math.ceil(message.waited / DRIFT_TICKS);
  client.until = client.sentAt + message.waited + message.lease - world.margin * drifts;
  client.phase = Phase.holding;
  if (client.until <= world.time) return void release(world, client, message.machine);
  judgeGrant(world, client);
}

function hearExtended(world: World, client: Client, message: Message): void {
  if (client.phase !== Phase.holding || message.token !== client.token) return;
  if (message.isGood === 0) {
    judgeRefusal(world, client, "an extend");
    client.phase = Phase.idle;
    return;
  }
  const until = message.sentAt + message.lease - world.margin;
  if (client.until <= world.time || until <= client.until) return;
  client.until = until;
  judgeBelief(world, client);
}

function hearUnlocked(world: World, client: Client, message: Message): void {
  if (client.phase !== Phase.releasing || message.token !== client.token) return;
  const wasReleased = world.wasReleased[client.token] === 1;
  if (message.isGood === 0 && !wasReleased) judgeRefusal(world, client, "a release");
  client.phase = Phase.idle;
}

export function receive(world: World, client: Client, message: Message): void {
  switch (message.kind) {
    case Kind.granted:
      return hear(world, client, message);
    case Kind.extended:
      return hearExtended(world, client, message);
    case Kind.unlocked:
      return hearUnlocked(world, client, message);
    default:
      // Told to ask again: it does, as anybody may at any time.
      return;
  }
}
