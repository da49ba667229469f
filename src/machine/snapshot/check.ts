/**
 * Follows the chunks of a snapshot and tells whether they are one: order, checksums, rows, digest.
 * Keeps nothing of them.
 *
 * Invariants: 1. Chunks come in order; a wrong, damaged or foreign one ends the check for good. 2.
 * Rows ascend, are rows of a known kind, and their keys are legal: one that is not is never shown.
 * 3. The end counts only when number of rows and digest agree.
 */
import { STORE_KEY_MAX_BYTES } from "../../ports.js";
import type { GroupRecord } from "../commands/group-record.js";
import { generationPrefix, toByteKey, type ByteKey } from "../store/keys.js";
import { SnapshotDigest, readChunk } from "./format.js";
import { isWholeRow } from "./row-check.js";

/** Sees each row that is whole, in order. */
export type RowVisitor = (kind: number, nameKey: ByteKey, value: Uint8Array) => void;

export class SnapshotCheck {
  private readonly keyBytesMax: number;
  private readonly digest = new SnapshotDigest();
  private sequence = 0;
  private lastKey: ByteKey = "";
  private record: GroupRecord | null = null;
  private state: "open" | "done" | "broken" = "open";

  constructor(
    private readonly group: number,
    private readonly visit: RowVisitor,
  ) {
    this.keyBytesMax = STORE_KEY_MAX_BYTES - generationPrefix(group, 0).length - 1;
  }

  /** Number of the chunk that comes next. */
  get expectedSequence(): number {
    return this.sequence;
  }

  /** What the snapshot says of its position; null until its first chunk was taken. */
  get announced(): GroupRecord | null {
    return this.record;
  }

  /** Rows seen so far. */
  get rows(): number {
    return this.digest.rows;
  }

  /** Takes the next chunk. "done" after the last; "damaged" is final. */
  take(bytes: Uint8Array): "more" | "done" | "damaged" {
    if (this.state !== "open") return "damaged";
    const whole = readChunk(bytes, this.group, this.sequence, {
      record: (record, recordBytes) => {
        this.record = record;
        this.digest.record(recordBytes);
      },
      row: (kind, name, value) => this.row(kind, name, value),
      end: (rows, low, high) => {
        const { digest } = this;
        const agrees = rows === digest.rows && low === digest.low && high === digest.high;
        this.state = agrees ? "done" : "broken";
      },
    });
    if (!whole) this.state = "broken";
    if (this.hasBroken()) return "damaged";
    this.sequence++;
    return this.finished() === null ? "more" : "done";
  }

  private hasBroken(): boolean {
    return this.state === "broken";
  }

  private row(kind: number, name: Uint8Array, value: Uint8Array): boolean {
    if (!isWholeRow(kind, value) || name.length > this.keyBytesMax) return false;
    const nameKey = toByteKey(name);
    const key = String.fromCharCode(kind) + nameKey;
    if (key <= this.lastKey) return false;
    this.lastKey = key;
    this.digest.row(kind, nameKey, value);
    this.visit(kind, nameKey, value);
    return true;
  }

  /** The snapshot's record once all of it was taken and verified, else null. */
  finished(): GroupRecord | null {
    return this.state === "done" ? this.record : null;
  }
}
