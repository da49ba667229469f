/**
 * Gathers the items of one page or bucket and knows when to stop. Used by the scans of this folder
 * only.
 *
 * Invariants: 1. A page has at least one item if there is one within the visits. 2. `next` is set
 * exactly when there is another item, or when the visits ran out before that was known. 3. `next`
 * is the last key looked at whose item, if it has one, is in the page. 4. Keys of other groups are
 * passed over.
 */
import { KvState } from "../commands/command.js";
import { byteKeyToText, fromByteKey, type ByteKey } from "../store/keys.js";
import { isLive, wholeKvRow } from "./kv.js";
import type { Page, PageItem } from "../decision/reading.js";
import type { OwnedKeys } from "../ownership/ownership.js";

/** What an item costs beside its key and value (bytes): revision, stamps, framing. */
const ITEM_OVERHEAD_BYTES = 64;

/** What looking at one row costs, by its size: it is copied out of the store, shown or not. */
export function visitsOf(sizeBytes: number): number {
  return 1 + (sizeBytes >>> 10);
}

export class PageBuilder {
  private readonly owned: OwnedKeys;
  private readonly items: PageItem[] = [];
  private readonly nowMs: number;
  private readonly limit: number;
  private readonly maxBytes: number;
  private readonly tombstones: boolean;
  private readonly maxVisits: number;
  private visitsLeft: number;
  private bytes = 0;
  private lastKey: ByteKey | null = null;
  private more = false;

  /** `limit` 0: no bound by number. */
  constructor(
    owned: OwnedKeys,
    nowMs: number,
    limit: number,
    maxBytes: number,
    maxVisits: number,
    tombstones: boolean,
  ) {
    this.owned = owned;
    this.nowMs = nowMs;
    this.limit = limit;
    this.maxBytes = maxBytes;
    this.maxVisits = maxVisits;
    this.visitsLeft = maxVisits;
    this.tombstones = tombstones;
  }

  get sizeBytes(): number {
    return this.bytes;
  }

  get count(): number {
    return this.items.length;
  }

  /** Counts a row of `sizeBytes` that is passed over. False when the visits are used up. */
  pass(key: ByteKey, sizeBytes: number): boolean {
    if (this.visitsLeft <= 0) {
      this.more = true;
      return false;
    }
    this.visitsLeft -= visitsOf(sizeBytes);
    this.lastKey = key;
    return true;
  }

  /** Offers a row. False when the page is complete: the row is then not in it. */
  offer(key: ByteKey, bytes: Uint8Array): boolean {
    if (!this.owned.owns(key)) return this.pass(key, bytes.length);
    const row = wholeKvRow(bytes);
    const live = isLive(row, this.nowMs);
    if (!live && !(this.tombstones && row.deleted)) return this.pass(key, bytes.length);
    if (this.isFull()) {
      this.more = true;
      return false;
    }
    if (!this.pass(key, bytes.length)) return false;
    this.items.push({
      key: byteKeyToText(key),
      state: live ? KvState.set : KvState.deleted,
      value: row.value,
      revision: row.revision,
      leaseEndMs: live ? row.endMs : null,
      lastModified: row.stamp,
    });
    this.bytes += key.length + (row.value?.length ?? 0) + ITEM_OVERHEAD_BYTES;
    return true;
  }

  private isFull(): boolean {
    if (this.items.length === 0) return false;
    return this.items.length === this.limit || this.bytes >= this.maxBytes;
  }

  page(): Page {
    const next = this.more && this.lastKey !== null ? fromByteKey(this.lastKey) : null;
    const visits = this.maxVisits - this.visitsLeft;
    return { items: this.items, next, sizeBytes: this.bytes, visits };
  }
}
