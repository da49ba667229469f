/**
 * How a world begins: an idle lock, or one that is held, with who waits for it and perhaps heirs, so
 * that a short history comes to what matters.
 */
import {
  type Client,
  DRIFT_TICKS,
  HORIZON,
  Kind,
  NONE,
  Phase,
  Place,
  type Row,
  World,
  askedOf,
  copyRow,
  machineAt,
  send,
} from "./parts.js";

function resetRow(row: Row): void {
  row.isHeld = false;
  row.base = { token: NONE, owner: NONE, waitId: 0, attempt: 0, note: null };
  row.endMs = 0;
  row.heirs = [];
  row.listTerm = 0;
  row.untilMs = 0;
  row.top = NONE;
}

function reset(world: World): void {
  world.time = 0;
  world.active = 0;
  world.term = 1;
  world.lastStamp = 0;
  resetRow(world.row);
  world.messages.length = 0;
  world.toldOwner.fill(0);
  world.wasReleased.fill(0);
  world.wasForced.fill(0);
  world.topBelieved = NONE;
  world.topHeard = NONE;
  for (const machine of world.machines) {
    machine.term = machine.index === 0 ? 1 : 0;
    machine.clock = 0;
    machine.driftedAt = -DRIFT_TICKS;
    machine.suspendedUntil = 0;
    machine.position = NONE;
    machine.told = [];
    machine.places = [];
    machine.entries = [];
    machine.committed = 0;
    copyRow(machine.row, world.row);
  }
  for (const client of world.clients) {
    client.phase = Phase.idle;
    client.owner = client.id;
    client.waitId = 0;
    client.attempt = 0;
    client.asked = 0;
    client.token = NONE;
    client.until = 0;
    client.frozenUntil = 0;
    client.isVague = 0;
  }
}

/** Of the grant of the row the client has not heard yet. */
function unsay(world: World, holder: Client, lease: number): void {
  holder.phase = Phase.waiting;
  holder.attempt = 1;
  holder.sentAt = 0;
  holder.token = NONE;
  holder.until = 0;
  world.topBelieved = NONE;
  world.topHeard = NONE;
  const message = send(world, Kind.granted, 0, holder.id);
  message.owner = holder.owner;
  message.waitId = 1;
  message.attempt = 1;
  message.lease = lease;
  message.isGood = 1;
  message.term = 1;
  machineAt(world, 0).told.push(0);
}

/** The first client holds, all others wait at the first machine; `heirs` of them are named. */
function occupy(world: World, lease: number, heirs: number): void {
  const [leader] = world.machines;
  const [holder, ...others] = world.clients;
  if (leader === undefined || holder === undefined) return;
  const { row } = world;
  holder.phase = Phase.holding;
  holder.waitId = 1;
  holder.attempt = 2;
  holder.lease = lease;
  holder.token = 0;
  holder.until = lease - world.margin;
  row.isHeld = true;
  row.base = { token: 0, owner: holder.owner, waitId: 1, attempt: 1, note: holder.owner };
  row.endMs = lease;
  row.top = 0;
  world.toldOwner[0] = holder.owner + 1;
  world.topBelieved = 0;
  world.topHeard = 0;
  for (const client of others) {
    client.phase = Phase.waiting;
    client.waitId = 1;
    client.attempt = 1;
    client.lease = lease;
    client.sentAt = 0;
    const place = new Place();
    place.client = client.id;
    place.owner = client.owner;
    place.waitId = 1;
    place.attempt = 1;
    place.lease = lease;
    place.note = client.owner;
    leader.places.push(place);
  }
  row.heirs = leader.places.slice(0, heirs).map((place) => {
    row.top++;
    return { ...askedOf(place), token: row.top };
  });
  if (heirs > 0) {
    row.listTerm = 1;
    row.untilMs = HORIZON + lease;
  }
  copyRow(leader.row, row);
}

/**
 * `heirs`: how many of those who wait are named at the begin; NONE: nobody has asked yet. `isTold`
 * false: the grant of who is before them is still on its way.
 */
export function restart(
  world: World,
  margin: number,
  lease: number,
  heirs: number,
  isTold = true,
): void {
  world.margin = margin;
  reset(world);
  if (heirs === NONE) return;
  occupy(world, lease, heirs);
  if (!isTold) unsay(world, world.clients[0] as Client, lease);
}
