/**
 * The last lines of the log, in memory, for whoever asks what happened.
 *
 * Invariants: 1. At most LINES_MAX lines and BYTES_MAX characters; the oldest go first.
 */
const LINES_MAX = 4000;
const CHARACTERS_MAX = 1024 * 1024;

export class LogRing {
  private kept: string[] = [];
  private first = 0;
  private characters = 0;

  add(line: string): void {
    this.kept.push(line);
    this.characters += line.length;
    while (this.size > LINES_MAX || (this.characters > CHARACTERS_MAX && this.size > 1)) {
      this.characters -= this.kept[this.first]?.length ?? 0;
      this.first++;
    }
    if (this.first < LINES_MAX) return;
    this.kept = this.kept.slice(this.first);
    this.first = 0;
  }

  /** The oldest first. */
  lines(): readonly string[] {
    return this.kept.slice(this.first);
  }

  private get size(): number {
    return this.kept.length - this.first;
  }
}
