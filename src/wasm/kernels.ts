/**
 * The door of this floor: makes a set of kernels over one instance, compiled or twin.
 *
 * Whoever needs kernels makes a set of their own: sets share no memory.
 *
 * Invariants: 1. Which implementation runs never changes a result. 2. A set whose call threw
 * KernelFault is discarded.
 */
import { CompactKernel } from "./compact.js";
import { GuardedKernel } from "./guard.js";
import { type KernelBinary, openBinary } from "./instance.js";
import { RangesKernel } from "./ranges.js";
import { RecordKernel } from "./record.js";
import { SegmentScanner } from "./scan.js";
import { createTwin } from "./twin/instance.js";
import { binary as release } from "./generated/release.js";

export type { KernelBinary } from "./instance.js";
export { KernelFault } from "./guard.js";
export { recordKind, scanWord, rangeVerdict, sizes, frame } from "./layout.js";
export { type BatchRegion, type SealPlace, frameBytes } from "./record.js";
export type { ScanPlace, ScanResult, SegmentScanner } from "./scan.js";
export type { CompactKernel } from "./compact.js";
export type { Cursor, RangesKernel } from "./ranges.js";
export { crc32c } from "./twin/crc32c.js";

export interface KernelOptions {
  /** "wasm": the compiled kernels. "twin": the same in TypeScript. */
  readonly mode: "wasm" | "twin";
  /** Which compiled build; the release one by default. Tests pass the one with assertions. */
  readonly binary?: KernelBinary;
  /**
   * For the twin: verify lent regions at release, as the build with assertions does. Default false.
   */
  readonly checked?: boolean;
}

export interface Kernels {
  readonly mode: "wasm" | "twin";
  readonly record: RecordKernel;
  readonly scanner: SegmentScanner;
  readonly compact: CompactKernel;
  readonly ranges: RangesKernel;
  /** The guarded instance itself, for tests and benchmarks. */
  readonly kernel: GuardedKernel;
}

/**
 * A set of kernels with its own memory (46 MiB of address space, resident as far as it was
 * touched).
 */
export function createKernels(options: KernelOptions): Kernels {
  const instance =
    options.mode === "twin"
      ? createTwin(options.checked ?? false)
      : openBinary(options.binary ?? release);
  const kernel = new GuardedKernel(instance);
  return {
    mode: options.mode,
    record: new RecordKernel(kernel),
    scanner: new SegmentScanner(kernel),
    compact: new CompactKernel(kernel),
    ranges: new RangesKernel(kernel),
    kernel,
  };
}
