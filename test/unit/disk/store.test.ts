/**
 * The state stores: conformance of LMDB and memory, map growth, bounds, and the guards around LMDB.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { compareBytes } from "../../../src/base/bytes.js";
import { LmdbEnvironment } from "../../../src/disk/store/lmdb.js";
import { residentFileBytes } from "../../../src/disk/store/resident.js";
import type { TableChange } from "../../../src/disk/store/row-batch.js";
import { MemoryStore } from "../../../src/disk/store/memorystore.js";
import { type LmdbStore, openStore } from "../../../src/disk/store/store.js";
import { RowKind, generationPrefix, groupRecordKey } from "../../../src/machine/store/keys.js";
import { placeOfRow } from "../../../src/machine/store/row-place.js";
import type { LogFields, StoreChange, StorePort, TimerPort } from "../../../src/ports.js";
import { type StoreHarness, bytes, storeConformance } from "../../conformance/store.js";

const timers: TimerPort = {
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  soon: (callback) => void setImmediate(callback),
};

function temporary(): string {
  return mkdtempSync(join(tmpdir(), "svc-store-"));
}

const fatals: { reason: string; fields: LogFields | undefined }[] = [];

function openAt(
  path: string,
  maxBytes = 2 ** 34,
  mapBytes = 2 ** 20,
  placeOfRow: (key: Uint8Array) => string = () => "unknown",
): LmdbStore {
  const ports = {
    timers,
    logger: { log: () => undefined },
    fatal: { fatal: (reason: string, fields?: LogFields) => void fatals.push({ reason, fields }) },
  };
  const opened = openStore({ path, maxBytes, mapBytes, placeOfRow }, ports);
  if (!opened.ok) throw new Error(opened.message);
  return opened.value;
}

function waiting<T>(start: (done: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve) => start(resolve));
}

function lmdbHarness(): StoreHarness {
  const path = temporary();
  return {
    survives: true,
    open: () => Promise.resolve(openAt(path)),
    call: waiting,
    finish() {
      rmSync(path, { recursive: true });
      return Promise.resolve();
    },
  };
}

storeConformance(t, "lmdb", lmdbHarness);
storeConformance(t, "memory", () => ({
  survives: false,
  open: () => Promise.resolve(new MemoryStore(timers, 2 ** 30)),
  call: waiting,
  finish: () => Promise.resolve(),
}));

function write(store: StorePort, changes: readonly StoreChange[]): Promise<string> {
  return waiting((done) => {
    store.write(changes, (result) => done(result.ok ? "written" : result.code));
  });
}

function closing(store: StorePort): Promise<undefined> {
  return waiting((done) => store.close(() => done(undefined)));
}

function rows(count: number, valueBytes: number, prefix = "row"): StoreChange[] {
  const list: StoreChange[] = [];
  for (let at = 0; at < count; at++) {
    const key = bytes(`${prefix}${String(at).padStart(8, "0")}`);
    list.push({ key, value: new Uint8Array(valueBytes).fill(at) });
  }
  return list;
}

void t.test(
  "P-122 a full map grows by itself; at its bound the write is refused whole",
  async (t) => {
    const path = temporary();
    const store = openAt(path, 16 * 2 ** 20, 2 ** 20);
    t.equal(await write(store, rows(3000, 1000, "a")), "written", "three maps' worth");
    t.ok(store.sizeBytes() > 3_000_000);
    t.equal(store.get(bytes("a00002999"))?.length, 1000, "read in the larger map");
    t.equal(await write(store, rows(30_000, 1000, "b")), "full");
    t.equal(store.get(bytes("b00000000")), null, "nothing of it was written");
    t.equal(store.get(bytes("a00000000"))?.length, 1000, "reads go on");
    t.ok(store.sizeBytes() <= 16 * 2 ** 20);
    t.equal(
      await write(
        store,
        rows(3000, 1000, "a").map(({ key }) => ({ key, value: null })),
      ),
      "written",
    );
    t.equal(await write(store, rows(3000, 1000, "c")), "written", "what was freed is used again");
    await closing(store);
    const again = openAt(path, 64 * 2 ** 20, 2 ** 20);
    t.equal(again.get(bytes("c00000000"))?.length, 1000, "a file larger than the first map opens");
    t.equal(await write(again, rows(9000, 1000, "d")), "written");
    await closing(again);
    t.same(fatals, []);
    rmSync(path, { recursive: true });
  },
);

void t.test("a full memory store refuses, and has room after deletes", async (t) => {
  const store = new MemoryStore(timers, 100_000);
  t.equal(await write(store, rows(80, 1000)), "written");
  t.equal(await write(store, rows(80, 1000, "b")), "full");
  t.equal(
    await write(
      store,
      rows(80, 0).map(({ key }) => ({ key, value: null })),
    ),
    "written",
  );
  t.equal(await write(store, rows(80, 1000, "b")), "written");
});

void t.test("P-123 reading all the time does not make the file grow", async (t) => {
  const path = temporary();
  const store = openAt(path, 2 ** 34, 2 ** 26);
  await write(store, rows(2000, 500));
  await write(store, rows(2000, 500));
  const first = store.sizeBytes();
  for (let round = 0; round < 30; round++) {
    const written = write(store, rows(2000, 500));
    t.throws(() => {
      store.scan(bytes("r"), null, () => {
        throw new Error("inside a scan");
      });
    }, /inside a scan/);
    store.get(bytes("row00000001"));
    await written;
  }
  t.ok(store.sizeBytes() < first * 2.5, `${String(first)} to ${String(store.sizeBytes())}`);
  await closing(store);
  rmSync(path, { recursive: true });
});

void t.test("the guards of the environment come before the native calls", async (t) => {
  const path = temporary();
  const environment = new LmdbEnvironment(path, 2 ** 20, timers);
  const long = new Uint8Array(512);
  const misuse = { code: "assertion-failed" };
  t.throws(() => environment.get("short", long), misuse);
  t.throws(() => environment.get("short", new Uint8Array(0)), misuse);
  const change = { table: "short", key: long, value: long } as const;
  t.throws(() => environment.write([change], () => undefined), misuse);
  t.throws(() => environment.grow(2 ** 19), misuse);
  const row = { table: "short", key: bytes("k"), value: bytes("v") } as const;
  await waiting<undefined>((done) => {
    environment.write([row], () => done(undefined));
    t.throws(() => environment.write([row], () => undefined), misuse, "one at a time");
    t.throws(() => environment.close(), misuse, "not while it writes");
    t.throws(() => environment.grow(2 ** 21), misuse, "not while it writes");
  });
  t.same(environment.get("short", bytes("k")), bytes("v"));
  environment.close();
  for (const use of [
    () => environment.get("short", bytes("k")),
    () => environment.scan("short", bytes("k"), () => true),
    () => environment.write([row], () => undefined),
    () => environment.sizeBytes(),
    () => environment.close(),
  ]) {
    t.throws(use, misuse, "nothing after close");
  }
  rmSync(path, { recursive: true });
});

void t.test(
  "P-119 a read after a finished write never has the snapshot from before it",
  async (t) => {
    const path = temporary();
    // The turn in which the snapshot was taken does not end here.
    const never: TimerPort = { after: timers.after, soon: () => undefined };
    const environment = new LmdbEnvironment(path, 2 ** 20, never);
    const put = (value: string): Promise<undefined> =>
      waiting<undefined>((done) => {
        const row = { table: "short", key: bytes("k"), value: bytes(value) } as const;
        environment.write([row], () => done(undefined));
      });
    await put("old");
    t.same(environment.get("short", bytes("k")), bytes("old"));
    await put("new");
    t.same(environment.get("short", bytes("k")), bytes("new"));
    environment.close();
    rmSync(path, { recursive: true });
  },
);

void t.test(
  "P-123 pages of the file are given back between writes, whoever read meanwhile",
  async (t) => {
    const path = temporary();
    let turnEnds = (): void => undefined;
    const late: TimerPort = { after: timers.after, soon: (callback) => (turnEnds = callback) };
    // Every second write finds that too much is resident.
    let isMuch = false;
    const mapped = (): number => (isMuch ? 2 ** 40 : 0);
    const environment = new LmdbEnvironment(path, 2 ** 22, late, mapped);
    const key = (at: number): Uint8Array => bytes(`key ${String(at).padStart(4, "0")}`);
    for (let round = 0; round < 8; round++) {
      isMuch = round % 2 === 0;
      const change = { table: "short", value: bytes(`value ${round}`) } as const;
      const rows = Array.from({ length: 200 }, (_, at) => ({
        ...change,
        key: key(round * 200 + at),
      }));
      await waiting<undefined>((done) => {
        environment.write(rows, () => done(undefined));
        // A snapshot is open when the write ends.
        environment.get("short", key(0));
      });
      t.same(environment.get("short", key(round * 200 + 199)), bytes(`value ${round}`));
      let seen = 0;
      environment.scan("short", key(0), () => ++seen > 0);
      t.equal(seen, (round + 1) * 200);
    }
    t.equal(environment.remaps, 4);
    // Turns that only read find it too, the next one or a later one.
    isMuch = true;
    const endMs = performance.now() + 60_000;
    while (environment.remaps === 4 && performance.now() < endMs) {
      environment.get("short", key(0));
      turnEnds();
    }
    t.equal(environment.remaps, 5);
    environment.grow(2 ** 23);
    t.same(environment.get("short", key(0)), bytes("value 0"));
    environment.close();
    rmSync(path, { recursive: true });
  },
);

void t.test("many rows of one write are made ready in several turns", async (t) => {
  const path = temporary();
  let turns = 0;
  let environment: LmdbEnvironment | null = null;
  const row = (at: number, value: string): TableChange => {
    return { table: "short", key: bytes(`key ${at}`), value: bytes(value) };
  };
  const between: TimerPort = {
    soon: timers.soon,
    after: (delayMs, callback) => {
      turns++;
      // Who reads meanwhile sees the state before; nobody else writes.
      t.equal(environment?.get("short", bytes("key 1999")), null);
      t.throws(() => environment?.write([], () => undefined), { code: "assertion-failed" });
      return timers.after(delayMs, callback);
    },
  };
  environment = new LmdbEnvironment(path, 2 ** 22, between);
  const rows = Array.from({ length: 2000 }, (_, at) => row(at, `value ${at}`));
  await waiting<undefined>((done) => environment?.write(rows, () => done(undefined)));
  t.equal(turns, 3);
  for (const at of [0, 511, 512, 1023, 1024, 1999]) {
    t.same(environment.get("short", bytes(`key ${at}`)), bytes(`value ${at}`));
  }
  await waiting<undefined>((done) => environment?.write([], () => done(undefined)));
  environment.close();
  rmSync(path, { recursive: true });
});

void t.test("what is resident of files is told on Linux", (t) => {
  const resident = residentFileBytes();
  if (process.platform === "linux") t.ok(resident > 2 ** 20, `${resident} bytes of the program`);
  else t.equal(resident, 0);
  t.end();
});

void t.test("close waits for a write in flight", async (t) => {
  const path = temporary();
  const store = openAt(path);
  const order: string[] = [];
  const written = write(store, rows(500, 100)).then((code) => order.push(code));
  await closing(store).then(() => order.push("closed"));
  await written;
  t.same(order, ["written", "closed"]);
  const again = openAt(path);
  t.ok(again.get(bytes("row00000499")));
  await closing(again);
  rmSync(path, { recursive: true });
});

void t.test("a store that is no store is refused with path and remedy", (t) => {
  const path = temporary();
  writeFileSync(join(path, "data.mdb"), new Uint8Array(8192).fill(3));
  const ports = { timers, logger: { log: () => undefined }, fatal: { fatal: () => undefined } };
  const opened = openStore({ path, maxBytes: 2 ** 30, mapBytes: 2 ** 20 }, ports);
  t.match(opened, { ok: false, code: "store-unreadable", message: /restore/ });
  t.match(opened, { message: path });
  rmSync(path, { recursive: true });
  t.end();
});

/** The stored rows of the tests below, and how to find one in the file. */
const ROWS = [
  { key: rowKey(3, RowKind.value, "folder/needle"), value: "value-of-the-short-row" },
  { key: rowKey(5, RowKind.lock, "lock"), value: "row-of-a-lock" },
  { key: rowKey(7, RowKind.value, `folder/${"k".repeat(900)}`), value: "value-of-the-long-row" },
  { key: bytes(groupRecordKey(9)), value: "record-of-the-group" },
];

