/**
 * Log records, WASM against twin: append and seal a batch, scan it back, and the bare checksum.
 *
 * Run: node dist/perf/micro/record.js [--tiny]
 */
import { Prng } from "../../src/base/prng.js";
import {
  createKernels,
  type Kernels,
  type ScanPlace,
  type SealPlace,
} from "../../src/wasm/kernels.js";
import { areas } from "../../src/wasm/layout.js";
import { type Comparison, type Rival, runAsProgram } from "./bench.js";

const scanPlace: ScanPlace = {
  segmentId: 12,
  salt: 0xc0ffee,
  offset: 4096,
  previousChecksum: 77,
  last: true,
};

const sealPlace: SealPlace = {
  segmentId: 12,
  salt: 0xc0ffee,
  offset: 4096,
  previousChecksum: 77,
  durableOffset: 4096,
  sectorBytes: 512,
};

function payloadOf(bytes: number): Uint8Array {
  const random = new Prng(bytes);
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

/** Forms one batch of `records` records and seals it; what the log does for each write. */
function appendAndSeal(kernels: Kernels, records: number, payload: Uint8Array): number {
  const region = kernels.record.acquire();
  if (region === undefined) throw new Error("no region is free");
  for (let at = 0; at < records; at++) region.append(1, at & 7, 1, 1000 + at, 5, payload);
  const sealed = region.seal(sealPlace);
  region.release();
  return sealed.checksum;
}

function sealComparison(sets: readonly Kernels[], records: number, bytes: number): Comparison {
  const payload = payloadOf(bytes);
  return {
    name: `append+seal ${String(records)} x ${String(bytes)} B`,
    operations: records,
    bytes: records * bytes,
    rivals: sets.map((kernels) => ({
      name: kernels.mode,
      run: () => appendAndSeal(kernels, records, payload),
    })),
  };
}

/** Puts one sealed batch into the scan window and verifies it there. */
function scanComparison(sets: readonly Kernels[], records: number, bytes: number): Comparison {
  const payload = payloadOf(bytes);
  let length = 0;
  const rivals = sets.map((kernels): Rival => {
    const region = kernels.record.acquire();
    if (region === undefined) throw new Error("no region is free");
    for (let at = 0; at < records; at++) region.append(1, at & 7, 1, 1000 + at, 5, payload);
    const sealed = region.seal(sealPlace);
    const segment = sealed.bytes.slice();
    region.release();
    length = segment.length;
    return {
      name: kernels.mode,
      run: () => {
        kernels.scanner.window.set(segment);
        return kernels.scanner.scan(segment.length, scanPlace).checksum;
      },
    };
  });
  return {
    name: `copy+scan ${String(records)} x ${String(bytes)} B`,
    operations: records,
    bytes: length,
    rivals,
  };
}

function checksumComparison(sets: readonly Kernels[], bytes: number): Comparison {
  const data = payloadOf(bytes);
  return {
    name: `crc32c ${String(bytes)} B in memory`,
    operations: 1,
    bytes,
    rivals: sets.map((kernels) => {
      kernels.scanner.window.set(data);
      return {
        name: kernels.mode,
        run: () => kernels.kernel.call((exports) => exports.checksum(areas.window, bytes, 0)) | 0,
      };
    }),
  };
}

/** All comparisons; tiny ones for the test suite. */
export function comparisons(tiny: boolean): Comparison[] {
  const sets = [createKernels({ mode: "twin" }), createKernels({ mode: "wasm" })];
  const list: Comparison[] = [];
  for (const bytes of tiny ? [200] : [64, 200, 4096]) {
    for (const records of tiny ? [3] : [1, 8, 64, 512, 4096]) {
      if (records * (bytes + 56) < 8_000_000) list.push(sealComparison(sets, records, bytes));
    }
    for (const records of tiny ? [3] : [64, 1024]) list.push(scanComparison(sets, records, bytes));
  }
  for (const bytes of tiny ? [100] : [64, 4096, 1_048_576]) {
    list.push(checksumComparison(sets, bytes));
  }
  return list;
}

runAsProgram(import.meta.url, "record: framing, sealing and scanning log records", comparisons);
