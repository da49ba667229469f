/**
 * The state store of the `memory` adapter: keeps nothing beyond the process.
 *
 * Owns rows in ordered blocks. Same contract and conformance suite as the real one.
 *
 * Invariants: 1. Callbacks never come in the turn of their call. 2. What a caller hands in is
 * copied; what is handed out is a copy. 3. Blocks are never empty, and ascend within and between.
 */
import { assert } from "../../base/assert.js";
import { compareBytes } from "../../base/bytes.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { StoreChange, StorePort, TimerPort } from "../../ports.js";
import type { StoreFigures } from "./store.js";
import { checkKey } from "./storekeys.js";

interface Row {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** Rows per block of the ordered list: insertion moves at most this many. */
const BLOCK_ROWS = 256;

export class MemoryStore implements StorePort {
  /** Non-empty blocks of rows, ascending within and between. */
  private blocks: Row[][] = [];
  private bytes = 0;
  private writing = false;
  private closed = false;

  constructor(
    private readonly timers: TimerPort,
    private readonly maxBytes: number,
  ) {}

  /** True from the call of `close` on. */
  get isClosed(): boolean {
    return this.closed;
  }

  /** The block that holds `key` or would; 0 when there is none. */
  private blockOf(key: Uint8Array): number {
    let low = 0;
    let high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const first = this.blocks[middle]?.[0];
      if (first !== undefined && compareBytes(first.key, key) <= 0) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  figures(): StoreFigures {
    return { usedBytes: this.bytes, readAgeMs: 0 };
  }

  /** Position of the first row of `block` with a key at or above `key`. */
  private static seek(block: readonly Row[], key: Uint8Array): number {
    let low = 0;
    let high = block.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareBytes((block[middle] as Row).key, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get(key: Uint8Array): Uint8Array | null {
    assert(!this.closed, "the store is open");
    checkKey(key);
    const block = this.blocks[this.blockOf(key)] ?? [];
    const row = block[MemoryStore.seek(block, key)];
    return row !== undefined && compareBytes(row.key, key) === 0 ? row.value.slice() : null;
  }

  scan(
    first: Uint8Array,
    last: Uint8Array | null,
    visit: (key: Uint8Array, value: Uint8Array) => boolean,
  ): void {
    assert(!this.closed, "the store is open");
    for (let number = this.blockOf(first); number < this.blocks.length; number++) {
      const block = this.blocks[number] as Row[];
      for (let at = MemoryStore.seek(block, first); at < block.length; at++) {
        const { key, value } = block[at] as Row;
        if (last !== null && compareBytes(key, last) >= 0) return;
        if (!visit(key.slice(), value.slice())) return;
      }
    }
  }

  write(changes: readonly StoreChange[], done: (result: Result<null, "full">) => void): void {
    assert(!this.closed && !this.writing, "one write at a time, before close");
    let grown = this.bytes;
    let previous: Uint8Array | null = null;
    for (const { key, value } of changes) {
      checkKey(key);
      const ascending = previous === null || compareBytes(previous, key) < 0;
      assert(ascending, "changes are sorted by key, without repeats");
      previous = key;
      grown += value === null ? 0 : key.length + value.length;
    }
    this.writing = true;
    const isFull = grown > this.maxBytes;
    this.timers.soon(() => {
      this.writing = false;
      if (isFull) return done(failure("full", "the memory store is full"));
      for (const { key, value } of changes) this.apply(key, value);
      done(ok(null));
    });
  }

  private apply(key: Uint8Array, value: Uint8Array | null): void {
    const number = this.blockOf(key);
    const block = this.blocks[number] ?? [];
    const at = MemoryStore.seek(block, key);
    const old = block[at];
    const exists = old !== undefined && compareBytes(old.key, key) === 0;
    if (exists) this.bytes -= old.key.length + old.value.length;
    if (value === null) {
      if (exists) block.splice(at, 1);
      if (block.length === 0 && number < this.blocks.length) this.blocks.splice(number, 1);
      return;
    }
    this.bytes += key.length + value.length;
    block.splice(at, exists ? 1 : 0, { key: key.slice(), value: value.slice() });
    if (this.blocks.length === 0) this.blocks.push(block);
    if (block.length <= BLOCK_ROWS) return;
    this.blocks.splice(number + 1, 0, block.splice(BLOCK_ROWS / 2));
  }

  sizeBytes(): number {
    return this.bytes;
  }

  close(done: () => void): void {
    assert(!this.closed, "a store is closed once");
    this.closed = true;
    this.timers.soon(done);
  }
}
