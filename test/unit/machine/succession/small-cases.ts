/**
 * All orders of the acts of a small case, to a depth: breadth first, a state that was met before is
 * not gone on from. A state is made again from the acts that led to it.
 *
 * Invariants: 1. Two states count as one if everything in them, what the judge knows included, is
 * the same; messages are a set. 2. The first violation has the shortest way there.
 */
import { Act, perform } from "./acts.js";
import { Violation } from "./judge.js";
import {
  ENTRY_FIELDS,
  MESSAGE_FIELDS,
  PLACE_FIELDS,
  type Machine,
  type Row,
  type World,
} from "./parts.js";
import { restart } from "./worlds.js";

/** One act, as the world may be asked for it. */
export type Step = readonly [act: number, a: number, b: number];

export interface SmallCase {
  readonly name: string;
  readonly lease: number;
  /** Named at the begin. */
  readonly heirs: number;
  /** Who is before them has not heard of its grant yet. */
  readonly isUntold?: true;
  /** The client that names no grant when it extends and releases. */
  readonly vague?: number;
  readonly depth: number;
  readonly termsMax: number;
  /** Acts that are carried out before anything else. */
  readonly begin: readonly Step[];
  readonly steps: readonly Step[];
}

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** All states up to this depth were gone on from. */
  readonly depth: number;
  readonly violation: string | null;
  readonly way: readonly Step[];
}

let low = 0;
let high = 0;

function mix(value: number): void {
  low = Math.imul(low ^ value, 0x9e3779b1);
  low ^= low >>> 15;
  high = Math.imul(high ^ (value + 0x7f4a7c15), 0x85ebca6b);
  high ^= high >>> 13;
}

function mixRow(row: Row): void {
  mix(row.isHeld ? 1 : 0);
  mixGrant(row.base);
  mix(row.endMs);
  mix(row.listTerm);
  mix(row.untilMs);
  mix(row.top);
  mix(row.heirs.length);
  for (const heir of row.heirs) {
    mixGrant(heir);
    mix(heir.leaseMs);
  }
}

function mixGrant({ token, owner, waitId, attempt }: Row["base"]): void {
  mix(token);
  mix(owner);
  mix(waitId);
  mix(attempt);
}

function mixMachine(machine: Machine): void {
  mix(machine.term);
  if (machine.term === 0) return;
  mix(machine.clock);
  mix(machine.suspendedUntil);
  mix(machine.position);
  mixRow(machine.row);
  for (const token of machine.told) mix(token);
  mix(machine.places.length);
  for (const place of machine.places) for (const field of PLACE_FIELDS) mix(place[field]);
  mix(machine.committed);
  mix(machine.entries.length);
  for (const entry of machine.entries) {
    for (const field of ENTRY_FIELDS) mix(entry[field]);
    for (const { owner, attempt } of entry.added) mix(owner * 64 + attempt);
  }
}

/** 53 bits of what the world is. */
function hashOf(world: World): number {
  let lowSum = 0;
  let highSum = 0;
  for (const message of world.messages) {
    low = 1;
    high = 2;
    for (const field of MESSAGE_FIELDS) mix(message[field]);
    lowSum = (lowSum + low) | 0;
    highSum = (highSum + high) | 0;
  }
  low = lowSum;
  high = highSum;
  mix(world.messages.length);
  mix(world.time);
  mix(world.active);
  mix(world.term);
  mix(world.lastStamp);
  mix(world.topBelieved);
  mix(world.topHeard);
  mixRow(world.row);
  for (const machine of world.machines) mixMachine(machine);
  for (const client of world.clients) {
    mix(client.phase);
    mix(client.owner);
    mix(client.waitId);
    mix(client.attempt);
    mix(client.sentAt);
    mix(client.asked);
    mix(client.token);
    mix(client.until);
  }
  for (let token = 0; token <= world.row.top; token++) {
    mix(world.toldOwner[token] as number);
    mix((world.wasReleased[token] as number) * 2 + (world.wasForced[token] as number));
  }
  return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
}

/** Hashes of states, open addressing: 8 bytes a slot. */
class Met {
  size = 0;
  private slots = new Float64Array(1 << 16);

  /** Whether it is new. */
  add(hash: number): boolean {
    if (this.size * 2 > this.slots.length) this.grow();
    const isNew = this.put(this.slots, hash + 1);
    if (isNew) this.size++;
    return isNew;
  }

  private put(slots: Float64Array, value: number): boolean {
    const mask = slots.length - 1;
    for (let at = (value % 0x7fffffff) & mask; ; at = (at + 1) & mask) {
      if (slots[at] === value) return false;
      if (slots[at] !== 0) continue;
      slots[at] = value;
      return true;
    }
  }

