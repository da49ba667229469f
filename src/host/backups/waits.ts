/**
 * Waiting, for the parts of a backup: callbacks that come in a turn of the node at a time or later.
 *
 * Invariant: each comes once, in no turn of the call.
 */
interface Wait {
  readonly atMs: number;
  readonly then: () => void;
}

export class Waits {
  private list: Wait[] = [];

  constructor(
    private readonly nowMs: () => number,
    private readonly wakeAt: (atMs: number) => void,
  ) {}

  after(delayMs: number, then: () => void): void {
    const atMs = this.nowMs() + delayMs;
    this.list.push({ atMs, then });
    this.wakeAt(atMs);
  }

  /** In each turn. */
  turn(nowMs: number): void {
    if (nowMs < this.wakeAtMs) return;
    const due = this.list.filter(({ atMs }) => atMs <= nowMs);
    this.list = this.list.filter(({ atMs }) => atMs > nowMs);
    for (const { then } of due) then();
  }

  get wakeAtMs(): number {
    let atMs = Infinity;
    for (const wait of this.list) atMs = Math.min(atMs, wait.atMs);
    return atMs;
  }
}
