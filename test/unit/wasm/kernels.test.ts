/**
 * The border between TypeScript and the compiled kernels: layout, embedding, traps, checksums,
 * benchmarks.
 */
import { createHash } from "node:crypto";
import fc from "fast-check";
import t from "tap";
import * as compactBench from "../../../perf/micro/compact.js";
import * as rangesBench from "../../../perf/micro/ranges.js";
import * as recordBench from "../../../perf/micro/record.js";
import { proof } from "../../../perf/micro/bench.js";
import { binary as checkedBinary } from "../../../src/wasm/generated/checked.js";
import { binary as releaseBinary } from "../../../src/wasm/generated/release.js";
import { decodeBase64, openBinary } from "../../../src/wasm/instance.js";
import { crc32c, createKernels, KernelFault, sizes } from "../../../src/wasm/kernels.js";
import { areas, frame, memoryBytes } from "../../../src/wasm/layout.js";
import { makeSets, slowCrc32c } from "./sets.js";

/** The part of the engine's WebAssembly object that is looked at here. */
declare const WebAssembly: {
  readonly Global: new () => { readonly value: unknown };
  readonly Module: {
    new (bytes: Uint8Array): object;
    imports(module: object): { readonly module: string; readonly name: string }[];
  };
};

/** The names of asm/arena.ts and what src/wasm/layout.ts says about them. */
const expectedGlobals: Readonly<Record<string, number>> = {
  RESULTS: areas.results,
  TABLES: areas.tables,
  RANGE_COUNTS: areas.rangeCounts,
  RANGE_START_LOW: areas.rangeStartLow,
  RANGE_START_HIGH: areas.rangeStartHigh,
  RANGE_END_LOW: areas.rangeEndLow,
  RANGE_END_HIGH: areas.rangeEndHigh,
  RANGE_VERDICTS: areas.rangeVerdicts,
  SHARE_COUNTS: areas.shareCounts,
  SHARE_OFFSET_LOW: areas.shareOffsetLow,
  SHARE_OFFSET_HIGH: areas.shareOffsetHigh,
  KEY_WORDS: areas.keyWords,
  ORDER: areas.order,
  SCRATCH: areas.scratch,
  KEY_BYTES: areas.keyBytes,
  SCAN_TABLE: areas.scanTable,
  WINDOW: areas.window,
  REGIONS: areas.regions,
  MEMORY_END: memoryBytes,
  RANGE_ITEMS: sizes.rangeItems,
  SHARE_ITEMS: sizes.shareItems,
  KEYS_MAX: sizes.keys,
  SCAN_RECORDS: sizes.scanRecords,
  ROW_BYTES: sizes.scanWords * 4,
  MAGIC: frame.magic,
  VERSION: frame.version,
  HEADER: frame.headerBytes,
  PAYLOAD_MAX: sizes.payloadBytes,
  PAD_MAX: frame.padBytes,
};

t.test("the compiled addresses are those of the layout, and areas do not overlap", async (t) => {
  for (const binary of [releaseBinary, checkedBinary]) {
    const exports: object = openBinary(binary).exports;
    const found: Record<string, number> = {};
    for (const [name, value] of Object.entries(exports)) {
      if (value instanceof WebAssembly.Global) found[name] = Number(value.value);
    }
    t.strictSame(found, expectedGlobals);
  }
  const lengths: Readonly<Record<keyof typeof areas, number>> = {
    results: sizes.resultWords * 4,
    tables: 16 * 1024,
    rangeCounts: sizes.rangeItems * 4,
    rangeStartLow: sizes.rangeItems * 4,
    rangeStartHigh: sizes.rangeItems * 4,
    rangeEndLow: sizes.rangeItems * 4,
    rangeEndHigh: sizes.rangeItems * 4,
    rangeVerdicts: sizes.rangeItems * 4,
    shareCounts: sizes.shareItems * 4,
    shareOffsetLow: sizes.shareItems * 4,
    shareOffsetHigh: sizes.shareItems * 4,
    keyWords: sizes.keys * 8,
    order: sizes.keys * 4,
    scratch: sizes.keys * 32,
    keyBytes: sizes.keyBytes,
    scanTable: sizes.scanRecords * sizes.scanWords * 4,
    window: sizes.windowBytes,
    regions: sizes.regions * sizes.regionBytes,
  };
  let end = 0x1_0000;
  for (const name of Object.keys(areas) as (keyof typeof areas)[]) {
    t.ok(areas[name] >= end, `${name} begins behind the area before`);
    t.equal(areas[name] % 16, 0, `${name} is aligned`);
    end = areas[name] + lengths[name];
  }
  t.ok(end <= memoryBytes, "the last area ends inside the memory");
});

