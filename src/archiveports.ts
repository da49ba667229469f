/**
 * How the program touches a directory of backups, or one in which it restores: as types only.
 *
 * A port has one root, and every path is relative to it: names joined with "/", "" for the root
 * itself. Invariants: 1. As in `ports.ts`: a callback comes exactly once and never in the turn of
 * the call. 2. No call follows a symbolic link, at whatever place of the path below the root or at
 * the root: it fails with "link". 3. What is made is private: directories 0700, files 0600. 4. A
 * message names the path below the root, never the root. 5. Made, renamed or removed names are
 * durable only after `syncDirectory` of the directory that they are in, the content of a file only
 * after `finish`.
 */
import type { Result } from "./base/result.js";

/**
 * "no-space": the disk or the quota is full. "no-descriptors": no further file can be opened now.
 * "link": a symbolic link, or something else that is no file or directory as asked for, is in the
 * way. "failed": anything else, an input/output error first of all.
 */
export type ArchiveErrorCode =
  "no-space" | "no-descriptors" | "missing" | "exists" | "link" | "failed";

export type ArchiveResult<T> = Result<T, ArchiveErrorCode>;

export interface ArchiveEntry {
  /** The last name of its path; "" for the root. */
  readonly name: string;
  /** "other": a socket, a device; never opened. */
  readonly kind: "file" | "directory" | "link" | "other";
  /** Of a file; 0 for everything else. */
  readonly sizeBytes: number;
  /** Permissions, 0 to 0o777. */
  readonly mode: number;
  /** Last change of its content, Unix milliseconds by the clock of the file system. */
  readonly modifiedMs: number;
}

/** What went through a file: its length, and SHA-256 in lower-case hexadecimal. */
export interface ArchiveSum {
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** A new file that is being written, from its beginning to its end. One call at a time. */
export interface ArchiveWriter {
  readonly path: string;
  /** Appends all of `bytes`, which must not change until `done`. */
  write(bytes: Uint8Array, done: (result: ArchiveResult<null>) => void): void;
  /** Makes the content durable and closes. The writer has ended, whatever the result. */
  finish(done: (result: ArchiveResult<ArchiveSum>) => void): void;
  /** Closes and removes the file. The writer has ended. */
  abandon(done: () => void): void;
}

/** A file that is read from its beginning. One call at a time. */
export interface ArchiveReader {
  readonly path: string;
  /** As it was when the file was opened. */
  readonly sizeBytes: number;
  /** The next bytes, at most `maxBytes`; none at the end. */
  read(maxBytes: number, done: (result: ArchiveResult<Uint8Array>) => void): void;
  /** Of all bytes that were read, hashed as they went to the reader: no other copy counts. */
  sum(): ArchiveSum;
  close(done: () => void): void;
}

export interface ArchivePort {
  examine(path: string, done: (result: ArchiveResult<ArchiveEntry>) => void): void;
  /** Everything in a directory, in byte order of the names; what vanishes meanwhile is left out. */
  list(path: string, done: (result: ArchiveResult<readonly ArchiveEntry[]>) => void): void;
  makeDirectory(path: string, done: (result: ArchiveResult<null>) => void): void;
  /** A file that is not there yet. */
  create(path: string, done: (result: ArchiveResult<ArchiveWriter>) => void): void;
  /** An existing plain file. */
  open(path: string, done: (result: ArchiveResult<ArchiveReader>) => void): void;
  /** Sets a file's `modifiedMs` to now, by writing its first byte again; an empty file gets one. */
  touch(path: string, done: (result: ArchiveResult<null>) => void): void;
  /** Within one directory; "exists" when there is something under the new name already. */
  rename(from: string, to: string, done: (result: ArchiveResult<null>) => void): void;
  syncDirectory(path: string, done: (result: ArchiveResult<null>) => void): void;
  /** Removes a file, or a link itself. */
  remove(path: string, done: (result: ArchiveResult<null>) => void): void;
  /** Removes whatever is there, a directory with all in it. A link goes, not what it names. */
  removeTree(path: string, done: (result: ArchiveResult<null>) => void): void;
}

/** Digests, and signatures with a key that stays inside. */
export interface SignaturePort {
  /** A key is configured. Without one nothing is signed. */
  readonly hasKey: boolean;
  /** SHA-256 in lower-case hexadecimal. */
  sha256(bytes: Uint8Array): string;
  /** HMAC-SHA-256 in lower-case hexadecimal; "" without a key. */
  sign(bytes: Uint8Array): string;
  /** Whether `signature` is the one of `bytes`, compared in constant time; false without a key. */
  verify(bytes: Uint8Array, signature: string): boolean;
}
