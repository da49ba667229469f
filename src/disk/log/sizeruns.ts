/**
 * Payload sizes of a stretch of the log as few numbers that are near enough to the truth: the core
 * cuts messages by them, and a message that is larger than it believes could not be sent (P-189).
 *
 * Invariants: 1. A run holds at most SIZE_RUN_MAX_BYTES, or one entry. 2. Two neighbours together
 * hold more: the number of runs goes by bytes, not by entries.
 */
import { SIZE_RUN_MAX_BYTES } from "../../base/limits.js";
import type { SizeRun } from "../../ports.js";

/** Gathers entry after entry, ascending and without a gap. */
export class SizeRuns {
  private readonly runs: { firstIndex: number; sizeBytes: number }[] = [];

  add(index: number, sizeBytes: number): void {
    const last = this.runs[this.runs.length - 1];
    if (last === undefined || last.sizeBytes + sizeBytes > SIZE_RUN_MAX_BYTES) {
      this.runs.push({ firstIndex: index, sizeBytes });
    } else last.sizeBytes += sizeBytes;
  }

  get all(): readonly SizeRun[] {
    return this.runs;
  }
}
