/**
 * What is free on the volumes of log and state, asked every few seconds, and whether it is too
 * little: writes end before the disk does (P-120).
 *
 * Invariants: 1. One question at a time, in the file calls' own share of the thread pool: a volume
 * that does not answer takes no thread from the log. 2. While a question has no answer the last one
 * counts. 3. A volume that was short is so until twice its reserve is free.
 */
import {
  VOLUME_RESERVE_MIN_BYTES,
  VOLUME_RESERVE_PART,
  VOLUME_RESERVE_PART_MAX_BYTES,
} from "../base/limits.js";
import type { DiskPort, LoggerPort, TimerHandle, TimerPort } from "../ports.js";

const LOOK_EVERY_MS = 5000;

export interface VolumeBytes {
  readonly free: number;
  readonly total: number;
}

/** Tells what there is where `path` is; null: the system does not say. */
type AskVolume = (path: string, done: (bytes: VolumeBytes | null) => void) => void;

export type VolumeName = "log" | "state";

interface Volume {
  free: number;
  isShort: boolean;
}

/** What is to stay free of a volume (bytes). */
function reserveBytes(totalBytes: number): number {
  const part = Math.min(VOLUME_RESERVE_PART_MAX_BYTES, totalBytes * VOLUME_RESERVE_PART);
  return Math.max(VOLUME_RESERVE_MIN_BYTES, part);
}

export class VolumeSpace implements DiskPort {
  private readonly known = new Map<VolumeName, Volume>();
  private timer: TimerHandle | null = null;
  private isClosed = false;

  constructor(
    private readonly paths: ReadonlyMap<VolumeName, string>,
    private readonly ask: AskVolume,
    private readonly timers: TimerPort,
    private readonly logger: LoggerPort,
  ) {
    this.look();
  }

  /** Of the log's volume. */
  freeBytes(): number {
    return this.known.get("log")?.free ?? Infinity;
  }

  isShort(): boolean {
    for (const { isShort } of this.known.values()) if (isShort) return true;
    return false;
  }

  /** Those that are known. */
  volumes(): ReadonlyMap<VolumeName, Readonly<Volume>> {
    return this.known;
  }

  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
  }

  private look(): void {
    let open = this.paths.size;
    const answered = (): void => {
      open--;
      if (open > 0 || this.isClosed) return;
      this.timer = this.timers.after(LOOK_EVERY_MS, () => this.look());
    };
    for (const [name, path] of this.paths) {
      this.ask(path, (bytes) => {
        if (bytes !== null && !this.isClosed) this.judge(name, bytes);
        answered();
      });
    }
  }

  private judge(name: VolumeName, { free, total }: VolumeBytes): void {
    const wasShort = this.known.get(name)?.isShort ?? false;
    const reserve = reserveBytes(total);
    const isShort = free < (wasShort ? 2 * reserve : reserve);
    this.known.set(name, { free, isShort });
    if (isShort === wasShort) return;
    const fields = { volume: name, freeBytes: free, reserveBytes: reserve };
    if (isShort) this.logger.log("error", "A volume is almost full: no writes are taken.", fields);
    else this.logger.log("info", "A volume has room again: writes are taken.", fields);
  }
}
