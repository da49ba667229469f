/**
 * One life of a process in the world: from its start to its end, with its clock, its timers and its
 * queue of things to do soon.
 *
 * A life ends by a crash, by a fatal fault of its own, or by a stop. What was meant for it then
 * never runs; what it left in the world (disk, frames on their way) stays. Everything that enters
 * the process goes through `run`, so that a pause holds it back and a slow processor delays it.
 *
 * Invariants: 1. Nothing of a life runs after its end. 2. Input keeps its order over a pause.
 * 3. What is to be done soon is done before other input, three generations deep at most, as the
 * real timers do it. 4. The monotonic clock never goes back; it goes on during a pause.
 */
import type { ClockPort, TimerHandle, TimerPort } from "../../../src/ports.js";
import type { World } from "./world.js";

/** Thrown through the code of a process to end it at that very place. */
export class ProcessEnd extends Error {
  override readonly name = "ProcessEnd";
  constructor(
    readonly life: Life,
    readonly why: string,
  ) {
    super(why);
  }
}

/** The clocks of a machine, as they lie. */
export interface ClockError {
  /** Monotonic milliseconds that pass in one millisecond of the world. */
  rate: number;
  /** The wall clock is ahead by this (ms). */
  wallOffsetMs: number;
}

const SOON_GENERATIONS_MAX = 3;
const SAME_TIME_MAX = 200_000;
/** Pieces of input of one process in one second; more is a loop that waits for something. */
const INPUT_PER_SECOND_MAX = 50_000;

type Callback = () => void;

export class Life implements TimerPort {
  /** Ended lives run nothing. */
  isOver = false;
  isPaused = false;
  /** Time that each piece of input takes (ms); 0 = none. */
  costMs = 0;
  /** Ends the life at the n-th port call or callback from now; 0 = not at all. */
  crashCountdown = 0;
  crashed: ((why: string) => void) | null = null;
  private busyUntilMs = 0;
  private held: Callback[] = [];
  private draining = false;
  private soonQueue: Callback[] = [];
  private soonHead = 0;
  private running = false;
  private sameTimeMs = -1;
  private sameTimeCount = 0;
  private second = -1;
  private secondCount = 0;
  /** When it began (ms of the world). */
  readonly beganMs: number;
  private readonly monotonicStartMs: number;

  /** `clock` belongs to the machine and outlives the life. */
  constructor(
    readonly world: World,
    readonly node: number,
    readonly number: number,
    private readonly clockError: ClockError,
  ) {
    this.beganMs = world.nowMs;
    // A monotonic clock starts anywhere; a new life knows nothing of the old one's.
    this.monotonicStartMs = 1000 + number * 7919 + node * 104729;
  }

  readonly clock: ClockPort = {
    monotonicMs: () => this.monotonicMs(),
    wallMs: () => Math.floor(WALL_START_MS + this.world.nowMs + this.clockError.wallOffsetMs),
  };

  private rateBase: { atMs: number; monotonicMs: number } | null = null;

  monotonicMs(): number {
    const base = this.rateBase;
    const atMs = base?.atMs ?? this.beganMs;
    const from = base?.monotonicMs ?? this.monotonicStartMs;
    return from + (this.world.nowMs - atMs) * this.clockError.rate;
  }

  /** The clock of the machine runs at `rate` from now on. */
  setRate(rate: number): void {
    this.rateBase = { atMs: this.world.nowMs, monotonicMs: this.monotonicMs() };
    this.clockError.rate = rate;
  }

  after(delayMs: number, callback: Callback): TimerHandle {
    this.touch("timer");
    // A real timer never fires early, and rounds up to whole milliseconds.
    const worldDelayMs = Math.ceil(Math.max(0, delayMs)) / this.clockError.rate + 0.001;
    const handle = this.at(worldDelayMs, callback);
    return { cancel: () => void this.world.cancel(handle) };
  }

  soon(callback: Callback): void {
    this.soonQueue.push(callback);
    if (!this.running) this.at(0, noWork);
  }

  /** Gives `callback` to the process in `delayMs` of the world, if it still lives then. */
  at(delayMs: number, callback: Callback): number {
    return this.world.schedule(delayMs, () => this.enter(callback));
  }

  /** A port is called: one of the places where the process may end. */
  touch(what: string): void {
    if (this.crashCountdown === 0 || --this.crashCountdown > 0) return;
    throw new ProcessEnd(this, `crash in the middle of a step, at a ${what} call`);
  }

  /** Input comes in; it waits when the process stands still or is busy. */
  enter(callback: Callback): void {
    if (this.isOver) return;
    if (this.isPaused || this.draining || this.world.nowMs < this.busyUntilMs) {
      this.held.push(callback);
      if (!this.isPaused && !this.draining) this.drainLater();
      return;
    }
    this.run(callback);
  }

  /** What ran just now took so long (ms): what comes in meanwhile waits. */
  worked(durationMs: number): void {
    this.busyUntilMs = Math.max(this.busyUntilMs, this.world.nowMs) + durationMs;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    if (this.held.length > 0 && !this.draining) this.drainLater();
  }

  end(): void {
    this.isOver = true;
    this.held = [];
    this.soonQueue = [];
    this.soonHead = 0;
  }

  private drainLater(): void {
    this.draining = true;
    this.world.schedule(Math.max(0, this.busyUntilMs - this.world.nowMs), () => this.drain());
  }

  private drain(): void {
    this.draining = false;
    while (!this.isOver && !this.isPaused) {
      const next = this.held.shift();
      if (next === undefined) return;
      this.run(next);
      if (this.world.nowMs < this.busyUntilMs && this.held.length > 0) return this.drainLater();
    }
  }

  /** One piece of input and everything that it asks to be done soon. */
  private run(callback: Callback): void {
    this.guardProgress();
    if (this.costMs > 0) this.busyUntilMs = this.world.nowMs + this.costMs;
    this.running = true;
    this.world.count(this);
    try {
      this.call(callback);
      for (let generation = 0; generation < SOON_GENERATIONS_MAX; generation++) {
        const end = this.soonQueue.length;
        while (this.soonHead < end && !this.isOver) {
          this.call(this.soonQueue[this.soonHead++] as Callback);
        }
      }
      this.soonQueue.splice(0, this.soonHead);
      this.soonHead = 0;
      if (this.soonQueue.length > 0) this.at(0, noWork);
    } catch (error) {
      if (!(error instanceof ProcessEnd) || error.life !== this) throw error;
      this.crashed?.(error.why);
    } finally {
      this.running = false;
    }
    this.world.afterRun(this);
  }

  private call(callback: Callback): void {
    this.touch("callback");
    callback();
  }

  /** A process that goes on for ever without letting time pass hangs. */
  private guardProgress(): void {
    if (this.world.nowMs !== this.sameTimeMs) {
      this.sameTimeMs = this.world.nowMs;
      this.sameTimeCount = 0;
    }
    const second = Math.floor(this.world.nowMs / 1000);
    if (second !== this.second) {
      this.second = second;
      this.secondCount = 0;
    }
    if (++this.secondCount > INPUT_PER_SECOND_MAX) {
      throw new Error(`node ${this.node} spins: it works all the time while nothing happens`);
    }
    if (++this.sameTimeCount > SAME_TIME_MAX) {
      throw new Error(`node ${this.node} works without end and lets no time pass`);
    }
  }
}

/** Where the wall clocks of the world begin (Unix ms). */
export const WALL_START_MS = 1_700_000_000_000;

function noWork(): void {
  // Only so that the queue of things to do soon is looked at.
}
