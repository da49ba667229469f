/**
 * The parts of watches of other nodes that this node tells of, and of its own watches that are
 * joined of parts (W14).
 *
 * Owns a stream of the hub for each. Invariants: 1. The last answer of a part is kept until the
 * next one is asked for; whoever asks for one gets the same, in whatever order they come (P-186).
 * 2. A part holds that answer and about one message more; from so much on, or while all parts hold
 * WATCH_PARTS_MAX_BYTES together, its watch is set back to where it stands, as that of a slow
 * reader (W13). 3. There are at most WATCH_PARTS_MAX; one that nobody asks for is dropped after
 * WATCH_PART_IDLE_MS.
 */
import {
  WATCH_MESSAGE_BYTES,
  WATCH_PARTS_MAX,
  WATCH_PARTS_MAX_BYTES,
  WATCH_PART_IDLE_MS,
  WATCH_POLL_WAIT_MAX_MS,
} from "../../base/limits.js";
import { eventBytes } from "../../machine/events.js";
import type { ClockPort, TimerHandle, TimerPort } from "../../ports.js";
import type { WatchHub } from "../watching/hub.js";
import type { WatchMessage, WatchRequest, WatchSink } from "../watching/messages.js";
import type { PartAsk, PartMessage, WatchPull, WatchPulled } from "./parts.js";

/** How often it is looked for parts that nobody asks for (ms). */
const SWEEP_MS = 5000;
/** Of a message without events (bytes, about). */
const MESSAGE_BYTES = 200;
const ONLY = 1;
/** Questions for one answer that wait: older ones beyond them nobody waits for. */
const QUESTIONS_MAX = 8;

const NOTHING: WatchPulled = { status: "told", messages: [] };

type Reply = (pulled: WatchPulled) => void;

interface ToldPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
}

/** About what messages take (bytes). */
export function messagesBytes(messages: readonly PartMessage[]): number {
  let sizeBytes = 0;
  for (const { events } of messages) {
    sizeBytes += MESSAGE_BYTES;
    for (const event of events) sizeBytes += eventBytes(event);
  }
  return sizeBytes;
}

export class ToldParts {
  heldBytes = 0;
  private readonly parts = new Map<string, ToldPart>();
  /** Those that take nothing because all hold too much together. */
  private readonly starved = new Set<ToldPart>();
  private isSweeping = false;

  constructor(
    private readonly hub: WatchHub,
    private readonly ports: ToldPorts,
  ) {}

  get count(): number {
    return this.parts.size;
  }

  /** `owner`: the asking node in its present life. `reply` never in the turn of the call, once. */
  pull(owner: string, pull: WatchPull, reply: Reply): void {
    const name = `${owner}/${pull.part}`;
    const soon = (pulled: WatchPulled): void => this.ports.timer.soon(() => reply(pulled));
    let part = this.parts.get(name);
    if (pull.isOver) {
      part?.close();
      this.parts.delete(name);
      return soon(NOTHING);
    }
    if (part === undefined) {
      if (pull.ask === null || pull.serial !== 1) return soon({ status: "unknown", messages: [] });
      if (this.parts.size >= WATCH_PARTS_MAX) return soon({ status: "refused", messages: [] });
      part = new ToldPart(this.hub, this.ports, this, pull.ask);
      this.parts.set(name, part);
      this.sweepLater();
    }
    if (part.pull(pull, reply)) return;
    part.close();
    this.parts.delete(name);
    soon({ status: "unknown", messages: [] });
  }

  held(changeBytes: number): void {
    this.heldBytes += changeBytes;
    if (changeBytes > 0 || this.starved.size === 0 || this.isFull) return;
    const starved = [...this.starved];
    this.starved.clear();
    for (const part of starved) part.ready();
  }

  get isFull(): boolean {
    return this.heldBytes >= WATCH_PARTS_MAX_BYTES;
  }

  starves(part: ToldPart): void {
    this.starved.add(part);
  }

  left(part: ToldPart): void {
    this.starved.delete(part);
  }

  private sweepLater(): void {
    if (this.isSweeping) return;
    this.isSweeping = true;
    this.ports.timer.after(SWEEP_MS, () => {
      this.isSweeping = false;
      const oldestMs = this.ports.clock.monotonicMs() - WATCH_PART_IDLE_MS;
      for (const [name, part] of this.parts) {
        if (part.askedMs > oldestMs) continue;
        part.close();
        this.parts.delete(name);
      }
      if (this.parts.size > 0) this.sweepLater();
    });
  }
}

