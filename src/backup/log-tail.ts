/**
 * What a stretch of a log hands out, told from its entries, for the trailer behind them.
 *
 * Pure. Invariants: 1. Entries are taken in order, without a gap (P-135). 2. What it says of tokens
 * and incarnations is never less than what the state at its end has: every grant counts as one more
 * than the largest token before, every update of a sequence as one incarnation more. Keys that come
 * from another partition bring nothing that counts: no stretch of a backup spans a move.
 */
import { failure } from "../base/result.js";
import { decodeEntry } from "../machine/commands/codec.js";
import type { LogEntry } from "../ports.js";
import type { BackupFault } from "./faults.js";

/** Kind of a normal entry. */
const NORMAL = 0;

/** As trailers have it. */
export interface HandedOut {
  readonly highestToken: bigint;
  readonly highestIncarnation: number;
}

export class LogTail {
  private grants = 0n;
  private updates = 0;

  constructor(
    private readonly before: HandedOut,
    private index: number,
    private term: number,
  ) {}

  /** The last entry that was taken. */
  get last(): { readonly index: number; readonly term: number } {
    return { index: this.index, term: this.term };
  }

  take(entries: readonly LogEntry[]): BackupFault | null {
    for (const { index, term, kind, payload } of entries) {
      if (index !== this.index + 1 || term < this.term) {
        return failure("IoError", `entry ${index} of term ${term} follows ${this.index}`);
      }
      this.index = index;
      this.term = term;
      if (kind !== NORMAL || payload.length === 0) continue;
      const decoded = decodeEntry(payload);
      if (!decoded.ok) return failure("IoError", `entry ${index}: ${decoded.message}`);
      for (const command of decoded.value.commands) {
        if (command.kind === "try-lock") this.grants++;
        else if (command.kind === "update-sequence") this.updates++;
      }
    }
    return null;
  }

  /** `tokenFloor`: at the end, or later. */
  handedOut(tokenFloor: bigint): HandedOut {
    const { highestToken, highestIncarnation } = this.before;
    const above = highestToken > tokenFloor ? highestToken : tokenFloor;
    return {
      highestToken: above + this.grants,
      highestIncarnation: highestIncarnation + this.updates,
    };
  }
}
