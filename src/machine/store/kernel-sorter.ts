/**
 * Sorts rows with the compiled kernel: one crossing per batch. For the memtable's freezes and
 * scans.
 *
 * Owns the key area of the kernel while it sorts. Invariants: 1. The order is that of plain
 * sorting. 2. What does not fit the kernel's areas, or is too little to be worth a crossing, is
 * sorted plainly.
 */
import type { CompactKernel } from "../../wasm/compact.js";
import { plainSorter, type EntrySorter, type RowEntry } from "./row-table.js";

/** Below this many rows a crossing costs more than it saves. */
const KERNEL_ROWS_MIN = 256;

export class KernelSorter implements EntrySorter {
  private readonly kernel: CompactKernel;

  constructor(kernel: CompactKernel) {
    this.kernel = kernel;
  }

  sort(entries: RowEntry[]): RowEntry[] {
    if (entries.length < KERNEL_ROWS_MIN) return plainSorter.sort(entries);
    const { kernel } = this;
    kernel.clearKeys();
    for (const entry of entries) {
      if (!kernel.addKey(entry.bytes())) return plainSorter.sort(entries);
    }
    const order = kernel.fold();
    // Keys of one table are distinct but for removed entries, which folding may drop for a later
    // one of the same key.
    const sorted: RowEntry[] = [];
    for (let at = 0; at < order.length; at++) {
      sorted.push(entries[order[at] as number] as RowEntry);
    }
    return sorted;
  }
}
