/**
 * Counts the rows of a group by their kind, and the locks that are held, in slices, while the group
 * goes on changing them: about what there was while it was read.
 *
 * Invariants: 1. A slice looks at a bounded number of rows, and at one more. 2. Nothing is changed,
 * and nobody is told.
 */
import { present } from "../base/assert.js";
import { ended } from "./decision/lease.js";
import { LockState, decodeLockRow } from "./locks/lock-row.js";
import { type ByteKey, RowKind } from "./store/keys.js";
import type { ReadableRows } from "./store/rows.js";

/** The kinds of rows that callers make. */
const COUNTED_ROWS = {
  lock: RowKind.lock,
  sequence: RowKind.sequence,
  "idempotency-key": RowKind.sequenceKey,
  value: RowKind.value,
  revision: RowKind.history,
} as const;

export type CountedRow = keyof typeof COUNTED_ROWS;
export type RowCounts = Record<CountedRow, number>;

const KINDS = Object.keys(COUNTED_ROWS) as readonly CountedRow[];

export function noRows(): RowCounts {
  return { lock: 0, sequence: 0, "idempotency-key": 0, value: 0, revision: 0 };
}

export class RowCensus {
  readonly rows = noRows();
  heldLocks = 0;
  private at = 0;
  private reached: ByteKey | null = null;

  constructor(
    private readonly from: ReadableRows,
    private readonly leaseMs: () => number,
  ) {}

  /** Counts on; true at the end. */
  next(maxVisits: number): boolean {
    const nowMs = this.leaseMs();
    let visits = 0;
    for (;;) {
      const kind = KINDS[this.at];
      if (kind === undefined) return true;
      let isCut = false;
      const first = this.reached === null ? "" : `${this.reached}\0`;
      this.from.scan(COUNTED_ROWS[kind], first, null, (name, value) => {
        isCut = visits >= maxVisits;
        if (isCut) return false;
        visits++;
        this.reached = name;
        this.rows[kind]++;
        if (kind === "lock" && isHeldAt(value, nowMs)) this.heldLocks++;
        return true;
      });
      if (isCut) return false;
      this.at++;
      this.reached = null;
    }
  }
}

function isHeldAt(bytes: Uint8Array, nowMs: number): boolean {
  const row = present(decodeLockRow(bytes), "a stored lock row is whole");
  return row.state === LockState.held && !ended(row.endMs, nowMs);
}
