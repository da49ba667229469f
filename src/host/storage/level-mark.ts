/**
 * Up to which level this node may write: the level that its data directory says it may hold.
 *
 * Nothing of a higher level reaches the log or the state store before that is durable, so that a
 * program which does not support it is refused by the directory itself (contract 5.5 U4).
 * Invariants: 1. The level never falls, and never rises above what the program supports. 2. One
 * raise at a time; what passes is tried again, what does not ends the process. 3. Who waits is told
 * once, when it is durable.
 */
import { type Program, rangeText } from "../../base/levels.js";
import type { FatalPort, LevelPort, TimerPort } from "../../ports.js";

export interface LevelMarkPorts {
  /** Absent where nothing of the node outlives it. */
  readonly level?: LevelPort;
  readonly timer: TimerPort;
  readonly fatal: FatalPort;
}

const UNSUPPORTED = "The cluster is at a level that this program does not support.";
/** Pause before a raise that met a full disk is tried again (ms). */
const RETRY_MS = 1000;

interface Waiting {
  readonly level: number;
  readonly done: () => void;
}

export class LevelMark {
  private current: number;
  private wanted: number;
  private isRaising = false;
  private waiting: Waiting[] = [];

  /** `first`: what a node without a directory begins at. */
  constructor(
    private readonly ports: LevelMarkPorts,
    first: number,
    private readonly program: Program,
    /** It rose. */
    private readonly raised: () => void,
  ) {
    this.current = ports.level?.level ?? first;
    this.wanted = this.current;
  }

  get level(): number {
    return this.current;
  }

  /**
   * Whether `level` may be written. If not, it will be, and `raised` is called then; what the
   * program does not support is never written, and ends the process.
   */
  covers(level: number): boolean {
    if (level <= this.current) return true;
    const { levels, version } = this.program;
    if (level > levels.max) {
      const fields = { featureLevel: level, supports: rangeText(levels), version };
      this.ports.fatal.fatal(UNSUPPORTED, fields);
      return false;
    }
    if (level > this.wanted) this.wanted = level;
    this.raise();
    return false;
  }

  /** Calls `done` when `level` may be written: at once when it may, else in a turn of its own. */
  whenCovered(level: number, done: () => void): void {
    if (this.covers(level)) return done();
    this.waiting.push({ level, done });
  }

  private raise(): void {
    if (this.isRaising) return;
    this.isRaising = true;
    const { level: port, timer } = this.ports;
    const { wanted } = this;
    if (port === undefined) return timer.soon(() => this.rose(wanted));
    port.raise(wanted, (result) => {
      if (result.ok) return this.rose(wanted);
      if (result.code === "failed") {
        return this.ports.fatal.fatal("The level of the data directory cannot be raised.", {
          error: result.message,
        });
      }
      timer.after(RETRY_MS, () => {
        this.isRaising = false;
        this.raise();
      });
    });
  }

  private rose(level: number): void {
    this.isRaising = false;
    this.current = level;
    const { waiting } = this;
    this.waiting = waiting.filter((one) => one.level > level);
    for (const one of waiting) if (one.level <= level) one.done();
    if (this.wanted > level) this.raise();
    this.raised();
  }
}
