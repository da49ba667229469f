/**
 * The real ArchivePort: directories of backups and of restores on a file system that may be slow,
 * shared or damaged.
 *
 * Owns the descriptors it opened. Invariants: 1. At most BULK_CALLS_MAX calls are with the system
 * at a time, in the order in which they came: a file system that hangs never takes all threads of
 * the pool (P-129). 2. Each call looks at every component of its path with lstat first, and opens
 * the last one with O_NOFOLLOW: a link is refused, never followed (P-139). 3. What is hashed is
 * what was handed over, in the same buffer. 4. A call that makes no progress is a failure.
 */
import { type Hash, createHash, createHmac, timingSafeEqual } from "node:crypto";
import * as fs from "node:fs";
import { assert } from "../base/assert.js";
import { compareText } from "../base/bytes.js";
import { type Failure, failure, ok } from "../base/result.js";
import type {
  ArchiveEntry,
  ArchiveErrorCode,
  ArchivePort,
  ArchiveReader,
  ArchiveResult,
  ArchiveSum,
  ArchiveWriter,
  SignaturePort,
} from "../ports.js";

type Done<T> = (result: ArchiveResult<T>) => void;

/** Half of the threads that the platform has for files. */
const BULK_CALLS_MAX = 2;
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
/** Directories inside each other; a backup has two. */
const TREE_DEPTH_MAX = 16;

function errorCode(error: NodeJS.ErrnoException): ArchiveErrorCode {
  const { code } = error;
  if (code === "ENOSPC" || code === "EDQUOT") return "no-space";
  if (code === "EMFILE" || code === "ENFILE") return "no-descriptors";
  if (code === "ENOENT") return "missing";
  if (code === "EEXIST" || code === "ENOTEMPTY") return "exists";
  return code === "ELOOP" || code === "ENOTDIR" ? "link" : "failed";
}

/** The system's own message names the whole path: only its code is told. */
function failed(
  action: string,
  path: string,
  error: NodeJS.ErrnoException,
): Failure<ArchiveErrorCode> {
  return failure(errorCode(error), `cannot ${action} "${path}": ${error.code ?? "unknown error"}`);
}

function entryOf(name: string, stats: fs.Stats): ArchiveEntry {
  let kind: ArchiveEntry["kind"] = "other";
  if (stats.isSymbolicLink()) kind = "link";
  else if (stats.isDirectory()) kind = "directory";
  else if (stats.isFile()) kind = "file";
  const sizeBytes = kind === "file" ? stats.size : 0;
  return { name, kind, sizeBytes, mode: stats.mode & 0o777, modifiedMs: Math.floor(stats.mtimeMs) };
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function parentOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}

/** The names of a path, asserted to lead nowhere but down. */
function namesOf(path: string): string[] {
  if (path === "") return [];
  const names = path.split("/");
  const plain = names.every((name) => name !== "" && name !== "." && name !== "..");
  assert(plain && !path.includes("\0"), "a path below the root is made of plain names");
  return names;
}

/** Calls that wait for their turn at the system. */
class Turns {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /** Runs `call` when it may; `call` says when it has ended. */
  take(call: (ended: () => void) => void): void {
    this.waiting.push(() => call(() => this.ended()));
    this.next();
  }

  private ended(): void {
    this.running--;
    this.next();
  }

  private next(): void {
    if (this.running >= BULK_CALLS_MAX) return;
    const call = this.waiting.shift();
    if (call === undefined) return;
    this.running++;
    call();
  }
}

class Sum {
  private readonly hash: Hash = createHash("sha256");
  private sizeBytes = 0;

  add(bytes: Uint8Array): void {
    this.hash.update(bytes);
    this.sizeBytes += bytes.length;
  }

  value(): ArchiveSum {
    return { sizeBytes: this.sizeBytes, sha256: this.hash.copy().digest("hex") };
  }
}

class RealWriter implements ArchiveWriter {
  private readonly sum = new Sum();

  constructor(
    readonly path: string,
    private readonly full: string,
    private readonly number: number,
    private readonly turns: Turns,
  ) {}

  write(bytes: Uint8Array, done: Done<null>): void {
    this.turns.take((ended) => {
      const finish: Done<null> = (result) => {
        ended();
        done(result);
      };
      const next = (at: number): void => {
        fs.write(this.number, bytes, at, bytes.length - at, null, (error, count) => {
          if (error) return finish(failed("write", this.path, error));
          if (at + count === bytes.length) {
            this.sum.add(bytes);
            return finish(ok(null));
          }
          if (count > 0) return next(at + count);
          finish(failure("failed", `cannot write "${this.path}": the system took no byte`));
        });
      };
      next(0);
    });
  }

