/**
 * How many live keys a range holds, and which key halves it: counted in slices, over rows that may
 * change between two of them.
 *
 * Pure. Invariants: 1. A slice looks at `maxVisits` at most, as pages count them. 2. Of the keys one
 * in `stride` is remembered, SAMPLES_MAX at most, whatever the number of keys. 3. What changes
 * behind the place of the count is not seen: the figure is of about the time that it took.
 */
import { RowKind, byteKeyToText, keySuccessor, type ByteKey } from "../store/keys.js";
import type { ReadableRows } from "../store/rows.js";
import { isLive, wholeKvRow } from "./kv.js";
import { visitsOf } from "./page-builder.js";

const SAMPLES_MAX = 4096;

/** Half-open; null = open on that side. */
export interface CountedInterval {
  readonly keySpace: ByteKey;
  readonly startKey: ByteKey | null;
  readonly endKey: ByteKey | null;
}

export class LiveCount {
  private samples: ByteKey[] = [];
  private stride = 1;
  private at: ByteKey | null = null;
  count = 0;
  /** When the first lease ends of what was counted (lease time, ms). */
  firstEndMs = Infinity;
  isDone = false;

  constructor(private readonly interval: CountedInterval) {}

  /** Looks at the next rows; `isDone` afterwards when there are no more. */
  slice(rows: ReadableRows, nowMs: number, maxVisits: number): void {
    const { keySpace, startKey, endKey } = this.interval;
    let visits = 0;
    let next: ByteKey | null = null;
    const see = (key: ByteKey, bytes: Uint8Array): boolean => {
      if (visits >= maxVisits) {
        next = key;
        return false;
      }
      visits += visitsOf(bytes.length);
      if (!isInSpace(keySpace, key)) return true;
      const row = wholeKvRow(bytes);
      if (isLive(row, nowMs)) this.take(key, row.endMs ?? Infinity);
      return true;
    };
    const first = this.at ?? larger(startKey ?? "", keySpace);
    const last = endOf(keySpace, endKey);
    if (last === null || first < last) rows.scan(RowKind.value, first, last, see);
    this.at = next;
    this.isDone = next === null;
  }

  private take(key: ByteKey, endMs: number): void {
    this.firstEndMs = Math.min(this.firstEndMs, endMs);
    if (this.count % this.stride === 0) this.samples.push(key);
    this.count++;
    if (this.samples.length < SAMPLES_MAX) return;
    this.samples = this.samples.filter((_key, at) => at % 2 === 0);
    this.stride *= 2;
  }

  /** A key with about as many live ones below it as from it on; null when there is none. */
  get middle(): string | null {
    const key = this.samples[this.samples.length >>> 1];
    return this.samples.length < 2 || key === undefined ? null : byteKeyToText(key);
  }
}

function larger(a: ByteKey, b: ByteKey): ByteKey {
  return a > b ? a : b;
}

const SEPARATOR = "/";

/** The key of that name itself, or a key of the bucket: not those of deeper ones. */
function isInSpace(keySpace: ByteKey, key: ByteKey): boolean {
  const slash = key.lastIndexOf(SEPARATOR);
  return slash < 0 ? key === keySpace : slash === keySpace.length && key.startsWith(keySpace);
}

function endOf(keySpace: ByteKey, endKey: ByteKey | null): ByteKey | null {
  const last = keySuccessor(keySpace + SEPARATOR);
  if (endKey === null) return last;
  return last === null || endKey < last ? endKey : last;
}
