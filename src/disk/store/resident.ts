/**
 * How much of files is resident in this process, as the system tells.
 *
 * Invariant: where it does not tell, it is 0.
 */
import { closeSync, openSync, readSync } from "node:fs";

const PAGE_BYTES = 4096;
const STATM = "/proc/self/statm";
/** Size, resident, shared (of files), in pages. */
const FILE_FIELD = 2;

const bytes = Buffer.alloc(128);

/** Pages of mapped files, those of the program included. */
export function residentFileBytes(): number {
  try {
    const file = openSync(STATM, "r");
    try {
      const count = readSync(file, bytes, 0, bytes.length, 0);
      const pages = Number(bytes.toString("latin1", 0, count).split(" ")[FILE_FIELD]);
      return Number.isSafeInteger(pages) ? pages * PAGE_BYTES : 0;
    } finally {
      closeSync(file);
    }
  } catch {
    return 0;
  }
}
