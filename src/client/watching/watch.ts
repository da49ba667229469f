/**
 * One watch: batches of what changed, as an async iterable that goes on by itself.
 *
 * Owns its stream, or its polls, and what the reader has not taken. Invariants: 1. What was told is
 * told once, and in order, also across nodes; where that cannot be, a batch says so (`merged`,
 * `reset`). 2. What the reader does not take pushes back: a few batches are held, not more. 3. It
 * ends by its reader, its signal, its client, or a failure that another node would give too; each
 * ends what waits for it.
 */
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type { Caller } from "../call/operation.js";
import type { WatchHost, WatchTarget } from "../call/watch-host.js";
import { Backoff } from "../time/backoff.js";
import { onAbort } from "../time/pause.js";
import type { Timer } from "../time/platform.js";
import {
  AccessError,
  CancelledError,
  ClosedError,
  InvalidInputError,
  NotAtLevelError,
  ServerError,
  SvcError,
} from "../values/errors.js";
import type { WatchAsked, WatchBatch, WatchEvent } from "./watch-shapes.js";
import { createBytes, messageFrom, pollWatch, syncBytes, type WatchMessage } from "./watch-wire.js";

/** Batches that wait for the reader before the service is held up. */
const HELD_MAX = 4;
const POLL_WAIT_MS = 30_000;

type Taken = IteratorResult<WatchBatch, undefined>;
interface Pending<Value> {
  resolve(value: Value): void;
  reject(error: unknown): void;
}

/** @internal What a watch needs. */
export interface WatchFacts {
  readonly caller: Caller;
  readonly host: WatchHost;
  /** A refusal of the only endpoint ends it. */
  readonly failsWhenRefused: boolean;
}

/** True when asking another node, or again, is of no use. */
function isFinal(error: SvcError): boolean {
  if (error instanceof AccessError || error instanceof InvalidInputError) return true;
  if (error instanceof NotAtLevelError || error instanceof ServerError) return true;
  return error.code === "unimplemented" || error instanceof ClosedError;
}

/**
 * A watch: `for await` takes its batches, in order, until it is left, closed or aborted. It goes on
 * at another node by itself; a failure that every node would answer ends it with that error. What
 * is not read holds the service back and costs a cursor there.
 */
export class Watch implements AsyncIterableIterator<WatchBatch, undefined> {
  private readonly facts: WatchFacts;
  private asked: WatchAsked;
  private readonly backoff: () => Backoff;
  private retries: Backoff;
  private link: WatchTarget | null = null;
  private last: WatchTarget | null = null;
  /** The node that the last one named. */
  private route: string | null = null;
  private poll: AbortController | null = null;
  private timer: Timer | null = null;
  /** What comes of an earlier one is not heard. */
  private askings = 0;
  private unlisten: (() => void) | null = null;
  private readonly batches: WatchBatch[] = [];
  private readonly readers: Pending<Taken>[] = [];
  private readonly starters: Pending<undefined>[] = [];
  private readonly drainers: Pending<undefined>[] = [];
  private readonly syncs = new Map<number, Pending<undefined>>();
  private lastSyncId = 0;
  /** Of a log entry that goes on. */
  private partial: WatchEvent[] = [];
  /** The next batch is not of each change. */
  private isMerged = false;
  private hasBegun = false;
  private hasStarted = false;
  /** A state is being told. */
  private isInState: boolean;
  /** Of a state that was told in part, by a watch that is lost. */
  private isPartVoid = false;
  private failure: SvcError | null = null;
  private isOver = false;
  private takenCursor: string | null;

  /** @internal */
  constructor(facts: WatchFacts, asked: WatchAsked, signal: AbortSignal | undefined) {
    this.facts = facts;
    this.asked = asked;
    this.backoff = () => new Backoff(facts.caller.platform);
    this.retries = this.backoff();
    this.isInState = asked.initial && asked.cursor === null;
    this.takenCursor = asked.cursor;
    if (signal === undefined) return;
    const cancel = (): void =>
      this.fail(new CancelledError("the watch was cancelled", { cause: signal.reason }));
    if (signal.aborted) cancel();
    else this.unlisten = onAbort(signal, cancel);
  }

  /** Where a later watch of the same name goes on: behind all that was taken. */
  get cursor(): string | null {
    return this.takenCursor;
  }

  /** Resolves when the watch stands: what changes from then on is told. */
  started(): Promise<void> {
    this.begin();
    if (this.hasStarted) return Promise.resolve();
    return this.pend(this.starters);
  }

