/**
 * A store in memory with the manners of the real one: durable only after `write` is done, copies at
 * the border.
 *
 * Rows are kept in a plain sorted array of hexadecimal keys: slow, and obviously right.
 */
import { ok } from "../../../src/base/result.js";
import type { StoreChange, StorePort } from "../../../src/ports.js";
import type { Memtable } from "../../../src/machine/store/memtable.js";

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

export class FakeStore implements StorePort {
  private rows = new Map<string, Uint8Array>();
  private sorted: string[] | null = null;
  gets = 0;

  get(key: Uint8Array): Uint8Array | null {
    this.gets++;
    return this.rows.get(hex(key))?.slice() ?? null;
  }

  scan(
    first: Uint8Array,
    last: Uint8Array | null,
    visit: (key: Uint8Array, value: Uint8Array) => boolean,
    _keysOnly?: boolean,
  ): void {
    this.sorted ??= [...this.rows.keys()].sort();
    const from = hex(first);
    const to = last === null ? null : hex(last);
    for (const key of this.sorted) {
      if (key < from || (to !== null && key >= to)) continue;
      if (!visit(fromHex(key), (this.rows.get(key) as Uint8Array).slice())) return;
    }
  }

  write(changes: readonly StoreChange[], done: Parameters<StorePort["write"]>[1]): void {
    let before: string | null = null;
    for (const { key, value } of changes) {
      const name = hex(key);
      if (before !== null && name <= before) throw new Error("changes are sorted without repeats");
      before = name;
      if (value === null) this.rows.delete(name);
      else this.rows.set(name, value.slice());
    }
    this.sorted = null;
    done(ok(null));
  }

  /** A copy of what is durable now: what a restart finds. */
  copy(): FakeStore {
    const copied = new FakeStore();
    copied.rows = new Map(this.rows);
    return copied;
  }

  get size(): number {
    return this.rows.size;
  }

  sizeBytes(): number {
    return this.rows.size;
  }

  close(done: () => void): void {
    done();
  }
}

/** Flushes the memtable to the store. */
export function flush(memtable: Memtable, store: StorePort): void {
  const immutable = memtable.freeze();
  store.write(immutable.changes, () => undefined);
  memtable.dropImmutable();
}
