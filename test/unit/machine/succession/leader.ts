/**
 * What a leader does for who waits, with the heirs of the list: hand-over in memory, and all else
 * through the log. A leader that was deposed does not know it, and goes on.
 *
 * Invariants: 1. In memory a grant is told only to the very attempt that a list of its own term,
 * applied here, names next, upon the release by the holder before it, while nothing is on its way
 * that could say otherwise. 2. What is granted to nobody is given back through the log, never in
 * memory: who is behind it must not be told on the word of a node. 3. With a new term nothing of
 * this is left.
 */
import { judgeReleased, judgeRow, judgeTold } from "./judge.js";
import {
  type Decided,
  ENTRIES_MAX,
  Entry,
  HORIZON,
  Kind,
  type Machine,
  type Message,
  NONE,
  Order,
  Place,
  type Row,
  VALUES,
  type World,
  askedOf,
  copyRow,
  firstPlace,
  isLiving,
  isTried,
  leaseNow,
  machineAt,
  placeOf,
  removePlace,
  send,
  when,
} from "./parts.js";
import {
  appendHeirs,
  extend,
  forceUnlock,
  heirAfter,
  isInTime,
  isOrphaned,
  setHeirs,
  tryLock,
  unlock,
} from "../../../../src/machine/locks/succession.js";

function propose(world: World, machine: Machine, order: number): Entry {
  const entry = new Entry();
  entry.order = order;
  entry.client = NONE;
  entry.stamp = leaseNow(world, machine);
  machine.entries.push(entry);
  return entry;
}

function proposeTry(world: World, machine: Machine, place: Place, isJoined: number): void {
  const entry = propose(world, machine, Order.first);
  entry.isJoined = isJoined;
  entry.client = place.client;
  entry.owner = place.owner;
  entry.waitId = place.waitId;
  entry.attempt = place.attempt;
  entry.lease = place.lease;
  entry.note = place.note;
}

/** Answers the attempt that `to` stands for. */
function tell(
  world: World,
  machine: Machine,
  to: Place | Entry,
  token: number,
  leaseLeft: number,
  isFresh: boolean,
): void {
  judgeTold(world, token, to.owner);
  world.counts.grants++;
  const message = send(world, Kind.granted, machine.index, to.client);
  message.owner = to.owner;
  message.waitId = to.waitId;
  message.attempt = to.attempt;
  message.token = token;
  message.term = machine.term;
  machine.told.push(token);
  message.lease = leaseLeft;
  message.isGood = isFresh ? 1 : 0;
  message.waited = leaseNow(world, machine) - to.taken;
}

function leaseLeft(world: World, machine: Machine): number {
  return machine.row.endMs - leaseNow(world, machine);
}

/** The grant that was told last, as far as this leader knows; NONE: nobody holds. */
function currentToken({ position, row }: Machine): number {
  if (position !== NONE) return position;
  return row.isHeld ? row.base.token : NONE;
}

function ownerOf(row: Row, token: number): number {
  if (row.base.token === token) return row.base.owner;
  for (const heir of row.heirs) if (heir.token === token) return heir.owner;
  return NONE;
}

function isNamed(row: Row, owner: number): boolean {
  if (row.base.owner === owner) return true;
  for (const heir of row.heirs) if (heir.owner === owner) return true;
  return false;
}

/** Nothing is on its way that could move the list otherwise. */
function isUndisturbed({ entries, row }: Machine): boolean {
  for (const { order, isStep, owner } of entries) {
    if (order === Order.set) return false;
    if (order === Order.force) return false;
    if (order === Order.unlock && isStep === 0) return false;
    if ((order === Order.ask || order === Order.first) && isNamed(row, owner)) return false;
  }
  return true;
}

function countStep({ counts, term }: World, machine: Machine): void {
  counts.steps++;
  if (machine.term !== term) counts.deposedSteps++;
  if (machine.entries.some(({ order }) => order === Order.append)) counts.stepsInAppend++;
}

