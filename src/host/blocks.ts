/**
 * The leader's sequence blocks. Signature only for the moment; the bodies follow.
 */
import type { CompactKernel, RangesKernel } from "../wasm/kernels.js";

/** The kernels that share a block out. */
export interface BlockKernels {
  readonly compact: Pick<CompactKernel, "share">;
  readonly ranges: Pick<
    RangesKernel,
    "allocate" | "current" | "counts" | "startLow" | "startHigh" | "endLow" | "endHigh" | "verdicts"
  >;
}
