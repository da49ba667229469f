/**
 * The export list of the kernels, and nothing else.
 *
 * The bridge in src/wasm/ checks every bound before it calls; the build for tests asserts them
 * again here.
 */
import { REGIONS } from "./arena";
import { makeTables } from "./crc32c";

export * from "./arena";
export { checksum } from "./crc32c";
export { scan, seal, seek } from "./record";
export { share } from "./compact";
export { fold } from "./fold";
export { allocate } from "./ranges";

/**
 * Fills the tables; returns the address of the regions, so that the caller can compare its layout.
 */
export function prepare(): usize {
  assert(__heap_base <= 0x1_0000, "static data stays below the areas");
  makeTables();
  return REGIONS;
}
