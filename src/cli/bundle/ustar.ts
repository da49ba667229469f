/**
 * Files as an archive that every `tar` reads (POSIX ustar).
 *
 * Pure. Invariants: 1. A name that does not fit its field, or is not plain ASCII, is a fault of the
 * caller: nothing is cut off. 2. Every file is readable by its owner only.
 */
import { assert } from "../../base/assert.js";

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const PLAIN_NAME = /^[A-Za-z0-9._/-]+$/;
const FILE_MODE = 0o600;
/** Digits of the fields of a header. */
const SMALL_DIGITS = 7;
const LARGE_DIGITS = 11;

export interface ArchivedFile {
  readonly name: string;
  readonly bytes: Buffer;
}

/** Behind the last file. */
export const ARCHIVE_END = Buffer.alloc(2 * BLOCK_BYTES);

function octal(value: number, digits: number): string {
  const text = Math.floor(value).toString(8);
  assert(text.length <= digits, "a number fits its field of the archive");
  return `${text.padStart(digits, "0")}\0`;
}

function header(name: string, sizeBytes: number, modifiedMs: number): Buffer {
  assert(PLAIN_NAME.test(name) && name.length < NAME_BYTES, "a name fits into the archive");
  const block = Buffer.alloc(BLOCK_BYTES);
  const fields: readonly (readonly [at: number, text: string])[] = [
    [0, name],
    [100, octal(FILE_MODE, SMALL_DIGITS)],
    [108, octal(0, SMALL_DIGITS)],
    [116, octal(0, SMALL_DIGITS)],
    [124, octal(sizeBytes, LARGE_DIGITS)],
    [136, octal(modifiedMs / 1000, LARGE_DIGITS)],
    // The sum of the header counts its own field as blanks.
    [148, " ".repeat(8)],
    [156, "0"],
    [257, "ustar\0"],
    [263, "00"],
  ];
  for (const [at, text] of fields) block.write(text, at, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, SMALL_DIGITS - 1)} `, 148, "latin1");
  return block;
}

/** One file as it stands in the archive. `modifiedMs`: Unix time. */
export function archived({ name, bytes }: ArchivedFile, modifiedMs: number): Buffer {
  const rest = bytes.length % BLOCK_BYTES;
  const filling = Buffer.alloc(rest === 0 ? 0 : BLOCK_BYTES - rest);
  return Buffer.concat([header(name, bytes.length, modifiedMs), bytes, filling]);
}
