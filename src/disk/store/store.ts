/**
 * StorePort on LMDB: long keys, map growth, the bound on the file.
 *
 * Owns one environment.
 *
 * Invariants: 1. Order is the order of full keys, whatever their length. 2. A branch exists as long
 * as a row lives below it, and goes in the transaction that deletes the last. 3. "full" leaves the
 * store as it was; every other failure ends the process. 4. The map grows by doubling, up to
 * `maxBytes`.
 *
 * Fatal reasons: "state store write failed", "state store row damaged" with the place of
 * the row: such a row is never given out.
 */
import { AssertionError, assert } from "../../base/assert.js";
import { compareBytes, concatBytes, equalBytes, startsWithBytes } from "../../base/bytes.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { FatalPort, LoggerPort, StoreChange, StorePort, TimerPort } from "../../ports.js";
import { LmdbEnvironment } from "./lmdb.js";
import type { TableChange } from "./row-batch.js";
import {
  CHUNK_BYTES,
  FIRST_BYTES,
  NO_DIGEST,
  branchKey,
  branchLengths,
  checkKey,
  decodeLongValue,
  digestOf,
  encodeLongValue,
  isLongKey,
  longRowKey,
} from "./storekeys.js";

export interface StorePorts {
  readonly timers: TimerPort;
  readonly logger: LoggerPort;
  readonly fatal: FatalPort;
}

export interface StoreOptions {
  readonly path: string;
  /** Bound of the file, bytes. */
  readonly maxBytes: number;
  /** First size of the map, bytes. */
  readonly mapBytes: number;
  /** Tells in words where the row with this key belongs. */
  readonly placeOfRow?: (key: Uint8Array) => string;
}

/** What the store says about itself, for metrics. */
export interface StoreFigures {
  /** Bytes of the pages that hold rows; the file is larger by those that are free again. */
  readonly usedBytes: number;
  /** For so long a read transaction has been open (ms). */
  readonly readAgeMs: number;
}

const NO_FIGURES: StoreFigures = { usedBytes: 0, readAgeMs: 0 };
const NO_VALUE = new Uint8Array(0);
const PAGE_BYTES = 4096;
type Visit = (key: Uint8Array, value: Uint8Array) => boolean;

/** "store-unreadable": LMDB cannot open it (damaged, newer, or not permitted). */
export function openStore(
  options: StoreOptions,
  ports: StorePorts,
): Result<LmdbStore, "store-unreadable"> {
  try {
    const mapBytes = pages(Math.min(options.maxBytes, options.mapBytes));
    return ok(
      new LmdbStore(new LmdbEnvironment(options.path, mapBytes, ports.timers), options, ports),
    );
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const remedy = "restore the directory from a copy, or start this node empty";
    return failure(
      "store-unreadable",
      `cannot open the state store ${options.path}: ${why}; ${remedy}`,
    );
  }
}

function pages(bytes: number): number {
  return Math.max(1, Math.floor(bytes / PAGE_BYTES)) * PAGE_BYTES;
}

export class LmdbStore implements StorePort {
  private writing = false;
  private closing: (() => void) | null = null;

  constructor(
    private readonly environment: LmdbEnvironment,
    private readonly options: StoreOptions,
    private readonly ports: StorePorts,
  ) {}

  /** True from the call of `close` on. */
  get isClosed(): boolean {
    return this.closing !== null;
  }

  get(key: Uint8Array): Uint8Array | null {
    checkKey(key);
    const isLong = isLongKey(key);
    const stored = isLong
      ? this.environment.get("long", longRowKey(key))
      : this.environment.get("short", key);
    if (stored === "damaged") return this.damaged(key);
    if (stored === null || !isLong) return stored;
    const row = decodeLongValue(stored);
    return row !== null && equalBytes(row.key, key) ? row.value : this.damaged(key);
  }

  scan(first: Uint8Array, last: Uint8Array | null, visit: Visit, keysOnly = false): void {
    if (last !== null && compareBytes(first, last) >= 0) return;
    this.walk(NO_DIGEST, first, last, visit, keysOnly);
  }

  /**
   * Visits the rows behind `prefix` (all, when it is empty) from `first` on. False: `visit` had
   * enough.
   */
  private walk(
    prefix: Uint8Array,
    first: Uint8Array,
    last: Uint8Array | null,
    visit: Visit,
    keysOnly = false,
  ): boolean {
    const isTop = prefix.length === 0;
    const table = isTop ? "short" : "long";
    const digest = isTop ? NO_DIGEST : digestOf(prefix);
    const chunkBytes = isTop ? FIRST_BYTES : CHUNK_BYTES;
    const below = startsWithBytes(first, prefix);
    const rest = below ? first.subarray(prefix.length) : NO_VALUE;
    const isDeep = rest.length > chunkBytes;
    const start = isDeep ? branchKey(first, prefix.length + chunkBytes) : concatBytes(digest, rest);
    let goOn = true;
    this.environment.scan(table, start, (stored, value) => {
      if (!startsWithBytes(stored, digest)) return false;
      const chunk = stored.subarray(digest.length);
      if (chunk.length > chunkBytes) {
        const branch = concatBytes(prefix, chunk.subarray(0, chunkBytes));
        if (last !== null && compareBytes(branch, last) >= 0) goOn = false;
        else goOn = this.walk(branch, first, last, visit, keysOnly);
        return goOn;
      }
      // A long key lies in its value.
      const own = isTop && keysOnly ? NO_VALUE : value();
      if (own === null) return this.damaged(isTop ? stored : prefix);
      const row = isTop ? { key: stored, value: own } : decodeLongValue(own);
      const isOwn = row !== null && (isTop || isRowOf(row.key, prefix, chunk));
      if (!isOwn) return this.damaged(prefix);
      if (last !== null && compareBytes(row.key, last) >= 0) goOn = false;
      else goOn = visit(row.key, row.value);
      return goOn;
    });
    return goOn;
  }

