/**
 * One group's traffic with the other nodes: fills the entries into what the core sends, and keeps
 * what arrived until its turn.
 *
 * Owns the inbox of its group; the entry cache is lent to it. Invariants: 1. An entry is sent only
 * if it has the term that the message names (P-043). 2. Appends to one node leave in the order of
 * the core, also while entries are read back from the log. 3. The inbox is bounded; beyond the
 * bound messages are lost, which Raft allows; so are entries that the log could not take soon (see
 * append-budget.ts). 4. The payloads of a received append are at hand exactly while it is stepped
 * and its effects are taken. 5. What is read back for one message is bounded by the core's bound of
 * a message, whatever it believes (P-189).
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { SIZE_RUN_MAX_BYTES } from "../../base/limits.js";
import type { LogEntry, LogPort } from "../../ports.js";
import type { RaftCore } from "../../raft/core.js";
import type { EntrySpan, Message } from "../../raft/state/types.js";
import type { PeerLives } from "./peer-lives.js";
import type { AppendBudget } from "./append-budget.js";
import type { EntryCache } from "./entry-cache.js";
import type { PeerOutbox } from "./peer-outbox.js";
import { type HeartbeatSign, NO_BEAT_SIGN, type RaftItem, isFramed } from "./raft-frames.js";

const INBOX_ITEMS_MAX = 4096;
const INBOX_BYTES_MAX = 32 << 20;
const NO_ENTRIES: readonly LogEntry[] = [];

interface Loaded {
  readonly message: Message;
  /** null: the log no longer has them. */
  readonly entries: readonly LogEntry[] | null;
}

export interface ReplicationParts {
  readonly partition: PartitionId;
  readonly core: RaftCore;
  /** Which lives of the replicas messages are between. */
  readonly lives: PeerLives;
  readonly cache: EntryCache;
  readonly outbox: PeerOutbox;
  readonly log: LogPort;
  readonly appendBudget: AppendBudget;
  /** Called outside of any turn when there is something to do. */
  readonly wake: () => void;
  /** What heartbeats are to say of this node. */
  heartbeatSign(): HeartbeatSign;
}

export interface InboxObserver {
  before(message: Message): void;
  after(message: Message, sign: HeartbeatSign): void;
}

export class Replication {
  private inbox: RaftItem[] = [];
  private inboxBytes = 0;
  private readonly waiting = new Map<number, Message[]>();
  private loaded: Loaded[] = [];
  private staged: RaftItem | null = null;
  /** Messages that found no room. */
  droppedCount = 0;

  constructor(private readonly parts: ReplicationParts) {}

  /** Something arrived or was read that no turn has looked at. */
  get hasWork(): boolean {
    return this.inbox.length > 0 || this.loaded.length > 0;
  }

  /** Takes in a message from another node. */
  receive(item: RaftItem): void {
    const bytes = item.message.entries?.sizeBytes ?? 0;
    const isFull = this.inbox.length >= INBOX_ITEMS_MAX;
    const isRefused = bytes > 0 && !this.parts.appendBudget.admits();
    if (isFull || isRefused || (this.inboxBytes > 0 && this.inboxBytes + bytes > INBOX_BYTES_MAX)) {
      this.droppedCount++;
      return;
    }
    this.keep(item);
  }

  private keep(item: RaftItem): void {
    this.inboxBytes += item.message.entries?.sizeBytes ?? 0;
    this.inbox.push(item);
  }

  /**
   * Steps everything that has arrived. `execute` takes the core's effects while the payloads of the
   * message are at hand; it returns false when a snapshot is being installed: what is left waits
   * until that is done, for its payloads are wanted then. `observer` sees each message before and
   * after.
   */
  stepInbox(execute: () => boolean, observer: InboxObserver): void {
    this.pumpLoaded();
    if (this.inbox.length === 0) return;
    const items = this.inbox;
    this.inbox = [];
    this.inboxBytes = 0;
    for (const [at, item] of items.entries()) {
      this.staged = item;
      // Answers from nodes that are in no part of the configuration any more are refused: fine.
      observer.before(item.message);
      this.parts.core.step(item.message);
      observer.after(item.message, item.sign);
      const matters = item.entries.length > 0 || item.message.kind === "snapshot";
      const goesOn = !matters || execute();
      this.staged = null;
      if (goesOn) continue;
      for (const rest of items.slice(at + 1)) this.keep(rest);
      return;
    }
    execute();
  }

