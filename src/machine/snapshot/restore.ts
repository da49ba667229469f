/**
 * Takes the chunks of a snapshot and fills a fresh generation of one group with them; deletes the
 * rows of generations that nobody needs any more, in slices: after an install, and after a crash in
 * a restore.
 *
 * Writes by the insert of the memtable, or past it where nobody reads yet; deletes in sweeps.
 * Invariants: 1. Chunks come in order; a wrong, damaged or foreign one ends the restore for good.
 * 2. Nothing that readers of the current generation see changes. 3. It is finished only when number
 * of rows and digest agree. 4. Rows that are no rows, or whose keys are not legal, are refused
 * before they reach their target. 5. Rows of a kept generation are never touched. 6. One slice
 * deletes at most `limit` rows; a crash in between costs nothing but the rest of the work.
 */
import { failure, ok, type Result } from "../../base/result.js";
import type { GroupRecord } from "../commands/group-record.js";
import {
  RowKind,
  generationPrefix,
  groupPrefix,
  groupRecordKey,
  keySuccessor,
  type ByteKey,
} from "../store/keys.js";
import { topToken } from "../locks/lock-row.js";
import type { Memtable } from "../store/memtable.js";
import { SnapshotCheck, type RowVisitor } from "./check.js";
import type { ChunkRow } from "./chunk-row.js";

export type RestoreFailure = "damaged";

/** Where the rows of a snapshot go. `prefix`: of the generation that they fill. */
export type RowTarget = (prefix: ByteKey, row: ChunkRow) => void;

/** Into the table of changes, where the next flush finds them. */
export function intoMemtable(memtable: Memtable): RowTarget {
  return (prefix, row) => {
    // The chunk is its owner's again when it was taken.
    memtable.insert(prefix + String.fromCharCode(row.kind) + row.nameKey, row.value.slice());
  };
}

export class RestoreSink {
  readonly generation: number;
  /** Chunks may be given to it as well as to `take`. */
  readonly check: SnapshotCheck;
  private highest = -1n;
  /** Names and values of the rows taken so far. */
  dataBytes = 0;

  /** `seen`: is shown each row that was taken. */
  constructor(target: RowTarget, group: number, generation: number, seen: RowVisitor | null) {
    this.generation = generation;
    const prefix = generationPrefix(group, generation);
    this.check = new SnapshotCheck(group, (row) => {
      if (row.kind === RowKind.lock) {
        const token = topToken(row.value);
        if (token > this.highest) this.highest = token;
      }
      target(prefix, row);
      this.dataBytes += row.sizeBytes;
      seen?.(row);
    });
  }

  /** Number of the chunk that comes next. */
  get expectedSequence(): number {
    return this.check.expectedSequence;
  }

  /** What the snapshot says of its position; null until its first chunk was taken. */
  get announced(): GroupRecord | null {
    return this.check.announced;
  }

  /** Highest token of a lock row taken so far; -1 when there is none. */
  get highestToken(): bigint {
    return this.highest;
  }

  /** Takes the next chunk. "done" after the last; "damaged" ends the restore: begin another. */
  take(bytes: Uint8Array): Result<"more" | "done", RestoreFailure> {
    const number = this.check.expectedSequence;
    const taken = this.check.take(bytes);
    if (taken !== "damaged") return ok(taken);
    return failure("damaged", `Chunk ${number} of the snapshot is damaged.`);
  }

  /** The snapshot's record once all of it was taken and verified, else null. */
  finished(): GroupRecord | null {
    return this.check.finished();
  }
}

/**
 * Deletes up to `limit` rows of the group outside the generations in `keep`. Returns how many: 0 =
 * nothing is left.
 */
export function sweepGenerations(
  memtable: Memtable,
  group: number,
  keep: readonly number[],
  limit: number,
): number {
  const doomed: ByteKey[] = [];
  const gather = (first: ByteKey, last: ByteKey | null): void => {
    memtable.scanKeys(first, last, (key) => {
      doomed.push(key);
      return doomed.length < limit;
    });
  };
  let first = groupPrefix(group);
  for (const generation of [...keep].sort((a, b) => a - b)) {
    const kept = generationPrefix(group, generation);
    if (doomed.length < limit) gather(first, kept);
    first = keySuccessor(kept) as ByteKey;
  }
  if (doomed.length < limit) gather(first, keySuccessor(groupPrefix(group)));
  for (const key of doomed) memtable.delete(key);
  return doomed.length;
}

/**
 * Deletes up to `limit` rows of a group that left this node, its record in the end. Returns how
 * many: 0 = nothing of it is left.
 */
export function eraseGroup(memtable: Memtable, group: number, limit: number): number {
  const count = sweepGenerations(memtable, group, [], limit);
  if (count > 0) return count;
  const key = groupRecordKey(group);
  if (memtable.get(key) === null) return 0;
  memtable.delete(key);
  return 1;
}