  private grow(): void {
    const larger = new Float64Array(this.slots.length * 2);
    for (const value of this.slots) if (value !== 0) this.put(larger, value);
    this.slots = larger;
  }
}

function isAllowed(world: World, plan: SmallCase, [act, a]: Step): boolean {
  if (act === Act.takeOver) return world.term < plan.termsMax && a !== world.active;
  return act > Act.undeliverable || a < world.messages.length;
}

/** The world after those acts. */
function replay(world: World, plan: SmallCase, way: Uint8Array): void {
  restart(world, 0, plan.lease, plan.heirs, plan.isUntold !== true);
  for (const client of world.clients) client.isVague = client.id === plan.vague ? 1 : 0;
  for (const [act, a, b] of plan.begin) {
    if (!perform(world, act, a, b)) throw new Error(`act ${act} ${a} ${b} is not possible`);
  }
  for (const at of way) {
    const [act, a, b] = plan.steps[at] as Step;
    perform(world, act, a, b);
  }
}

/** Explores, until `statesMax` are met. */
export function explore(world: World, plan: SmallCase, statesMax: number): Explored {
  const met = new Met();
  let transitions = 0;
  let level: Uint8Array<ArrayBuffer>[] = [new Uint8Array(0)];
  const end = (depth: number, violation: string | null, way: Uint8Array): Explored => {
    const steps = [...way].map((at) => plan.steps[at] as Step);
    return { states: met.size, transitions, depth, violation, way: steps };
  };
  for (let depth = 0; depth < plan.depth; depth++) {
    const next: Uint8Array<ArrayBuffer>[] = [];
    for (const way of level) {
      if (met.size >= statesMax) return end(depth, null, way);
      let isThere = false;
      for (const [index, step] of plan.steps.entries()) {
        const isNew = !isThere;
        isThere = true;
        try {
          if (isNew) replay(world, plan, way);
          if (!isAllowed(world, plan, step) || !perform(world, ...step)) continue;
        } catch (error) {
          if (!(error instanceof Violation)) throw error;
          return end(depth, error.message, Uint8Array.of(...way, index));
        }
        const longer = new Uint8Array(depth + 1);
        longer.set(way);
        longer[depth] = index;
        isThere = false;
        transitions++;
        if (met.add(hashOf(world))) next.push(longer);
      }
    }
    level = next;
    if (level.length === 0) return end(plan.depth, null, new Uint8Array(0));
  }
  return end(plan.depth, null, new Uint8Array(0));
}

/** Every message that may be there is its own step. */
function messages(act: number, count: number, b = 0): Step[] {
  return Array.from({ length: count }, (_, at): Step => [act, at, b]);
}

const LEADING: readonly Step[] = [
  [Act.commit, 0, 0],
  // With nothing, one or two entries of its predecessor, and the clock that it had.
  [Act.takeOver, 0, 0],
  [Act.takeOver, 1, 0],
  [Act.takeOver, 1, 2],
  [Act.takeOver, 1, 4],
  [Act.takeOver, 2, 0],
  [Act.takeOver, 2, 2],
  [Act.learn, 0, 0],
];

function anywhere(act: number, clients: readonly number[], machines: readonly number[]): Step[] {
  return clients.flatMap((client) => machines.map((machine): Step => [act, client, machine]));
}

