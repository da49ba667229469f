/**
 * The first collection of all garbage, ordered when a server begins to serve, and how far the heap
 * may grow until the next one.
 *
 * V8 orders it by itself only when the old generation has grown by more than a hundred MiB, and
 * lets the heap follow what lives in it from then on: until then garbage is resident memory. From
 * then on a small heap may grow to four times what lives in it. Invariant: where Node does not give
 * the collection, nothing fails.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * The old generation is collected when it has grown by this much of what lived in it (percent). By
 * its own measure V8 does about that under little load, and lets the heap grow to several times as
 * much under a heavy one; twice as much would be 15 MiB more under little load. Each collection
 * stops the loop for some 12 ms on a busy machine, about once a second of full load.
 */
const HEAP_GROWS_PERCENT = 50;

/** To be called once, when all is there that a server at rest has. Takes some 30 ms. */
export function collectFirst(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWS_PERCENT}`);
  setFlagsFromString("--expose-gc");
  const gc: unknown = runInNewContext("typeof gc === 'function' ? gc : null");
  setFlagsFromString("--no-expose-gc");
  if (typeof gc === "function") gc();
}
