/**
 * The state store of one machine: rows that outlive processes, changed in transactions that take
 * time and are all or nothing.
 *
 * Invariants: 1. A transaction in flight at the end of its process happened whole or not at all.
 * 2. What is read is durable. 3. What a caller hands in is copied; what is handed out is a copy.
 * 4. Rows are kept with the checksum of the real store; one that fails it ends the process.
 */
import { AssertionError, assert } from "../../../src/base/assert.js";
import type { Prng } from "../../../src/base/prng.js";
import { type Result, failure, ok } from "../../../src/base/result.js";
import { SEAL_BYTES, openRow, sealRow } from "../../../src/disk/store/rowseal.js";
import { type ByteKey, fromByteKey, toByteKey } from "../../../src/machine/store/keys.js";
import { placeOfRow } from "../../../src/machine/store/row-place.js";
import {
  type FatalPort,
  STORE_KEY_MAX_BYTES,
  type StoreChange,
  type StorePort,
} from "../../../src/ports.js";
import type { Life } from "../world/process.js";
import type { World } from "../world/world.js";

interface Transaction {
  readonly keys: readonly string[];
  readonly values: readonly (Uint8Array | null)[];
  readonly grownBytes: number;
}

/** The rows of one machine. */
export class SimRows {
  private rows = new Map<string, Uint8Array>();
  /** The keys in order, as far as `fresh` and `removed` do not say otherwise. */
  private sorted: string[] = [];
  private fresh: string[] = [];
  private removed = false;
  private pending: Transaction | null = null;
  bytes = 0;
  isFull = false;
  hungUntilMs = 0;
  /** What was written while it hung ends then, also if it hangs no more. */
  lateUntilMs = 0;
  readonly counts = { transactions: 0, lost: 0, keptUnacknowledged: 0, full: 0 };

  constructor(
    readonly world: World,
    readonly node: number,
    readonly prng: Prng,
    readonly temper: { commitMs: number },
    private readonly maxBytes = Infinity,
  ) {}

  /** The process that used the store is gone. */
  processEnded(): void {
    const { pending } = this;
    this.pending = null;
    if (pending === null) return;
    if (this.prng.chance(1, 2)) {
      this.keep(pending);
      this.counts.keptUnacknowledged++;
    } else this.counts.lost++;
  }

  wipe(): void {
    this.rows = new Map();
    this.sorted = [];
    this.fresh = [];
    this.pending = null;
    this.bytes = 0;
  }

  /** While no process uses it. */
  copy(): ReadonlyMap<string, Uint8Array> {
    return new Map([...this.rows].map(([key, stored]) => [key, stored.slice()]));
  }

  /** Puts a copy in the place of everything. */
  restore(copy: ReadonlyMap<string, Uint8Array>): void {
    this.wipe();
    for (const [key, stored] of copy) {
      this.rows.set(key, stored.slice());
      this.fresh.push(key);
      this.bytes += key.length + stored.length;
    }
  }

  /** What the row holds; null when there is none, or none that is whole. */
  value(key: ByteKey): Uint8Array | null {
    const stored = this.rows.get(key);
    return stored === undefined ? null : openRow(fromByteKey(key), stored);
  }

  port(life: Life, fatal: FatalPort): SimStore {
    return new SimStore(this, life, fatal);
  }

  /** Turns one bit of a row whose key begins with `prefix`; false when there is none. */
  damage(prefix = ""): boolean {
    this.settle();
    const first = this.seek(prefix);
    let end = first;
    while (this.sorted[end]?.startsWith(prefix) === true) end++;
    if (end === first) return false;
    const stored = this.rows.get(this.sorted[first + this.prng.below(end - first)] as string);
    assert(stored !== undefined, "the order is that of the rows");
    const at = this.prng.below(stored.length);
    stored[at] = (stored[at] as number) ^ (1 << this.prng.below(8));
    return true;
  }

  get(key: string): Uint8Array | undefined {
    return this.rows.get(key);
  }

