/**
 * The real FilesPort: node's callback file calls, with every short read and write finished.
 *
 * Owns the descriptors it opened. Tests replace the system's file calls.
 *
 * Invariants: 1. A write callback comes after the last byte was taken; on a "durable" file that
 * byte is then on the disk (O_DSYNC: measured faster than write and fdatasync, see perf/README.md).
 * 2. Every read and write names its position. 3. A call that makes no progress is a failure, never
 * a loop. 4. A file that could not be made whole is removed again. 5. Whole sectors go past the
 * system's cache (O_DIRECT, on a descriptor of its own) where the file system takes that, else
 * through it: equally durable, and slower by a little. Reads always go through the cache, which
 * the system keeps in step with direct writes.
 */
import * as fs from "node:fs";
import { assert } from "../base/assert.js";
import { type Failure, type Result, failure, ok } from "../base/result.js";
import type { FileErrorCode, FileListing, FilesPort, OpenFile } from "../ports.js";

type Done<T> = (result: Result<T, FileErrorCode>) => void;

/** The system calls used here; each as in node:fs. */
export interface FileSystemCalls {
  readonly open: typeof fs.open;
  readonly close: typeof fs.close;
  readonly read: typeof fs.read;
  readonly write: typeof fs.write;
  readonly fdatasync: typeof fs.fdatasync;
  readonly fsync: typeof fs.fsync;
  readonly ftruncate: typeof fs.ftruncate;
  readonly rename: typeof fs.rename;
  readonly unlink: typeof fs.unlink;
  readonly readdir: typeof fs.readdir;
  readonly stat: typeof fs.stat;
}

/** One slice of zeros: short enough that a log write behind it in the disk's queue hardly waits. */
const SLICE_BYTES = 1024 * 1024;

/** What a direct write must be a multiple of, in place, length and memory, on every usual disk. */
const DIRECT_BYTES = 4096;

class Descriptor implements OpenFile {
  /** The same file, opened for direct writes; null where there is none, or none any more. */
  direct: number | null = null;

  constructor(
    readonly path: string,
    readonly number: number,
  ) {}
}

/** The system says this of direct access that the file system or the memory does not allow. */
function refusesDirect(error: NodeJS.ErrnoException): boolean {
  return error.code === "EINVAL" || error.code === "ENOTSUP" || error.code === "EOPNOTSUPP";
}

function isWholeSectors(offset: number, bytes: Uint8Array): boolean {
  return (offset | bytes.length | bytes.byteOffset) % DIRECT_BYTES === 0 && bytes.length > 0;
}

function descriptorOf(file: OpenFile): Descriptor {
  assert(file instanceof Descriptor, "a file of this port");
  return file;
}

function numberOf(file: OpenFile): number {
  return descriptorOf(file).number;
}

/** The code of a system error. A quota counts as a full disk, the system's table as the own. */
function fileErrorCode(error: NodeJS.ErrnoException): FileErrorCode {
  if (error.code === "ENOSPC" || error.code === "EDQUOT") return "no-space";
  if (error.code === "EMFILE" || error.code === "ENFILE") return "no-descriptors";
  if (error.code === "ENOENT") return "missing";
  return error.code === "EEXIST" ? "exists" : "failed";
}

function failed(
  action: string,
  path: string,
  error: NodeJS.ErrnoException,
): Failure<FileErrorCode> {
  return failure(fileErrorCode(error), `cannot ${action} ${path}: ${error.message}`);
}

function finish(action: string, path: string, done: Done<null>): (error: Error | null) => void {
  return (error) => done(error ? failed(action, path, error) : ok(null));
}

export class RealFiles implements FilesPort {
  constructor(private readonly calls: FileSystemCalls = fs) {}

  open(path: string, access: "read" | "durable", done: Done<OpenFile>): void {
    const { O_RDONLY, O_RDWR, O_DSYNC } = fs.constants;
    const flags = access === "read" ? O_RDONLY : O_RDWR | O_DSYNC;
    this.calls.open(path, flags, (error, number) => {
      if (error) return done(failed("open", path, error));
      const file = new Descriptor(path, number);
      if (access === "read") done(ok(file));
      else this.openDirect(file, done);
    });
  }

  /** Adds the descriptor for direct writes, where the platform and the file system have them. */
  private openDirect(file: Descriptor, done: Done<OpenFile>): void {
    const { O_WRONLY, O_DSYNC } = fs.constants;
    // Absent on some platforms, whatever the declared types say.
    const { O_DIRECT } = fs.constants as { readonly O_DIRECT?: number };
    if (O_DIRECT === undefined) return done(ok(file));
    this.calls.open(file.path, O_WRONLY | O_DSYNC | O_DIRECT, (error, number) => {
      if (!error) file.direct = number;
      else if (!refusesDirect(error)) {
        return this.close(file, () => done(failed("open", file.path, error)));
      }
      done(ok(file));
    });
  }