/** Three clients, two heirs, three terms. */
export const SMALL_CASES: readonly SmallCase[] = [
  {
    name: "releases, repeats and changes of leader, while time stands still",
    lease: 5,
    heirs: 2,
    depth: 7,
    termsMax: 3,
    begin: [],
    steps: [
      ...messages(Act.deliver, 6),
      ...LEADING,
      ...anywhere(Act.release, [0, 1, 2], [0, 1]),
      ...anywhere(Act.askAgain, [1, 2], [0, 1, 2]),
      ...anywhere(Act.prolong, [0, 1, 2], [1]),
      [Act.serve, 0, 0],
      [Act.serve, 1, 0],
    ],
  },
  {
    name: "lists that are written, lengthened and given back",
    lease: 5,
    heirs: 1,
    depth: 7,
    termsMax: 3,
    begin: [],
    steps: [
      ...messages(Act.deliver, 5),
      ...messages(Act.undeliverable, 3),
      ...LEADING,
      ...anywhere(Act.release, [0, 1], [0, 1]),
      ...anywhere(Act.askAgain, [1, 2], [0, 1]),
      [Act.lengthen, 0, 0],
      [Act.lengthen, 1, 0],
      [Act.rewrite, 0, 0],
      [Act.giveUp, 1, 0],
    ],
  },
  {
    name: "what follows upon a step that nobody but the old leader knows of",
    lease: 5,
    heirs: 2,
    depth: 8,
    termsMax: 3,
    begin: [
      [Act.release, 0, 0],
      [Act.deliver, 0, 0],
      [Act.takeOver, 1, 0],
    ],
    steps: [
      ...messages(Act.deliver, 6),
      [Act.commit, 0, 0],
      [Act.takeOver, 2, 0],
      [Act.takeOver, 2, 2],
      [Act.takeOver, 2, 4],
      [Act.release, 0, 1],
      ...anywhere(Act.release, [1, 2], [0, 1]),
      ...anywhere(Act.askAgain, [1, 2], [0, 1]),
      [Act.prolong, 1, 1],
      [Act.prolong, 2, 1],
      [Act.serve, 1, 0],
      [Act.force, 1, 0],
      [Act.undeliverable, 0, 0],
    ],
  },
  {
    name: "leases and lists that end",
    lease: 3,
    heirs: 2,
    depth: 8,
    termsMax: 3,
    begin: [],
    steps: [
      ...messages(Act.deliver, 5),
      ...LEADING,
      [Act.tick, 0, 0],
      [Act.release, 0, 0],
      [Act.release, 1, 0],
      [Act.askAgain, 1, 1],
      [Act.askAgain, 2, 1],
      [Act.serve, 1, 0],
      [Act.force, 1, 0],
      [Act.suspend, 0, 4],
    ],
  },
  {
    name: "a base that was not told comes back, and its release reaches the old leader",
    lease: 5,
    heirs: 1,
    isUntold: true,
    depth: 8,
    termsMax: 3,
    begin: [
      [Act.takeOver, 1, 0],
      [Act.askAgain, 0, 1],
      [Act.deliver, 2, 0],
      [Act.commit, 0, 0],
      [Act.deliver, 2, 0],
      [Act.release, 0, 0],
      [Act.deliver, 2, 0],
    ],
    steps: [
      ...messages(Act.deliver, 6),
      [Act.commit, 0, 0],
      [Act.takeOver, 2, 0],
      [Act.takeOver, 2, 2],
      ...anywhere(Act.release, [0, 1], [0, 1]),
      [Act.askAgain, 1, 1],
      [Act.askAgain, 2, 1],
      [Act.prolong, 1, 1],
      [Act.serve, 1, 0],
    ],
  },
  {
    name: "a leader that was deposed learns late of a list that its successor committed",
    lease: 5,
    heirs: 1,
    depth: 8,
    termsMax: 3,
    begin: [
      [Act.lengthen, 0, 0],
      [Act.takeOver, 1, 2],
    ],
    steps: [
      ...messages(Act.deliver, 6),
      [Act.learn, 0, 0],
      [Act.commit, 0, 0],
      [Act.takeOver, 2, 0],
      [Act.takeOver, 2, 2],
      ...anywhere(Act.release, [0, 1], [0, 1]),
      [Act.release, 2, 1],
      ...anywhere(Act.askAgain, [1, 2], [0, 1]),
      [Act.prolong, 2, 1],
    ],
  },
  {
    name: "an heir that names no token, and its release of an earlier grant, still on its way",
    lease: 5,
    heirs: 2,
    vague: 1,
    depth: 8,
    termsMax: 3,
    begin: [
      // The second one has held and released, here and at the next leader.
      [Act.release, 0, 0],
      [Act.deliver, 0, 0],
      [Act.deliver, 0, 0],
      [Act.commit, 0, 0],
      [Act.deliver, 0, 0],
      [Act.release, 1, 0],
      [Act.release, 1, 1],
      [Act.deliver, 0, 0],
      [Act.commit, 0, 0],
      [Act.deliver, 1, 0],
      [Act.deliver, 1, 0],
      // It waits again, behind the third one, and is named.
      [Act.begin, 1, 0],
      [Act.deliver, 1, 0],
      [Act.commit, 0, 0],
      [Act.lengthen, 0, 0],
      [Act.commit, 0, 0],
      [Act.takeOver, 1, 0],
    ],
    steps: [
      ...messages(Act.deliver, 5),
      [Act.commit, 0, 0],
      [Act.takeOver, 2, 0],
      [Act.takeOver, 2, 2],
      ...anywhere(Act.release, [1, 2], [0, 1]),
      [Act.prolong, 1, 1],
      [Act.prolong, 2, 1],
      [Act.askAgain, 1, 1],
      [Act.begin, 0, 1],
    ],
  },
];