/** Hands over in memory, if that is allowed; returns whether it did. */
function step(world: World, machine: Machine, token: number, owner: number): boolean {
  const { row } = machine;
  if (token === NONE || token !== currentToken(machine)) return false;
  if (row.listTerm !== machine.term || ownerOf(row, token) !== owner) return false;
  const heir = heirAfter(row, token);
  if (heir === null || !isUndisturbed(machine)) return false;
  const place = placeOf(machine, heir.owner);
  if (!isLiving(place) || place.waitId !== heir.waitId) return false;
  if (place.attempt !== heir.attempt) return false;
  if (!isInTime(row, heir, leaseNow(world, machine), world.margin)) return false;
  countStep(world, machine);
  machine.position = heir.token;
  removePlace(machine, place);
  tell(world, machine, place, heir.token, heir.leaseMs, true);
  return true;
}

/** Behind the release of `token` in the same entry: the next one that waits here. */
function proposeNext(world: World, machine: Machine, token: number): void {
  const { row } = machine;
  let at = token;
  for (;;) {
    const heir = row.listTerm === machine.term ? heirAfter(row, at) : null;
    if (heir === null) break;
    const place = placeOf(machine, heir.owner);
    // It is told when it is the base, or by its own try.
    if (isLiving(place) && place.waitId === heir.waitId) return;
    if (isTried(machine, heir.owner)) return;
    const passing = propose(world, machine, Order.unlock);
    passing.isJoined = 1;
    passing.owner = heir.owner;
    passing.token = heir.token;
    at = heir.token;
  }
  const first = firstPlace(machine);
  if (first !== null) proposeTry(world, machine, first, 1);
}

function releaseByLog(
  world: World,
  machine: Machine,
  owner: number,
  token: number,
  client: number,
): void {
  // What goes behind a release goes behind the first one.
  const isAgain = isReleased(machine, token);
  const entry = propose(world, machine, Order.unlock);
  entry.owner = owner;
  entry.token = token;
  entry.client = client;
  if (token === currentToken(machine) && !isAgain) proposeNext(world, machine, token);
}

function isReleased({ entries, row }: Machine, released: number): boolean {
  for (const { order, token, isVague, owner } of entries) {
    if (order !== Order.unlock) continue;
    if (token === released || (isVague === 1 && owner === ownerOf(row, released))) return true;
  }
  return false;
}

/** Of a grant that its request never hears of, unless another one of its owner may. */
export function giveBack(world: World, machine: Machine, owner: number, token: number): void {
  if (isTried(machine, owner)) return;
  world.counts.givenBack++;
  releaseByLog(world, machine, owner, token, NONE);
}

/** It may be about an earlier grant of its owner: never a step. */
function takeVagueRelease(world: World, machine: Machine, message: Message): void {
  const { owner, token, client } = message;
  const current = currentToken(machine);
  const isFirst = ownerOf(machine.row, current) === owner && !isReleased(machine, current);
  const entry = propose(world, machine, Order.unlock);
  entry.owner = owner;
  entry.token = token;
  entry.client = client;
  entry.isVague = 1;
  if (isFirst) proposeNext(world, machine, current);
}

function takeRelease(world: World, machine: Machine, message: Message): void {
  const { owner, token, client } = message;
  if (message.isVague === 1) return takeVagueRelease(world, machine, message);
  if (!step(world, machine, token, owner)) {
    return releaseByLog(world, machine, owner, token, client);
  }
  const entry = propose(world, machine, Order.unlock);
  entry.owner = owner;
  entry.token = token;
  entry.client = client;
  entry.isStep = 1;
}

function takeAsk(world: World, machine: Machine, message: Message): void {
  const { row } = machine;
  const { owner, waitId, attempt } = message;
  const now = leaseNow(world, machine);
  const place = placeOf(machine, owner);
  if (place !== null && place.waitId === waitId) {
    if (attempt <= place.attempt) return;
    place.attempt = attempt;
    place.isGone = 0;
    place.taken = now;
    return;
  }
  if (place !== null) {
    if (place.waitId > waitId) return;
    removePlace(machine, place);
  }
  const isOthers = row.isHeld && ownerOf(row, currentToken(machine)) !== owner;
  if (isOthers && firstPlace(machine) !== null) {
    machine.places.push(placeFor(message, now));
    return;
  }
  const entry = propose(world, machine, Order.ask);
  entry.client = message.client;
  entry.owner = owner;
  entry.waitId = waitId;
  entry.attempt = attempt;
  entry.lease = message.lease;
  entry.note = message.note;
  entry.taken = now;
}