class ToldPart implements WatchSink {
  private readonly stream: ReturnType<WatchHub["open"]>;
  /** When it was asked for last; infinity: somebody waits. */
  askedMs = Infinity;
  private messages: WatchMessage[] = [];
  private heldBytes = 0;
  private answer: WatchPulled = NOTHING;
  private answerBytes = 0;
  /** Of the last answer. */
  private serial = 0;
  private hasBegun = false;
  private syncId = 0;
  /** All of the next answer: which of them is the newest, only who asks knows. */
  private waiting: { readonly reply: Reply; readonly timer: TimerHandle }[] = [];
  private isAnswering = false;
  private isClosed = false;

  constructor(
    hub: WatchHub,
    private readonly ports: ToldPorts,
    private readonly all: ToldParts,
    ask: PartAsk,
  ) {
    this.stream = hub.open(this);
    this.stream.create(ONLY, requestOf(ask));
  }

  /** False: such an answer is none of this part. */
  pull({ serial, begins, syncId, waitMs }: WatchPull, reply: Reply): boolean {
    if (serial > this.serial + 1) return false;
    if (begins && !this.hasBegun) {
      this.hasBegun = true;
      this.stream.start(ONLY);
    }
    if (syncId > this.syncId) {
      this.syncId = syncId;
      this.stream.sync(syncId, ONLY);
    }
    if (serial <= this.serial) {
      // A late one, of an answer that was taken, is given nothing: whoever asked has asked anew.
      const answer = serial === this.serial ? this.answer : NOTHING;
      if (this.waiting.length === 0) this.askedMs = this.ports.clock.monotonicMs();
      this.ports.timer.soon(() => reply(answer));
      return true;
    }
    this.giveBack();
    this.askedMs = Infinity;
    const forMs = Math.max(0, Math.min(waitMs, WATCH_POLL_WAIT_MAX_MS));
    const timer = this.ports.timer.after(forMs, () => this.answerNow());
    if (this.waiting.length >= QUESTIONS_MAX) this.waiting.shift()?.timer.cancel();
    this.waiting.push({ reply, timer });
    if (this.messages.length > 0) this.answerSoon();
    return true;
  }

  deliver(message: WatchMessage): void {
    this.messages.push(message);
    const sizeBytes = messagesBytes([message]);
    this.heldBytes += sizeBytes;
    this.all.held(sizeBytes);
    this.answerSoon();
  }

  isFull(): boolean {
    if (this.heldBytes === 0) return false;
    if (this.heldBytes >= WATCH_MESSAGE_BYTES) return true;
    if (this.all.isFull) this.all.starves(this);
    return this.all.isFull;
  }

  mayRead(): boolean {
    return true;
  }

  ready(): void {
    this.stream.ready();
  }

  close(): void {
    this.isClosed = true;
    this.stream.close();
    this.reply(NOTHING);
    this.all.left(this);
    this.all.held(-this.heldBytes - this.answerBytes);
    this.heldBytes = 0;
    this.answerBytes = 0;
  }

  /** With what else is delivered in this turn. */
  private answerSoon(): void {
    if (this.isAnswering || this.waiting.length === 0) return;
    this.isAnswering = true;
    this.ports.timer.soon(() => {
      this.isAnswering = false;
      this.answerNow();
    });
  }

  private answerNow(): void {
    if (this.waiting.length === 0 || this.isClosed) return;
    this.answer = { status: "told", messages: this.messages };
    this.serial++;
    this.answerBytes = this.heldBytes;
    this.heldBytes = 0;
    this.messages = [];
    this.reply(this.answer);
    this.ready();
  }

  /** The last answer came to whom it was for. */
  private giveBack(): void {
    const sizeBytes = this.answerBytes;
    this.answer = NOTHING;
    this.answerBytes = 0;
    if (sizeBytes > 0) this.all.held(-sizeBytes);
  }

  private reply(pulled: WatchPulled): void {
    const { waiting } = this;
    if (waiting.length === 0) return;
    this.waiting = [];
    this.askedMs = this.ports.clock.monotonicMs();
    for (const { timer } of waiting) timer.cancel();
    this.ports.timer.soon(() => {
      for (const { reply } of waiting) reply(pulled);
    });
  }
}

function requestOf(ask: PartAsk): WatchRequest {
  const { partitions, replays, eventsMax, ...rest } = ask;
  const part = { partitions, replays };
  return eventsMax === 0 ? { ...rest, part } : { ...rest, part, eventsMax };
}
