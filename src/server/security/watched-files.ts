/**
 * Files whose content may change while the node runs, as orchestrators renew secrets: looked at now
 * and then.
 *
 * Owns a timer. Invariants: 1. Symbolic links are followed: one that leads elsewhere is a change.
 * 2. A file that is gone for a moment is no change until it is back with other content.
 */
import { statSync } from "node:fs";

/** A change is seen within this (ms). */
const LOOK_EVERY_MS = 5000;

function versionOf(path: string): string | null {
  try {
    const { mtimeMs, size, ino, dev } = statSync(path);
    return `${mtimeMs} ${size} ${ino} ${dev}`;
  } catch {
    return null;
  }
}

export class WatchedFiles {
  private seen: string;
  private readonly timer: NodeJS.Timeout;

  /** `changed` is called after a change of any of them; it reads them all anew. */
  constructor(
    private readonly paths: readonly string[],
    changed: () => void,
  ) {
    this.seen = this.versions() ?? "";
    this.timer = setInterval(() => {
      const now = this.versions();
      if (now === null || now === this.seen) return;
      this.seen = now;
      changed();
    }, LOOK_EVERY_MS);
    this.timer.unref();
  }

  /** They are being read now: what they are like then is no change. */
  taken(): void {
    this.seen = this.versions() ?? this.seen;
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Null while one of them is not there. */
  private versions(): string | null {
    const all = this.paths.map(versionOf);
    return all.includes(null) ? null : all.join("; ");
  }
}
