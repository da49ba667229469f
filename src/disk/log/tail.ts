/**
 * What lies behind the last verified record of a segment: nothing, a torn write, or proof of
 * damage.
 *
 * Owns nothing but the scan window while it works.
 *
 * Invariants: 1. "Torn" is said only when no valid record behind the end was written after the end
 * was durable, and what is there is no longer than one write. 2. Doubt is damage.
 */
import { type Result, failure, ok } from "../../base/result.js";
import type { FilesPort } from "../../ports.js";
import { type Kernels, frame, scanWord, sizes } from "../../wasm/kernels.js";
import type { Segment } from "./segment.js";

type Examined = Result<number, "damaged" | "unreadable">;

/**
 * Gives the number of bytes of the torn write behind `segment.endOffset`, 0 when only zeros follow.
 */
export function examineTail(
  segment: Segment,
  segmentBytes: number,
  salt: number,
  files: FilesPort,
  kernels: Kernels,
  done: (result: Examined) => void,
): void {
  const { window } = kernels.scanner;
  const end = segment.endOffset;
  let lastUsed = -1;
  const read = (offset: number, next: (bytes: number) => void): void => {
    const bytes = Math.min(sizes.windowBytes, segmentBytes - offset);
    files.read(segment.file, offset, window.subarray(0, bytes), (result) => {
      if (!result.ok) return done(failure("unreadable", result.message));
      if (result.value < bytes) return done(failure("damaged", "the file ends early"));
      next(bytes);
    });
  };
  const judge = (): void => {
    if (lastUsed < 0) return done(ok(0));
    const length = lastUsed + 1 - end;
    if (length > sizes.regionBytes) {
      return done(failure("damaged", "more follows than one torn write can leave"));
    }
    read(end, (bytes) => {
      const problem = refute(segment, bytes, salt, kernels);
      done(problem === null ? ok(length) : failure("damaged", problem));
    });
  };
  const look = (offset: number): void => {
    if (offset >= segmentBytes) return judge();
    read(offset, (bytes) => {
      const last = lastNonZero(window.subarray(0, bytes));
      if (last >= 0) lastUsed = offset + last;
      look(offset + bytes);
    });
  };
  look(end);
}

/** Searches the window, which begins at the segment's end, for a record that proves damage. */
function refute(segment: Segment, bytes: number, salt: number, kernels: Kernels): string | null {
  const { scanner } = kernels;
  const end = segment.endOffset;
  const segmentId = segment.sequence;
  const windowEnd = end + bytes;
  let at = end;
  const shift = (to: number): void => {
    scanner.window.copyWithin(0, to - at, windowEnd - at);
    at = to;
  };
  for (;;) {
    const place = { segmentId, salt, offset: at, last: true };
    const found = scanner.seek(windowEnd - at, place);
    if (found.outcome === "none") return null;
    if (found.outcome === "unsure") return "what follows is too much like records to tell";
    shift(found.offset);
    // The run of records that chains on from here; the first is taken at its word about its chain.
    const previousChecksum = wordAt(scanner.window, frame.previousAt);
    const run = scanner.scan(windowEnd - at, { ...place, offset: at, previousChecksum });
    for (let row = 0; row < run.records; row++) {
      const word = row * sizes.scanWords;
      const durable = scanner.table[word + scanWord.durable] as number;
      if (durable > end) return durableProof(scanner.table[word + scanWord.offset] as number);
    }
    if (run.nextOffset >= windowEnd) return null;
    shift(run.nextOffset);
  }
}

function durableProof(offset: number): string {
  return `a later record at offset ${String(offset)} shows that it was durable`;
}

function wordAt(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at, true);
}

/** Index of the last byte that is not zero, -1 when there is none. */
function lastNonZero(bytes: Uint8Array): number {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  let word = words.length - 1;
  while (word >= 0 && words[word] === 0) word--;
  if (word < 0) return -1;
  let at = word * 4 + 3;
  while (bytes[at] === 0) at--;
  return at;
}
