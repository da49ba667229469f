/**
 * A disk in memory for tests of the log: deterministic, steppable, with power loss, full disk and
 * faults.
 *
 * Everything that would be asynchronous waits in one queue; `run` takes steps from it. `crash`
 * gives the disk as the next start would find it: unsynced directory changes survive as a prefix of
 * their order, and of a write in flight each sector survives or not.
 *
 * Invariants: 1. Same seed, same disk. 2. A durable write is on the platter when its callback runs.
 */
import { assert } from "../../../src/base/assert.js";
import type { Prng } from "../../../src/base/prng.js";
import { type Result, failure, ok } from "../../../src/base/result.js";
import type {
  FileErrorCode,
  FileListing,
  FilesPort,
  OpenFile,
  TimerHandle,
  TimerPort,
} from "../../../src/ports.js";

type Done<T> = (result: Result<T, FileErrorCode>) => void;

/** Tears happen at borders of this size, smaller than the log's own. */
const TEAR_BYTES = 512;

export interface Inode {
  bytes: Uint8Array;
}

interface Handle extends OpenFile {
  readonly inode: Inode;
  open: boolean;
}

interface NameChange {
  readonly name: string;
  readonly inode: Inode | null;
}

interface Flight {
  readonly inode: Inode;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** The queue that stands for time: callbacks of the disk and of the timers. */
export class Steps implements TimerPort {
  private tasks: (() => void)[] = [];
  private later: { atMs: number; callback: () => void }[] = [];
  nowMs = 0;

  push(task: () => void): void {
    this.tasks.push(task);
  }

  soon(callback: () => void): void {
    this.tasks.push(callback);
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    const entry = { atMs: this.nowMs + delayMs, callback };
    this.later.push(entry);
    return {
      cancel: () => {
        this.later = this.later.filter((other) => other !== entry);
      },
    };
  }

  /** Runs at most `limit` steps; true when nothing is left to do now. */
  run(limit = 1_000_000): boolean {
    for (let step = 0; step < limit; step++) {
      const task = this.tasks.shift();
      if (task === undefined) return true;
      task();
    }
    return this.tasks.length === 0;
  }

  /** Lets time pass, running what falls due. */
  advance(delayMs: number): void {
    this.nowMs += delayMs;
    const due = this.later.filter((entry) => entry.atMs <= this.nowMs);
    this.later = this.later.filter((entry) => entry.atMs > this.nowMs);
    for (const { callback } of due) this.tasks.push(callback);
    this.run();
  }
}

export class FakeDisk implements FilesPort {
  /** Names as the running system sees them. */
  readonly names = new Map<string, Inode>();
  private durableNames = new Map<string, Inode>();
  private changes: NameChange[] = [];
  private readonly flights = new Set<Flight>();
  /** Bytes that may still be allocated. */
  freeBytes = Number.POSITIVE_INFINITY;
  /** Called for each write; returns a code to fail it. */
  writeFault: ((path: string, offset: number) => FileErrorCode | null) | null = null;
  /** Called for each call that needs a descriptor; true to have none left. */
  withoutDescriptors: (call: "open" | "allocate" | "syncDirectory") => boolean = () => false;
  /** Steps that a write takes beyond the first. */
  writeSteps: () => number = () => 0;
  writes = 0;
  operations: string[] = [];

  constructor(readonly steps: Steps) {}

  private answer<T>(done: Done<T>, make: () => Result<T, FileErrorCode>): void {
    this.steps.push(() => done(make()));
  }

  private rename_(name: string, inode: Inode | null): void {
    if (inode === null) this.names.delete(name);
    else this.names.set(name, inode);
    this.changes.push({ name, inode });
  }

  open(path: string, _access: "read" | "durable", done: Done<OpenFile>): void {
    this.answer(done, () => {
      if (this.withoutDescriptors("open")) return failure("no-descriptors", path);
      const inode = this.names.get(path);
      if (inode === undefined) return failure("missing", `no ${path}`);
      const handle: Handle = { path, inode, open: true };
      return ok(handle);
    });
  }

  allocate(path: string, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    this.operations.push(`allocate ${path}`);
    this.steps.push(() => {
      if (this.withoutDescriptors("allocate")) {
        return this.answer(done, () => failure("no-descriptors", path));
      }
      if (this.names.has(path)) return this.answer(done, () => failure("exists", path));
      if (sizeBytes > this.freeBytes) return this.answer(done, () => failure("no-space", path));
      this.freeBytes -= sizeBytes;
      const inode: Inode = { bytes: new Uint8Array(sizeBytes) };
      this.rename_(path, inode);
      this.answer(done, () => {
        inode.bytes.set(head);
        return ok(null);
      });
    });
  }

