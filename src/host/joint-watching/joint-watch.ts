/**
 * One watch whose partitions are on several nodes, or on another one than this (W14): joins what
 * its parts tell.
 *
 * Owns the parts and where each partition was told to. Invariants: 1. It is created when all parts
 * are. 2. A cursor is the positions of all partitions, and is told only where every part has told
 * all up to its own; a mark too (P-187). 3. Where one part tells its state anew the whole watch
 * does (W7). 4. Of the keys of prefixes and buckets, which move between partitions: a part that
 * compares is told behind all that parts which go on were yet to tell. So what one partition told
 * before it gave a key away never follows what the next one tells (P-186). 5. A part whose node is
 * gone is asked of another one with its cursor. 6. It begins, and a barrier is passed, where this
 * node and those of all parts go by one map: by another one a key that moved may be of none of them
 * (W4, W9).
 */
import { WatchEnd, WatchKind, WatchMessageType } from "../../base/result-types.js";
import { WATCH_STALE_MAX_MS } from "../../base/limits.js";
import { PART_MOVED, type WatchRequest, type WatchSink } from "../watching/messages.js";
import { type Draft, draft } from "../watching/told.js";
import { AskedPart, type PartOwner } from "./asked-part.js";
import { type BarrierHome, Barriers } from "./barriers.js";
import { cutParts } from "./cut.js";
import type { JointPorts, PartAsk, PartMessage } from "./parts.js";
import { Progress } from "./progress.js";

/** All parts stand within this time, or the watch ends (ms). */
const BEGIN_MS = 10_000;
/** A node that could not tell a part is not asked again so soon (ms). */
const AVOID_MS = 2000;
/** Longest time between marks of a part (ms): by them it is known how far the watch is. */
const PART_PROGRESS_MS = 1000;

export interface JointHome {
  readonly ports: JointPorts;
  /** Where no time between marks is asked for (ms). */
  readonly progressMs: number;
  nextPart(): number;
  held(changeBytes: number): void;
  mayPull(): boolean;
  /** The watch is over. */
  ended(watch: JointWatch): void;
  /** Whoever waits for a barrier may look. */
  synced(watch: JointWatch): void;
}

/**
 * What a watch was before it was joint: none; one that told all up to its cursor; or one that told
 * some of what is behind it.
 */
export type Stand = "anew" | "whole" | "ahead";

export class JointWatch implements PartOwner, BarrierHome {
  readonly ports: JointPorts;
  readonly parts = new Set<AskedPart>();
  private readonly progress: Progress;
  private readonly avoidedMs = new Map<number, number>();
  private all: ReadonlySet<number> = new Set();
  /** Those that no node is known to tell of. */
  private missing: readonly number[] = [];
  /** Partitions that told some of what is behind their positions. */
  private readonly ahead = new Set<number>();
  private isCreated: boolean;
  /** The state at the start is being told. */
  private isInState = false;
  private fromRevision: bigint | null;
  /** No part is told before all of them stand. */
  private isFresh = true;
  private wantsReset = false;
  private isOver = false;
  readonly barriers = new Barriers(this);
  /** Since when some partition has no part that stands (monotonic ms). */
  private troubledMs: number | null;
  private lastEnd: number = WatchEnd.notHosted;
  private toldMs: number;

  constructor(
    readonly id: number,
    readonly request: WatchRequest,
    private readonly stand: Stand,
    private readonly sink: WatchSink,
    private readonly home: JointHome,
  ) {
    this.ports = home.ports;
    this.isCreated = stand !== "anew";
    this.progress = new Progress(request, () => home.ports.clusterId());
    this.fromRevision = request.cursor === null ? request.fromRevision : null;
    this.toldMs = this.nowMs();
    this.troubledMs = this.toldMs;
  }