  /** The payload that came with the message being stepped; null when it is not among them. */
  received(index: number, term: number): LogEntry | null {
    const entries = this.staged?.entries;
    const first = entries?.[0];
    if (entries === undefined || first === undefined) return null;
    const entry = entries[index - first.index];
    return entry !== undefined && entry.term === term ? entry : null;
  }

  /** Sends a message of the core to another node. */
  send(message: Message): void {
    const { outbox, core } = this.parts;
    if (!isFramed(message.kind)) return;
    if (!outbox.isUp(message.to)) {
      if (message.kind === "append") core.reportUnreachable(message.to);
      return;
    }
    if (message.kind !== "append") {
      const sign = message.kind === "heartbeat" ? this.parts.heartbeatSign() : NO_BEAT_SIGN;
      return this.post(message, NO_ENTRIES, sign);
    }
    const queue = this.waiting.get(message.to);
    if (queue !== undefined) queue.push(message);
    else this.sendAppend(message);
  }

  /** Forgets what waits for entries from the log: leadership ended, or the state was replaced. */
  reset(): void {
    this.waiting.clear();
    this.loaded = [];
  }

  /** Forgets what arrived, too: the replica leaves this node. */
  close(): void {
    this.reset();
    this.inbox = [];
    this.inboxBytes = 0;
  }

  private sendAppend(message: Message): void {
    const span = message.entries;
    const entries = span === null ? NO_ENTRIES : this.cachedEntries(span);
    if (entries !== null) this.post(message, entries, NO_BEAT_SIGN);
    else if (span !== null) this.load(message, span);
  }

  private post(message: Message, entries: readonly LogEntry[], sign: HeartbeatSign): void {
    const { outbox, partition, lives } = this.parts;
    outbox.add(partition, message, entries, sign, lives.own, lives.of(message.to));
  }

  private cachedEntries(span: EntrySpan): LogEntry[] | null {
    const entries: LogEntry[] = [];
    for (let index = span.first; index <= span.last; index++) {
      const entry = this.parts.cache.at(index, termIn(span, index));
      if (entry === null) return null;
      entries.push(entry);
    }
    return entries;
  }

  private load(message: Message, span: EntrySpan): void {
    const queue: Message[] = [];
    this.waiting.set(message.to, queue);
    const { log, partition, wake, core } = this.parts;
    // What the core knows of entries of an earlier life is off by a run at either end (P-189).
    const maxBytes = core.maxMessageBytes + 2 * SIZE_RUN_MAX_BYTES;
    log.read(partition, span.first, span.last, maxBytes, (result) => {
      if (this.waiting.get(message.to) !== queue) return;
      this.loaded.push({ message, entries: result.ok ? result.value : null });
      wake();
    });
  }

  private pumpLoaded(): void {
    if (this.loaded.length === 0) return;
    const loaded = this.loaded;
    this.loaded = [];
    for (const { message, entries } of loaded) this.finishLoad(message, entries);
  }

  private finishLoad(message: Message, entries: readonly LogEntry[] | null): void {
    const { core, outbox } = this.parts;
    const queue = this.waiting.get(message.to);
    assert(queue !== undefined, "what was read is waited for");
    this.waiting.delete(message.to);
    const isOutdated = core.role !== "leader" || core.term !== message.term;
    if (isOutdated || !outbox.isUp(message.to)) return;
    const span = message.entries;
    const usable = span === null || entries === null ? [] : agreeing(span, entries);
    if (usable.length > 0) this.post(message, usable, NO_BEAT_SIGN);
    // Whatever follows a short message would leave a gap: the follower says what it has instead.
    if (span === null || usable.length < span.last - span.first + 1) {
      core.reportUnreachable(message.to);
      return;
    }
    for (const next of queue) this.send(next);
  }
}

/** The term of the entry at `index` of a stretch that covers it. */
export function termIn(span: Pick<EntrySpan, "termRuns">, index: number): number {
  let term = 0;
  for (const run of span.termRuns) {
    if (run.first > index) break;
    term = run.term;
  }
  return term;
}

/** The entries read from the log, as far as they are those that the span names. */
function agreeing(span: EntrySpan, entries: readonly LogEntry[]): LogEntry[] {
  const usable: LogEntry[] = [];
  for (const entry of entries) {
    const isNext = entry.index === span.first + usable.length && entry.index <= span.last;
    if (!isNext || entry.term !== termIn(span, entry.index)) break;
    usable.push(entry);
  }
  return usable;
}
