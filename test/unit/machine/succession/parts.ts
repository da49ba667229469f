/**
 * What the searches about heirs move: clients, machines with what a leader has in memory, messages
 * on their way, and the committed row. Times are ticks, owners and all numbers small integers.
 *
 * Invariants: 1. All of a world is in fields of numbers, so that it can be written down and made
 * again (`encode.ts`). 2. Nothing here decides anything.
 */
import type {
  Ask,
  ListDecided,
  LockDecided,
  SuccessionRow,
  Values,
  When,
} from "../../../../src/machine/locks/succession.js";

export type Row = SuccessionRow<number, number>;
export type Decided = LockDecided | ListDecided;
export type Asked = Ask<number, number>;

export const VALUES: Values<number, number> = {
  same: (one, other) => one === other,
  next: (token) => token + 1,
};

/** Ticks beyond the longest lease for which a list is good. */
export const HORIZON = 2;
/** The shortest lease, and how many lengths there are. */
export const LEASE_MIN = 3;
export const LEASES = 4;
/** Where clocks drift, one gains or loses one tick in as many, at most. */
export const DRIFT_TICKS = 16;
/** Entries that a leader takes in before it refuses. */
export const ENTRIES_MAX = 12;
export const NONE = -1;
/** Owners are clients, and again with every grant whose end a client was not told. */
export const OWNER_STEP = 8;

export const Phase = { idle: 0, waiting: 1, holding: 2, releasing: 3 } as const;

export class Client {
  phase: number = Phase.idle;
  owner = 0;
  waitId = 0;
  attempt = 0;
  lease = 0;
  sentAt = 0;
  /** The machine that was asked last. */
  asked = 0;
  token = NONE;
  /** It believes that it holds, before this. */
  until = 0;
  frozenUntil = 0;
  /** 1: it names no grant when it extends and releases. */
  isVague = 0;

  constructor(readonly id: number) {}
}

export const Kind = {
  ask: 0,
  gone: 1,
  extend: 2,
  unlock: 3,
  force: 4,
  /** To clients. */
  granted: 5,
  retry: 6,
  extended: 7,
  unlocked: 8,
} as const;

export class Message {
  kind = 0;
  /** The machine it is for, or comes from. */
  machine = 0;
  client = 0;
  owner = 0;
  waitId = 0;
  attempt = 0;
  lease = 0;
  token = 0;
  sentAt = 0;
  waited = 0;
  note = 0;
  isGood = 0;
  isVague = 0;
  /** Of the leader that sent it. */
  term = 0;
}

export const MESSAGE_FIELDS = [
  "kind",
  "machine",
  "client",
  "owner",
  "waitId",
  "attempt",
  "lease",
  "token",
  "sentAt",
  "waited",
  "note",
  "isGood",
  "isVague",
  "term",
] as const satisfies readonly (keyof Message)[];

export const Order = {
  /** A request's own try, and that of a place. */
  ask: 0,
  first: 1,
  extend: 2,
  unlock: 3,
  force: 4,
  set: 5,
  append: 6,
} as const;

/** An entry on its way into the log. */
export class Entry {
  order = 0;
  /** Decided in one entry with the one before it. */
  isJoined = 0;
  /** The release that a step in memory rests on. */
  isStep = 0;
  /** Its request went away. */
  isGone = 0;
  /** It names no grant; `token` is what its client means. */
  isVague = 0;
  /** Lease time and term of the entry. */
  stamp = 0;
  client = 0;
  owner = 0;
  waitId = 0;
  attempt = 0;
  lease = 0;
  /** Of the grant, or the base or last one expected. */
  token = 0;
  note = 0;
  /** Lease time at which the request came. */
  taken = 0;
  sentAt = 0;
  kept = 0;
  added: readonly Asked[] = [];
}

export const ENTRY_FIELDS = [
  "order",
  "isJoined",
  "isStep",
  "isGone",
  "isVague",
  "stamp",
  "client",
  "owner",
  "waitId",
  "attempt",
  "lease",
  "token",
  "note",
  "taken",
  "sentAt",
  "kept",
] as const satisfies readonly (keyof Entry)[];

/** Somebody who waits, in the memory of a leader. */
export class Place {
  client = 0;
  owner = 0;
  waitId = 0;
  attempt = 0;
  lease = 0;
  taken = 0;
  note = 0;
  isGone = 0;
}

export const PLACE_FIELDS = [
  "client",
  "owner",
  "waitId",
  "attempt",
  "lease",
  "taken",
  "note",
  "isGone",
] as const satisfies readonly (keyof Place)[];

function freshRow(): Row {
  const base = { token: NONE, owner: NONE, waitId: 0, attempt: 0, note: null };
  return { isHeld: false, base, endMs: 0, heirs: [], listTerm: 0, untilMs: 0, top: NONE };
}

