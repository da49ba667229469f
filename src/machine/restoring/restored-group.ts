/**
 * Makes of the state that a replay ended at the state that a new cluster begins with, row by row.
 *
 * Writes the rows of one group and its record, while no machine has it. Invariants: 1. Token floor,
 * ephemeral floor and incarnations are above all that the old cluster and earlier restores could
 * hand out (L14, L15, S6). 2. Lease clock, stamps, level and digests go on from where they were. 3.
 * The group has no members, and the position of an installed snapshot: its log begins there, empty.
 * 4. The record is written last; an overflow writes none, and what was written is thrown away.
 */
import { assert } from "../../base/assert.js";
import { NO_CONFIG, NO_PLACEMENT, type PartitionId } from "../../base/ids.js";
import {
  type GroupRecord,
  decodeGroupRecord,
  encodeGroupRecord,
} from "../commands/group-record.js";
import { decodeLockRow } from "../locks/lock-row.js";
import { decodeSequenceRow } from "../sequences/sequence-row.js";
import { StateDigest } from "../store/digest.js";
import {
  type ByteKey,
  RowKind,
  generationPrefix,
  groupRecordKey,
  keySuccessor,
} from "../store/keys.js";
import type { Memtable } from "../store/memtable.js";
import { type RestoredFloors, liftedEphemeralFloor, liftedTokenFloor } from "./lifted.js";
import { type RestoreOrder, restoredRow } from "./restored-rows.js";

export class RestoredGroup {
  private readonly prefix: ByteKey;
  private cursor: ByteKey;
  private highestToken = -1n;
  private highestIncarnation = 0;
  private dataBytes = 0;
  private readonly digest = new StateDigest();
  private rows = 0;
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
    this.cursor = this.prefix;
  }

  /**
   * Goes over up to `limit` rows. "done": rows and record are in the memtable. The caller may flush
   * between two steps.
   */
  step(limit: number): "more" | "done" | "overflow" {
    if (this.state !== "more") return this.state;
    const changes: [ByteKey, Uint8Array | null][] = [];
    let count = 0;
    this.memtable.scan(this.cursor, keySuccessor(this.prefix), (key, bytes) => {
      this.cursor = `${key}\0`;
      const kind = key.charCodeAt(this.prefix.length);
      const row = restoredRow(kind, bytes, this.order);
      if (row === "overflow") {
        this.state = "overflow";
        return false;
      }
      if (row !== bytes) changes.push([key, row === "gone" ? null : row]);
      if (row !== "gone") this.note(kind, key, row);
      return ++count < limit;
    });
    for (const [key, row] of changes) {
      if (row === null) this.memtable.delete(key);
      else this.memtable.put(key, row);
    }
    if (this.state === "more" && count < limit) this.state = this.finish();
    return this.state;
  }

  private note(kind: number, key: ByteKey, row: Uint8Array): void {
    const name = key.slice(this.prefix.length + 1);
    this.dataBytes += name.length + row.length;
    this.digest.row(kind, name, row);
    this.rows++;
    if (kind === RowKind.lock) {
      const token = decodeLockRow(row)?.token ?? -1n;
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
    this.written = {
      ...record,
      tokenFloor,
      ephemeralFloor,
      membership: null,
      membershipIndex: NO_CONFIG,
      placedGeneration: NO_PLACEMENT,
      installedIndex: record.appliedIndex,
      installedTerm: record.appliedTerm,
      dataBytes: record.dataBytes === null ? null : this.dataBytes,
    };
    this.memtable.put(groupRecordKey(this.group), encodeGroupRecord(this.written));
    return "done";
  }

  /** How many rows there are, and a digest over them and the record: by `evidenceOf` again. */
  get evidence(): string {
    assert(this.written !== null, "what a group holds is known at the end");
    return evidenceText(this.rows, this.digest, encodeGroupRecord(this.written));
  }

  /** What this group sets; a claim has the largest of all groups. Only when done. */
  get floors(): RestoredFloors {
    assert(this.written !== null, "floors are known at the end");
    const { tokenFloor, ephemeralFloor } = this.written;
    return { tokenFloor, ephemeralFloor, incarnation: this.highestIncarnation };
  }
}

function evidenceText(rows: number, digest: StateDigest, record: Uint8Array): string {
  digest.row(0, "", record);
  return `${rows} rows ${digest.toString()}`;
}

/** Reads what is stored of a group, as `RestoredGroup.evidence` tells it; slice by slice. */
export class StoredEvidence {
  private readonly digest = new StateDigest();
  private rows = 0;
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
      this.digest.row(key.charCodeAt(prefix.length), key.slice(prefix.length + 1), row);
      this.rows++;
      return ++count < limit;
    });
    return count < limit ? evidenceText(this.rows, this.digest, bytes) : null;
  }
}
