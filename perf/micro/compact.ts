/**
 * Batch compaction, WASM against twin: last write per key, shared reservations.
 *
 * Run: node dist/perf/micro/compact.js [--tiny]
 */
import { Prng } from "../../src/base/prng.js";
import { createKernels, type Kernels } from "../../src/wasm/kernels.js";
import { type Comparison, runAsProgram } from "./bench.js";

const encoder = new TextEncoder();

/**
 * Keys as a batch of changes has them: a common beginning, a few tenants, every third key written
 * twice.
 */
function keysOf(count: number): Uint8Array[] {
  const random = new Prng(count);
  const different = Math.max(1, Math.floor((count * 2) / 3));
  return Array.from({ length: count }, () => {
    const number = random.below(different);
    return encoder.encode(`tenant-${String(number % 7)}/orders/${String(number * 7919)}/state`);
  });
}

function hashOf(values: Uint32Array): number {
  let hash = values.length;
  for (const value of values) hash = Math.imul(hash ^ value, 0x01000193);
  return hash;
}

/** Copies the keys in and folds them; the copy is part of the price. */
function foldComparison(sets: readonly Kernels[], count: number): Comparison {
  const keys = keysOf(count);
  return {
    name: `add+fold ${String(count)} keys`,
    operations: count,
    rivals: sets.map(({ compact, mode }) => ({
      name: mode,
      run: () => {
        compact.clearKeys();
        for (const key of keys) compact.addKey(key);
        return hashOf(compact.fold());
      },
    })),
  };
}

/**
 * The same work without any kernel: a Map by text and one sort, as a program would do it at first.
 */
function addPlainMap(comparison: Comparison, count: number): Comparison {
  const keys = keysOf(count);
  const plain = {
    name: "plain map",
    run: () => {
      const last = new Map<string, number>();
      keys.forEach((key, at) => last.set(Buffer.from(key).toString("latin1"), at));
      const sorted = [...last].sort(([left], [right]) => (left < right ? -1 : 1));
      return hashOf(Uint32Array.from(sorted, ([, at]) => at));
    },
  };
  return { ...comparison, rivals: [...comparison.rivals, plain] };
}

function shareComparison(sets: readonly Kernels[], calls: number): Comparison {
  const counts = Uint32Array.from({ length: calls }, (_, at) => 1 + (at % 10));
  return {
    name: `share one reservation, ${String(calls)} calls`,
    operations: calls,
    rivals: sets.map(({ compact, mode }) => ({
      name: mode,
      run: () => {
        const shared = compact.share(counts, 0x7fff_ffff);
        return shared.total + shared.taken + (shared.offsetLow[calls - 1] as number);
      },
    })),
  };
}

/** All comparisons; tiny ones for the test suite. */
export function comparisons(tiny: boolean): Comparison[] {
  const sets = [createKernels({ mode: "twin" }), createKernels({ mode: "wasm" })];
  const batches = tiny ? [5] : [1, 8, 64, 512, 4096];
  return [
    ...(tiny ? [5] : [1, 8, 64, 512, 4096, 65_536]).map((count) =>
      addPlainMap(foldComparison(sets, count), count),
    ),
    ...batches.map((count) => shareComparison(sets, count)),
  ];
}

runAsProgram(import.meta.url, "compact: folding and sharing", comparisons);
