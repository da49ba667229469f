/**
 * Reads what an interval of keys holds, for the group that it goes to, while the group goes on
 * changing it: first everything, in slices, then again what changed since.
 *
 * Every slice reads the rows as they are in its turn; a key that changes behind it is noted and
 * given once more. Watches the rows; owned by whoever opened it, who closes it.
 *
 * Invariants: 1. When the end was reached and no key is noted, all that was given, in order, makes
 * the interval as it is. 2. A key of which a lease ends is noted too: elsewhere it would live on by
 * the margin of its carriage, after somebody was told that it has ended. 3. What is kept is
 * bounded: beyond the bound `overrun` is true and nothing that was given counts. 4. A slice reads a
 * bounded number of rows, and of a large key a part: a change of it in between drops the rest.
 */
import { assert } from "../../base/assert.js";
import { RANGE_ATTEMPT_MS } from "../../base/limits.js";
import type { RangeItem } from "../commands/command.js";
import { ended } from "../decision/lease.js";
import { wholeKvRow } from "../kv/kv.js";
import type { KvRow } from "../kv/kv-row.js";
import { visitsOf } from "../kv/page-builder.js";
import { scanBucket } from "../kv/pages.js";
import type { KeyInterval } from "../ownership/ownership-row.js";
import { RowKind, byteKeyToText, type ByteKey } from "../store/keys.js";
import type { GroupRows, ValueWatcher } from "../store/rows.js";
import { EndingLeases } from "./ending-leases.js";
import { isIn, keptOf, olderRow, spanIn, type FilledSpan } from "./move-set.js";

/** Names that are kept, of keys to be given again and of leases that run: more is an overrun. */
const NAMES_MAX = 100_000;
const NAMES_MAX_BYTES = 16 * 1024 * 1024;
/** What an item takes beside its rows. */
const ITEM_OVERHEAD_BYTES = 16;
/** Leases that end later are not followed, and no copy lasts as long (ms). */
const LEASES_FOLLOWED_MS = 2 * RANGE_ATTEMPT_MS;

/** How much one slice may read; one row at least. */
export interface CopyBounds {
  /** Of the items together; one row may come on top. */
  readonly maxBytes: number;
  /** Rows looked at, a large one counted once more for each KiB; one key may come on top. */
  readonly maxVisits: number;
}

/** What one slice gives: the items of one import. */
export interface CopySlice {
  readonly items: readonly RangeItem[];
  readonly sizeBytes: number;
  readonly visits: number;
  /** Lease clock of the group at which the rows were read. */
  readonly leaseMs: number;
  /** Of the first reading: it is at its end. Of noted keys: none is left. */
  readonly isEnd: boolean;
}

/** The rest of a large key of which a part was given. */
interface Part {
  readonly key: ByteKey;
  readonly revisions: readonly number[];
}

/** A key as it is gathered: nothing else can be read while a scan runs. */
interface Gathered {
  readonly key: ByteKey;
  readonly value: Uint8Array;
}

class Slice {
  readonly items: RangeItem[] = [];
  sizeBytes = 0;
  visits = 0;

  constructor(private readonly bounds: CopyBounds) {}

  get hasRoom(): boolean {
    return this.sizeBytes < this.bounds.maxBytes;
  }

  /** Nothing more is to be looked for, if what was found takes `foundBytes`. */
  isFull(foundBytes = 0): boolean {
    const { maxBytes, maxVisits } = this.bounds;
    return this.visits >= maxVisits || this.sizeBytes + foundBytes >= maxBytes;
  }
}

export class CopySource implements ValueWatcher {
  /** Too much changed, the rows were replaced, or it took too long: to be closed. */
  overrun = false;
  private readonly span: FilledSpan;
  private readonly unwatch: () => void;
  private readonly endMs: number;
  /** Keys that changed since they were given, in the order of their first change. */
  private readonly noted = new Set<ByteKey>();
  private notedBytes = 0;
  private readonly leases = new EndingLeases();
  /** The last key that the first reading looked at; null at first. */
  private reached: ByteKey | null = null;
  private isRead = false;
  private part: Part | null = null;

  /** `leaseNowMs`: the lease clock of the group, as its leader knows it. */
  constructor(
    private readonly rows: GroupRows,
    interval: KeyInterval,
    private readonly leaseNowMs: () => number,
  ) {
    this.span = spanIn(interval);
    this.endMs = leaseNowMs() + LEASES_FOLLOWED_MS;
    this.unwatch = rows.watchValues(this);
  }

  /** Keys that are to be given again, as of now. */
  get notedKeys(): number {
    this.noteEnded();
    return this.noted.size + (this.part === null ? 0 : 1);
  }

  /** The next slice of the first reading; nothing after its end. */
  next(bounds: CopyBounds): CopySlice | "overrun" {
    const slice = new Slice(bounds);
    this.givePart(slice);
    if (!this.isRead && this.part === null && !slice.isFull()) this.readOn(slice);
    return this.given(slice, this.isRead && this.part === null);
  }

