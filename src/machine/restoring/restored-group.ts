/**
 * Makes of the state that a replay ended at the state that a new cluster begins with, row by row:
 * the kinds of rows that change, and those that say what was handed out.
 *
 * Writes the rows of one group and its record, while no machine has it. Invariants: 1. Token floor,
 * ephemeral floor and incarnations are above all that the old cluster and earlier restores could
 * hand out (L14, L15, S6). 2. Lease clock, stamps, level and digests go on from where they were. 3.
 * The group has no members, and the position of an installed snapshot: its log begins there, empty.
 * 4. The record is written last; an overflow writes none, and what was written is thrown away.
 */
import { assert } from "../../base/assert.js";
import { xxh32 } from "../../base/xxhash.js";
import { NO_CONFIG, NO_PLACEMENT, type PartitionId } from "../../base/ids.js";
import {
  type GroupRecord,
  decodeGroupRecord,
  encodeGroupRecord,
} from "../commands/group-record.js";
import { topToken } from "../locks/lock-row.js";
import { decodeSequenceRow } from "../sequences/sequence-row.js";
import {
  type ByteKey,
  RowKind,
  generationPrefix,
  groupRecordKey,
  keySuccessor,
} from "../store/keys.js";
import type { Memtable } from "../store/memtable.js";
import { RowSums } from "../store/row-sums.js";
import { type RestoredFloors, liftedEphemeralFloor, liftedTokenFloor } from "./lifted.js";
import { CHANGED_KINDS, type RestoreOrder, restoredRow } from "./restored-rows.js";

export class RestoredGroup {
  private readonly prefix: ByteKey;
  /** Which of CHANGED_KINDS is gone over, and from where on. */
  private at = 0;
  private cursor: ByteKey | null = null;
  private highestToken = -1n;
  private highestIncarnation = 0;
  /** By so much the rows became larger. */
  private grownBytes = 0;
  private state: "more" | "done" | "overflow" = "more";
  private written: GroupRecord | null = null;

  /** `record`: as the closed machine of the group left it, with everything applied. */
  constructor(
    private readonly memtable: Memtable,
    private readonly group: PartitionId,
    private readonly record: GroupRecord,
    private readonly order: RestoreOrder,
  ) {
    this.prefix = generationPrefix(group, record.generation);
  }

  /**
   * Goes over up to `limit` rows. "done": rows and record are in the memtable. The caller may flush
   * between two steps.
   */
  step(limit: number): "more" | "done" | "overflow" {
    if (this.state !== "more") return this.state;
    const changes: [ByteKey, Uint8Array | null][] = [];
    for (let left = limit; left > 0 && this.isGoingOn;) left = this.stepKind(left, changes);
    for (const [key, row] of changes) {
      if (row === null) this.memtable.delete(key);
      else this.memtable.put(key, row);
    }
    if (this.state === "more" && !this.isGoingOn) this.state = this.finish();
    return this.state;
  }

  private get isGoingOn(): boolean {
    return this.state === "more" && this.at < CHANGED_KINDS.length;
  }

  /** Goes over up to `limit` rows of one kind; how many of them are left to go over. */
  private stepKind(limit: number, changes: [ByteKey, Uint8Array | null][]): number {
    const kind = CHANGED_KINDS[this.at] as number;
    const prefix = this.prefix + String.fromCharCode(kind);
    let left = limit;
    this.memtable.scan(this.cursor ?? prefix, keySuccessor(prefix), (key, bytes) => {
      this.cursor = `${key}\0`;
      const row = restoredRow(kind, bytes, this.order);
      if (row === "overflow") {
        this.state = "overflow";
        return false;
      }
      if (row === "gone") {
        changes.push([key, null]);
        this.grownBytes -= key.length - this.prefix.length - 1 + bytes.length;
      } else {
        if (row !== bytes) changes.push([key, row]);
        this.grownBytes += row.length - bytes.length;
        this.note(kind, row);
      }
      return --left > 0;
    });
    if (left > 0) {
      this.at++;
      this.cursor = null;
    }
    return left;
  }

  private note(kind: number, row: Uint8Array): void {
    if (kind === RowKind.lock) {
      const token = topToken(row);
      if (token > this.highestToken) this.highestToken = token;
    } else if (kind === RowKind.sequence) {
      const incarnation = decodeSequenceRow(row)?.incarnation ?? 0;
      this.highestIncarnation = Math.max(this.highestIncarnation, incarnation);
    }
  }

  private finish(): "done" | "overflow" {
    const { record, order, highestToken } = this;
    const { end, earlier } = order;
    const tokenFloor = liftedTokenFloor(highestToken, record.tokenFloor, end, earlier);
    const ephemeralFloor = liftedEphemeralFloor(record.ephemeralFloor, end, earlier);
    if (tokenFloor === null || ephemeralFloor === null) return "overflow";
    // Whoever began to count beside rows that were there already has counted less than there is.
    const dataBytes =
      record.dataBytes === null ? null : Math.max(0, record.dataBytes + this.grownBytes);
    this.written = {
      ...record,
      tokenFloor,
      ephemeralFloor,
      membership: null,
      membershipIndex: NO_CONFIG,
      placedGeneration: NO_PLACEMENT,
      installedIndex: record.appliedIndex,
      installedTerm: record.appliedTerm,
      dataBytes,
    };
    this.memtable.put(groupRecordKey(this.group), encodeGroupRecord(this.written));
    return "done";
  }

  /** What is to be stored of the group, whose rows are these: `StoredEvidence` reads it back. */
  evidence(rows: RowSums): string {
    assert(this.written !== null, "what a group holds is known at the end");
    return evidenceText(rows, encodeGroupRecord(this.written));
  }

  /** What this group sets; a claim has the largest of all groups. Only when done. */
  get floors(): RestoredFloors {
    assert(this.written !== null, "floors are known at the end");
    const { tokenFloor, ephemeralFloor } = this.written;
    return { tokenFloor, ephemeralFloor, incarnation: this.highestIncarnation };
  }
}

function evidenceText(rows: RowSums, record: Uint8Array): string {
  return `${rows.toString()}, record ${xxh32(record, record.length)}`;
}

/** Reads what is stored of a group, as `RestoredGroup.evidence` tells it; slice by slice. */
export class StoredEvidence {
  private readonly sums = new RowSums();
  private cursor: ByteKey | null = null;

  constructor(
    private readonly memtable: Memtable,
    private readonly group: PartitionId,
  ) {}

  /** Goes over up to `limit` rows; null: there are more. */
  step(limit: number): string | null {
    const { memtable, group } = this;
    const bytes = memtable.get(groupRecordKey(group));
    const record = bytes === null ? null : decodeGroupRecord(bytes);
    if (bytes === null || record === null) return "no record";
    const prefix = generationPrefix(group, record.generation);
    let count = 0;
    memtable.scan(this.cursor ?? prefix, keySuccessor(prefix), (key, row) => {
      this.cursor = `${key}\0`;
      this.sums.add(key.charCodeAt(prefix.length), key.slice(prefix.length + 1), row);
      return ++count < limit;
    });
    return count < limit ? evidenceText(this.sums, bytes) : null;
  }
}
