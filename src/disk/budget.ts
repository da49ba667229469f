/**
 * The share of file calls in the thread pool of the process.
 *
 * The system's file calls and LMDB's writes block one thread each of a pool of four, which nothing
 * inside a running program can enlarge any more. The budget: one thread for the log's writes (one
 * at a time by the log's own design), one for its reads, one for everything else of the log
 * (making, removing, opening, closing), one for the flush of the state store (one at a time by its
 * own design). So whatever of these hangs, the others have their thread (P-129). Nothing else in
 * the server waits for file calls while it serves.
 *
 * Owns the calls that wait. Invariants: 1. At most one call per slot is with the system. 2. Calls
 * of a slot keep their order. 3. Log writes never wait here.
 */
import { statfs } from "node:fs";
import { type Result, failure, ok } from "../base/result.js";
import type { VolumeBytes } from "./space.js";
import type { FileErrorCode, FileListing, FilesPort, OpenFile } from "../ports.js";

type Done<T> = (result: Result<T, FileErrorCode>) => void;

/** Calls one after the other. */
class Slot {
  private readonly waiting: (() => void)[] = [];
  private busy = false;

  run<T>(done: Done<T>, call: (done: Done<T>) => void): void {
    const start = (): void => {
      call((result) => {
        this.busy = false;
        this.next();
        done(result);
      });
    };
    this.waiting.push(start);
    this.next();
  }

  private next(): void {
    if (this.busy) return;
    const start = this.waiting.shift();
    if (start === undefined) return;
    this.busy = true;
    start();
  }
}

export class BudgetedFiles implements FilesPort {
  private readonly reads = new Slot();
  private readonly others = new Slot();

  constructor(private readonly files: FilesPort) {}

  write(file: OpenFile, offset: number, bytes: Uint8Array, done: Done<null>): void {
    this.files.write(file, offset, bytes, done);
  }

  read(file: OpenFile, offset: number, target: Uint8Array, done: Done<number>): void {
    this.reads.run(done, (end) => this.files.read(file, offset, target, end));
  }

  open(path: string, access: "read" | "durable", done: Done<OpenFile>): void {
    this.others.run(done, (end) => this.files.open(path, access, end));
  }

  allocate(path: string, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    this.others.run(done, (end) => this.files.allocate(path, sizeBytes, head, end));
  }

  sync(file: OpenFile, done: Done<null>): void {
    this.others.run(done, (end) => this.files.sync(file, end));
  }

  truncate(file: OpenFile, sizeBytes: number, done: Done<null>): void {
    this.others.run(done, (end) => this.files.truncate(file, sizeBytes, end));
  }

  close(file: OpenFile, done: Done<null>): void {
    this.others.run(done, (end) => this.files.close(file, end));
  }

  rename(from: string, to: string, done: Done<null>): void {
    this.others.run(done, (end) => this.files.rename(from, to, end));
  }

  remove(path: string, done: Done<null>): void {
    this.others.run(done, (end) => this.files.remove(path, end));
  }

  list(path: string, done: Done<readonly FileListing[]>): void {
    this.others.run(done, (end) => this.files.list(path, end));
  }

  /**
   * What whoever is no administrator of the system may still write where `path` is, and what there
   * is of it.
   */
  volume(path: string, done: (bytes: VolumeBytes | null) => void): void {
    const ended: Done<VolumeBytes> = (result) => done(result.ok ? result.value : null);
    this.others.run(ended, (end) => {
      statfs(path, (error, stats) => {
        if (error !== null) return end(failure("failed", error.message));
        const { bavail, blocks, bsize } = stats;
        end(ok({ free: bavail * bsize, total: blocks * bsize }));
      });
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.others.run(done, (end) => this.files.syncDirectory(path, end));
  }
}
