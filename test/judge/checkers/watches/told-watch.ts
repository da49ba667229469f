/**
 * What one watch was told over all streams that it went on at, followed change by change. Properties
 * W2 to W9: what comes of a name is its history, in order, without a gap unless it is merged or told
 * anew, and nothing that did not happen.
 *
 * Invariants: 1. A watch that goes on from a cursor stands where it stood when it was given that
 * cursor. 2. A name that was not told of yet is known by what a watch knew when it began: that
 * everything behind that moment is told. 3. Where gaps are allowed for good none is judged: of a
 * watch of some types, and while older revisions are told.
 */
import { type Hlc, compareHlc } from "../../../../src/base/hlc.js";
import { WatchEventType } from "../../../../src/base/result-types.js";
import {
  type Change,
  type Changes,
  type Watched,
  inWords,
  isEnd,
  isExpiry,
  isOf,
  isStateOf,
  sortOf,
} from "./changes.js";
import type { WatchFindings } from "./watch-findings.js";

/** An event as a watcher got it. */
export interface ToldEvent {
  readonly type: number;
  readonly name: string;
  readonly revision: number;
  readonly incarnation: number;
  readonly token: bigint;
  readonly value: string | null;
  readonly stamp: Hlc;
}

export interface ToldMessage {
  readonly events: readonly ToldEvent[];
  readonly cursor: string | null;
  readonly initial: boolean;
  readonly merged: boolean;
  readonly reset: boolean;
  /** When the node gave it away (true time). */
  readonly sentMs: number;
}

/** Where a watch stands. */
interface Standing {
  /** By name, the place of the last change that it was told of. */
  readonly at: Map<string, number>;
  /** Of a name that is not there, and may not be there since an earlier change: the last it can be. */
  readonly vague: Map<string, number>;
  /** Of names that are not there: changes before `fromMs` are not told, those behind `untilMs` are. */
  fromMs: number;
  untilMs: number;
  /** All that was there was told: other names were not. */
  isWhole: boolean;
}

/** A cursor, and where the watch stood then. */
export interface Mark {
  readonly cursor: string;
  readonly standing: Standing;
}

export interface WatchAsk extends Watched {
  readonly initial: boolean;
  readonly noValues: boolean;
  /** As in a request: 0 = all types. */
  readonly only: number;
  readonly hasFrom: boolean;
}

export class ToldWatch {
  private standing: Standing = nothingKnown();
  /** What it was told of before it had to forget. */
  private floor: ReadonlyMap<string, number> = new Map();
  private readonly indexes = new Map<number, number>();
  private askedMs = 0;
  private isScanning = false;
  private tellsRevisions = false;
  /** Of what was there when it stood, some may be gone: it was said so (W8). */
  private hasGone = false;
  /** As it was, with nothing told behind that: the next events are changes, and merged. */
  private owesGone = false;
  private createdMs = 0;
  private owesEach = false;
  private hasBegun = false;

  constructor(
    readonly id: string,
    readonly ask: WatchAsk,
    private readonly changes: Changes,
    private readonly findings: WatchFindings,
  ) {}

  /** Gaps say nothing. */
  private get isLoose(): boolean {
    return this.ask.only !== 0 || this.tellsRevisions;
  }

  /** It is asked for: from a cursor, or anew. `owesEach`: each change has to come (W5). */
  begin(mark: Mark | null, askedMs: number, owesEach: boolean): void {
    this.askedMs = askedMs;
    this.owesEach = owesEach;
    this.hasBegun = false;
    this.indexes.clear();
    this.floor = new Map();
    this.isScanning = false;
    this.tellsRevisions = false;
    this.hasGone = false;
    this.owesGone = false;
    if (mark !== null) {
      this.standing = copyOf(mark.standing);
      return;
    }
    this.standing = nothingKnown();
    if (this.ask.hasFrom) this.tellsRevisions = true;
    else if (this.ask.initial) this.beginScan();
    else this.standing.fromMs = askedMs;
  }