function rowKey(group: number, kind: number, name: string): Uint8Array {
  return bytes(generationPrefix(group, 0) + String.fromCharCode(kind) + name);
}

void t.test("P-130, C15 a row with one bit turned is never given out", async (t) => {
  const places = [
    'partition 3, a row of kind value, key space "folder"',
    "partition 5, a row of kind lock",
    'partition 7, a row of kind value, key space "folder"',
    "partition 9, its record",
  ];
  const path = temporary();
  const store = openAt(path);
  const changes = ROWS.map(({ key, value }) => ({ key, value: bytes(value) }));
  await write(
    store,
    changes.sort((a, b) => compareBytes(a.key, b.key)),
  );
  await closing(store);
  const file = join(path, "data.mdb");
  const whole = readFileSync(file);
  for (const [number, { key, value }] of ROWS.entries()) {
    // Each byte of the value and of its checksum, and the last of what is stored before it.
    for (let offset = -1; offset < value.length + 4; offset += offset < 1 ? 1 : 3) {
      const data = Buffer.from(whole);
      const at = data.indexOf(value);
      t.ok(at > 0);
      data[at + offset] = (data[at + offset] as number) ^ (1 << (offset & 7));
      writeFileSync(file, data);
      const again = openAt(path, undefined, undefined, placeOfRow);
      const read = (): unknown => again.get(key);
      const scan = (): void => again.scan(key, null, () => true);
      // A turned bit of a key is no row of that key any more: only who comes along finds it.
      for (const use of offset < 0 ? [scan] : [read, scan]) {
        fatals.length = 0;
        try {
          use();
        } catch (error) {
          t.match(error, { code: "assertion-failed" });
        }
        const reason = fatals[0]?.reason ?? "";
        if (offset >= 0) t.equal(reason, `state store row damaged: ${places[number] ?? ""}`);
        else t.match(reason, /^state store row damaged: /);
      }
      await closing(again);
    }
  }
  writeFileSync(file, whole);
  fatals.length = 0;
  const sound = openAt(path);
  for (const { key, value } of ROWS) t.same(sound.get(key), bytes(value));
  t.same(fatals, []);
  await closing(sound);
  rmSync(path, { recursive: true });
});

void t.test("P-118 a row that is not what was written ends the process", async (t) => {
  const path = temporary();
  const store = openAt(path);
  const key = new Uint8Array(1000).fill(5);
  await write(store, [{ key, value: bytes("needle-in-the-row") }]);
  await closing(store);
  const file = join(path, "data.mdb");
  const data = readFileSync(file);
  // The full key kept in the row differs from the one asked for.
  const at = data.indexOf(Buffer.concat([Buffer.alloc(8, 5), Buffer.from("needle-in-the-row")]));
  t.ok(at > 0 && statSync(file).size > at);
  data[at] = 6;
  writeFileSync(file, data);
  const again = openAt(path);
  t.throws(() => again.get(key), { code: "assertion-failed" });
  t.match(fatals, [{ reason: "state store row damaged: unknown" }]);
  fatals.length = 0;
  await closing(again);
  rmSync(path, { recursive: true });
});
