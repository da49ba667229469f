/**
 * Counts the planned moves of leaderships that this node began, by what for and how each ended.
 *
 * Invariant: every move that began is counted once, when it ends.
 */

/**
 * "replicas": the leader's own replica goes, or another member has to lead before it can. "disk":
 * the disk hangs, or is full.
 */
const TRANSFER_REASONS = ["balance", "leave", "stop", "disk", "replicas"] as const;
export type TransferReason = (typeof TRANSFER_REASONS)[number];

/**
 * "moved": the leadership ended as ordered. "refused": the heir would not, or did not answer.
 * "failed": the group serves on here, or another leader came first.
 */
const TRANSFER_RESULTS = ["moved", "refused", "failed"] as const;
export type TransferResult = (typeof TRANSFER_RESULTS)[number];

export interface TransferCount {
  readonly reason: TransferReason;
  readonly result: TransferResult;
  readonly count: number;
}

export class TransferTally {
  private readonly counts = new Map<string, number>();

  count(reason: TransferReason, result: TransferResult): void {
    const name = `${reason} ${result}`;
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Every pair, zeros too. */
  all(): readonly TransferCount[] {
    return TRANSFER_REASONS.flatMap((reason) =>
      TRANSFER_RESULTS.map((result) => {
        return { reason, result, count: this.counts.get(`${reason} ${result}`) ?? 0 };
      }),
    );
  }
}
