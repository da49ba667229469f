/**
 * Time and chance of a simulated world: one heap of events, one clock, one seed.
 *
 * Everything that happens is an event of the heap; nothing happens between two of them. Who owns
 * what runs is the business of the processes and of the things in the world. Invariants: 1. The
 * same seed and the same calls give the same events. 2. Time never goes back. 3. Part of the world
 * named differently draw from generators of their own, so that a change in one leaves the others.
 */
import { Prng } from "../../../src/base/prng.js";
import { type EventHandle, EventHeap } from "./event-queue.js";
import type { Life } from "./process.js";
import { Trace } from "./trace.js";

type Callback = () => void;

export class World {
  /** Milliseconds since the world began. */
  nowMs = 0;
  /** Events that ran. */
  events = 0;
  readonly trace: Trace;
  private readonly heap = new EventHeap<Callback>();
  private ended = false;
  /** Called after each piece of input that a process worked on. */
  onRun: ((life: Life) => void) | null = null;

  constructor(
    readonly seed: number,
    linesMax = 0,
  ) {
    this.trace = new Trace(linesMax);
  }

  /** A generator for the part of the world named `name`. The order of the calls does not matter. */
  prng(name: string): Prng {
    return new Prng(this.seed).fork(name);
  }

  schedule(delayMs: number, callback: Callback): EventHandle {
    return this.heap.add(this.nowMs + (delayMs > 0 ? delayMs : 0), callback);
  }

  cancel(handle: EventHandle): boolean {
    return this.heap.cancel(handle);
  }

  /** Ends `run` after the event that is running. */
  end(): void {
    this.ended = true;
  }

  get hasEnded(): boolean {
    return this.ended;
  }

  /** Lets everything happen up to `endMs`. */
  run(endMs: number): void {
    const { heap, trace } = this;
    while (!this.ended && heap.nextMs() <= endMs) {
      const event = heap.pop();
      if (event === null) break;
      this.nowMs = heap.lastMs;
      this.events++;
      trace.mixExact(this.nowMs);
      event();
    }
    if (!this.ended && this.nowMs < endMs) this.nowMs = endMs;
  }

  /** For the processes: one piece of input is worked on. */
  count(life: Life): void {
    this.trace.mix((life.node << 16) ^ life.number);
  }

  afterRun(life: Life): void {
    if (this.onRun !== null) this.onRun(life);
  }

  /** Adds a line to the trace, if somebody wants words. `node`: 0 = the world itself. */
  say(node: number, text: string): void {
    if (!this.trace.hasWords) return;
    const who = node === 0 ? "      " : `node ${node}`;
    this.trace.say(`${this.nowMs.toFixed(3).padStart(12)}  ${who}  ${text}`);
  }

  /** A whole number from `least` to `most`. */
  static between(prng: Prng, least: number, most: number): number {
    return least + prng.below(most - least + 1);
  }
}
