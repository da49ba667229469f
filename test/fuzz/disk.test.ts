/**
 * Hostile bytes for everything that the disk is read into: log records, segments, store rows,
 * identity.
 *
 * Half of the log inputs carry right checksums over hostile content, so that they get past the
 * frame.
 *
 * Invariants: 1. No input makes a decoder throw, hang or take memory beyond its bounds. 2. Seeds
 * are fixed: a failure repeats.
 */
import t from "tap";
import { EMPTY_BYTES, compareBytes, equalBytes } from "../../src/base/bytes.js";
import { Prng } from "../../src/base/prng.js";
import { Appender } from "../../src/disk/log/appender.js";
import { entryAt } from "../../src/disk/log/framecheck.js";
import {
  SECTOR_BYTES,
  decodeFloor,
  decodeHeader,
  decodeLink,
  encodeFloor,
  encodeHeader,
  encodeLink,
  saltOf,
} from "../../src/disk/log/records.js";
import { replayRows } from "../../src/disk/log/replay.js";
import { newSegment } from "../../src/disk/log/segment.js";
import { SegmentSet } from "../../src/disk/log/segments.js";
import {
  LMDB_KEY_MAX_BYTES,
  branchKey,
  branchLengths,
  decodeLongValue,
  encodeLongValue,
  isLongKey,
  longRowKey,
} from "../../src/disk/store/storekeys.js";
import { STORAGE_FORMAT_VERSION, parseIdentity } from "../../src/disk/data-directory.js";
import { createKernels } from "../../src/wasm/kernels.js";
import { awkwardKeys } from "../conformance/store.js";
import {
  DIRECTORY,
  IDENTITY,
  close,
  entries,
  machine,
  open,
  portsOf,
  restart,
  tryOpen,
  write,
} from "../doubles/disk/fixture.js";
import { FakeDisk, Steps } from "../doubles/disk/fakedisk.js";

const INPUTS = 100_000;
const kernels = createKernels({ mode: "wasm" });
const SALT = saltOf(IDENTITY);

function mutate(prng: Prng, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice(0, prng.chance(1, 5) ? prng.below(bytes.length + 1) : bytes.length);
  for (let change = prng.below(6); change > 0 && copy.length > 0; change--) {
    const at = prng.below(copy.length);
    copy[at] = prng.chance(1, 3)
      ? ([0, 1, 127, 128, 255][prng.below(5)] as number)
      : prng.nextUint32();
  }
  return copy;
}

function noise(prng: Prng, longest: number): Uint8Array {
  return Uint8Array.from({ length: prng.below(longest + 1) }, () => prng.nextUint32() & 255);
}

/** Numbers as a hostile writer would choose them. */
function hostileNumber(prng: Prng): number {
  const few = [0, 1, 2, 3, 5, 2 ** 24, 2 ** 32, 2 ** 53 - 1];
  return prng.chance(1, 8) ? (few[prng.below(few.length)] as number) : prng.below(40);
}

function emptyLog(): Appender {
  const on = machine(2 ** 20, undefined, kernels);
  const options = { directory: DIRECTORY, identity: IDENTITY, segmentBytes: 2 ** 20 };
  const rest = { spaceRetryMs: 1, mayCreate: true };
  const segments = new SegmentSet({ ...options, ...rest }, portsOf(on), kernels, () => undefined);
  const file = { path: "segment" };
  segments.adopt(newSegment(1, "segment", file, SECTOR_BYTES, 0), false);
  return new Appender(segments, kernels, portsOf(on), () => undefined);
}

