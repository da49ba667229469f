/**
 * Log records: release build, checked build and twin against each other and against naive oracles.
 */
import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import t from "tap";
import { binary as checkedBinary } from "../../../src/wasm/generated/checked.js";
import {
  createKernels,
  frameBytes,
  type Kernels,
  type ScanResult,
  sizes,
} from "../../../src/wasm/kernels.js";
import { areas } from "../../../src/wasm/layout.js";
import {
  batchOf,
  makeSets,
  placeOf,
  type PlainPlace,
  recordOf,
  rowsOf,
  slowBatch,
} from "./sets.js";

const batchArbitrary = fc.array(recordOf(120), { minLength: 1, maxLength: 6 });

const sets = makeSets();

/** Scans `bytes` as the last window of a segment. */
function scan(kernels: Kernels, bytes: Uint8Array, place: PlainPlace, last = true): ScanResult {
  kernels.scanner.window.set(bytes);
  return kernels.scanner.scan(bytes.length, { ...place, last });
}

/** Scans with every implementation, demands one answer, and returns it. */
function scanAll(bytes: Uint8Array, place: PlainPlace, last = true): [ScanResult, Uint32Array] {
  const [first, ...others] = sets.map(({ kernels }): [ScanResult, Uint32Array] => {
    const result = scan(kernels, bytes, place, last);
    const words = result.records * sizes.scanWords;
    return [result, kernels.scanner.table.slice(0, words)];
  });
  if (first === undefined) throw new Error("there are implementations");
  for (const other of others) deepStrictEqual(other, first, "all scans agree");
  return first;
}

t.test("P-114 P-160 a sealed batch is the described bytes, over any garbage", async (t) => {
  let garbage = 1;
  fc.assert(
    fc.property(batchArbitrary, placeOf, (records, place) => {
      const expected = slowBatch(records, place);
      for (const { kernels } of sets) {
        // Other old bytes in every region and every implementation: none may shine through.
        garbage = (garbage + 77) & 255;
        const all = kernels.kernel.bytes;
        for (let region = 0; region < sizes.regions; region++) {
          const start = areas.regions + region * sizes.regionBytes;
          all.fill(garbage, start, start + expected.length + 8);
        }
        if (Buffer.compare(batchOf(kernels, records, place), expected) !== 0) return false;
      }
      return true;
    }),
    { numRuns: 300 },
  );
  t.pass("300 batches");
});

t.test("a scan gives back what was sealed, whole and in windows", async (t) => {
  fc.assert(
    fc.property(batchArbitrary, placeOf, fc.nat(400), (records, place, cutAt) => {
      const bytes = slowBatch(records, place);
      for (const { kernels } of sets) {
        const result = scan(kernels, bytes, place);
        const rows = Array.from({ length: result.records }, (_, row) => ({
          ...kernels.scanner.record(row),
          payload: kernels.scanner.payload(row).slice(),
        }));
        deepStrictEqual(result.reason, "end");
        deepStrictEqual(result.nextOffset, place.offset + bytes.length);
        deepStrictEqual(rows, rowsOf(records, place));
      }
      // The window ends anywhere: what lies whole in it is found, the rest by the next window.
      const cut = Math.min(cutAt, bytes.length);
      const [head] = scanAll(bytes.subarray(0, cut), place, false);
      const consumed = head.nextOffset - place.offset;
      const next = { ...place, offset: head.nextOffset, previousChecksum: head.checksum };
      const [tail] = scanAll(bytes.subarray(consumed), next);
      const all = head.records + tail.records === records.length;
      return all && head.reason === "more" && tail.reason === "end";
    }),
    { numRuns: 150 },
  );
  t.pass("150 batches");
});

t.test(
  "P-114 nothing is believed in the wrong place, from an old use, or from zeroes",
  async (t) => {
    const records = fc.sample(recordOf(90), { numRuns: 6, seed: 5 });
    const place: PlainPlace = {
      segmentId: 40,
      salt: 0xfeed_beef,
      offset: 8192,
      previousChecksum: 99,
      durableOffset: 8192,
      sectorBytes: 512,
    };
    const bytes = slowBatch(records, place);
    const wrong: readonly Partial<PlainPlace>[] = [
      { segmentId: 41 },
      { segmentId: 40 + 2 ** 32 },
      { salt: 0xfeed_beee },
      { offset: 8192 + 8 },
      { offset: 8192 + 4096 },
    ];
    for (const change of wrong) {
      const [result] = scanAll(bytes, { ...place, ...change });
      t.match(result, { reason: "bad-checksum", records: 0 }, JSON.stringify(change));
    }
    t.match(scanAll(bytes, { ...place, previousChecksum: 98 })[0], { reason: "broken-chain" });
    t.match(scanAll(new Uint8Array(4096), place)[0], { reason: "zero", records: 0 });
    t.match(scanAll(new Uint8Array(40), place)[0], { reason: "zero", records: 0 });
    t.match(scanAll(new Uint8Array(4096).fill(255), place)[0], { reason: "bad-magic" });
    // A recycled segment: a short new batch over a longer old one.
    const recycled = bytes.slice();
    const fresh = { ...place, segmentId: 41 };
    const newer = slowBatch(records.slice(0, 2), { ...fresh, sectorBytes: 0 });
    recycled.set(newer);
    const [result] = scanAll(recycled, fresh);
    t.equal(result.records, 2, "only the new records");
    t.notOk(["end", "zero", "more"].includes(result.reason), `stopped: ${result.reason}`);
  },
);