  private beginScan(): void {
    this.isScanning = true;
    this.standing.isWhole = true;
    this.standing.untilMs = Infinity;
  }

  /** CREATED came. */
  created(sentMs: number): void {
    this.hasBegun = true;
    this.createdMs = sentMs;
    if (this.standing.untilMs === -Infinity) this.standing.untilMs = sentMs;
  }

  /** A message of events, or a mark. Returns the cursor that it has. */
  told(message: ToldMessage): Mark | null {
    const { order } = this.findings;
    if (!this.hasBegun) this.breach(order, "is told something before it is created");
    if (message.reset) this.forget();
    if (this.tellsRevisions && message.merged) {
      this.hasGone = true;
      this.owesGone = message.events.length === 0;
    }
    if (message.merged || message.reset) this.notExact(message.reset ? "told anew" : "merged");
    for (const event of message.events) {
      order.count("events");
      this.admissible(event);
      // Retained revisions are changes, merged where some are gone: of one entry's but the last
      // never stood. Behind them the state is compared as ever.
      const isOfRevisions = this.tellsRevisions && !this.isToldAlready(event);
      const isState = message.merged && !isOfRevisions && !this.owesGone;
      if (message.initial || isState) this.state(event, message);
      else this.change(event);
    }
    if (message.events.length > 0) this.owesGone = false;
    const { cursor } = message;
    if (cursor === null) return null;
    if (this.isScanning || this.tellsRevisions) this.standing.untilMs = message.sentMs;
    this.isScanning = false;
    this.tellsRevisions = false;
    return { cursor, standing: copyOf(this.standing) };
  }

  /** It is what was told of its name last. */
  private isToldAlready(event: ToldEvent): boolean {
    const known = this.standing.at.get(event.name);
    const change = this.changes.of(sortOf(this.ask.kind), event.name)[known ?? -1];
    return change !== undefined && this.matches(change, event);
  }

  private forget(): void {
    this.floor = new Map([...this.floor, ...this.standing.at]);
    this.standing = nothingKnown();
    this.indexes.clear();
    this.tellsRevisions = false;
    this.owesGone = false;
    this.beginScan();
    this.findings.order.count("resets");
  }

  /** What is told from the start of its present stream on may not be merged. */
  private notExact(how: string): void {
    if (!this.owesEach) return;
    this.owesEach = false;
    this.breach(this.findings.resume, `goes on at the same node in time, and is ${how}`);
  }

  /** The node may have lost what it had in memory: nothing is owed any more. */
  excuse(): void {
    this.owesEach = false;
  }

  private admissible(event: ToldEvent): void {
    const { order } = this.findings;
    const { only, noValues } = this.ask;
    if (!isOf(this.ask, event.name)) this.breach(order, `is told of ${inWords(event)}`);
    if (only !== 0 && (only & (1 << event.type)) === 0) {
      this.breach(order, `wants other types than ${inWords(event)}`);
    }
    if (noValues && event.value !== null) {
      this.breach(order, `wants no values: ${inWords(event)}`);
    }
  }

  // Single changes ------------------------------------------------------------------------------

  private change(event: ToldEvent): void {
    const { order, committed } = this.findings;
    const list = this.changes.of(sortOf(this.ask.kind), event.name);
    const known = this.standing.at.get(event.name) ?? -1;
    const isKnown = this.standing.at.has(event.name);
    let place = this.find(list, event, known + 1, isKnown ? -Infinity : this.standing.fromMs);
    if (place < 0) {
      place = this.find(list, event, 0);
      if (place < 0) return this.breach(committed, `nothing of this is applied: ${inWords(event)}`);
      return this.breach(order, `is told of ${inWords(event)} again`);
    }
    committed.count("events that happened");
    const happened = list[place] as Change;
    this.inLogOrder(happened);
    if (!this.isLoose) {
      if (isKnown) this.noGap(list, known + 1, place);
      else this.noGapBefore(list, place);
    }
    this.stands(event.name, place);
  }

