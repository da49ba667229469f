/**
 * The twin as a kernel instance: the same exports as the compiled module, over a plain ArrayBuffer
 * of the same layout.
 *
 * Owns its memory.
 *
 * Invariants: 1. It can stand in for a compiled instance anywhere. 2. Its memory never grows.
 */
import type { KernelExports, KernelInstance } from "../exports.js";
import { memoryBytes } from "../layout.js";
import { fold, share } from "./compact.js";
import { crc32c } from "./crc32c.js";
import { allocate } from "./ranges.js";
import { scan, seal, seek } from "./record.js";

/** A new twin with a memory of its own. `checked`: as in a compiled build with assertions. */
export function createTwin(checked: boolean): KernelInstance {
  const memory = new ArrayBuffer(memoryBytes);
  const words = new Uint32Array(memory);
  const bytes = new Uint8Array(memory);
  const exports: KernelExports = {
    seal: (region, ...rest) => seal(words, region, ...rest),
    scan: (start, ...rest) => scan(words, start, ...rest),
    seek: (start, ...rest) => seek(words, start, ...rest),
    checksum: (start, length, seed) => crc32c(bytes, seed, start, start + length),
    fold: (count) => fold(words, bytes, count),
    share: (count, low, high) => share(words, count, low, high),
    allocate: (count, ...rest) => allocate(words, count, ...rest),
  };
  return { exports, memory, checked };
}
