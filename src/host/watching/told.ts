/**
 * What is told next of the history of a filter, and messages in the making.
 *
 * Pure. Invariants: 1. A message ends at the end of an entry where one fits; where an entry goes on
 * in the next message it has no cursor. 2. What a watch does not want moves its positions all the
 * same.
 */
import { WatchMessageType } from "../../base/result-types.js";
import { WATCH_MESSAGE_BYTES } from "../../base/limits.js";
import { type WatchEvent, eventBytes, withoutValue } from "../../machine/events.js";
import type { Filter, Place } from "./filters.js";
import type { WatchMessage } from "./messages.js";
import { type Position, type Positions, isBehind } from "./positions.js";

/** A message but for whom it is. */
export type Draft = Omit<WatchMessage, "watchIds">;

const BLANK: Draft = {
  type: WatchMessageType.events,
  events: [],
  cursor: null,
  initial: false,
  merged: false,
  reset: false,
  more: false,
  syncId: 0,
  staleMs: 0,
  end: 0,
  partition: null,
  mapVersion: 0,
};

export function draft(told: Partial<Draft>): Draft {
  return { ...BLANK, ...told };
}

/** What of the events a watch wants. */
export interface Wants {
  readonly noValues: boolean;
  /** Sum of 2^type; 0 = all. */
  readonly only: number;
  /** Of one message, unless one entry has more; omitted: as many as fit. */
  readonly eventsMax?: number;
}

/** `event` as it is wanted; null: it is not. */
export function wanted(event: WatchEvent, { noValues, only }: Wants): WatchEvent | null {
  if (only !== 0 && (only & (1 << event.type)) === 0) return null;
  return noValues ? withoutValue(event) : event;
}

export interface Told {
  readonly events: readonly WatchEvent[];
  /** Where the rest begins. */
  readonly place: Place;
  /** Behind the last batch that was told whole. */
  readonly positions: Positions;
  /** The last batch goes on. */
  readonly isCut: boolean;
  /** When the first event was applied (monotonic ms); 0: there is none. */
  readonly appliedMs: number;
}

interface LastTold extends Wants {
  readonly from: number;
  readonly end: number;
  readonly positions: Positions;
  readonly told: Told;
}

/** Tells; what it told last of each filter is at hand, for the many who stand at the same place. */
export class Teller {
  private readonly last = new Map<Filter, LastTold>();

  /**
   * Of the history of `filter` from `from` on, as much as fits a message. `accepts` null: all of
   * it. `skip`: what is at or before these positions was told.
   */
  on(
    filter: Filter,
    from: Place,
    positions: Positions,
    wants: Wants,
    skip: Positions | null,
    accepts: Accepts | null,
  ): Told {
    if (skip !== null || accepts !== null || from.offset > 0) {
      return collect(filter, from, positions, wants, skip, accepts);
    }
    const { noValues, only, eventsMax = Infinity } = wants;
    const last = this.last.get(filter);
    if (last?.from === from.number && last.end === filter.end) {
      // Of one partition, what was told before says nothing about where it leads. An end that is
      // found late is behind all of them: who is live noted every lease that ran when it read.
      const isSame = last.positions === positions || filter.partitions.size === 1;
      const isAsWanted = last.noValues === noValues && last.only === only;
      if (isSame && isAsWanted && last.eventsMax === eventsMax) return last.told;
    }
    const told = collect(filter, from, positions, wants, null, null);
    const { number } = from;
    const { end } = filter;
    this.last.set(filter, { from: number, end, noValues, only, eventsMax, positions, told });
    return told;
  }

  /** At the end of a turn: nothing is kept for who may come. */
  forget(): void {
    if (this.last.size > 0) this.last.clear();
  }
}

/** Whether an event of the partition is told. */
type Accepts = (partition: number, event: WatchEvent) => boolean;

function collect(
  filter: Filter,
  from: Place,
  positions: Positions,
  wants: Wants,
  skip: Positions | null,
  accepts: Accepts | null,
): Told {
  const events: WatchEvent[] = [];
  const reached = new Map(positions);
  let { number, offset } = from;
  let sizeBytes = 0;
  let appliedMs = 0;
  const told = (isCut: boolean): Told => {
    return { events, place: { number, offset }, positions: reached, isCut, appliedMs };
  };
  for (let batch = filter.at(number); batch !== undefined; batch = filter.at(number)) {
    // Who has its names now told of them whole, and does not know what this one told.
    const isPast = !filter.partitions.has(batch.partition);
    if (isPast || wasTold(batch.position, skip?.get(batch.partition))) {
      number++;
      continue;
    }
    const isNext = offset === 0 && events.length > 0;
    if (isNext && sizeBytes + batch.sizeBytes > WATCH_MESSAGE_BYTES) return told(false);
    if (isNext && events.length + batch.events.length > (wants.eventsMax ?? Infinity)) {
      return told(false);
    }
    for (; offset < batch.events.length; offset++) {
      const event = wanted(batch.events[offset] as WatchEvent, wants);
      if (event === null || accepts?.(batch.partition, event) === false) continue;
      // Who goes on from behind an end was told of it, however late it is found here.
      const goesOnMs = (skip ?? positions).get(batch.partition)?.leaseMs ?? -Infinity;
      if (event.endedMs !== null && event.endedMs <= goesOnMs) continue;
      sizeBytes += eventBytes(event);
      if (events.length > 0 && sizeBytes > WATCH_MESSAGE_BYTES) return told(true);
      if (events.length === 0) appliedMs = batch.atMs;
      events.push(event);
    }
    offset = 0;
    number++;
    reached.set(batch.partition, batch.position);
  }
  return told(false);
}

function wasTold(position: Position, skip: Position | undefined): boolean {
  return skip !== undefined && !isBehind(position, skip);
}