  private inLogOrder(change: Change): void {
    // An end of a lease that nobody looked after is found later.
    if (isExpiry(change) || this.tellsRevisions) return;
    const { partition, index } = change;
    const last = this.indexes.get(partition) ?? 0;
    if (index < last) {
      const text = `is told of ${inWords(change)} of entry ${index} behind entry ${last}`;
      this.breach(this.findings.order, `${text} of partition ${partition}`);
    }
    this.indexes.set(partition, Math.max(index, last));
  }

  private stands(name: string, place: number, last = place): void {
    const { at, vague } = this.standing;
    at.set(name, place);
    if (last === place) vague.delete(name);
    else vague.set(name, last);
  }

  private noGap(list: readonly Change[], from: number, to: number): void {
    const change = list[to] as Change;
    const before = list[to - 1];
    const wasVague = to - 1 <= (this.standing.vague.get(change.name) ?? -1);
    if (from === to || (wasVague && before !== undefined && isEnd(before)))
      return void this.findings.order.count("changes one by one");
    // A deletion is no revision that is retained, and may have been the newest when it stood.
    const isGone = this.hasGone && (before?.atMs ?? Infinity) <= this.createdMs;
    if (isGone) return void this.findings.order.count("revisions that are gone");
    const missed = list.slice(from, to).map(inWords).join(", ");
    this.breach(this.findings.resume, `is told of ${inWords(change)} without ${missed}`);
  }

  /** The first that comes of a name. */
  private noGapBefore(list: readonly Change[], place: number): void {
    const { fromMs, untilMs, isWhole } = this.standing;
    const { order, resume } = this.findings;
    const first = list[place] as Change;
    if (first.atMs < fromMs) {
      const text = `is told of ${inWords(first)}, which was before it was asked for`;
      return this.breach(order, text);
    }
    const missed = list.slice(0, place).find(({ atMs }) => atMs > untilMs);
    const before = list[place - 1];
    if (missed !== undefined) {
      this.breach(resume, `is told of ${inWords(first)} without ${inWords(missed)}`);
    } else if (isWhole && before !== undefined && !isEnd(before)) {
      this.breach(resume, `is told of ${inWords(first)}, and not of the state before it`);
    }
  }

  // States --------------------------------------------------------------------------------------

  private state(event: ToldEvent, { initial, merged, sentMs }: ToldMessage): void {
    const { order, committed } = this.findings;
    order.count(initial ? "states at the start" : "merged states");
    const list = this.changes.of(sortOf(this.ask.kind), event.name);
    const { at } = this.standing;
    const known = at.get(event.name) ?? this.floor.get(event.name) ?? -1;
    if (isAbsence(event)) return this.absence(list, event, known, sentMs);
    const place = this.findState(list, event, Math.max(0, known));
    if (place < 0) {
      if (this.findState(list, event, 0) < 0) {
        return this.breach(committed, `this never stood so: ${inWords(event)}`);
      }
      return this.breach(order, `goes back to ${inWords(event)}`);
    }
    committed.count("states that stood so");
    if (initial && isEnd(event)) this.breach(order, `begins with ${inWords(event)}`);
    if (initial && at.has(event.name)) this.breach(order, `begins twice with ${inWords(event)}`);
    const next = list[place + 1];
    if (!merged && next !== undefined && next.atMs < this.askedMs) {
      this.breach(order, `begins with ${inWords(event)}, before ${inWords(next)}`);
    }
    this.stands(event.name, place);
  }

  /** Nothing is there: since one of the changes that it can be since. */
  private absence(list: readonly Change[], event: ToldEvent, known: number, sentMs: number): void {
    const places: number[] = known < 0 ? [-1] : [];
    for (let place = Math.max(0, known); place < list.length; place++) {
      const change = list[place] as Change;
      if (isEnd(change) && change.atMs <= sentMs) places.push(place);
    }
    const [first] = places;
    if (first === undefined) {
      return this.breach(this.findings.committed, `nothing ended so: ${inWords(event)}`);
    }
    this.stands(event.name, first, places.at(-1));
  }