  /** The next slice of keys that changed since they were given; after the first reading. */
  nextNoted(bounds: CopyBounds): CopySlice | "overrun" {
    assert(this.isRead, "what changed is given again when all was given");
    this.noteEnded();
    const slice = new Slice(bounds);
    this.givePart(slice);
    for (const key of this.noted) {
      if (this.part !== null || slice.isFull()) break;
      this.noted.delete(key);
      this.notedBytes -= key.length;
      this.give(slice, key, this.rows.get(RowKind.value, key));
    }
    return this.given(slice, this.part === null && this.noted.size === 0);
  }

  private given(slice: Slice, isEnd: boolean): CopySlice | "overrun" {
    const leaseMs = this.leaseNowMs();
    if (leaseMs > this.endMs) this.overrun = true;
    if (this.overrun) return "overrun";
    const { items, sizeBytes, visits } = slice;
    return { items, sizeBytes, visits, leaseMs, isEnd };
  }

  /** Gathers keys behind the last one, as many as fit with what they keep, and gives them. */
  private readOn(slice: Slice): void {
    const gathered: Gathered[] = [];
    let foundBytes = 0;
    let isCut = false;
    const before = this.reached;
    const first = before === null ? this.span.first : `${before}\0`;
    const look = (key: ByteKey, sizeBytes: number): boolean => {
      isCut = slice.isFull(foundBytes);
      if (isCut) return false;
      slice.visits += visitsOf(sizeBytes);
      this.reached = key;
      return true;
    };
    const offer = (key: ByteKey, value: Uint8Array): boolean => {
      if (!look(key, value.length)) return false;
      gathered.push({ key, value });
      const older = keptCount(wholeKvRow(value));
      slice.visits += older;
      foundBytes += (key.length + value.length) * (1 + older);
      return true;
    };
    scanBucket(this.rows, this.span.space, { first, last: this.span.last }, { offer, pass: look });
    for (const [at, { key, value }] of gathered.entries()) {
      if (this.part === null && slice.hasRoom) {
        this.give(slice, key, value);
        continue;
      }
      // What found no room is read again.
      this.reached = gathered[at - 1]?.key ?? before;
      return;
    }
    this.isRead = !isCut;
  }

  private give(slice: Slice, key: ByteKey, value: Uint8Array | null): void {
    this.leases.delete(key);
    if (value === null) {
      slice.visits++;
      slice.sizeBytes += key.length + ITEM_OVERHEAD_BYTES;
      slice.items.push({ key: byteKeyToText(key), row: null, continues: false, history: [] });
      return;
    }
    const row = wholeKvRow(value);
    if (!row.deleted) this.follow(key, row);
    slice.sizeBytes += key.length + value.length + ITEM_OVERHEAD_BYTES;
    if (this.isRead) slice.visits += visitsOf(value.length) + keptCount(row);
    const history = this.older(slice, key, keptOf(row));
    slice.items.push({ key: byteKeyToText(key), row: value, continues: false, history });
  }

  private givePart(slice: Slice): void {
    const { part } = this;
    if (part === null) return;
    const { key, revisions } = part;
    slice.sizeBytes += key.length + ITEM_OVERHEAD_BYTES;
    const history = this.older(slice, key, revisions);
    slice.visits += history.length;
    slice.items.push({ key: byteKeyToText(key), row: null, continues: true, history });
  }

  /** Older revisions, as many as there is room for; what is left of them becomes the next part. */
  private older(slice: Slice, key: ByteKey, revisions: readonly number[]): Uint8Array[] {
    const history: Uint8Array[] = [];
    for (const revision of revisions) {
      if (!slice.hasRoom) break;
      const bytes = olderRow(this.rows, key, revision);
      this.follow(key, wholeKvRow(bytes));
      slice.sizeBytes += bytes.length;
      history.push(bytes);
    }
    const rest = revisions.slice(history.length);
    this.part = rest.length === 0 ? null : { key, revisions: rest };
    return history;
  }

  /** Keeps in mind when the first lease of a key ends that runs now. */
  private follow(key: ByteKey, { endMs }: KvRow): void {
    const { leases } = this;
    if (endMs === null || ended(endMs, this.leaseNowMs()) || endMs > this.endMs) return;
    const known = leases.endOf(key);
    if (known === null || endMs < known) leases.set(key, endMs);
    if (leases.size > NAMES_MAX) this.overrun = true;
  }

  private noteEnded(): void {
    for (const key of this.leases.take(this.leaseNowMs())) this.note(key);
  }

  private note(key: ByteKey): void {
    if (this.overrun || this.noted.has(key)) return;
    this.noted.add(key);
    this.notedBytes += key.length;
    if (this.noted.size > NAMES_MAX || this.notedBytes > NAMES_MAX_BYTES) this.overrun = true;
  }

  beforeChange(kind: number, name: ByteKey): void {
    // Older revisions change together with the row that lists them.
    if (kind !== RowKind.value || !isIn(this.span, name)) return;
    if (this.part?.key === name) this.part = null;
    if (this.isRead || (this.reached !== null && name <= this.reached)) this.note(name);
  }

  replaced(): void {
    this.overrun = true;
  }

  /** Stops watching. Safe to call again. */
  close(): void {
    this.unwatch();
    this.noted.clear();
  }
}

function keptCount(row: KvRow): number {
  let count = 0;
  for (const run of row.kept) count += run.count;
  return count;
}
