/**
 * Signs of life on stderr while something takes longer than a second, and the bar of `bench`.
 *
 * Invariants: 1. Only on a terminal. 2. What was shown is wiped before anything else is printed. 3.
 * The timer never keeps the process alive.
 */

const FIRST_MS = 1000;
const STEP_MS = 120;
const FRAMES = ["|", "/", "-", "\\"];

export class Progress {
  private timer: NodeJS.Timeout | null = null;
  private readonly startedMs = performance.now();
  private frame = 0;
  private isShown = false;
  private text: string;

  constructor(text: string) {
    this.text = text;
    if (process.stderr.isTTY) {
      this.timer = setTimeout(() => this.draw(), FIRST_MS);
      this.timer.unref();
    }
  }

  /** Says something more exact from now on; null where nobody sees it. */
  get show(): ((text: string) => void) | null {
    return process.stderr.isTTY ? (text) => this.update(text) : null;
  }

  /** Says something more exact from now on. */
  update(text: string): void {
    this.text = text;
  }

  private draw(): void {
    const seconds = ((performance.now() - this.startedMs) / 1000).toFixed(0);
    const sign = FRAMES[this.frame++ % FRAMES.length] as string;
    const columns = Math.max(20, process.stderr.columns || 80);
    process.stderr.write(`\r\x1b[K${sign} ${`${this.text} (${seconds} s)`.slice(0, columns - 4)}`);
    this.isShown = true;
    this.timer = setTimeout(() => this.draw(), STEP_MS);
    this.timer.unref();
  }

  end(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.isShown) process.stderr.write("\r\x1b[K");
    this.isShown = false;
  }
}

/** "[########------------] 40 %" */
export function barText(share: number, columns: number): string {
  const size = Math.max(5, columns);
  const full = Math.round(Math.min(1, Math.max(0, share)) * size);
  return `[${"#".repeat(full)}${"-".repeat(size - full)}] ${String(Math.round(share * 100)).padStart(3)} %`;
}