  read(file: OpenFile, offset: number, target: Uint8Array, done: Done<number>): void {
    this.answer(done, () => {
      const { bytes } = this.handle(file).inode;
      const part = bytes.subarray(offset, offset + target.length);
      target.set(part);
      return ok(part.length);
    });
  }

  write(file: OpenFile, offset: number, bytes: Uint8Array, done: Done<null>): void {
    const { inode } = this.handle(file);
    assert(offset + bytes.length <= inode.bytes.length, "a write stays in allocated space");
    const flight: Flight = { inode, offset, bytes };
    this.flights.add(flight);
    this.writes++;
    let left = this.writeSteps();
    const attempt = (): void => {
      if (left-- > 0) return this.steps.push(attempt);
      this.flights.delete(flight);
      const fault = this.writeFault?.(file.path, offset) ?? null;
      if (fault !== null) return done(failure(fault, `fault in ${file.path}`));
      inode.bytes.set(bytes, offset);
      done(ok(null));
    };
    this.steps.push(attempt);
  }

  private handle(file: OpenFile): Handle {
    const handle = file as Handle;
    assert(handle.open, `${file.path} is open`);
    return handle;
  }

  sync(file: OpenFile, done: Done<null>): void {
    this.operations.push(`sync ${file.path}`);
    this.answer(done, () => ok(null));
  }

  truncate(file: OpenFile, sizeBytes: number, done: Done<null>): void {
    this.answer(done, () => {
      const { inode } = this.handle(file);
      inode.bytes = inode.bytes.slice(0, sizeBytes);
      return ok(null);
    });
  }

  close(file: OpenFile, done: Done<null>): void {
    this.handle(file).open = false;
    this.answer(done, () => ok(null));
  }

  rename(from: string, to: string, done: Done<null>): void {
    this.operations.push(`rename ${to}`);
    this.answer(done, () => {
      const inode = this.names.get(from);
      if (inode === undefined) return failure("missing", from);
      this.rename_(to, inode);
      this.rename_(from, null);
      return ok(null);
    });
  }

  remove(path: string, done: Done<null>): void {
    this.operations.push(`remove ${path}`);
    this.answer(done, () => {
      const inode = this.names.get(path);
      if (inode === undefined) return failure("missing", path);
      this.freeBytes += inode.bytes.length;
      this.rename_(path, null);
      return ok(null);
    });
  }

  list(path: string, done: Done<readonly FileListing[]>): void {
    this.answer(done, () => {
      const found: FileListing[] = [];
      for (const [name, { bytes }] of this.names) {
        const plain = name.slice(path.length + 1);
        if (name.startsWith(`${path}/`)) found.push({ name: plain, sizeBytes: bytes.length });
      }
      return ok(found);
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.operations.push(`syncDirectory ${path}`);
    this.answer(done, () => {
      if (this.withoutDescriptors("syncDirectory")) return failure("no-descriptors", path);
      this.durableNames = new Map(this.names);
      this.changes = [];
      return ok(null);
    });
  }

  /** A copy of everything as it is now, as after the end of the process without loss of power. */
  copy(steps: Steps): FakeDisk {
    return this.fork(steps, this.names, () => true);
  }

  /** What is left after a loss of power at this moment. */
  crash(steps: Steps, prng: Prng): FakeDisk {
    const names = new Map(this.durableNames);
    // The journal of the file system keeps the order of name changes; some last of them are lost.
    for (const { name, inode } of this.changes.slice(0, prng.below(this.changes.length + 1))) {
      if (inode === null) names.delete(name);
      else names.set(name, inode);
    }
    const whole = prng.below(4);
    return this.fork(steps, names, () =>
      whole === 0 ? true : whole === 1 ? false : prng.chance(1, 2),
    );
  }

  private fork(steps: Steps, names: Map<string, Inode>, survives: () => boolean): FakeDisk {
    const disk = new FakeDisk(steps);
    disk.freeBytes = this.freeBytes;
    const copies = new Map<Inode, Inode>();
    for (const [name, inode] of names) {
      const copy = copies.get(inode) ?? { bytes: inode.bytes.slice() };
      copies.set(inode, copy);
      disk.names.set(name, copy);
      disk.durableNames.set(name, copy);
    }
    for (const { inode, offset, bytes } of this.flights) {
      const copy = copies.get(inode);
      if (copy === undefined) continue;
      for (let at = 0; at < bytes.length; at += TEAR_BYTES) {
        if (survives()) copy.bytes.set(bytes.subarray(at, at + TEAR_BYTES), offset + at);
      }
    }
    return disk;
  }
}
