/**
 * Kernels for the nodes of the world. Making a set costs much; sets are used again from run to run.
 *
 * Invariants: 1. Each node's log has a set of its own, with regions that no earlier life holds.
 * 2. Sorting and blocks use a set within one call, so that all nodes share one.
 */
import { RecordKernel } from "../../../src/wasm/record.js";
import { SegmentScanner } from "../../../src/wasm/scan.js";
import { type Kernels, createKernels } from "../../../src/wasm/kernels.js";

const logSets = new Map<number, Kernels>();
let shared: Kernels | null = null;

/** The kernels of the log of `nodeId`, as a new process finds them. */
export function freshLogKernels(nodeId: number): Kernels {
  let set = logSets.get(nodeId);
  if (set === undefined) {
    set = createKernels({ mode: "wasm" });
    logSets.set(nodeId, set);
  }
  const { kernel } = set;
  return { ...set, record: new RecordKernel(kernel), scanner: new SegmentScanner(kernel) };
}

export function sharedKernels(): Kernels {
  shared ??= createKernels({ mode: "wasm" });
  return shared;
}
