/**
 * A kernel instance behind a guard: its views, its result words, and the rule that a trap ends it.
 *
 * Owns one instance.
 *
 * Invariants: 1. After a trap every further call throws KernelFault: half-done state is never read.
 * 2. The views are made once; the memory never grows, so that they never detach.
 */
import { assert } from "../base/assert.js";
import type { KernelExports, KernelInstance } from "./exports.js";
import { areas, memoryBytes, sizes } from "./layout.js";

/**
 * A kernel trapped or aborted, now or before. The instance is unusable; make another one and repeat
 * from the source.
 */
export class KernelFault extends Error {
  override readonly name = "KernelFault";
  readonly code = "kernel-fault";
}

export class GuardedKernel {
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly checked: boolean;
  private readonly exports: KernelExports;
  private faulted = false;

  constructor(instance: KernelInstance) {
    assert(instance.memory.byteLength === memoryBytes, "kernel memory has its fixed size");
    this.words = new Uint32Array(instance.memory);
    this.bytes = new Uint8Array(instance.memory);
    this.checked = instance.checked;
    this.exports = instance.exports;
  }

  /** Runs one crossing. Throws KernelFault if it traps or if an earlier one did. */
  call(crossing: (exports: KernelExports) => number): number {
    if (this.faulted) throw new KernelFault("this kernel instance faulted before and is discarded");
    try {
      return crossing(this.exports);
    } catch (error) {
      this.faulted = true;
      throw new KernelFault(`kernel trapped: ${String(error)}`, { cause: error });
    }
  }

  /** Result word `word` of the last call, unsigned. */
  result(word: number): number {
    assert(word < sizes.resultWords, "a result word exists");
    return this.words[(areas.results >>> 2) + word] as number;
  }
}