  allocate(path: string, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    assert(head.length <= SLICE_BYTES && head.length <= sizeBytes, "the head fits the first slice");
    const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = fs.constants;
    // Synchronous slices never leave a backlog of dirty pages that a log write would have to wait
    // for.
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_DSYNC;
    this.calls.open(path, flags, 0o600, (error, descriptor) => {
      if (error) return done(failed("create", path, error));
      const file = new Descriptor(path, descriptor);
      this.fill(file, sizeBytes, head, (result) => this.settle(file, result, done));
    });
  }

  private fill(file: Descriptor, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    const zeros = new Uint8Array(Math.min(SLICE_BYTES, sizeBytes));
    const first = zeros.slice();
    first.set(head);
    const next = (offset: number): void => {
      if (offset >= sizeBytes) return this.fsync(file, done);
      const slice = offset === 0 ? first : zeros.subarray(0, sizeBytes - offset);
      this.write(file, offset, slice, (result) => {
        if (!result.ok) return done(result);
        next(offset + slice.length);
      });
    };
    next(0);
  }

  /** Closes a new file; removes it when it could not be made whole. */
  private settle(file: Descriptor, result: Result<null, FileErrorCode>, done: Done<null>): void {
    this.close(file, (closed) => {
      const outcome = result.ok ? closed : result;
      if (outcome.ok) return done(outcome);
      this.calls.unlink(file.path, () => done(outcome));
    });
  }

  read(file: OpenFile, offset: number, target: Uint8Array, done: Done<number>): void {
    const descriptor = numberOf(file);
    const next = (at: number): void => {
      const left = target.length - at;
      this.calls.read(descriptor, target, at, left, offset + at, (error, count) => {
        if (error) return done(failed("read", file.path, error));
        assert(count >= 0 && count <= left, "a read takes what was asked or less");
        if (count === 0 || count === left) return done(ok(at + count));
        next(at + count);
      });
    };
    next(0);
  }

  write(file: OpenFile, offset: number, bytes: Uint8Array, done: Done<null>): void {
    const descriptor = descriptorOf(file);
    const { number } = descriptor;
    const direct = isWholeSectors(offset, bytes) ? descriptor.direct : null;
    const next = (at: number): void => {
      const left = bytes.length - at;
      // What a direct write left over may be no whole sectors any more.
      const chosen = at === 0 && direct !== null ? direct : number;
      this.calls.write(chosen, bytes, at, left, offset + at, (error, count) => {
        if (error && chosen !== number && refusesDirect(error)) {
          // Nothing was written. The memory is not aligned to the taste of this disk; it will not
          // be the next time either.
          return this.giveUpDirect(descriptor, chosen, () => this.write(file, offset, bytes, done));
        }
        if (error) return done(failed("write", file.path, error));
        assert(count >= 0 && count <= left, "a write takes what was asked or less");
        if (count === left) return done(ok(null));
        if (count > 0) return next(at + count);
        done(failure("failed", `cannot write ${file.path}: the system took no byte`));
      });
    };
    next(0);
  }

  private giveUpDirect(file: Descriptor, direct: number, next: () => void): void {
    if (file.direct === null) return next();
    file.direct = null;
    // Whether closing works does not matter to a descriptor through which nothing was written.
    this.calls.close(direct, next);
  }

  sync(file: OpenFile, done: Done<null>): void {
    this.calls.fdatasync(numberOf(file), finish("sync", file.path, done));
  }

  private fsync(file: OpenFile, done: Done<null>): void {
    this.calls.fsync(numberOf(file), finish("sync", file.path, done));
  }

  truncate(file: OpenFile, sizeBytes: number, done: Done<null>): void {
    this.calls.ftruncate(numberOf(file), sizeBytes, finish("truncate", file.path, done));
  }

  close(file: OpenFile, done: Done<null>): void {
    const { number, direct } = descriptorOf(file);
    this.calls.close(number, (error) => {
      const outcome: Result<null, FileErrorCode> = error
        ? failed("close", file.path, error)
        : ok(null);
      if (direct === null) done(outcome);
      else
        this.calls.close(direct, (late) => done(late ? failed("close", file.path, late) : outcome));
    });
  }

  rename(from: string, to: string, done: Done<null>): void {
    this.calls.rename(from, to, finish("rename", from, done));
  }

  remove(path: string, done: Done<null>): void {
    this.calls.unlink(path, finish("remove", path, done));
  }

  list(path: string, done: Done<readonly FileListing[]>): void {
    this.calls.readdir(path, { withFileTypes: true }, (error, entries) => {
      if (error) return done(failed("list", path, error));
      const names = entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
      const found: FileListing[] = [];
      const next = (at: number): void => {
        const name = names[at];
        if (name === undefined) return done(ok(found));
        this.calls.stat(`${path}/${name}`, (problem, stats) => {
          if (problem) return done(failed("examine", `${path}/${name}`, problem));
          found.push({ name, sizeBytes: stats.size });
          next(at + 1);
        });
      };
      next(0);
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.calls.open(path, fs.constants.O_RDONLY, (error, descriptor) => {
      if (error) return done(failed("open", path, error));
      const directory = new Descriptor(path, descriptor);
      this.fsync(directory, (synced) => {
        this.close(directory, (closed) => done(synced.ok ? closed : synced));
      });
    });
  }
}
