/**
 * What every StorePort must do: one suite for LMDB, the in-memory store and a simulated one.
 *
 * Invariants: 1. Only the port and the harness are used. 2. Order is checked against a naive sort.
 */
import type { Test } from "tap";
import { compareBytes } from "../../src/base/bytes.js";
import { Prng } from "../../src/base/prng.js";
import { STORE_KEY_MAX_BYTES, type StoreChange, type StorePort } from "../../src/ports.js";

export interface StoreHarness {
  open(): Promise<StorePort>;
  /** Starts something and waits until it answers. */
  call<T>(start: (done: (value: T) => void) => void): Promise<T>;
  /** True when what was written is still there after close and open. */
  readonly survives: boolean;
  finish(): Promise<void>;
}

const NOTHING = new Uint8Array(0);

export function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function hex(value: Uint8Array): string {
  return Array.from(value, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Keys that are hard for a store with short keys: long, equal at the front, extreme bytes, mimicry.
 */
export function awkwardKeys(prng: Prng, count: number): Uint8Array[] {
  const lengths = [1, 2, 15, 16, 17, 493, 494, 495, 509, 510, 511, 512, 526, 1003, 1004, 1005];
  lengths.push(1006, 1024, 1498, 1499, 1992, 1993, 2303, STORE_KEY_MAX_BYTES);
  const fills = [0, 1, 0x61, 0xfe, 0xff];
  const keys: Uint8Array[] = [];
  for (let at = 0; at < count; at++) {
    const length = lengths[prng.below(lengths.length)] as number;
    const key = new Uint8Array(length).fill(fills[prng.below(fills.length)] as number);
    // Few differences, mostly near the places where a stored key ends.
    for (let change = prng.below(3); change > 0; change--) {
      const near = [0, 494, 509, 510, 511, 1003, 1004, 1498, length - 1];
      const place = Math.max(0, (near[prng.below(near.length)] as number) - prng.below(2));
      if (place < length) key[place] = fills[prng.below(fills.length)] as number;
    }
    keys.push(key);
  }
  return keys;
}

/** The naive store: a map from hexadecimal key to value. */
class Naive {
  readonly rows = new Map<string, { key: Uint8Array; value: Uint8Array }>();

  apply(changes: readonly StoreChange[]): void {
    for (const { key, value } of changes) {
      if (value === null) this.rows.delete(hex(key));
      else this.rows.set(hex(key), { key, value });
    }
  }

  range(first: Uint8Array, last: Uint8Array | null): { key: Uint8Array; value: Uint8Array }[] {
    const inside = [...this.rows.values()].filter(
      ({ key }) => compareBytes(key, first) >= 0 && (last === null || compareBytes(key, last) < 0),
    );
    return inside.sort((a, b) => compareBytes(a.key, b.key));
  }
}

class Driver {
  constructor(
    readonly harness: StoreHarness,
    public store: StorePort,
  ) {}

  /** Sorts, keeps the last change of each key, writes. */
  async write(changes: readonly StoreChange[]): Promise<StoreChange[]> {
    const last = new Map<string, StoreChange>();
    for (const change of changes) last.set(hex(change.key), change);
    const sorted = [...last.values()].sort((a, b) => compareBytes(a.key, b.key));
    const code = await this.harness.call<string>((done) => {
      this.store.write(sorted, (result) => done(result.ok ? "written" : result.code));
    });
    if (code !== "written") throw new Error(code);
    return sorted;
  }

  scan(first: Uint8Array, last: Uint8Array | null, limit = Infinity): string[] {
    const rows: string[] = [];
    this.store.scan(first, last, (key, value) => {
      rows.push(`${hex(key)}=${hex(value)}`);
      return rows.length < limit;
    });
    return rows;
  }

  keys(first: Uint8Array, last: Uint8Array | null): string[] {
    const keys: string[] = [];
    const visit = (key: Uint8Array): boolean => keys.push(hex(key)) > 0;
    this.store.scan(first, last, visit, true);
    return keys;
  }

  async reopen(): Promise<void> {
    await this.harness.call<undefined>((done) => this.store.close(() => done(undefined)));
    this.store = await this.harness.open();
  }
}

function described(rows: readonly { key: Uint8Array; value: Uint8Array }[]): string[] {
  return rows.map(({ key, value }) => `${hex(key)}=${hex(value)}`);
}

type Case = (t: Test, driver: Driver) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "put, replace, delete, read back": async (t, driver) => {
    t.equal(driver.store.get(bytes("a")), null);
    t.same(driver.scan(NOTHING, null), []);
    await driver.write([
      { key: bytes("a"), value: bytes("1") },
      { key: bytes("b"), value: NOTHING },
      { key: bytes("c"), value: new Uint8Array(100_000).fill(7) },
    ]);
    t.same(driver.store.get(bytes("a")), bytes("1"));
    t.same(driver.store.get(bytes("b")), NOTHING, "an empty value is a value");
    t.equal(driver.store.get(bytes("c"))?.length, 100_000);
    await driver.write([
      { key: bytes("a"), value: bytes("2") },
      { key: bytes("b"), value: null },
      { key: bytes("never"), value: null },
    ]);
    t.same(driver.store.get(bytes("a")), bytes("2"));
    t.equal(driver.store.get(bytes("b")), null);
    t.equal(driver.scan(NOTHING, null).length, 2);
    await driver.write([]);
    t.ok(driver.store.sizeBytes() > 0);
  },
  "P-125 what was read does not change, what was written was copied": async (t, driver) => {
    const value = bytes("before");
    await driver.write([{ key: bytes("k"), value }]);
    value.fill(0);
    const read = driver.store.get(bytes("k"));
    t.same(read, bytes("before"));
    const seen: Uint8Array[] = [];
    driver.store.scan(NOTHING, null, (key, scanned) => {
      seen.push(key, scanned);
      return true;
    });
    for (let round = 0; round < 20; round++) {
      await driver.write([{ key: bytes("k"), value: new Uint8Array(6).fill(round) }]);
    }
    t.same(read, bytes("before"));
    t.same(seen, [bytes("k"), bytes("before")]);
    read?.fill(1);
    t.same(driver.store.get(bytes("k")), new Uint8Array(6).fill(19));
    t.equal(Object.getPrototypeOf(read), Uint8Array.prototype, "a plain byte array");
  },
  "a write is not seen in a turn that has read, and nobody is called in the same turn": async (
    t,
    driver,
  ) => {
    const seen = await driver.harness.call<(Uint8Array | null)[]>((done) => {
      let isInCall = true;
      // A turn reads one state, that of its first read: the write is done beside it.
      const first = driver.store.get(bytes("k"));
      driver.store.write([{ key: bytes("k"), value: bytes("v") }], () => {
        t.notOk(isInCall);
        done([first, before, driver.store.get(bytes("k"))]);
      });
      const before = driver.store.get(bytes("k"));
      isInCall = false;
    });
    t.same(seen, [null, null, bytes("v")]);
  },
  "P-126 scans of all kinds of keys agree with a naive sort": async (t, driver) => {
    const prng = new Prng(5);
    const naive = new Naive();
    const keys = awkwardKeys(prng, 220);
    for (let round = 0; round < 12; round++) {
      const changes: StoreChange[] = [];
      for (let at = 0; at < 60; at++) {
        const key = keys[prng.below(keys.length)] as Uint8Array;
        const value = prng.chance(2, 5) ? null : bytes(`${String(round)}/${String(at)}`);
        changes.push({ key, value });
      }
      naive.apply(await driver.write(changes));
      t.same(driver.scan(NOTHING, null), described(naive.range(NOTHING, null)));
      for (let query = 0; query < 25; query++) {
        const first = keys[prng.below(keys.length)] as Uint8Array;
        const last = prng.chance(1, 5) ? null : (keys[prng.below(keys.length)] as Uint8Array);
        const limit = 1 + prng.below(9);
        const whole = described(naive.range(first, last)).slice(0, limit);
        const found = driver.scan(first, last, limit);
        if (found.join() !== whole.join()) t.same(found, whole, hex(first));
        const known = naive.range(first, last).map(({ key }) => hex(key));
        if (driver.keys(first, last).join() !== known.join()) t.fail(`keys from ${hex(first)}`);
        const row = naive.rows.get(hex(first));
        const got = driver.store.get(first);
        if (hex(got ?? bytes("none")) !== hex(row?.value ?? bytes("none"))) t.fail(hex(first));
      }
    }
    await driver.write(keys.map((key) => ({ key, value: null })));
    t.same(driver.scan(NOTHING, null), [], "nothing is left");
  },
  "what was written is there after a restart": async (t, driver) => {
    if (!driver.harness.survives) return;
    const long = new Uint8Array(2000).fill(9);
    await driver.write([
      { key: bytes("a"), value: bytes("1") },
      { key: long, value: bytes("2") },
    ]);
    await driver.reopen();
    t.same(driver.store.get(bytes("a")), bytes("1"));
    t.same(driver.store.get(long), bytes("2"));
    t.equal(driver.scan(NOTHING, null).length, 2);
  },
  "misuse is a bug, and says so": async (t, driver) => {
    const row = { key: bytes("a"), value: NOTHING };
    t.throws(() => driver.store.get(NOTHING), { code: "assertion-failed" });
    t.throws(() => driver.store.write([row, row], () => undefined), { code: "assertion-failed" });
    const large = { key: new Uint8Array(STORE_KEY_MAX_BYTES + 1), value: NOTHING };
    t.throws(() => driver.store.write([large], () => undefined), { code: "assertion-failed" });
    await driver.harness.call<undefined>((done) => {
      driver.store.write([row], () => done(undefined));
      t.throws(() => driver.store.write([row], () => undefined), { code: "assertion-failed" });
    });
    t.same(driver.store.get(bytes("a")), NOTHING, "and leaves the store usable");
  },
};

/** Runs all cases, each on a store of its own. */
export function storeConformance(t: Test, name: string, make: () => StoreHarness): void {
  for (const [title, run] of Object.entries(cases)) {
    void t.test(`${name}: ${title}`, async (inner) => {
      const harness = make();
      const driver = new Driver(harness, await harness.open());
      await run(inner, driver);
      await harness.call<undefined>((done) => driver.store.close(() => done(undefined)));
      await harness.finish();
    });
  }
}