t.test("P-113 every flipped byte and every lost tail is noticed", async (t) => {
  const records = fc.sample(recordOf(60), { numRuns: 5, seed: 8 });
  const place: PlainPlace = {
    segmentId: 7,
    salt: 3,
    offset: 0,
    previousChecksum: 0,
    durableOffset: 0,
    sectorBytes: 512,
  };
  const bytes = slowBatch(records, place);
  const [whole, table] = scanAll(bytes, place);
  t.equal(whole.records, 5);
  const starts = [0, 1, 2, 3, 4].map((row) => table[row * sizes.scanWords] as number);
  const ends = [...starts.slice(1), bytes.length];
  const recordAt = (at: number): number => starts.filter((start) => start <= at).length - 1;
  let wrong = 0;
  for (let at = 0; at < bytes.length; at++) {
    for (const mask of [1, 0x80, 0xff]) {
      const flipped = bytes.slice();
      flipped[at] = (flipped[at] as number) ^ mask;
      const [result] = scanAll(flipped, place);
      if (result.reason === "end" || result.records !== recordAt(at)) wrong++;
    }
    const torn = bytes.slice();
    torn.fill(0, at);
    const whole = ends.filter(
      (end) => Buffer.compare(torn.subarray(0, end), bytes.subarray(0, end)) === 0,
    );
    if (scanAll(torn, place)[0].records !== whole.length) wrong++;
    const short = scanAll(bytes.subarray(0, at - (at % 8)), place)[0];
    if (short.reason !== "end" && short.reason !== "truncated") wrong++;
  }
  t.equal(wrong, 0, `${String(bytes.length)} positions`);
});

t.test("P-113 seek finds what lies behind damage, and says what was durable", async (t) => {
  const [sample] = fc.sample(recordOf(60), { numRuns: 1, seed: 9 });
  if (sample === undefined) throw new Error("there is a sample");
  const records = [1, 2, 3].map((index) => ({ ...sample, index, payload: new Uint8Array(30) }));
  const base = { segmentId: 7, salt: 3, previousChecksum: 0, sectorBytes: 512 };
  const first = slowBatch(records, { ...base, offset: 0, durableOffset: 0 });
  const second = slowBatch(records, {
    ...base,
    offset: first.length,
    durableOffset: first.length,
  });
  const segment = new Uint8Array(first.length + second.length + 4096);
  segment.set(first);
  segment.set(second, first.length);
  const seekAll = (bytes: Uint8Array, offset: number): unknown => {
    const answers = sets.map(({ kernels }) => {
      kernels.scanner.window.set(bytes);
      return kernels.scanner.seek(bytes.length, { segmentId: 7, salt: 3, offset, last: true });
    });
    t.strictSame(answers[1], answers[0]);
    t.strictSame(answers[2], answers[0]);
    return answers[0];
  };
  const found = { outcome: "found", offset: first.length, durableOffset: first.length };
  t.strictSame(seekAll(segment.subarray(first.length - 8), first.length - 8), found);
  // A damaged length or magic in the first batch does not hide the second.
  segment.fill(0x53, 8, first.length - 512 + 64);
  const behind = scanAll(segment, { ...base, offset: 0, durableOffset: 0 })[0];
  t.equal(behind.reason, "bad-header");
  t.match(seekAll(segment.subarray(8), 8), { outcome: "found" });
  // Nothing behind: the next window begins where a header may be cut off.
  t.match(seekAll(segment.subarray(first.length + second.length), 8), {
    outcome: "none",
    offset: 8 + 4096 - 40,
  });
  const cut = segment.subarray(first.length, first.length + 60);
  t.match(seekAll(cut, first.length), { outcome: "none", offset: first.length });
  t.match(seekAll(new Uint8Array(20), 0), { outcome: "none", offset: 0 });
  // A window full of look-alikes costs a bounded amount of work.
  const fake = new Uint32Array(sizes.windowBytes / 4);
  for (let at = 0; at + 12 <= fake.length; at += 12) {
    fake.set([0x3152_5653, 1, 48 + 2 ** 22, 0x0101], at);
  }
  const traps = new Uint8Array(fake.buffer);
  t.match(seekAll(traps, 0), { outcome: "unsure" });
});