  finish(done: Done<ArchiveSum>): void {
    this.turns.take((ended) => {
      fs.fsync(this.number, (unsynced) => {
        fs.close(this.number, (unclosed) => {
          ended();
          const error = unsynced ?? unclosed;
          done(error ? failed("sync", this.path, error) : ok(this.sum.value()));
        });
      });
    });
  }

  abandon(done: () => void): void {
    this.turns.take((ended) => {
      fs.close(this.number, () => {
        fs.unlink(this.full, () => {
          ended();
          done();
        });
      });
    });
  }
}

class RealReader implements ArchiveReader {
  private readonly hashed = new Sum();

  constructor(
    readonly path: string,
    readonly sizeBytes: number,
    private readonly number: number,
    private readonly turns: Turns,
  ) {}

  read(maxBytes: number, done: Done<Uint8Array>): void {
    assert(maxBytes > 0, "a read asks for something");
    this.turns.take((ended) => {
      const target = new Uint8Array(maxBytes);
      fs.read(this.number, target, 0, maxBytes, null, (error, count) => {
        ended();
        if (error) return done(failed("read", this.path, error));
        const bytes = target.subarray(0, count);
        this.hashed.add(bytes);
        done(ok(bytes));
      });
    });
  }

  sum(): ArchiveSum {
    return this.hashed.value();
  }

  close(done: () => void): void {
    // What was read is read: a failed close changes nothing of it.
    this.turns.take((ended) => {
      fs.close(this.number, () => {
        ended();
        done();
      });
    });
  }
}

export class RealArchive implements ArchivePort {
  private readonly turns = new Turns();

  /** `root`: an absolute path. It need not exist yet. */
  constructor(private readonly root: string) {
    assert(root.startsWith("/"), "the root of an archive is absolute");
  }

  private full(path: string): string {
    return path === "" ? this.root : `${this.root}/${path}`;
  }

  /**
   * Takes a turn, looks at the root and at `count` names of the path, and goes on with the full
   * path when each of them is a directory.
   */
  private walk<T>(
    path: string,
    count: number,
    done: Done<T>,
    next: (full: string, finish: Done<T>) => void,
  ): void {
    const names = namesOf(path);
    this.turns.take((ended) => {
      const finish: Done<T> = (result) => {
        ended();
        done(result);
      };
      const look = (at: number): void => {
        if (at > count) return next(this.full(path), finish);
        const part = names.slice(0, at).join("/");
        fs.lstat(this.full(part), (error, stats) => {
          if (error) return finish(failed("reach", part, error));
          if (stats.isDirectory()) return look(at + 1);
          finish(failure("link", `"${part}" is no directory`));
        });
      };
      look(0);
    });
  }

  /** As `walk`, for calls that change or open what the path names, not what is in it. */
  private below<T>(
    path: string,
    done: Done<T>,
    next: (full: string, finish: Done<T>) => void,
  ): void {
    const names = namesOf(path);
    assert(names.length > 0, "the root itself is nobody's to change");
    this.walk(path, names.length - 1, done, next);
  }

  examine(path: string, done: Done<ArchiveEntry>): void {
    const look = (full: string, finish: Done<ArchiveEntry>): void => {
      fs.lstat(full, (error, stats) => {
        finish(error ? failed("examine", path, error) : ok(entryOf(lastName(path), stats)));
      });
    };
    // A root that is a link is told as one; whoever asks is about to find that out.
    if (path === "") {
      this.turns.take((ended) =>
        look(this.root, (result) => {
          ended();
          done(result);
        }),
      );
    } else this.below(path, done, look);
  }

  list(path: string, done: Done<readonly ArchiveEntry[]>): void {
    this.walk<readonly ArchiveEntry[]>(path, namesOf(path).length, done, (full, finish) => {
      fs.readdir(full, (error, names) => {
        if (error) return finish(failed("list", path, error));
        names.sort(compareText);
        const found: ArchiveEntry[] = [];
        const next = (at: number): void => {
          const name = names[at];
          if (name === undefined) return finish(ok(found));
          fs.lstat(`${full}/${name}`, (problem, stats) => {
            if (problem === null) found.push(entryOf(name, stats));
            else if (problem.code !== "ENOENT") return finish(failed("examine", name, problem));
            next(at + 1);
          });
        };
        next(0);
      });
    });
  }

  makeDirectory(path: string, done: Done<null>): void {
    this.below<null>(path, done, (full, finish) => {
      fs.mkdir(full, DIRECTORY_MODE, (error) => {
        finish(error ? failed("make directory", path, error) : ok(null));
      });
    });
  }

