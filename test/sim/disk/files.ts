/**
 * The way of one process to the disk of its machine: the files port, with calls that take their
 * time and files that are open.
 *
 * Invariants: 1. Nothing is answered to a life that is over. 2. A file that is written was opened
 * for that, by this process.
 */
import { assert } from "../../../src/base/assert.js";
import { type Result, failure, ok } from "../../../src/base/result.js";
import type { FileErrorCode, FileListing, FilesPort, OpenFile } from "../../../src/ports.js";
import type { Inode, SimDisk } from "./disk.js";
import type { Life } from "../world/process.js";

type Done<T> = (result: Result<T, FileErrorCode>) => void;

interface Handle extends OpenFile {
  readonly inode: Inode;
  readonly life: Life;
  readonly durable: boolean;
  isOpen: boolean;
}

export class SimFiles implements FilesPort {
  constructor(
    private readonly disk: SimDisk,
    private readonly life: Life,
  ) {}

  /** Answers after the time that the call takes; `make` runs then, whatever the process does. */
  private answer<T>(
    name: string,
    baseMs: number,
    done: Done<T>,
    make: () => Result<T, FileErrorCode>,
  ): void {
    this.life.touch("disk");
    this.later(name, baseMs, done, make);
  }

  /** The same, where the process has made its call already. */
  private later<T>(
    name: string,
    baseMs: number,
    done: Done<T>,
    make: () => Result<T, FileErrorCode>,
  ): void {
    const { disk, life } = this;
    disk.world.schedule(disk.delayMs(baseMs), () => {
      if (life.isOver) return;
      const result = make();
      if (disk.world.trace.hasWords) {
        disk.world.say(disk.node, `disk: ${name}${result.ok ? "" : ` fails: ${result.code}`}`);
      }
      life.enter(() => done(result));
    });
  }

  open(path: string, access: "read" | "durable", done: Done<OpenFile>): void {
    this.answer(`open ${path}`, this.disk.temper.readMs, done, () => {
      const inode = this.disk.find(path);
      if (inode === undefined) return failure("missing", `no ${path}`);
      const { life } = this;
      const handle: Handle = { path, inode, life, durable: access === "durable", isOpen: true };
      return ok(handle);
    });
  }

  allocate(path: string, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    const { disk, life } = this;
    const first = head.slice();
    life.touch("disk");
    disk.world.schedule(disk.delayMs(disk.temper.writeMs), () => {
      if (life.isOver) return;
      if (disk.find(path) !== undefined) {
        return life.enter(() => done(failure("exists", `${path} exists`)));
      }
      if (disk.isFull) {
        disk.counts.refusedSpace++;
        disk.world.say(disk.node, `disk: no space for ${path}`);
        return life.enter(() => done(failure("no-space", `no space for ${path}`)));
      }
      // A crash from here on leaves a file of any length up to the whole.
      const inode: Inode = {
        bytes: new Uint8Array(disk.prng.below(sizeBytes + 1)),
        unsynced: new Map(),
        isDraft: true,
      };
      disk.setName(path, inode);
      this.later(`allocate ${path}`, disk.temper.writeMs, done, () => {
        inode.bytes = new Uint8Array(sizeBytes);
        inode.bytes.set(first);
        inode.isDraft = false;
        return ok(null);
      });
    });
  }

  read(file: OpenFile, offset: number, target: Uint8Array, done: Done<number>): void {
    const { inode } = this.handle(file);
    const { disk } = this;
    this.answer(`read ${file.path} ${offset}+${target.length}`, disk.temper.readMs, done, () => {
      const { readErrorPerMillion } = disk.temper;
      if (readErrorPerMillion > 0 && disk.prng.below(1_000_000) < readErrorPerMillion) {
        disk.counts.errors++;
        return failure("failed", `cannot read ${file.path}`);
      }
      const part = inode.bytes.subarray(offset, offset + target.length);
      target.set(part);
      return ok(part.length);
    });
  }

  write(file: OpenFile, offset: number, bytes: Uint8Array, done: Done<null>): void {
    const { inode, durable } = this.handle(file);
    assert(durable, "a file that is written was opened for that");
    assert(offset + bytes.length <= inode.bytes.length, "a write stays in allocated space");
    const { disk, life } = this;
    life.touch("disk");
    const { world } = disk;
    const flight = disk.begin(inode, offset, bytes);
    world.schedule(disk.delayMs(disk.temper.writeMs), () => {
      const end = disk.finish(flight);
      if (end === null) return;
      world.trace.mixBytes(bytes);
      if (world.trace.hasWords) {
        world.say(disk.node, `disk: ${end} ${file.path} ${offset}+${bytes.length}`);
      }
      const result = end === "written" ? ok(null) : failure("failed" as const, `cannot write`);
      life.enter(() => done(result));
    });
  }

  private handle(file: OpenFile): Handle {
    const handle = file as Handle;
    assert(handle.isOpen && handle.life === this.life, `${file.path} is open in this process`);
    return handle;
  }

  sync(file: OpenFile, done: Done<null>): void {
    const { inode } = this.handle(file);
    this.answer(`sync ${file.path}`, this.disk.temper.writeMs, done, () => {
      if (this.disk.failNext) {
        this.disk.failNext = false;
        this.disk.counts.errors++;
        return failure("failed", `cannot sync ${file.path}`);
      }
      inode.unsynced.clear();
      return ok(null);
    });
  }

  truncate(file: OpenFile, sizeBytes: number, done: Done<null>): void {
    const { inode } = this.handle(file);
    this.answer(`truncate ${file.path}`, this.disk.temper.writeMs, done, () => {
      const bytes = new Uint8Array(sizeBytes);
      bytes.set(inode.bytes.subarray(0, sizeBytes));
      inode.bytes = bytes;
      return ok(null);
    });
  }

  close(file: OpenFile, done: Done<null>): void {
    this.handle(file).isOpen = false;
    this.answer(`close ${file.path}`, this.disk.temper.readMs, done, () => ok(null));
  }

  rename(from: string, to: string, done: Done<null>): void {
    this.answer(`rename to ${to}`, this.disk.temper.readMs, done, () => {
      const inode = this.disk.find(from);
      if (inode === undefined) return failure("missing", from);
      this.disk.setName(to, inode);
      this.disk.setName(from, null);
      return ok(null);
    });
  }

  remove(path: string, done: Done<null>): void {
    this.answer(`remove ${path}`, this.disk.temper.readMs, done, () => {
      if (this.disk.find(path) === undefined) return failure("missing", path);
      this.disk.setName(path, null);
      return ok(null);
    });
  }

  list(path: string, done: Done<readonly FileListing[]>): void {
    this.answer(`list ${path}`, this.disk.temper.readMs, done, () => {
      const found: FileListing[] = [];
      for (const [name, { bytes }] of this.disk.all()) {
        if (!name.startsWith(`${path}/`)) continue;
        found.push({ name: name.slice(path.length + 1), sizeBytes: bytes.length });
      }
      return ok(found);
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.answer(`syncDirectory ${path}`, this.disk.temper.writeMs, done, () => {
      this.disk.syncNames();
      return ok(null);
    });
  }
}