function placeFor(from: Message | Entry, taken: number): Place {
  const place = new Place();
  place.client = from.client;
  place.owner = from.owner;
  place.waitId = from.waitId;
  place.attempt = from.attempt;
  place.lease = from.lease;
  place.note = from.note;
  place.taken = taken;
  return place;
}

function takeGone({ places, entries }: Machine, { owner, attempt }: Message): void {
  for (const place of places) {
    if (place.owner === owner && place.attempt === attempt) place.isGone = 1;
  }
  for (const entry of entries) {
    if (entry.order !== Order.ask) continue;
    if (entry.owner === owner && entry.attempt === attempt) entry.isGone = 1;
  }
}

/** A message has come. */
export function take(world: World, machine: Machine, message: Message): void {
  if (message.kind === Kind.gone) return takeGone(machine, message);
  if (machine.entries.length >= ENTRIES_MAX) return;
  if (message.kind === Kind.ask) return takeAsk(world, machine, message);
  if (message.kind === Kind.unlock) return takeRelease(world, machine, message);
  if (message.kind === Kind.extend) {
    const entry = propose(world, machine, Order.extend);
    entry.client = message.client;
    entry.owner = message.owner;
    entry.token = message.token;
    entry.isVague = message.isVague;
    entry.lease = message.lease;
    entry.note = message.note;
    entry.sentAt = message.sentAt;
    return;
  }
  propose(world, machine, Order.force).token = message.token;
  const first = firstPlace(machine);
  if (first !== null) proposeTry(world, machine, first, 1);
}

/** Applies an entry to the committed row. */
export function apply(world: World, entry: Entry, term: number): Decided {
  const { row } = world;
  const { isHeld, base, top } = row;
  world.lastStamp = Math.max(world.lastStamp, entry.stamp);
  when.term = term;
  when.nowMs = world.lastStamp;
  const wasOrphaned = isOrphaned(row, when);
  const heirs = row.heirs.length;
  const decided = decide(row, entry);
  judgeRow(row, isHeld, base.token, top);
  if (wasOrphaned) countOrphaned(world, entry, decided, base.token, heirs);
  if (decided === "extended") world.counts.extended++;
  if (decided === "unlocked") {
    if (entry.order === Order.force) {
      world.wasForced[entry.token] = 1;
      world.counts.forced++;
    } else {
      world.wasReleased[entry.token] = 1;
      const isOwn = entry.isVague === 1 && base.owner === entry.owner;
      if (isOwn) endVaguely(world, entry.token, base.token);
    }
  }
  return decided;
}

/** A word that named no grant came late, and ended a later one of its owner: as today. */
function endVaguely(world: World, meant: number, ended: number): void {
  if (meant === ended) return;
  world.counts.vagueEnds++;
  world.wasReleased[ended] = 1;
  world.wasForced[ended] = 1;
}

function countOrphaned(
  { counts, row }: World,
  { order, token }: Entry,
  decided: Decided,
  base: number,
  heirs: number,
): void {
  if (decided === "locked") counts.returns++;
  if (decided === "must-retry") {
    if (order === Order.ask || order === Order.first) counts.mustRetry++;
    else counts.vague++;
  }
  if (decided === "busy" && row.heirs.length < heirs) counts.voids++;
  if (decided === "unlocked" && order === Order.force) counts.forcedOrphans++;
  const isMembers = decided === "unlocked" || decided === "extended";
  if (isMembers && token > base) counts.claims++;
}

function decide(row: Row, entry: Entry): Decided {
  const { owner, lease: leaseMs, note, kept, added } = entry;
  const token = entry.isVague === 1 ? null : entry.token;
  switch (entry.order) {
    case Order.extend:
      return extend(VALUES, row, when, { owner, token, leaseMs, note });
    case Order.unlock:
      return unlock(VALUES, row, when, { owner, token });
    case Order.force:
      return forceUnlock(row, when, entry.token);
    case Order.set:
      return setHeirs(VALUES, row, when, entry.token, kept, added, HORIZON);
    case Order.append:
      return appendHeirs(VALUES, row, when, entry.token, added, HORIZON);
    default:
      return tryLock(VALUES, row, when, askedOf(entry));
  }
}