t.test("the embedded binaries are what their hashes say, and import only abort", async (t) => {
  for (const binary of [releaseBinary, checkedBinary]) {
    const bytes = decodeBase64(binary.base64);
    t.same(Buffer.from(bytes).toString("base64"), binary.base64, "the decoder agrees with Node");
    t.equal(createHash("sha256").update(bytes).digest("hex"), binary.sha256);
    const imports = WebAssembly.Module.imports(new WebAssembly.Module(new Uint8Array(bytes)));
    const names = imports.map(({ module, name }) => `${module}.${name}`);
    t.strictSame(names, binary.checked ? ["env.abort"] : []);
  }
});

t.test("P-159 the memory cannot grow, so that no view ever detaches", async (t) => {
  for (const binary of [releaseBinary, checkedBinary]) {
    const { exports, memory } = openBinary(binary);
    const owner: unknown = Object.getOwnPropertyDescriptor(exports, "memory")?.value;
    t.throws(() => Reflect.apply(Reflect.get(Object(owner), "grow"), owner, [1]), RangeError);
    t.equal(memory.byteLength, memoryBytes, "the buffer is still attached");
  }
});

t.test("P-159 a trap is a typed error, and the instance is dead from then on", async (t) => {
  const outside = 0x7fff_0000;
  for (const binary of [releaseBinary, checkedBinary]) {
    const kernels = createKernels({ mode: "wasm", binary });
    const region = kernels.record.acquire();
    t.ok(region);
    region?.append(1, 1, 1, 1, 1, new Uint8Array(9));
    t.throws(() => kernels.kernel.call((exports) => exports.checksum(outside, 64, 0)), KernelFault);
    t.throws(() => kernels.kernel.call((exports) => exports.fold(1)), {
      code: "kernel-fault",
      message: /before/,
    });
    t.throws(() => region?.seal(somewhere), KernelFault);
    t.throws(() => kernels.compact.share([1], 9), KernelFault);
    const next = createKernels({ mode: "wasm", binary });
    next.compact.addKey(Uint8Array.of(1));
    t.equal(next.compact.fold().length, 1, "another instance is not touched by it");
  }
  const checked = createKernels({ mode: "wasm", binary: checkedBinary });
  t.throws(() => checked.kernel.call((exports) => exports.fold(-1)), /assertion in kernel/);
});

const somewhere = {
  segmentId: 1,
  salt: 1,
  offset: 0,
  previousChecksum: 0,
  durableOffset: 0,
  sectorBytes: 0,
};

t.test("CRC-32C: published vectors, random bytes, every split", async (t) => {
  const ascending = Uint8Array.from({ length: 32 }, (_, at) => at);
  const command = Uint8Array.from([
    0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0,
    0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
  ]);
  const vectors: readonly (readonly [string, Uint8Array, number])[] = [
    ["123456789", new TextEncoder().encode("123456789"), 0xe306_9283],
    ["nothing", new Uint8Array(0), 0],
    ["RFC 3720 32 zeroes", new Uint8Array(32), 0x8a91_36aa],
    ["RFC 3720 32 ones", new Uint8Array(32).fill(255), 0x62a8_ab43],
    ["RFC 3720 ascending", ascending, 0x46dd_794e],
    ["RFC 3720 descending", ascending.slice().reverse(), 0x113f_db5c],
    ["RFC 3720 SCSI read command", command, 0xd996_3a56],
  ];
  const sets = makeSets();
  const all = (bytes: Uint8Array, seed: number, shift: number): number[] =>
    sets.map(({ kernels }) => {
      kernels.scanner.window.set(bytes, shift);
      const start = areas.window + shift;
      return kernels.kernel.call((exports) => exports.checksum(start, bytes.length, seed)) >>> 0;
    });
  for (const [name, bytes, expected] of vectors) {
    t.equal(slowCrc32c(bytes), expected, `${name}: oracle`);
    t.equal(crc32c(bytes), expected, `${name}: plain function`);
    t.strictSame(all(bytes, 0, 0), [expected, expected, expected], name);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), fc.nat(15), (bytes, at, shift) => {
      const cut = Math.min(at, bytes.length);
      const expected = slowCrc32c(bytes);
      const head = crc32c(bytes, 0, 0, cut);
      const results = [...all(bytes.subarray(cut), head, shift), crc32c(bytes, head, cut)];
      return results.every((result) => result === expected);
    }),
  );
});

t.test("the benchmarks still run, and their rivals do the same work", async (t) => {
  for (const bench of [recordBench, compactBench, rangesBench]) {
    const first = proof(bench.comparisons(true));
    t.match(first, /^[0-9a-f]{16}$/);
    t.equal(proof(bench.comparisons(true)), first, "the same input gives the same results");
  }
  const broken = { name: "x", operations: 1, rivals: [one(1), one(2)] };
  t.throws(() => proof([broken]), /other work/);
});

function one(result: number): { name: string; run: () => number } {
  return { name: String(result), run: () => result };
}
