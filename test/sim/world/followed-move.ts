/**
 * One move of a key range, as far as the world has seen it: which attempt is frozen, how long its copy
 * takes, and what it carries.
 */
import type { CopyTimes } from "../../judge/checkers/ranges/lease-never-shorter.js";
import type { RangeState } from "../../judge/checkers/ranges/range-state.js";
import type { SeenMove } from "../../judge/checkers/ranges/seen-moves.js";

export class FollowedMove {
  frozenAttempt: number | null = null;
  frozenMs = 0;
  isCut = false;
  isOver = false;
  /** Some attempt has begun to copy. */
  isOpened = false;
  /** The target has had one leader since the attempt was opened. */
  isSteady = true;
  wasMetaGone = false;
  /** Of the last state that was closed. */
  carried = { keys: 0, tombstones: 0, historyBytes: 0 };
  private openedMs = 0;
  private importedMs = 0;
  private longestGapMs = 0;

  constructor(readonly move: SeenMove) {}

  get isFrozen(): boolean {
    return this.frozenAttempt !== null;
  }

  opened(atMs: number): void {
    this.isOpened = true;
    this.isSteady = true;
    this.openedMs = atMs;
    this.importedMs = atMs;
    this.longestGapMs = 0;
  }

  imported(atMs: number): void {
    this.longestGapMs = Math.max(this.longestGapMs, atMs - this.importedMs);
    this.importedMs = atMs;
  }

  frozen(attempt: number, atMs: number): void {
    this.frozenAttempt = attempt;
    this.frozenMs = atMs;
    this.wasMetaGone = false;
  }

  unfrozen(): void {
    this.frozenAttempt = null;
  }

  carries({ keys }: RangeState): void {
    let [tombstones, historyBytes] = [0, 0];
    for (const key of keys.values()) {
      if (key.isTombstone) tombstones++;
      historyBytes += key.historyBytes;
    }
    this.carried = { keys: keys.size, tombstones, historyBytes };
  }

  /** `atMs`: when it was closed. An import is made when the one before it was taken in. */
  copyTimes(atMs: number): CopyTimes {
    const underWayMs = this.isSteady ? 2 * this.longestGapMs : Infinity;
    return { tookMs: atMs - this.openedMs, underWayMs };
  }
}