  /** The place of the change behind which the state is; below 0: nowhere. */
  private findState(list: readonly Change[], event: ToldEvent, from: number): number {
    return list.findIndex((_change, at) => at >= from && this.standsSo(list, at, event));
  }

  private standsSo(list: readonly Change[], place: number, event: ToldEvent): boolean {
    const change = list[place] as Change;
    if (change.sort === "lock") {
      // A release of a lease that had ended changes nothing, and the row says that it came.
      const isReleased = event.type === WatchEventType.unlocked && isExpiry(change);
      return isReleased ? change.token === event.token : this.matches(change, event);
    }
    if (change.sort === "key") {
      return this.matches(change, event) && isStateOf(list, place, event.stamp);
    }
    const { revision, incarnation, stamp } = change;
    const isSame = revision === event.revision && incarnation === event.incarnation;
    return !isEnd(change) && isSame && compareHlc(stamp, event.stamp) === 0;
  }

  /** A change, by the stamp of its entry; an end of a lease may be told with that of what it ends. */
  private find(
    list: readonly Change[],
    event: ToldEvent,
    from: number,
    fromMs = -Infinity,
  ): number {
    const isSame = (change: Change, at: number): boolean =>
      at >= from && change.atMs >= fromMs && this.matches(change, event);
    const exact = list.findIndex((change, at) => {
      return isSame(change, at) && compareHlc(change.stamp, event.stamp) === 0;
    });
    if (exact >= 0) return exact;
    // Where a name begins anew its revisions do, and ends look alike: none was before what it ends.
    const ended = list.findIndex((change, at) => {
      return isSame(change, at) && isExpiry(change) && compareHlc(change.stamp, event.stamp) > 0;
    });
    if (ended >= 0) return ended;
    // A retained revision that was extended has the stamp of that.
    return list.findIndex((change, at) => {
      return isSame(change, at) && (this.tellsRevisions || isExpiry(change));
    });
  }

  private matches(change: Change, event: ToldEvent): boolean {
    if (change.type !== event.type || change.revision !== event.revision) return false;
    if (change.token !== event.token) return false;
    if (change.sort === "sequence") {
      return isEnd(change) || change.incarnation === event.incarnation;
    }
    return this.ask.noValues || isEnd(change) || change.value === event.value;
  }

  // What is missing -----------------------------------------------------------------------------

  /** What happened before `beforeMs` and was not told; null: nothing. */
  missing(beforeMs: number): string | null {
    if (this.isLoose) return null;
    const { at, vague, untilMs, isWhole } = this.standing;
    for (const name of this.changes.namesOf(this.ask)) {
      const list = this.changes.of(sortOf(this.ask.kind), name);
      let last = list.length - 1;
      while (last >= 0 && (list[last] as Change).atMs >= beforeMs) last--;
      const change = list[last];
      if (change === undefined) continue;
      const known = vague.get(name) ?? at.get(name);
      if (known !== undefined) {
        if (known < last) return inWords(change);
        continue;
      }
      // What was there may have ended before the whole state was read.
      const isGone = list.some((later, place) => {
        return place >= last && isEnd(later) && later.atMs <= untilMs;
      });
      if (isWhole ? !isGone && !isEnd(change) : change.atMs > untilMs) return inWords(change);
    }
    return null;
  }

  private breach(of: WatchFindings["order"], text: string): void {
    of.violation(`${this.id} ${text}`);
  }
}

/** Told of what has no row: which change it was behind is not said. */
function isAbsence({ type, token }: ToldEvent): boolean {
  const { unlocked, sequenceDeleted } = WatchEventType;
  return (type === unlocked && token === 0n) || type === sequenceDeleted;
}

function nothingKnown(): Standing {
  return { at: new Map(), vague: new Map(), fromMs: -Infinity, untilMs: -Infinity, isWhole: false };
}

function copyOf({ at, vague, ...others }: Standing): Standing {
  return { at: new Map(at), vague: new Map(vague), ...others };
}
