/**
 * What a partition holds of an interval at one index of its log, as the checkers of moves compare it.
 *
 * Pure. Invariant: lease ends stand apart, for each group has a lease clock of its own.
 */

export interface SeenKey {
  /** Latest revision with its stamp, flags, value and kept revisions, and every history row, in words. */
  readonly text: string;
  readonly isTombstone: boolean;
  /** Lease end, or for a tombstone when it came; null = none. */
  readonly endMs: number | null;
  /** History rows, and what their names and values take. */
  readonly history: number;
  readonly historyBytes: number;
  /** Of the latest revision: grows with every write. */
  readonly stamp: number;
}

export interface RangeState {
  readonly keys: ReadonlyMap<string, SeenKey>;
  /** Lease clock of the group as of the entry (ms). */
  readonly leaseMs: number;
  /** When the entry was proposed, at the latest and at the earliest that the world knows (true time, ms). */
  readonly proposedMs: number;
}

/** The first difference in words; null = both hold the same. */
export function difference(
  source: ReadonlyMap<string, SeenKey>,
  target: ReadonlyMap<string, SeenKey>,
): string | null {
  for (const [key, { text }] of source) {
    const other = target.get(key);
    if (other === undefined) return `${key} is missing: ${text}`;
    if (other.text !== text) return `${key} is ${other.text}, it was ${text}`;
  }
  for (const [key, { text }] of target) {
    if (!source.has(key)) return `${key} is too much: ${text}`;
  }
  return null;
}

/** As `difference`, but what is dead may have been collected since. */
export function lossOf(
  before: ReadonlyMap<string, SeenKey>,
  after: ReadonlyMap<string, SeenKey>,
): string | null {
  for (const [key, { text, isTombstone, endMs }] of before) {
    const isMortal = isTombstone || endMs !== null;
    const other = after.get(key);
    if (other === undefined && !isMortal) return `${key} is missing: ${text}`;
    if (other !== undefined && other.text !== text && !isMortal) {
      return `${key} is ${other.text}, it was ${text}`;
    }
  }
  for (const [key, { text }] of after) {
    if (!before.has(key)) return `${key} is too much: ${text}`;
  }
  return null;
}
