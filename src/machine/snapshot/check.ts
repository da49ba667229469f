/**
 * Follows the chunks of a snapshot and tells whether they are one: order, checksums, rows, digest.
 * Keeps nothing of them.
 *
 * Invariants: 1. Chunks come in order; a wrong, damaged or foreign one ends the check for good. 2.
 * Rows ascend, are rows of a known kind, and their keys are legal: one that is not is never shown.
 * 3. The end counts only when number of rows and digest agree.
 */
import { EMPTY_BYTES } from "../../base/bytes.js";
import { STORE_KEY_MAX_BYTES } from "../../ports.js";
import type { GroupRecord } from "../commands/group-record.js";
import { generationPrefix } from "../store/keys.js";
import type { ChunkRow } from "./chunk-row.js";
import { SnapshotDigest, readChunk } from "./format.js";
import { isWholeChunkRow } from "./row-check.js";

/** Sees each row that is whole, in order. */
export type RowVisitor = (row: ChunkRow) => void;

export class SnapshotCheck {
  private readonly keyBytesMax: number;
  private readonly digest = new SnapshotDigest();
  private sequence = 0;
  private lastKind = -1;
  /** Where the name of the last row is. */
  private lastBytes: Uint8Array = EMPTY_BYTES;
  private lastAt = 0;
  private lastEnd = 0;
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
      row: (row) => this.row(row),
      end: (rows, low, high) => {
        const { digest } = this;
        const agrees = rows === digest.rows && low === digest.low && high === digest.high;
        this.state = agrees ? "done" : "broken";
      },
    });
    if (!whole) this.state = "broken";
    if (this.hasBroken()) return "damaged";
    this.sequence++;
    this.keepLast(bytes);
    return this.finished() === null ? "more" : "done";
  }

  private hasBroken(): boolean {
    return this.state === "broken";
  }

  private row(row: ChunkRow): boolean {
    if (row.nameEnd - row.nameAt > this.keyBytesMax || !isWholeChunkRow(row)) return false;
    if (!this.isAbove(row)) return false;
    this.lastKind = row.kind;
    this.lastBytes = row.bytes;
    this.lastAt = row.nameAt;
    this.lastEnd = row.nameEnd;
    this.digest.chunkRow(row);
    this.visit(row);
    return true;
  }

  /** By kind and name. */
  private isAbove({ kind, bytes, nameAt, nameEnd }: ChunkRow): boolean {
    if (kind !== this.lastKind) return kind > this.lastKind;
    const { lastBytes, lastAt, lastEnd } = this;
    const common = Math.min(nameEnd - nameAt, lastEnd - lastAt);
    for (let at = 0; at < common; at++) {
      const above = (bytes[nameAt + at] as number) - (lastBytes[lastAt + at] as number);
      if (above !== 0) return above > 0;
    }
    return nameEnd - nameAt > lastEnd - lastAt;
  }

  /** The bytes of a chunk are its owner's again when it was taken. */
  private keepLast(bytes: Uint8Array): void {
    if (this.lastBytes !== bytes) return;
    this.lastBytes = bytes.slice(this.lastAt, this.lastEnd);
    this.lastAt = 0;
    this.lastEnd = this.lastBytes.length;
  }

  /** The snapshot's record once all of it was taken and verified, else null. */
  finished(): GroupRecord | null {
    return this.state === "done" ? this.record : null;
  }
}