/** Seals random records and gives the bytes. */
function sealedRecords(prng: Prng): Uint8Array {
  const region = kernels.record.acquire();
  if (region === undefined) throw new Error("a region is free");
  const kinds = [1, 1, 1, 1, 6, 6, 2, 5, 4, 3, 16, 17, 18, 99];
  for (let count = 1 + prng.below(8); count > 0; count--) {
    const kind = kinds[prng.below(kinds.length)] as number;
    const floor = { index: hostileNumber(prng), term: hostileNumber(prng) };
    const isState = (kind === 2 || kind === 5) && prng.chance(9, 10);
    const payload = isState ? encodeFloor(floor) : noise(prng, 40);
    const tag = prng.chance(1, 10) ? prng.nextUint32() : prng.below(3);
    region.append(kind, prng.below(3), tag, hostileNumber(prng), hostileNumber(prng), payload);
  }
  const place = { segmentId: 1, salt: SALT, offset: SECTOR_BYTES, previousChecksum: 0 };
  const sealed = region.seal({ ...place, durableOffset: SECTOR_BYTES, sectorBytes: 0 });
  const bytes = sealed.bytes.slice();
  region.release();
  return bytes;
}

function scanAndReplay(bytes: Uint8Array, appender: Appender): number {
  const { scanner } = kernels;
  scanner.window.set(bytes);
  const place = { segmentId: 1, salt: SALT, offset: SECTOR_BYTES, previousChecksum: 0, last: true };
  const stop = scanner.scan(bytes.length, place);
  if (stop.records === 0) return 0;
  const notes = { closed: false, records: 0 };
  const wrong = replayRows(scanner, 0, stop.records, 1, appender, notes);
  for (const index of appender.groups.values()) {
    const snapshot = index.recovered();
    index.firstHole();
    if (snapshot.lastIndex < snapshot.floor.index)
      throw new Error("a recovered log ends above its floor");
  }
  return wrong === null ? 1 : 2;
}

void t.test(
  "P-128 log records: right checksums over hostile content, and mutations of them",
  (t) => {
    const prng = new Prng(1);
    const outcomes = [0, 0, 0];
    for (let input = 0; input < INPUTS; input++) {
      const bytes = sealedRecords(prng);
      const given = prng.chance(1, 2) ? bytes : mutate(prng, bytes);
      const outcome = scanAndReplay(given, emptyLog());
      outcomes[outcome] = (outcomes[outcome] as number) + 1;
    }
    const [nothing = 0, taken = 0, refused = 0] = outcomes;
    t.ok(nothing > 1000 && taken > 1000 && refused > 1000, JSON.stringify(outcomes));
    t.end();
  },
);

void t.test("P-128 single frames, headers, links and floors", (t) => {
  const prng = new Prng(2);
  const header = encodeHeader(IDENTITY);
  let whole = 0;
  for (let input = 0; input < INPUTS; input++) {
    const bytes = sealedRecords(prng);
    const given = prng.chance(1, 2) ? bytes : mutate(prng, bytes);
    const at = prng.chance(3, 4) ? 0 : prng.below(given.length + 1);
    const place = { segmentId: 1, salt: SALT, offset: SECTOR_BYTES };
    if (entryAt(given, at, place, 1) !== null) whole++;
    const part = prng.chance(1, 2) ? mutate(prng, header) : noise(prng, 80);
    const decoded = decodeHeader(part);
    if (decoded !== null && decoded.version === 1) {
      if (!equalBytes(encodeHeader(decoded.identity), part)) throw new Error("two encodings");
    }
    const link = decodeLink(noise(prng, 12));
    if (link !== null && decodeLink(encodeLink(link)) === null) throw new Error("no round trip");
    decodeFloor(noise(prng, 20));
  }
  t.ok(whole > 5000, `${String(whole)} whole entries`);
  t.end();
});