  /**
   * Resolves when everything that was answered to anybody before this call has come here: it is in
   * the batches that are next, or was in those before. Of a watch that is not read it may wait for
   * the reader.
   */
  sync(): Promise<void> {
    this.begin();
    return new Promise<undefined>((resolve, reject) => {
      if (this.isOver) return reject(this.failure ?? new ClosedError());
      const syncId = ++this.lastSyncId;
      this.syncs.set(syncId, { resolve, reject });
      if (this.link !== null && this.hasStarted) this.link.link.send(syncBytes(syncId));
      // A poll that begins now is level with what was answered before.
      this.poll?.abort();
    });
  }

  /** @internal Resolves when the reader has taken all that came, and asks for more. */
  drained(): Promise<void> {
    if (this.isOver || (this.batches.length === 0 && this.readers.length > 0)) {
      return Promise.resolve();
    }
    return this.pend(this.drainers);
  }

  next(): Promise<Taken> {
    this.begin();
    const batch = this.batches.shift();
    if (batch !== undefined) {
      this.take(batch);
      if (this.batches.length <= HELD_MAX / 2) this.goOn();
      return Promise.resolve({ done: false, value: batch });
    }
    if (this.isOver) {
      const { failure } = this;
      this.failure = null;
      if (failure !== null) return Promise.reject(failure);
      return Promise.resolve({ done: true, value: undefined });
    }
    for (const one of this.drainers.splice(0)) one.resolve(undefined);
    return this.pend(this.readers);
  }