t.test("P-159 a region belongs to its write until it is released", async (t) => {
  const place = { segmentId: 1, salt: 2, previousChecksum: 3, durableOffset: 0, sectorBytes: 512 };
  const where = { ...place, offset: 512 };
  const payload = new Uint8Array(200).fill(9);
  const checkedTwin = createKernels({ mode: "twin", checked: true });
  const checkedWasm = createKernels({ mode: "wasm", binary: checkedBinary });
  for (const kernels of [checkedTwin, checkedWasm]) {
    const regions = Array.from({ length: sizes.regions }, () => kernels.record.acquire());
    t.equal(kernels.record.acquire(), undefined, "all regions are taken");
    const region = regions[0];
    if (region === undefined) throw new Error("there is a region");
    t.throws(() => region.seal(where), /batch with records/, "an empty batch is not sealed");
    for (let at = 0; at < 3; at++) t.ok(region.append(1, 1, 1, at, 1, payload));
    const sealed = region.seal(where);
    t.equal(sealed.bytes.length % 512, 0);
    t.throws(() => region.append(1, 1, 1, 4, 1, payload), /growing/, "no more records");
    t.throws(() => region.seal(where), /sealed once/);
    // The other regions may grow while this one is in flight.
    t.ok(regions[1]?.append(1, 1, 1, 4, 1, payload));
    sealed.bytes[100] = 1;
    t.throws(() => region.release(), /did not change/, "reuse under a delayed write is caught");
    sealed.bytes[100] = 9;
    region.release();
    t.ok(
      sealed.bytes.every((byte) => byte === 0xdd),
      "late readers see spoilt bytes",
    );
    t.throws(() => region.release(), /only a taken region/);
    t.equal(kernels.record.acquire(), region, "free again");
    t.equal(region.bytes, 0);
    regions[1]?.release();
    t.not(kernels.record.acquire(), undefined, "a growing batch can be given up");
  }
});

t.test("limits: the largest record, a full region, bad arguments", async (t) => {
  const place = { segmentId: 1, salt: 2, previousChecksum: 3, durableOffset: 0, sectorBytes: 4096 };
  const largest = new Uint8Array(sizes.payloadBytes).fill(7);
  const outputs: Uint8Array[] = [];
  for (const { name, kernels } of sets) {
    const region = kernels.record.acquire();
    if (region === undefined) throw new Error("there is a region");
    t.ok(region.append(1, 1, 1, 1, 1, largest));
    t.notOk(region.append(1, 1, 1, 2, 1, largest), "a second one does not fit");
    t.equal(region.records, 1, "and changed nothing");
    t.ok(region.append(1, 1, 1, 2, 1, new Uint8Array(0)), "an empty payload does");
    t.throws(() => region.append(1, 1, 1, 3, 1, new Uint8Array(sizes.payloadBytes + 1)));
    t.throws(() => region.append(0, 1, 1, 3, 1, largest), /kind/);
    t.throws(() => region.append(1, 1, 1, 2 ** 53, 1, largest), /index/);
    t.throws(() => region.append(1, 1, 1, 1.5, 1, largest), /index/);
    t.throws(() => region.append(1, 1, 1, 1, -1, largest), /term/);
    t.throws(() => region.seal({ ...place, offset: 4 }), /multiple of 8/);
    t.throws(() => region.seal({ ...place, offset: 0, sectorBytes: 500 }), /power of two/);
    while (region.append(1, 1, 1, 3, 1, largest.subarray(0, 100_000)));
    const sealed = region.seal({ ...place, offset: 4096 });
    outputs.push(sealed.bytes.slice());
    const [result] = scanAll(sealed.bytes.slice(), { ...place, offset: 4096 });
    t.match(result, { reason: "end", records: sealed.records, checksum: sealed.checksum }, name);
    region.release();
  }
  t.ok(outputs.every((bytes) => Buffer.compare(bytes, outputs[0] as Uint8Array) === 0));
  t.ok(frameBytes(sizes.payloadBytes) + 4096 < sizes.windowBytes, "any record fits the window");
});

t.test("more frames than the table has rows are scanned in parts", async (t) => {
  const place = { segmentId: 1, salt: 2, previousChecksum: 3, durableOffset: 0, sectorBytes: 0 };
  for (const { kernels } of sets) {
    const region = kernels.record.acquire();
    if (region === undefined) throw new Error("there is a region");
    const empty = new Uint8Array(0);
    for (let at = 0; at < sizes.scanRecords + 5; at++) region.append(1, 1, 1, at, 1, empty);
    const bytes = region.seal({ ...place, offset: 0 }).bytes.slice();
    region.release();
    const first = scan(kernels, bytes, { ...place, offset: 0 });
    t.match(first, { reason: "more", records: sizes.scanRecords });
    const rest = bytes.subarray(first.nextOffset);
    const next = { ...place, offset: first.nextOffset, previousChecksum: first.checksum };
    t.match(scan(kernels, rest, next), { reason: "end", records: 5 });
  }
});