void t.test("P-113 P-128 whole segments with random damage open or are refused", (t) => {
  const on = machine(32_768, undefined, kernels);
  const log = open(on);
  on.steps.run();
  for (let at = 1; at <= 60; at += 4) write(on, log, 1 + (at % 3), entries(1, 4, at, 300));
  close(on, log);
  const prng = new Prng(3);
  const names = [...on.disk.names.keys()];
  const codes = new Map<string, number>();
  for (let input = 0; input < 3000; input++) {
    const after = restart(on);
    const inode = after.disk.names.get(names[prng.below(names.length)] as string);
    if (inode === undefined) throw new Error("the segment is there");
    for (let change = 1 + prng.below(4); change > 0; change--) {
      const start = prng.below(inode.bytes.length);
      const length = prng.chance(1, 2) ? 1 : prng.below(5000);
      const other = on.disk.names.get(names[prng.below(names.length)] as string);
      const from = prng.below(30_000);
      const source = prng.chance(1, 2)
        ? noise(prng, length)
        : other?.bytes.subarray(from, from + length);
      const part = source ?? EMPTY_BYTES;
      inode.bytes.set(part.subarray(0, inode.bytes.length - start), start);
    }
    const opened = tryOpen(after);
    const code = opened.ok ? "opened" : opened.code;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  t.ok(
    (codes.get("log-damaged") ?? 0) > 500 && (codes.get("opened") ?? 0) > 50,
    JSON.stringify([...codes]),
  );
  t.end();
});

void t.test("P-113 a directory of noise is refused", (t) => {
  const prng = new Prng(4);
  for (let input = 0; input < 300; input++) {
    const steps = new Steps();
    const disk = new FakeDisk(steps);
    for (let sequence = 1; sequence <= 1 + prng.below(3); sequence++) {
      const bytes = new Uint8Array(32_768);
      for (let at = 0; at < bytes.length; at++) bytes[at] = prng.nextUint32();
      disk.names.set(`${DIRECTORY}/00000000000${String(sequence)}.segment`, { bytes });
    }
    const opened = tryOpen(machine(32_768, disk, kernels));
    if (opened.ok || opened.code !== "log-damaged") t.fail(opened.ok ? "opened" : opened.code);
  }
  t.end();
});

void t.test("P-126 P-128 rows of the store: any stored bytes, any key", (t) => {
  const prng = new Prng(5);
  const keys = awkwardKeys(prng, 2000);
  let decoded = 0;
  for (let input = 0; input < INPUTS; input++) {
    const key = keys[prng.below(keys.length)] as Uint8Array;
    const value = noise(prng, 30);
    const stored = encodeLongValue(key, value);
    const row = decodeLongValue(stored);
    if (row === null || !equalBytes(row.key, key) || !equalBytes(row.value, value)) {
      throw new Error("a row survives its encoding");
    }
    const broken = decodeLongValue(prng.chance(1, 2) ? mutate(prng, stored) : noise(prng, 60));
    if (broken !== null) decoded++;
    if (!isLongKey(key) || input % 10 !== 0) continue;
    if (longRowKey(key).length > LMDB_KEY_MAX_BYTES) throw new Error("a stored key is too long");
    for (const length of branchLengths(key.length)) {
      if (branchKey(key, length).length !== LMDB_KEY_MAX_BYTES)
        throw new Error("a branch is longest");
    }
    const other = keys[prng.below(keys.length)] as Uint8Array;
    if (!isLongKey(other) || compareBytes(key, other) === 0) continue;
    if (equalBytes(longRowKey(key), longRowKey(other))) throw new Error("two keys, one row");
  }
  t.ok(decoded > 1000, `${String(decoded)} decoded`);
  t.end();
});

void t.test("P-128 identity files", (t) => {
  const prng = new Prng(6);
  const whole = JSON.stringify({
    kind: "svc-storage",
    version: STORAGE_FORMAT_VERSION,
    ...IDENTITY,
  });
  const bytes = Uint8Array.from(whole, (character) => character.charCodeAt(0));
  const codes = new Map<string, number>();
  for (let input = 0; input < INPUTS; input++) {
    const text = String.fromCharCode(...mutate(prng, bytes));
    const result = parseIdentity("identity.json", text);
    const code = result.ok ? "read" : result.code;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  t.ok((codes.get("read") ?? 0) > 1000 && (codes.get("storage-damaged") ?? 0) > 1000);
  t.end();
});