  return(): Promise<Taken> {
    this.end(null);
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** @internal The client closes. */
  close(): void {
    this.fail(new ClosedError());
  }

  private pend<Value>(list: Pending<Value>[]): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      if (this.isOver) reject(this.failure ?? new ClosedError());
      else list.push({ resolve, reject });
    });
  }

  private begin(): void {
    if (this.hasBegun || this.isOver) return;
    this.hasBegun = true;
    if (this.facts.host.isClosed) return this.close();
    this.facts.host.watches.add(this);
    this.ask();
  }

  /** Asks a node. */
  private ask(): void {
    this.timer = null;
    if (this.isOver) return;
    const number = ++this.askings;
    const isCurrent = (): boolean => this.askings === number && !this.isOver;
    const { asked: wanted, last, route } = this;
    this.route = null;
    const asked = this.facts.host.openWatch(createBytes(wanted), last, route, {
      message: (bytes) => {
        if (isCurrent()) this.told(messageFrom(bytes));
      },
      lost: (error) => {
        if (isCurrent()) this.lost(error);
      },
    });
    // It may be lost already.
    if (!isCurrent()) return;
    this.link = asked;
    if (asked === null) void this.pollOn();
  }

  private told(message: WatchMessage): void {
    const { created, events, mark, synced, ended } = WatchMessageType;
    switch (message.type) {
      case created:
        return this.stands(message);
      case events:
        return this.tell(message);
      case mark:
        return this.marked(message);
      case synced:
        this.syncs.get(message.syncId)?.resolve(undefined);
        this.syncs.delete(message.syncId);
        return;
      case ended:
        return this.ended(message);
    }
  }

  private stands({ cursor }: { readonly cursor: string | null }): void {
    this.retries = this.backoff();
    if (this.link !== null) this.facts.host.watchWorked(this.link);
    this.hasStarted = true;
    if (cursor !== null) this.reached(cursor);
    for (const one of this.starters.splice(0)) one.resolve(undefined);
    for (const syncId of this.syncs.keys()) this.link?.link.send(syncBytes(syncId));
  }

  private reached(cursor: string): void {
    this.asked = { ...this.asked, cursor, fromRevision: null };
    if (this.batches.length === 0) this.takenCursor = cursor;
  }

  private tell(message: WatchMessage): void {
    const { events, cursor, initial, reset, more } = message;
    this.isMerged ||= message.merged;
    if (more) {
      // It is told as a whole, or not at all: what comes again after a loss comes once.
      this.partial.push(...events);
      return;
    }
    const all = this.partial.length === 0 ? events : [...this.partial, ...events];
    this.partial = [];
    const merged = this.isMerged;
    this.isMerged = false;
    this.isInState ||= reset || initial || merged;
    if (cursor !== null) this.isInState = false;
    this.push({ events: all, cursor, initial, merged, reset });
    if (cursor !== null) this.reached(cursor);
    else this.noteRevisions(all);
  }

  /** Revisions that were told need not come again. */
  private noteRevisions(events: readonly WatchEvent[]): void {
    const last = events.at(-1);
    if (this.asked.fromRevision === null || last === undefined) return;
    this.asked = { ...this.asked, fromRevision: last.revision };
  }

  private marked({ cursor, merged }: Pick<WatchMessage, "cursor" | "merged">): void {
    this.isMerged ||= merged;
    if (cursor === null) return;
    if (this.isInState) {
      this.isInState = false;
      this.push({ events: [], cursor, initial: false, merged: false, reset: false });
    }
    this.reached(cursor);
  }

  private push(told: WatchBatch): void {
    const batch = this.isPartVoid ? { ...told, reset: true } : told;
    this.isPartVoid = false;
    const reader = this.readers.shift();
    if (reader !== undefined) {
      this.take(batch);
      reader.resolve({ done: false, value: batch });
      return;
    }
    this.batches.push(batch);
    if (this.batches.length >= HELD_MAX) this.link?.link.pause();
  }

  private take({ cursor }: WatchBatch): void {
    if (cursor !== null) this.takenCursor = cursor;
  }

  /** There is room again. */
  private goOn(): void {
    this.link?.link.resume();
    if (this.poll === null && this.link === null && this.timer === null) void this.pollOn();
  }

  private ended({ end, route }: WatchMessage): void {
    if (end === WatchEnd.invalidInput) {
      return this.fail(new InvalidInputError("the service does not accept the watch"));
    }
    if (end === WatchEnd.forbidden) {
      return this.fail(new AccessError("forbidden", "the caller may not read any more"));
    }
    this.again(route);
  }

  private lost(error: SvcError): void {
    if (isFinal(error) || this.isRefusal(error)) return this.fail(error);
    this.again();
  }

  /** Goes on at another node. `route`: the one that this one named, which is well, then. */
  private again(route: string | null = null): void {
    const { link } = this;
    this.askings += 1;
    if (link !== null) {
      link.link.close();
      if (route === null) this.facts.host.watchFailed(link);
    }
    this.route = route;
    this.last = link ?? this.last;
    this.link = null;
    this.partial = [];
    // What was told of a state in part is told again from its beginning.
    if (this.isInState && this.asked.cursor === null && this.hasStarted) this.isPartVoid = true;
    const waitMs = this.retries.nextMs(0);
    this.timer = this.facts.caller.platform.after(waitMs, () => this.ask());
  }

  /** Polls until something holds it up. Never rejects. */
  private async pollOn(): Promise<void> {
    const { caller } = this.facts;
    while (!this.isOver && this.poll === null && this.batches.length < HELD_MAX) {
      const stop = new AbortController();
      this.poll = stop;
      const before = [...this.syncs.keys()];
      const waitMs = before.length === 0 ? POLL_WAIT_MS : 0;
      const deadlineMs = waitMs + caller.deadlineMs;
      try {
        const calling = { signal: stop.signal, deadlineMs };
        const answer = await caller.call(pollWatch, { ...this.asked, waitMs }, calling);
        this.poll = null;
        if (this.isOver) return;
        this.polled(answer, before);
      } catch (error) {
        this.poll = null;
        if (this.isOver) return;
        // A sync wants one that begins later.
        if (stop.signal.aborted) continue;
        return this.lost(error as SvcError);
      }
    }
  }

  private isRefusal(error: SvcError): boolean {
    return this.facts.failsWhenRefused && "refused" in error && error.refused === true;
  }

  private polled(answer: WatchMessage, syncIds: readonly number[]): void {
    const isState = this.isInState;
    this.stands({ cursor: null });
    if (answer.events.length > 0 || answer.reset || isState) this.tell(answer);
    else this.marked(answer);
    for (const syncId of syncIds) {
      this.syncs.get(syncId)?.resolve(undefined);
      this.syncs.delete(syncId);
    }
  }

  private fail(error: SvcError): void {
    this.end(error);
  }

  private end(failure: SvcError | null): void {
    if (this.isOver) return;
    this.isOver = true;
    this.unlisten?.();
    this.timer?.cancel();
    this.poll?.abort();
    this.link?.link.close();
    this.facts.host.watches.delete(this);
    if (failure === null) this.batches.length = 0;
    const { readers, starters } = this;
    const why = failure ?? new ClosedError();
    for (const one of [...starters.splice(0), ...this.drainers.splice(0), ...this.syncs.values()])
      one.reject(why);
    this.syncs.clear();
    const [first, ...others] = readers.splice(0);
    if (first === undefined) this.failure = failure;
    else if (failure === null) first.resolve({ done: true, value: undefined });
    else first.reject(failure);
    for (const one of others) one.resolve({ done: true, value: undefined });
  }
}
