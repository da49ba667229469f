/**
 * How much of a group's log is kept for backups: what one that is being taken will read, and what
 * the next incremental one goes on from.
 *
 * Owns the holds of running backups and the window of each group. Invariants: 1. Above where a hold
 * begins nothing is let go while it is "held"; one that ends says why, and whoever ships by it
 * looks before it believes what it has read (P-135). 2. A hold ends HOLD_LAPSES_MS after its last
 * renewal, after HOLD_MAX_MS, and when it alone keeps more than HOLD_MAX_BYTES. 3. All windows
 * together keep what they may; beyond that the largest loses its own, and begins anew. 4. After a
 * start, and for a group that comes, no floor rises for one window. 5. On a full disk nothing is
 * kept for backups.
 */
import { HOLD_LAPSES_MS, HOLD_MAX_BYTES, HOLD_MAX_MS } from "../../base/limits.js";
import type { BackupLogFacts } from "../requests/results.js";
import { type FlooredGroup, weightAbove } from "./floored-group.js";
import { LogSamples } from "./log-samples.js";

export type HoldState =
  | "held"
  /** By whoever took it. */
  | "released"
  /** It was not renewed in time. */
  | "lapsed"
  | "too-old"
  | "too-large"
  /** The disk of the log is full. */
  | "log-full"
  /** The log was replaced by a snapshot, or let go in spite of it. */
  | "compacted"
  /** The group left this node. */
  | "gone";

/** What one backup keeps of the log of one group: the entries above `fromIndex`. */
export class LogHold {
  private ended: HoldState = "held";
  private renewedMs: number;
  /** What would have been let go without it, when it was looked at last (bytes). */
  keptBytes = 0;

  constructor(
    readonly group: FlooredGroup,
    readonly fromIndex: number,
    private readonly sinceMs: number,
    private readonly nowMs: () => number,
  ) {
    this.renewedMs = sinceMs;
  }

  /** "held", or why it is no more. */
  get state(): HoldState {
    if (this.ended !== "held") return this.ended;
    const nowMs = this.nowMs();
    if (this.group.floorIndex > this.fromIndex) this.end("compacted");
    else if (nowMs >= this.sinceMs + HOLD_MAX_MS) this.end("too-old");
    else if (nowMs >= this.renewedMs + HOLD_LAPSES_MS) this.end("lapsed");
    return this.ended;
  }

  /** It is wanted for HOLD_LAPSES_MS more. What has ended stays so. */
  renew(): HoldState {
    const { state } = this;
    if (state === "held") this.renewedMs = this.nowMs();
    return state;
  }

  /** For whoever took it. Safe to call again. */
  release(): void {
    this.end("released");
  }

  /** For its owner. The first reason counts. */
  end(state: HoldState): void {
    if (this.ended !== "held") return;
    this.ended = state;
    this.keptBytes = 0;
  }
}

export interface BackupFloorsDeps {
  nowMs(): number;
  isLogFull(): boolean;
  /** For so long the log stays for incremental backups; 0 = no longer than for others (ms). */
  readonly windowMs: number;
  /** What all windows may keep (bytes). */
  windowBytesMax(): number;
}

interface Window {
  readonly samples: LogSamples;
  keptBytes: number;
  /** Where the floor would be without it. */
  floor: number;
}

export class BackupFloors {
  private holds: LogHold[] = [];
  private readonly windows = new Map<FlooredGroup, Window>();
  private windowBytes = 0;
  private windowsLost = 0;

  constructor(private readonly deps: BackupFloorsDeps) {}

  /** Keeps the entries of `group` above `fromIndex`; null: some of them are gone. */
  hold(group: FlooredGroup, fromIndex: number): LogHold | null {
    if (fromIndex < group.floorIndex) return null;
    const hold = new LogHold(group, fromIndex, this.deps.nowMs(), () => this.deps.nowMs());
    this.holds.push(hold);
    return hold;
  }

  /** All entries of `group` up to `index` are flushed. */
  flushed(group: FlooredGroup, index: number): void {
    if (this.deps.windowMs > 0) this.window(group).samples.note(index, this.deps.nowMs());
  }

  /** How far the log of `group` may be let go that nobody else wants up to `floor`. */
  limit(group: FlooredGroup, floor: number): number {
    if (this.deps.isLogFull()) this.giveUp(group, floor);
    return Math.min(this.heldFrom(group, floor), this.windowFrom(group, floor));
  }

  private heldFrom(group: FlooredGroup, floor: number): number {
    let from = floor;
    for (const hold of this.holds) {
      if (hold.group !== group || hold.state !== "held") continue;
      hold.keptBytes = weightAbove(group, hold.fromIndex, floor);
      if (hold.keptBytes > HOLD_MAX_BYTES) hold.end("too-large");
      else from = Math.min(from, hold.fromIndex);
    }
    return from;
  }

  private windowFrom(group: FlooredGroup, floor: number): number {
    if (this.deps.windowMs === 0) return floor;
    const window = this.window(group);
    const from = window.samples.from(this.deps.nowMs());
    window.floor = floor;
    this.note(window, weightAbove(group, from, floor));
    while (this.windowBytes > this.deps.windowBytesMax()) this.loseLargest();
    return window.keptBytes === 0 ? floor : from;
  }

  private loseLargest(): void {
    let largest: Window | null = null;
    for (const window of this.windows.values()) {
      if (window.keptBytes > (largest?.keptBytes ?? 0)) largest = window;
    }
    if (largest === null) return;
    this.lose(largest);
  }

  private lose(window: Window): void {
    if (window.keptBytes > 0) this.windowsLost++;
    this.note(window, 0);
    window.samples.restart(window.floor);
  }

  private giveUp(group: FlooredGroup, floor: number): void {
    for (const hold of this.holds) if (hold.group === group) hold.end("log-full");
    const window = this.windows.get(group);
    if (window === undefined) return;
    window.floor = floor;
    this.lose(window);
  }

  private window(group: FlooredGroup): Window {
    let window = this.windows.get(group);
    if (window === undefined) {
      window = { samples: new LogSamples(this.deps.windowMs), keptBytes: 0, floor: 0 };
      this.windows.set(group, window);
    }
    return window;
  }

  private note(window: Window, bytes: number): void {
    this.windowBytes += bytes - window.keptBytes;
    window.keptBytes = bytes;
  }

  /** Forgets the holds that have ended; once per tick. */
  look(): void {
    if (this.holds.length > 0) this.holds = this.holds.filter(({ state }) => state === "held");
  }

  /** The group left this node. */
  removed(group: FlooredGroup): void {
    for (const hold of this.holds) if (hold.group === group) hold.end("gone");
    const window = this.windows.get(group);
    if (window !== undefined) this.note(window, 0);
    this.windows.delete(group);
  }

  facts(): BackupLogFacts {
    this.look();
    const { holds, windowBytes, windowsLost } = this;
    const holdBytes = holds.reduce((sum, { keptBytes }) => sum + keptBytes, 0);
    return { holds: holds.length, holdBytes, windowBytes, windowsLost };
  }
}
