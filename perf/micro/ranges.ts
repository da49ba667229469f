/**
 * Range arithmetic for a batch of allocations, WASM against twin, and against BigInt per item.
 *
 * Run: node dist/perf/micro/ranges.js [--tiny]
 */
import { createKernels, type Cursor, type Kernels } from "../../src/wasm/kernels.js";
import { type Comparison, type Rival, runAsProgram } from "./bench.js";

const cursor: Cursor = { current: 2n ** 53n - 5n, increment: 3n, maxValue: 2n ** 62n };

function kernelRival({ ranges, mode }: Kernels, counts: Uint32Array): Rival {
  const last = counts.length - 1;
  return {
    name: mode,
    run: () => {
      ranges.counts.set(counts);
      const granted = ranges.allocate(counts.length, cursor);
      return granted + (ranges.endLow[last] as number) + (ranges.startHigh[last] as number);
    },
  };
}

/** The same with a BigInt for every value, kept as objects: what the kernels are there to avoid. */
function bigintRival(counts: Uint32Array): Rival {
  return {
    name: "bigint",
    run: () => {
      let current = cursor.current;
      const items: { start: bigint; end: bigint }[] = [];
      for (const count of counts) {
        const end = current + BigInt(count) * cursor.increment;
        if (end > (cursor.maxValue ?? 0n)) continue;
        items.push({ start: current + cursor.increment, end });
        current = end;
      }
      const last = items[items.length - 1] as { start: bigint; end: bigint };
      return items.length + Number(last.end & 0xffff_ffffn) + Number(last.start >> 32n);
    },
  };
}

/** All comparisons; tiny ones for the test suite. */
export function comparisons(tiny: boolean): Comparison[] {
  const sets = [createKernels({ mode: "twin" }), createKernels({ mode: "wasm" })];
  return (tiny ? [3] : [1, 8, 64, 512, 4096]).map((items) => {
    const counts = Uint32Array.from({ length: items }, (_, at) => 1 + (at % 100));
    return {
      name: `allocate ${String(items)}`,
      operations: items,
      rivals: [...sets.map((set) => kernelRival(set, counts)), bigintRival(counts)],
    };
  });
}

runAsProgram(import.meta.url, "ranges: checked 64-bit allocation", comparisons);