export function copyRow(to: Row, from: Row): void {
  to.isHeld = from.isHeld;
  to.base = from.base;
  to.endMs = from.endMs;
  to.heirs = from.heirs;
  to.listTerm = from.listTerm;
  to.untilMs = from.untilMs;
  to.top = from.top;
}

/** A machine; with `term` > 0 one that leads, or believes to. */
export class Machine {
  term = 0;
  /** Its lease clock is the time plus this. */
  clock = 0;
  driftedAt = -DRIFT_TICKS;
  suspendedUntil = 0;
  /** What it has applied. */
  readonly row = freshRow();
  /** The grant that was told last, ahead of the row; NONE: the row has it. */
  position = NONE;
  /** The grants that were told by this leader, as often as they were. */
  told: number[] = [];
  places: Place[] = [];
  entries: Entry[] = [];
  /** So many of them its successor committed; a deposed leader may learn it, late. */
  committed = 0;

  constructor(readonly index: number) {}
}

export const MACHINES = 3;
/** No history gets so far. */
const TOKENS_MAX = 256;

/** What a search has seen: without it, it proved nothing. */
export class Counts {
  grants = 0;
  steps = 0;
  /** By a leader that another one has followed. */
  deposedSteps = 0;
  /** While a list is being lengthened. */
  stepsInAppend = 0;
  /** Lists that are written anew behind one that is on its way. */
  setsInList = 0;
  /** Whoever is the base by another acquire of its owner. */
  ownTries = 0;
  takeOvers = 0;
  unseen = 0;
  /** Of them, those that the leader that was deposed heard of after all. */
  learnt = 0;
  orphaned = 0;
  /** Members of orphaned lists: a later one spoke, the base came back, an heir asked again. */
  claims = 0;
  returns = 0;
  voids = 0;
  mustRetry = 0;
  /** Heirs of such lists that named no grant; grants that a late word of that kind ended. */
  vague = 0;
  vagueEnds = 0;
  forced = 0;
  forcedOrphans = 0;
  givenBack = 0;
  lapses = 0;
  extended = 0;
  drifts = 0;
  suspensions = 0;
  peaces = 0;
}

export class World {
  time = 0;
  /** The machine of the present leader, and its term. */
  active = 0;
  term = 0;
  /** The highest lease time of a committed entry. */
  lastStamp = 0;
  readonly row = freshRow();
  readonly machines: readonly Machine[] = Array.from(
    { length: MACHINES },
    (_, index) => new Machine(index),
  );
  readonly clients: readonly Client[];
  messages: Message[] = [];
  /** Messages beyond this are lost. */
  messagesMax = 24;
  /** What clocks may drift while a list is good: heirs end, and clients believe, by that less. */
  margin = 0;
  /** What is true of each token, for the judge. */
  readonly toldOwner = new Int16Array(TOKENS_MAX);
  readonly wasReleased = new Uint8Array(TOKENS_MAX);
  readonly wasForced = new Uint8Array(TOKENS_MAX);
  /** The highest token that was believed. */
  topBelieved = NONE;
  /** The highest one that was heard of, in time or not: all before it are done. */
  topHeard = NONE;
  readonly counts = new Counts();

  constructor(clients: number) {
    this.clients = Array.from({ length: clients }, (_, id) => new Client(id));
  }
}

export const when: { -readonly [K in keyof When]: When[K] } = { term: 0, nowMs: 0 };

export function leaseNow(world: World, machine: Machine): number {
  return world.time + machine.clock;
}

export function machineAt(world: World, index: number): Machine {
  return world.machines[index] as Machine;
}

export function clientAt(world: World, index: number): Client {
  return world.clients[index] as Client;
}

export function askedOf({ owner, waitId, attempt, lease, note }: Place | Entry): Asked {
  return { owner, waitId, attempt, leaseMs: lease, note };
}

export function isLiving(place: Place | null): place is Place {
  return place !== null && place.isGone === 0;
}

export function placeOf(machine: Machine, owner: number): Place | null {
  for (const place of machine.places) if (place.owner === owner) return place;
  return null;
}

/** A try-lock of `owner` is on its way. */
export function isTried({ entries }: Machine, owner: number): boolean {
  for (const entry of entries) {
    const isTry = entry.order === Order.ask || entry.order === Order.first;
    if (isTry && entry.owner === owner) return true;
  }
  return false;
}

export function firstPlace(machine: Machine): Place | null {
  for (const place of machine.places) if (place.isGone === 0) return place;
  return null;
}

export function removePlace(machine: Machine, place: Place): void {
  const at = machine.places.indexOf(place);
  if (at >= 0) machine.places.splice(at, 1);
}

export function send(world: World, kind: number, machine: number, client: number): Message {
  const message = new Message();
  message.kind = kind;
  message.machine = machine;
  message.client = client;
  if (world.messages.length < world.messagesMax) world.messages.push(message);
  return message;
}