  create(path: string, done: Done<ArchiveWriter>): void {
    this.below<ArchiveWriter>(path, done, (full, finish) => {
      const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
      fs.open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE, (error, number) => {
        if (error) return finish(failed("create", path, error));
        finish(ok(new RealWriter(path, full, number, this.turns)));
      });
    });
  }

  /** Opens a plain file that is there, and nothing else. */
  private openFile(
    path: string,
    full: string,
    flags: number,
    done: Done<{ readonly number: number; readonly sizeBytes: number }>,
  ): void {
    const { O_NOFOLLOW, O_NONBLOCK } = fs.constants;
    fs.open(full, flags | O_NOFOLLOW | O_NONBLOCK, (error, number) => {
      if (error) return done(failed("open", path, error));
      fs.fstat(number, (problem, stats) => {
        if (problem === null && stats.isFile()) return done(ok({ number, sizeBytes: stats.size }));
        fs.close(number, () => {
          done(problem ? failed("open", path, problem) : failure("link", `"${path}" is no file`));
        });
      });
    });
  }

  open(path: string, done: Done<ArchiveReader>): void {
    this.below<ArchiveReader>(path, done, (full, finish) => {
      this.openFile(path, full, fs.constants.O_RDONLY, (opened) => {
        if (!opened.ok) return finish(opened);
        const { number, sizeBytes } = opened.value;
        finish(ok(new RealReader(path, sizeBytes, number, this.turns)));
      });
    });
  }

  touch(path: string, done: Done<null>): void {
    this.below<null>(path, done, (full, finish) => {
      this.openFile(path, full, fs.constants.O_RDWR, (opened) => {
        if (!opened.ok) return finish(opened);
        const { number } = opened.value;
        const byte = new Uint8Array([0x20]);
        fs.read(number, byte, 0, 1, 0, (unread) => {
          if (unread) return fs.close(number, () => finish(failed("touch", path, unread)));
          fs.write(number, byte, 0, 1, 0, (unwritten) => {
            fs.close(number, (unclosed) => {
              const error = unwritten ?? unclosed;
              finish(error ? failed("touch", path, error) : ok(null));
            });
          });
        });
      });
    });
  }

  rename(from: string, to: string, done: Done<null>): void {
    assert(parentOf(from) === parentOf(to), "a rename stays in its directory");
    assert(namesOf(to).length > 0, "the root keeps its name");
    this.below<null>(from, done, (full, finish) => {
      fs.lstat(this.full(to), (error) => {
        if (error === null) return finish(failure("exists", `"${to}" exists`));
        if (error.code !== "ENOENT") return finish(failed("examine", to, error));
        fs.rename(full, this.full(to), (problem) => {
          finish(problem ? failed("rename", from, problem) : ok(null));
        });
      });
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.walk<null>(path, namesOf(path).length, done, (full, finish) => {
      const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;
      fs.open(full, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, (error, number) => {
        if (error) return finish(failed("sync", path, error));
        fs.fsync(number, (unsynced) => {
          fs.close(number, () => finish(unsynced ? failed("sync", path, unsynced) : ok(null)));
        });
      });
    });
  }

  remove(path: string, done: Done<null>): void {
    this.below<null>(path, done, (full, finish) => {
      fs.unlink(full, (error) => finish(error ? failed("remove", path, error) : ok(null)));
    });
  }

  removeTree(path: string, done: Done<null>): void {
    this.below<null>(path, done, (full, finish) => removeAll(full, path, 0, finish));
  }
}

/** One name after the other, so that a large tree takes one thread and not all. */
function removeAll(full: string, path: string, depth: number, done: Done<null>): void {
  const end = (error: NodeJS.ErrnoException | null): void => {
    done(error ? failed("remove", path, error) : ok(null));
  };
  fs.lstat(full, (error, stats) => {
    if (error) return end(error);
    if (!stats.isDirectory()) return fs.unlink(full, end);
    if (depth === TREE_DEPTH_MAX) return done(failure("failed", `"${path}" is too deep`));
    fs.readdir(full, (problem, names) => {
      if (problem) return end(problem);
      const next = (at: number): void => {
        const name = names[at];
        if (name === undefined) return fs.rmdir(full, end);
        removeAll(`${full}/${name}`, `${path}/${name}`, depth + 1, (result) => {
          // Somebody else may be removing the same tree.
          if (!result.ok && result.code !== "missing") return done(result);
          next(at + 1);
        });
      };
      next(0);
    });
  });
}

/** SHA-256, and HMAC-SHA-256 with `key`; null: nothing is signed. */
export function signatures(key: Uint8Array | null): SignaturePort {
  const sign = (bytes: Uint8Array): string =>
    key === null ? "" : createHmac("sha256", key).update(bytes).digest("hex");
  return {
    hasKey: key !== null,
    sha256: (bytes) => createHash("sha256").update(bytes).digest("hex"),
    sign,
    verify(bytes, signature) {
      if (key === null) return false;
      const own = Buffer.from(sign(bytes), "latin1");
      const given = Buffer.from(signature, "latin1");
      return own.length === given.length && timingSafeEqual(own, given);
    },
  };
}
