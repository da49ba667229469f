/**
 * How far a restore is, for whoever watches it.
 *
 * Invariants: 1. It is told at most every TELL_MS, and once at the beginning of each phase. 2. What
 * cannot be told yet is null, never a guess out of nothing.
 */
import { ARTIFACT_SLICE_BYTES } from "../../backup/artifact-files.js";
import type { ClockPort } from "../../ports.js";
import type { RestoreProgress } from "./restore-types.js";

const TELL_MS = 250;

export class Pace {
  private phase: RestoreProgress["phase"] = "verifying";
  private beganMs = 0;
  private toldMs = -Infinity;
  private partitions = 0;
  private partitionsDone = 0;
  private bytes = 0;
  private bytesDone = 0;

  constructor(
    private readonly clock: ClockPort,
    private readonly tell: (progress: RestoreProgress) => void,
  ) {}

  begin(phase: RestoreProgress["phase"], partitions: number, bytes: number): void {
    this.phase = phase;
    this.partitions = partitions;
    this.partitionsDone = 0;
    this.bytes = bytes;
    this.bytesDone = 0;
    this.beganMs = this.clock.monotonicMs();
    this.toldMs = -Infinity;
    this.look();
  }

  /** The last slice of a file may be shorter. */
  slice(): void {
    this.bytesDone = Math.min(this.bytes, this.bytesDone + ARTIFACT_SLICE_BYTES);
    this.look();
  }

  partition(): void {
    this.partitionsDone++;
    this.look();
  }

  private look(): void {
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.toldMs < TELL_MS) return;
    this.toldMs = nowMs;
    const { phase, partitions: partitionsTotal, partitionsDone, bytes, bytesDone } = this;
    const spentMs = nowMs - this.beganMs;
    const bytesPerSecond = spentMs > 0 ? Math.floor((bytesDone * 1000) / spentMs) : 0;
    const left = bytesPerSecond > 0 ? ((bytes - bytesDone) * 1000) / bytesPerSecond : null;
    const timeLeftMs = left === null ? null : Math.ceil(left);
    this.tell({
      ...{ phase, partitionsTotal, partitionsDone, bytesTotal: bytes, bytesDone },
      ...{ bytesPerSecond, timeLeftMs },
    });
  }
}