  write(changes: readonly StoreChange[], done: (result: Result<null, "full">) => void): void {
    assert(!this.writing && this.closing === null, "one write at a time, before close");
    const rows = this.tableChanges(changes);
    this.writing = true;
    if (rows.length === 0) {
      return this.ports.timers.soon(() => this.finish(() => done(ok(null))));
    }
    this.attempt(rows, done);
  }

  private attempt(rows: TableChange[], done: (result: Result<null, "full">) => void): void {
    this.environment.write(rows, (result) => {
      if (result.ok) return this.finish(() => done(result));
      if (result.code !== "full") {
        return this.ports.fatal.fatal("state store write failed", { why: result.message });
      }
      const limit = pages(this.options.maxBytes);
      const size = this.environment.mapSizeBytes;
      const isMap = result.message.includes("MDB_MAP_FULL");
      if (isMap && size < limit) {
        this.environment.grow(Math.min(limit, size * 2));
        return this.attempt(rows, done);
      }
      this.ports.logger.log("error", "no space for the state store", { why: result.message });
      this.finish(() => done(failure("full", result.message)));
    });
  }

  private finish(next: () => void): void {
    this.writing = false;
    if (this.closing !== null) {
      this.environment.close();
      this.ports.timers.soon(this.closing);
    }
    next();
  }

  /** The rows of both tables, branches included. */
  private tableChanges(changes: readonly StoreChange[]): TableChange[] {
    const rows: TableChange[] = [];
    const long: StoreChange[] = [];
    let previous: Uint8Array | null = null;
    for (const change of changes) {
      const { key, value } = change;
      checkKey(key);
      const ascending = previous === null || compareBytes(previous, key) < 0;
      assert(ascending, "changes are sorted by key, without repeats");
      previous = key;
      if (isLongKey(key)) long.push(change);
      else rows.push({ table: "short", key, value });
    }
    if (long.length > 0) this.addLongRows(long, rows);
    return rows;
  }

  private addLongRows(changes: readonly StoreChange[], rows: TableChange[]): void {
    const puts = changes.filter(({ value }) => value !== null);
    const deletes = changes.filter(({ value }) => value === null);
    for (const { key, value } of deletes) rows.push({ table: "long", key: longRowKey(key), value });
    // Deepest branches first: a branch above is empty only if those below it are gone.
    const doomed = new Set(deletes.map(({ key }) => keyText(key)));
    const candidates: Uint8Array[] = [];
    for (const { key } of deletes) {
      for (const length of branchLengths(key.length)) candidates.push(key.subarray(0, length));
    }
    candidates.sort((a, b) => b.length - a.length || compareBytes(a, b));
    const kept = new Set<string>();
    for (const { key } of puts) {
      for (const length of branchLengths(key.length)) kept.add(keyText(key.subarray(0, length)));
    }
    const seen = new Set<string>(kept);
    for (const branch of candidates) {
      const text = keyText(branch);
      if (seen.has(text)) continue;
      seen.add(text);
      if (this.hasOther(branch, doomed)) continue;
      const table = branch.length === FIRST_BYTES ? "short" : "long";
      rows.push({ table, key: branchKey(branch, branch.length), value: null });
    }
    for (const { key, value } of puts) {
      if (value === null) continue;
      for (const length of branchLengths(key.length)) {
        // One branch serves all rows below it.
        if (!kept.delete(keyText(key.subarray(0, length)))) continue;
        const table = length === FIRST_BYTES ? "short" : "long";
        rows.push({ table, key: branchKey(key, length), value: NO_VALUE });
      }
      rows.push({ table: "long", key: longRowKey(key), value: encodeLongValue(key, value) });
    }
  }

  /** True when a row below `branch` exists that is not among `doomed`. */
  private hasOther(branch: Uint8Array, doomed: ReadonlySet<string>): boolean {
    let other = false;
    this.walk(branch, NO_VALUE, null, (key) => {
      other = !doomed.has(keyText(key));
      return !other;
    });
    return other;
  }

  sizeBytes(): number {
    return this.environment.sizeBytes();
  }

  /** Zeros once it is being closed. */
  figures(): StoreFigures {
    if (this.closing !== null) return NO_FIGURES;
    const { environment } = this;
    const readAgeMs = environment.readAgeMs();
    return { readAgeMs, usedBytes: environment.usedBytes() };
  }

  close(done: () => void): void {
    assert(this.closing === null, "a store is closed once");
    this.closing = done;
    if (!this.writing) this.finish(() => undefined);
  }

  private damaged(key: Uint8Array): never {
    const { path, placeOfRow } = this.options;
    const place = placeOfRow?.(key) ?? "unknown";
    this.ports.fatal.fatal(`state store row damaged: ${place}`, { path });
    throw new AssertionError("a damaged row is never given out");
  }
}

function isRowOf(key: Uint8Array, prefix: Uint8Array, chunk: Uint8Array): boolean {
  const whole = key.length === prefix.length + chunk.length && startsWithBytes(key, prefix);
  return whole && equalBytes(key.subarray(prefix.length), chunk);
}

function keyText(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1");
}
