/**
 * Makes a list of events that breaks something shorter: drops stretches of it for as long as something
 * still breaks. Positions in the network shift when events go, so a message is found again by what it
 * says.
 */
import type { Event } from "./events.js";
import type { Library } from "./node.js";
import { World, type Settings } from "./world.js";

interface Told {
  readonly event: Event;
  /** The digest of the message; 0 if the event is not about one. */
  readonly said: number;
}

function carries({ kind }: Event): boolean {
  return kind === "deliver" || kind === "duplicate" || kind === "drop";
}

/** Replays what still fits. Returns the events performed up to the violation, or null without one. */
function replay(library: Library, settings: Settings, told: readonly Told[]): Told[] | null {
  const world = new World(library, { ...settings, digests: true });
  const done: Told[] = [];
  for (const { event, said } of told) {
    let resolved = event;
    if (carries(event)) {
      const at = world.network.findIndex(({ key }) => key === said);
      if (at < 0) continue;
      resolved = { ...event, at };
    }
    done.push({ event: resolved, said });
    try {
      if (!world.perform(resolved)) done.pop();
    } catch {
      return done;
    }
  }
  return null;
}

/** A shorter list that breaks something too (not always the same); the list itself if none is found. */
export function shrink(
  library: Library,
  settings: Settings,
  events: readonly Event[],
  maxReplays = 400,
): readonly Event[] {
  const world = new World(library, { ...settings, digests: true });
  let best: Told[] = [];
  for (const event of events) {
    best.push({ event, said: carries(event) ? (world.network[event.at]?.key ?? 0) : 0 });
    try {
      world.perform(event);
    } catch {
      break;
    }
  }
  let replays = 0;
  for (let size = best.length >> 1; size >= 1 && replays < maxReplays; size >>= 1) {
    for (let from = 0; from < best.length && replays < maxReplays; replays++) {
      const without = [...best.slice(0, from), ...best.slice(from + size)];
      const shorter = replay(library, settings, without);
      if (shorter !== null && shorter.length < best.length) best = shorter;
      else from += size;
    }
  }
  return best.map(({ event }) => event);
}