/** The oldest entry of the leader, with what is joined to it, is committed, applied, answered. */
export function commit(world: World, machine: Machine): void {
  applyOldest(world, machine, (entry) => {
    const decided = apply(world, entry, machine.term);
    copyRow(machine.row, world.row);
    return decided;
  });
}

/** What its successor committed, a leader that was deposed learns late; returns whether it did. */
export function learn(world: World, machine: Machine): boolean {
  if (machine.committed === 0) return false;
  applyOldest(world, machine, (entry) => {
    machine.committed--;
    world.counts.learnt++;
    when.nowMs = entry.stamp;
    return decide(machine.row, entry);
  });
  return true;
}

function applyOldest(world: World, machine: Machine, applied: (entry: Entry) => Decided): void {
  const { entries, row, position } = machine;
  when.term = machine.term;
  when.nowMs = Math.max(world.lastStamp, entries[0]?.stamp ?? 0);
  const wasOrphaned = isOrphaned(row, when);
  let isReleased = false;
  do {
    const entry = entries.shift();
    if (entry === undefined) return;
    const before = row.base.token;
    const decided = applied(entry);
    if (!row.isHeld || row.base.token >= position || ownerOf(row, position) === NONE) {
      machine.position = NONE;
    }
    if (decided === "unlocked") isReleased = true;
    if (decided === "locked") isReleased = false;
    answer(world, machine, entry, decided, before !== row.base.token);
  } while (entries[0]?.isJoined === 1);
  if (isReleased) followUp(world, machine, wasOrphaned, position);
}

/** Whoever is the base now, and was not told in memory, is told, or passed over. */
function followUp(world: World, machine: Machine, wasOrphaned: boolean, told: number): void {
  const { base, isHeld } = machine.row;
  if (!isHeld || base.token <= told) return;
  const place = placeOf(machine, base.owner);
  const isHere = isLiving(place) && place.waitId === base.waitId;
  if (wasOrphaned) {
    if (isHere) proposeTry(world, machine, place, 0);
  } else if (isHere) {
    removePlace(machine, place);
    tell(world, machine, place, base.token, leaseLeft(world, machine), true);
  } else if (isLiving(place) && place === firstPlace(machine)) {
    // It is the holder's owner, whichever acquire of it was named (L2), and it overtakes nobody.
    world.counts.ownTries++;
    proposeTry(world, machine, place, 0);
  } else {
    giveBack(world, machine, base.owner, base.token);
  }
}

function answerTry(
  world: World,
  machine: Machine,
  entry: Entry,
  decided: Decided,
  isFresh: boolean,
): void {
  const found = placeOf(machine, entry.owner);
  const place = found?.waitId === entry.waitId ? found : null;
  if (decided === "locked") {
    const { token } = machine.row.base;
    const living = entry.order === Order.ask && entry.isGone === 0 ? entry : null;
    const to = isLiving(place) ? place : living;
    if (place !== null) removePlace(machine, place);
    if (to !== null) tell(world, machine, to, token, leaseLeft(world, machine), isFresh);
    else if (isFresh) giveBack(world, machine, entry.owner, token);
  } else if (entry.order === Order.ask && entry.isGone === 0) {
    if (decided === "busy" && found === null) machine.places.push(placeFor(entry, entry.taken));
    if (decided === "must-retry") {
      const message = send(world, Kind.retry, machine.index, entry.client);
      message.attempt = entry.attempt;
    }
  }
}

function answer(
  world: World,
  machine: Machine,
  entry: Entry,
  decided: Decided,
  isFresh: boolean,
): void {
  const { order, client, token } = entry;
  if (order === Order.ask || order === Order.first) {
    return answerTry(world, machine, entry, decided, isFresh);
  }
  // Told to come again, it does, as anybody may at any time.
  if (client === NONE || decided === "must-retry") return;
  if (order === Order.extend) {
    const message = send(world, Kind.extended, machine.index, client);
    message.token = token;
    message.isGood = decided === "extended" ? 1 : 0;
    message.lease = entry.lease;
    message.sentAt = entry.sentAt;
  } else if (order === Order.unlock) {
    if (decided === "unlocked") judgeReleased(world, token);
    const message = send(world, Kind.unlocked, machine.index, client);
    message.token = token;
    message.isGood = decided === "unlocked" ? 1 : 0;
  }
}

