/**
 * The exhaustive explorer: every order of a bounded set of events, level by level, each state once.
 *
 * Loss needs no event of its own to be covered: a message that is never delivered is lost, and every
 * property here is one of safety. The first campaign is node 1's, since the nodes begin alike.
 *
 * Invariants: 1. States are told apart by digests of the cores, disks, network and history and of
 * the events left. 2. The trace of the first violation is a shortest one.
 */
import type { Counts } from "./counts.js";
import { digestOf } from "./copy.js";
import { possibleChanges, type Event } from "./events.js";
import type { Library } from "./node.js";
import { World, type Settings } from "./world.js";

/** How often each bounded kind of event may happen. */
export interface Budget {
  readonly campaign: number;
  readonly beat: number;
  readonly crash: number;
  readonly duplicate: number;
  readonly drop: number;
  readonly propose: number;
  readonly change: number;
  readonly read: number;
  readonly transfer: number;
  readonly compact: number;
  readonly renew: number;
}

export const nothing: Budget = {
  campaign: 0,
  beat: 0,
  crash: 0,
  duplicate: 0,
  drop: 0,
  propose: 0,
  change: 0,
  read: 0,
  transfer: 0,
  compact: 0,
  renew: 0,
};

export interface Exploration {
  readonly name: string;
  readonly settings: Settings;
  readonly budget: Budget;
  readonly depth: number;
  readonly maxStates: number;
  /** Events that lead to where the exploration begins; `complete`, `apply`, `deliver` may be -1: all. */
  readonly prefix?: readonly Event[];
}

export interface Explored {
  readonly name: string;
  readonly states: number;
  readonly events: number;
  readonly depth: number;
  readonly complete: boolean;
  readonly counts: Counts;
  /** The violation and the events that lead to it from the beginning of the exploration. */
  readonly violation: string | null;
  readonly trace: readonly Event[];
}

interface Step {
  readonly event: Event;
  readonly before: Step | null;
}

interface State {
  readonly world: World;
  readonly left: Budget;
  readonly last: Step | null;
}

/** Which budget an event draws on; null for the free ones. */
function costOf(event: Event): keyof Budget | null {
  switch (event.kind) {
    case "deliver":
    case "complete":
    case "apply":
    case "report":
    case "flush":
    case "unreachable":
    case "forget":
      return null;
    case "tick":
      return "beat";
    default:
      return event.kind;
  }
}

function networkEvents(world: World, left: Budget, add: (event: Event) => void): void {
  const seen = new Set<number>();
  for (const [at, { key, message }] of world.network.entries()) {
    if (seen.has(key)) continue;
    seen.add(key);
    add({ kind: "deliver", node: message.to, at });
    if (left.duplicate > 0) add({ kind: "duplicate", node: message.to, at });
    if (left.drop > 0) add({ kind: "drop", node: 0, at });
  }
  for (const { node, about, ok } of world.reports) {
    add({ kind: "report", node, at: ok ? about : -about });
  }
}

function leaderEvents(world: World, left: Budget, node: number, add: (event: Event) => void): void {
  if (left.propose > 0) add({ kind: "propose", node, at: 1 });
  if (left.beat > 0) add({ kind: "tick", node, at: 1 });
  if (left.read > 0) add({ kind: "read", node, at: 0 });
  if (left.transfer > 0) {
    for (const at of world.ids) if (at !== node) add({ kind: "transfer", node, at });
  }
  if (left.change > 0) {
    const choices = possibleChanges(world.node(node).core.membership, world.ids, false).length;
    for (let at = 0; at < choices; at++) add({ kind: "change", node, at });
  }
}

/** Everything that can happen next. */
function eventsOf({ world, left, last }: State): Event[] {
  const events: Event[] = [];
  const add = (event: Event): void => void events.push(event);
  networkEvents(world, left, add);
  for (const { id, core, writes, batches, applied, disk } of world.nodes) {
    if (writes.length > 0) add({ kind: "complete", node: id, at: 0 });
    if (batches.length > 0) add({ kind: "apply", node: id, at: 0 });
    if (left.renew > 0 && core.term > 0) add({ kind: "renew", node: id, at: 0 });
    if (left.crash > 0 && core.term > 0) {
      add({ kind: "crash", node: id, at: 0 });
      if (writes.length > 0) add({ kind: "crash", node: id, at: writes.length });
    }
    if (left.compact > 0 && applied.index > disk.floor) add({ kind: "compact", node: id, at: 0 });
    if (core.role === "leader") leaderEvents(world, left, id, add);
    else if (left.campaign > 0 && (last !== null || id === 1)) {
      add({ kind: "campaign", node: id, at: 0 });
    }
  }
  return events;
}

function traceOf(last: Step | null): Event[] {
  const events: Event[] = [];
  for (let step = last; step !== null; step = step.before) events.push(step.event);
  return events.reverse();
}

/** Lets a group come to where an exploration is to begin. */
function beginning(library: Library, { settings, prefix }: Exploration): World {
  const world = new World(library, settings);
  for (const event of prefix ?? []) {
    if (event.at >= 0) world.perform(event);
    else calm(world);
  }
  return world;
}

/** Delivers, writes and applies until nothing is on its way. */
export function calm(world: World): void {
  for (let rounds = 0; rounds < 200; rounds++) {
    let busy = world.network.length > 0;
    for (let left = world.network.length; left > 0; left--) {
      world.perform({ kind: "deliver", node: world.network[0]?.message.to ?? 0, at: 0 });
    }
    for (const { id } of world.nodes) {
      while (world.perform({ kind: "complete", node: id, at: 0 })) busy = true;
      while (world.perform({ kind: "apply", node: id, at: 0 })) busy = true;
    }
    if (!busy) return;
  }
}

/** Explores; stops at the first violation, the depth, or the greatest number of states. */
export function explore(library: Library, exploration: Exploration): Explored {
  const { name, budget, maxStates } = exploration;
  const world = beginning(library, exploration);
  const { counts } = world;
  let level: State[] = [{ world, left: budget, last: null }];
  const seen = new Set<number>([digestOf(world.digest % 0x1_0000_0000)]);
  let events = 0;
  let depth = 0;
  const result = (complete: boolean, violation: string | null, last: Step | null): Explored => {
    const states = seen.size;
    return { name, states, events, depth, complete, counts, violation, trace: traceOf(last) };
  };
  for (; depth < exploration.depth && level.length > 0; depth++) {
    const next: State[] = [];
    for (const state of level) {
      for (const event of eventsOf(state)) {
        const step: Step = { event, before: state.last };
        const after = state.world.copyFor(event.node);
        events++;
        try {
          if (!after.perform(event)) continue;
        } catch (error) {
          return result(false, error instanceof Error ? error.message : String(error), step);
        }
        const cost = costOf(event);
        const left = cost === null ? state.left : { ...state.left, [cost]: state.left[cost] - 1 };
        const { digest } = after;
        const key = digestOf(digest % 0x1_0000_0000, Math.floor(digest / 0x1_0000_0000), left);
        if (seen.has(key)) continue;
        seen.add(key);
        if (seen.size >= maxStates) return result(false, null, null);
        next.push({ world: after, left, last: step });
      }
    }
    level = next;
  }
  return result(true, null, null);
}
