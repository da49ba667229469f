/**
 * How many bytes of entries of all groups are with the log and not durable yet. Where a disk hangs
 * or is full it parks them, and leaders go on sending: beyond the bound their appends are refused
 * (they probe from then on), so that memory stays bounded, and nothing is acknowledged (P-035,
 * P-163).
 *
 * Invariants: 1. What is taken is given back exactly once, when it is durable.
 */

export class AppendBudget {
  private bytes = 0;
  /** Appends that were refused. */
  refusedCount = 0;

  constructor(private readonly maxBytes: number) {}

  /** Handed to the log and not durable yet. */
  get usedBytes(): number {
    return this.bytes;
  }

  /** Whether another leader's append may be taken in. */
  admits(): boolean {
    if (this.bytes < this.maxBytes) return true;
    this.refusedCount++;
    return false;
  }

  take(bytes: number): void {
    this.bytes += bytes;
  }

  give(bytes: number): void {
    this.bytes -= bytes;
  }
}