  /** Position of the first row at or above `key`. */
  seek(key: string): number {
    this.settle();
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.sorted[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  keyAt(at: number): string | undefined {
    return this.sorted[at];
  }

  begin(changes: readonly StoreChange[]): Transaction {
    assert(this.pending === null, "one transaction at a time");
    const keys: string[] = [];
    const values: (Uint8Array | null)[] = [];
    let grownBytes = 0;
    for (const { key, value } of changes) {
      checkKey(key);
      const name = toByteKey(key);
      const before = keys[keys.length - 1];
      const ascending = before === undefined || before < name;
      assert(ascending, "changes are sorted by key, without repeats");
      keys.push(name);
      values.push(value === null ? null : sealed(key, value));
      grownBytes += value === null ? 0 : key.length + value.length;
    }
    this.pending = { keys, values, grownBytes };
    return this.pending;
  }

  /** Null: its process ended before. */
  finish(transaction: Transaction): "written" | "full" | null {
    if (this.pending !== transaction) return null;
    this.pending = null;
    if (this.isFull || this.bytes + transaction.grownBytes > this.maxBytes) {
      this.counts.full++;
      return "full";
    }
    this.keep(transaction);
    return "written";
  }

  private keep(transaction: Transaction): void {
    this.counts.transactions++;
    const { keys, values } = transaction;
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as string;
      const value = values[at] as Uint8Array | null;
      const old = this.rows.get(key);
      if (old !== undefined) this.bytes -= key.length + old.length;
      if (value === null) {
        if (old === undefined) continue;
        this.rows.delete(key);
        this.removed = true;
        continue;
      }
      if (old === undefined) this.fresh.push(key);
      this.bytes += key.length + value.length;
      this.rows.set(key, value);
    }
  }

  /** Scans are rare, transactions are not: the order is made for those who want it. */
  private settle(): void {
    const { fresh, removed } = this;
    if (fresh.length === 0 && !removed) return;
    this.fresh = [];
    this.removed = false;
    if (removed) this.sorted = this.sorted.filter((key) => this.rows.has(key));
    if (fresh.length === 0) return;
    const alive = new Set(this.sorted);
    const added = fresh.filter((key) => this.rows.has(key) && !alive.has(key));
    added.sort((a, b) => (a < b ? -1 : 1));
    this.sorted = merged(
      this.sorted,
      added.filter((key, at) => key !== added[at - 1]),
    );
  }
}

function merged(old: readonly string[], fresh: readonly string[]): string[] {
  const all: string[] = [];
  let at = 0;
  for (const key of fresh) {
    while (at < old.length && (old[at] as string) < key) all.push(old[at++] as string);
    all.push(key);
  }
  while (at < old.length) all.push(old[at++] as string);
  return all;
}

function sealed(key: Uint8Array, value: Uint8Array): Uint8Array {
  const stored = new Uint8Array(value.length + SEAL_BYTES);
  stored.set(value);
  sealRow(key, stored, 0, value.length);
  return stored;
}

function checkKey(key: Uint8Array): void {
  const fits = key.length >= 1 && key.length <= STORE_KEY_MAX_BYTES;
  assert(fits, `a key has 1 to ${STORE_KEY_MAX_BYTES} bytes`);
}

class SimStore implements StorePort {
  private isWriting = false;
  private isClosed = false;

  constructor(
    private readonly rows: SimRows,
    private readonly life: Life,
    private readonly fatal: FatalPort,
  ) {}

  get(key: Uint8Array): Uint8Array | null {
    assert(!this.isClosed, "the store is open");
    checkKey(key);
    const stored = this.rows.get(toByteKey(key));
    return stored === undefined ? null : this.open(key, stored);
  }

  private open(key: Uint8Array, stored: Uint8Array): Uint8Array {
    const value = openRow(key, stored);
    if (value !== null) return value.slice();
    this.fatal.fatal(`state store row damaged: ${placeOfRow(key)}`);
    throw new AssertionError("a damaged row is never given out");
  }

  scan(
    first: Uint8Array,
    last: Uint8Array | null,
    visit: (key: Uint8Array, value: Uint8Array) => boolean,
  ): void {
    assert(!this.isClosed, "the store is open");
    const end = last === null ? null : toByteKey(last);
    for (let at = this.rows.seek(toByteKey(first)); ; at++) {
      const key = this.rows.keyAt(at);
      if (key === undefined || (end !== null && key >= end)) return;
      const bytes = fromByteKey(key);
      if (!visit(bytes, this.open(bytes, this.rows.get(key) as Uint8Array))) return;
    }
  }

  write(changes: readonly StoreChange[], done: (result: Result<null, "full">) => void): void {
    assert(!this.isClosed && !this.isWriting, "one write at a time, before close");
    this.life.touch("store");
    const { rows, life } = this;
    const transaction = rows.begin(changes);
    this.isWriting = true;
    const { world, prng } = rows;
    const takesMs = rows.temper.commitMs * (0.5 + prng.below(1024) / 1024);
    const delayMs = Math.max(takesMs, rows.hungUntilMs - world.nowMs + takesMs);
    rows.lateUntilMs = Math.max(rows.lateUntilMs, rows.hungUntilMs);
    world.schedule(delayMs, () => {
      const end = rows.finish(transaction);
      if (end === null) return;
      world.trace.mix(changes.length);
      if (world.trace.hasWords) world.say(rows.node, `store: ${end}, ${changes.length} rows`);
      life.enter(() => {
        this.isWriting = false;
        done(end === "full" ? failure("full", "the simulated store is full") : ok(null));
      });
    });
  }

  sizeBytes(): number {
    return this.rows.bytes;
  }

  close(done: () => void): void {
    assert(!this.isClosed, "a store is closed once");
    assert(!this.isWriting, "the store is closed when no write runs");
    this.isClosed = true;
    this.life.soon(done);
  }
}