  /** Not in the turn of the call that asked for it. */
  begin(): void {
    if (this.isOver) return;
    const { cursor, initial, kind, name } = this.request;
    if (cursor === null) {
      this.isInState = initial;
      // It was a watch of this node, and told half of a state.
      if (this.isCreated) return this.reset();
    } else {
      const all = this.ports.partitionsOf(kind, name) ?? new Set();
      const whose = this.progress.goOn(cursor, all);
      if (whose === null) return this.end(WatchEnd.invalidInput, null);
      // What tells of deletions may be gone with a partition that is no more.
      const isGone = whose === "other" && kind <= WatchKind.bucket && !this.isCreated;
      if (whose === "foreign" || isGone) return this.reset();
    }
    this.cut();
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const part of this.parts) this.drop(part);
    this.home.ended(this);
  }

  end(end: number, partition: number | null): void {
    if (this.isOver) return;
    this.close();
    this.deliver({ type: WatchMessageType.ended, end, partition });
  }

  // Parts -------------------------------------------------------------------------------------

  private get isOfMany(): boolean {
    const { kind } = this.request;
    return kind === WatchKind.prefix || kind === WatchKind.bucket;
  }

  /** Sees to it that every partition has a part. */
  cut(): void {
    const { kind, name } = this.request;
    const all = this.isOver ? null : this.ports.partitionsOf(kind, name);
    if (all === null) return;
    this.barriers.mapVersion = this.ports.mapVersion();
    // Of a watch that was of this node alone.
    if (this.all.size === 0 && this.stand === "ahead") for (const each of all) this.ahead.add(each);
    this.all = all;
    for (const part of [...this.parts]) {
      if (!part.ask.partitions.every((each) => all.has(each))) this.drop(part);
    }
    this.progress.keep(all);
    for (const each of this.ahead) if (!all.has(each)) this.ahead.delete(each);
    const covered = new Set([...this.parts].flatMap(({ ask }) => ask.partitions));
    const open = [...all].filter((each) => !covered.has(each)).sort((a, b) => a - b);
    const missing: number[] = [];
    // What was told whole goes on; of the rest no position is known.
    for (const isKnown of [true, false]) {
      const some = open.filter((each) => this.progress.has(each) === isKnown);
      const cut = cutParts(some, (each) => this.hostsOf(each));
      missing.push(...cut.missing);
      for (const { node, partitions } of cut.parts) this.open(node, partitions, isKnown);
    }
    this.missing = missing;
    if (open.length > 0) this.troubledMs ??= this.nowMs();
    this.beginReady();
    this.settle(null);
  }

  private hostsOf(partition: number): readonly number[] {
    const { ports } = this;
    const nowMs = this.nowMs();
    const isFree = (node: number): boolean => (this.avoidedMs.get(node) ?? 0) <= nowMs;
    if (ports.isHere(partition) && isFree(ports.nodeId)) return [ports.nodeId];
    return ports.hostsOf(partition).filter(isFree);
  }

  private open(node: number, partitions: readonly number[], isKnown: boolean): void {
    const { kind, name, noValues, only, eventsMax = 0, cursor } = this.request;
    const isAnew = this.isInState && !isKnown;
    const fromNow = !isKnown && !this.isCreated && cursor === null;
    const goesOn = isKnown || !(isAnew || fromNow || this.fromRevision !== null);
    const isAhead = partitions.some((each) => this.ahead.has(each));
    const isFirst = this.isFresh && this.stand === "anew";
    const replays = isAhead ? "never" : isFirst ? "always" : "unless-moved";
    const ask: PartAsk = {
      ...{ kind, name, noValues, only, eventsMax, partitions },
      cursor: goesOn ? this.progress.cursorOf(partitions) : null,
      fromRevision: goesOn ? null : this.fromRevision,
      initial: isAnew,
      progressMs: Math.min(this.progressMs, PART_PROGRESS_MS),
      replays,
    };
    const part = new AskedPart(node, ask, this.home.nextPart(), this.barriers.last, this);
    this.parts.add(part);
    if (this.isOfMany) part.pullOn();
    else part.begin();
  }

  private drop(part: AskedPart): void {
    this.parts.delete(part);
    for (const each of this.parts) each.behind.delete(part);
    part.close();
  }

  held(changeBytes: number): void {
    this.home.held(changeBytes);
  }

  mayPull(): boolean {
    return this.home.mayPull();
  }

  news(): void {
    this.beginReady();
    this.pump();
  }

  /** Those that stand begin together: none of them knows less of moved keys than another one. */
  private beginReady(): void {
    const waiting = [...this.parts].filter(({ begins }) => !begins);
    if (waiting.length === 0 || waiting.some(({ isReady }) => !isReady)) return;
    if (this.isFresh && this.missing.length > 0) return;
    for (const part of waiting) part.begin();
  }

  lost(part: AskedPart, end: number, isUseless: boolean): void {
    if (this.isOver || !this.parts.has(part)) return;
    // Whoever asks goes there by itself.
    if (isUseless) return this.end(end, part.ask.partitions[0] ?? null);
    if (end !== PART_MOVED) {
      this.avoidedMs.set(part.node, this.nowMs() + AVOID_MS);
      this.lastEnd = end;
    }
    this.drop(part);
    this.troubledMs ??= this.nowMs();
    const isKnown = part.ask.partitions.every((each) => this.progress.has(each));
    if (this.isFresh && part.begins) this.beginAgain();
    else if (this.isInState && !isKnown && part.isAhead) return this.reset();
    if (part.isAhead) for (const each of part.ask.partitions) this.ahead.add(each);
    this.ports.timer.soon(() => this.cut());
  }

  /** Whoever begins again begins together: from now on, unless behind a cursor. */
  private beginAgain(): void {
    for (const part of [...this.parts]) this.drop(part);
    if (this.request.cursor === null) this.progress.clear();
  }

  /** What was told is void: the whole state follows (W7). */
  private reset(): void {
    for (const part of [...this.parts]) this.drop(part);
    this.progress.clear();
    this.ahead.clear();
    this.isInState = true;
    this.fromRevision = null;
    this.isFresh = true;
    this.wantsReset = true;
    this.ports.timer.soon(() => this.cut());
  }

  /** One more part stands, or all do. */
  private settle(newcomer: AskedPart | null): void {
    const parts = [...this.parts];
    const stand = this.isCovered && parts.every(({ isCreated }) => isCreated);
    if (stand && this.isFresh && !this.barriers.isOneMap) {
      this.lastEnd = WatchEnd.stale;
      this.beginAgain();
      return this.barriers.lookAgain();
    }
    if (stand) this.troubledMs = null;
    if (this.isFresh) {
      if (!stand) return;
      this.isFresh = false;
      this.putBehind(parts.filter(({ compares }) => compares));
    } else if (newcomer?.compares === true) this.putBehind([newcomer]);
  }

  /** What these tell comes behind all that the others, which go on, are yet to tell. */
  private putBehind(comparing: readonly AskedPart[]): void {
    const others = [...this.parts].filter((each) => {
      return each.isCreated && each.behind.size === 0 && !comparing.includes(each);
    });
    if (!this.isOfMany || comparing.length === 0 || others.length === 0) return;
    this.barriers.raise();
    const { last } = this.barriers;
    for (const part of comparing) for (const other of others) part.behind.set(other, last);
  }

  private get isCovered(): boolean {
    let covered = 0;
    for (const { ask } of this.parts) covered += ask.partitions.length;
    return covered > 0 && covered === this.all.size;
  }

  // Barriers ----------------------------------------------------------------------------------

  get isStanding(): boolean {
    return !this.isFresh && !this.wantsReset && this.isCovered;
  }

  after(delayMs: number, callback: () => void): void {
    this.ports.timer.after(delayMs, () => {
      if (!this.isOver) callback();
    });
  }

  // What is told ------------------------------------------------------------------------------

  /** Tells what there is, as far as it is taken. Not in the turn of a call of the caller. */
  pump(): void {
    for (let isOn = !this.isOver; isOn;) {
      if (!this.tellBeginning()) break;
      isOn = false;
      for (const part of [...this.parts]) {
        while (!this.isOver && this.parts.has(part) && this.takeOf(part)) isOn = true;
      }
    }
    if (this.isOver) return;
    this.barriers.look();
    this.home.synced(this);
    for (const part of this.parts) part.pullOn();
  }

  /** CREATED, and that all is told anew. False: that is to be taken first. */
  private tellBeginning(): boolean {
    const isDue = !this.isCreated && !this.isFresh;
    if ((isDue || (this.isCreated && this.wantsReset)) && this.sink.isFull()) return false;
    if (isDue) {
      this.isCreated = true;
      this.deliver({ type: WatchMessageType.created, cursor: this.cursor() });
    }
    if (this.isCreated && this.wantsReset) {
      this.wantsReset = false;
      this.deliver({ reset: true, initial: true });
    }
    return true;
  }

  /** One message of a part. False: there is none that may be told now. */
  private takeOf(part: AskedPart): boolean {
    const message = part.next;
    if (message === null) return false;
    const { created, ended, synced } = WatchMessageType;
    const isOfPart = message.type === created || message.type === ended;
    const mayTell = this.isCreated && !this.isFresh && part.behind.size === 0;
    if (!isOfPart && (!mayTell || this.sink.isFull())) return false;
    part.take();
    if (message.type === ended) this.partEnded(part, message);
    else if (message.type === created) this.partCreated(part, message);
    else if (message.type === synced) this.partSynced(part, message);
    else this.tell(part, message);
    return true;
  }

  private partEnded(part: AskedPart, { end, partition }: PartMessage): void {
    if (end === WatchEnd.invalidInput) this.end(end, partition);
    else this.lost(part, end, false);
  }

  private partCreated(part: AskedPart, message: PartMessage): void {
    part.isCreated = true;
    part.mapVersion = message.mapVersion;
    part.compares = message.merged;
    this.note(part, message);
    if (message.merged) part.isWhole = false;
    this.settle(part);
  }

  private partSynced(part: AskedPart, { syncId, mapVersion }: PartMessage): void {
    part.syncedTo = syncId;
    part.mapVersion = mapVersion;
    for (const { behind } of this.parts) {
      if ((behind.get(part) ?? Infinity) <= syncId) behind.delete(part);
    }
  }

  private tell(part: AskedPart, message: PartMessage): void {
    const { type, events, initial, merged, more, reset } = message;
    if (reset) return this.reset();
    const wasWhole = part.isWhole;
    this.note(part, message);
    if (part.isWhole) for (const each of part.ask.partitions) this.ahead.delete(each);
    part.isAhead = !part.isWhole && (part.isAhead || events.length > 0);
    if (this.isWhole) this.isInState = false;
    if (type === WatchMessageType.mark) {
      // Otherwise it says how far the part is, and nothing to the caller.
      if (!wasWhole && this.isWhole) this.mark();
      return;
    }
    const last = events.at(-1);
    if (this.fromRevision !== null && last !== undefined) {
      this.fromRevision = part.isWhole ? null : BigInt(last.revision);
    }
    const isMerged = this.progress.takeGap() || merged;
    this.deliver({ events, initial, merged: isMerged, more, cursor: this.cursor() });
  }

  /** How far the part is. */
  private note(part: AskedPart, message: PartMessage): void {
    part.isWhole = message.cursor !== null;
    this.progress.note(part.ask.partitions, message, this.nowMs());
  }

  /** Nothing was told in part. */
  private get isWhole(): boolean {
    if (this.isFresh || this.ahead.size > 0) return false;
    if (![...this.parts].every(({ isWhole }) => isWhole)) return false;
    return !this.isInState || [...this.all].every((each) => this.progress.has(each));
  }

  private cursor(): string | null {
    return this.isWhole ? this.progress.cursorOf(null) : null;
  }

  private mark(): void {
    this.deliver({ ...this.progress.mark(this.nowMs()), cursor: this.cursor() });
  }

  private deliver(told: Partial<Draft>): void {
    this.toldMs = this.nowMs();
    this.sink.deliver({ ...draft(told), watchIds: [this.id] });
  }

  // Time --------------------------------------------------------------------------------------

  /** Looks what is due. `isMapNew`: partitions may lie elsewhere, or have other keys. */
  tick(isMapNew: boolean): void {
    if (this.isOver) return;
    const nowMs = this.nowMs();
    if (this.troubledMs !== null && nowMs - this.troubledMs > BEGIN_MS) {
      return this.end(this.lastEnd, this.troubled());
    }
    if (isMapNew || this.missing.length > 0) this.cut();
    if (this.isCreated && nowMs - this.toldMs >= this.progressMs) this.markDue();
    this.pump();
  }

  /** A partition that has no part, of which another node may tell; null: none is meant. */
  private troubled(): number | null {
    const [first = null] = this.all;
    return this.missing[0] ?? (this.all.size === 1 ? first : null);
  }

  /** It is also when a watch is found to be allowed no more, or stale. */
  private markDue(): void {
    if (!this.sink.mayRead()) return this.end(WatchEnd.forbidden, null);
    const isStale = this.progress.staleMs(this.nowMs()) > WATCH_STALE_MAX_MS;
    if (isStale) return this.end(WatchEnd.stale, this.troubled());
    const isAllTold = [...this.parts].every(({ next }) => next === null);
    if (isAllTold && this.isWhole && !this.wantsReset && !this.sink.isFull()) this.mark();
  }

  private get progressMs(): number {
    return this.request.progressMs || this.home.progressMs;
  }

  private nowMs(): number {
    return this.ports.clock.monotonicMs();
  }
}
