/**
 * What is judged in each history of heirs: it knows what was told to whom, and what is committed.
 *
 * Invariant: it looks only; a world goes the same way with and without it.
 */
import { NONE, Phase, type Client, type Row, type World } from "./parts.js";

/** A promise was broken: `message` says which one. */
export class Violation extends Error {}

export function violated(message: string): never {
  throw new Violation(message);
}

/** A leader says that `owner` has the grant `token`. */
export function judgeTold(world: World, token: number, owner: number): void {
  const told = world.toldOwner[token];
  if (told !== 0 && told !== owner + 1) violated(`token ${token} is told to two`);
  world.toldOwner[token] = owner + 1;
}

/** `client` believes from now on, or longer than before. */
export function judgeBelief(world: World, client: Client): void {
  for (const other of world.clients) {
    if (other === client || other.phase !== Phase.holding || other.until <= world.time) continue;
    // Who was forced out believes until it hears of it (F4): its token is below every later one.
    if (world.wasForced[other.token] === 1 || world.wasForced[client.token] === 1) continue;
    violated(`two believe: tokens ${other.token} and ${client.token}`);
  }
}

export function judgeGrant(world: World, client: Client): void {
  judgeBelief(world, client);
  const isForced = world.wasForced[client.token] === 1;
  // The same one again: told to another program of its owner (L2).
  if (client.token < world.topBelieved && !isForced) {
    violated(`token ${client.token} after ${world.topBelieved}`);
  }
  world.topBelieved = Math.max(world.topBelieved, client.token);
}

/**
 * An extend or a release of a grant that `client` believes to have was refused. A later one that
 * was heard of proves the release of all before it.
 */
export function judgeRefusal(world: World, { token, until }: Client, what: string): void {
  if (until <= world.time || world.wasForced[token] === 1) return;
  if (world.topHeard > token) return;
  violated(`${what} of token ${token} refused although it was told`);
}

export function judgeReleased(world: World, token: number): void {
  if (world.wasReleased[token] === 0) violated(`release of ${token} answered before it is durable`);
}

/** The row before and after a command. */
export function judgeRow(row: Row, wasHeld: boolean, token: number, top: number): void {
  const { base, heirs } = row;
  if (row.top < top) violated("the highest token falls");
  if (base.token < token) violated(`the base moves back from ${token} to ${base.token}`);
  if (wasHeld && !row.isHeld && base.token !== token && heirs.length > 0)
    violated("a list is lost");
  if (base.token > row.top) violated("a token is above the highest one");
  let last = base.token;
  for (const heir of heirs) {
    if (heir.token <= last || heir.token > row.top) violated("tokens of heirs out of order");
    if (heir.note !== heir.owner) violated("the note of an heir is another one's");
    last = heir.token;
  }
  if (row.isHeld && base.token !== NONE && base.note !== base.owner) {
    violated("the note of a grant is another one's");
  }
}
