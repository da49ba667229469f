/**
 * What is free on the volumes of log and state, asked every few seconds.
 *
 * Invariants: 1. One question at a time, in the file calls' own share of the thread pool: a volume
 * that does not answer takes no thread from the log. 2. While a question has no answer the last one
 * counts.
 */
import type { DiskPort, TimerHandle, TimerPort } from "../ports.js";

const LOOK_EVERY_MS = 5000;

/** Tells what is free where `path` is; null: the system does not say. */
export type FreeBytes = (path: string, done: (bytes: number | null) => void) => void;

export type VolumeName = "log" | "state";

export class VolumeSpace implements DiskPort {
  private readonly free = new Map<VolumeName, number>();
  private timer: TimerHandle | null = null;
  private isClosed = false;

  constructor(
    private readonly paths: ReadonlyMap<VolumeName, string>,
    private readonly ask: FreeBytes,
    private readonly timers: TimerPort,
  ) {
    this.look();
  }

  /** Of the log's volume. */
  freeBytes(): number {
    return this.free.get("log") ?? Infinity;
  }

  /** Those that are known. */
  volumes(): ReadonlyMap<VolumeName, number> {
    return this.free;
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
        if (bytes !== null) this.free.set(name, bytes);
        answered();
      });
    }
  }
}