/** A machine leads from now on; `unseen` entries of its predecessor are committed by it. */
export function takeOver(world: World, index: number, unseen: number, isLate: boolean): void {
  const old = machineAt(world, world.active);
  const { entries } = old;
  const lease = leaseNow(world, old);
  let count = Math.min(unseen, entries.length);
  while (count > 0 && count < entries.length && entries[count]?.isJoined === 1) count++;
  for (let i = 0; i < count; i++) {
    const entry = entries[i] as Entry;
    apply(world, entry, old.term);
    entry.stamp = world.lastStamp;
  }
  old.committed = count;
  const machine = machineAt(world, index);
  world.active = index;
  machine.term = ++world.term;
  world.counts.takeOvers++;
  world.counts.unseen += count;
  if (world.row.listTerm !== 0 && world.row.heirs.length > 0) world.counts.orphaned++;
  copyRow(machine.row, world.row);
  machine.position = NONE;
  machine.told = [];
  machine.places = [];
  machine.entries = [];
  machine.committed = 0;
  machine.suspendedUntil = 0;
  const begun = isLate ? world.lastStamp : Math.max(world.lastStamp, lease);
  machine.clock = begun - world.time;
  machine.driftedAt = world.time;
}

/** Sees to who waits: what a leader does when a lease may be over, or its lock is free. */
export function serve(world: World, machine: Machine): boolean {
  const { row, entries } = machine;
  if (machine.position !== NONE || entries.length >= ENTRIES_MAX) return false;
  const first = firstPlace(machine);
  if (first === null) return false;
  for (const { order } of entries) {
    if (order !== Order.extend && order !== Order.append) return false;
  }
  when.term = machine.term;
  when.nowMs = leaseNow(world, machine);
  if (isOrphaned(row, when)) {
    const place = placeOf(machine, row.base.owner);
    if (!isLiving(place) || place.waitId !== row.base.waitId) return false;
    proposeTry(world, machine, place, 0);
    return true;
  }
  if (row.isHeld && row.endMs > when.nowMs) return false;
  const [heir] = row.isHeld ? row.heirs : [];
  if (heir === undefined || row.listTerm !== machine.term) {
    proposeTry(world, machine, first, 0);
    return true;
  }
  const place = placeOf(machine, heir.owner);
  world.counts.lapses++;
  if (isLiving(place) && place.waitId === heir.waitId) {
    proposeTry(world, machine, place, 0);
  } else {
    propose(world, machine, Order.set).token = row.base.token;
    proposeTry(world, machine, first, 1);
  }
  return true;
}

function hasList({ entries }: Machine): boolean {
  for (const { order } of entries) {
    if (order === Order.set || order === Order.append) return true;
  }
  return false;
}

/** Names up to two more of those who wait here. */
export function lengthen(world: World, machine: Machine): boolean {
  const { row } = machine;
  if (!row.isHeld || machine.entries.length >= ENTRIES_MAX || hasList(machine)) return false;
  const added = machine.places.filter((one) => one.isGone === 0 && !isNamed(row, one.owner));
  if (added.length === 0) return false;
  const entry = propose(world, machine, Order.append);
  entry.token = (row.heirs[row.heirs.length - 1] ?? row.base).token;
  entry.added = added.slice(0, 2).map(askedOf);
  return true;
}

/**
 * Writes the list anew behind who holds now: its next `kept` heirs, and who else waits here. Also
 * while a list is on its way: who is named by that one alone is not any more.
 */
export function rewrite(world: World, machine: Machine, kept: number): boolean {
  const { row } = machine;
  const current = currentToken(machine);
  if (!row.isHeld || machine.entries.length >= ENTRIES_MAX) return false;
  const at = row.heirs.findIndex(({ token }) => token === current) + 1;
  if (row.heirs.length - at < kept) return false;
  const added = machine.places.filter((one) => one.isGone === 0);
  if (added.length === 0 && row.heirs.length === at) return false;
  if (hasList(machine)) world.counts.setsInList++;
  const entry = propose(world, machine, Order.set);
  entry.token = current;
  entry.kept = kept;
  entry.added = added.slice(0, 3).map(askedOf);
  return true;
}
