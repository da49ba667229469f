/**
 * A directory of backups in memory that several nodes share: deterministic, with crashes, a full
 * disk, faults, links and flipped bits.
 *
 * Invariants: 1. Same seed and same calls, same directory. 2. A crash of a node undoes only what
 * that node did and nobody has made durable since: each of its names by chance, a rename as a
 * whole, and of a file that was not synced any beginning, its last bytes perhaps spoilt. 3. What
 * was synced survives every crash.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { assert } from "../../../src/base/assert.js";
import { compareText } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";
import { failure, ok } from "../../../src/base/result.js";
import type {
  ArchiveEntry,
  ArchivePort,
  ArchiveReader,
  ArchiveResult,
  ArchiveSum,
  ArchiveWriter,
  SignaturePort,
} from "../../../src/ports.js";

type Done<T> = (result: ArchiveResult<T>) => void;

interface Inode {
  readonly kind: ArchiveEntry["kind"];
  bytes: Uint8Array;
  /** What a crash leaves at least; null: everything is durable. */
  syncedBytes: number | null;
  author: string;
  mode: number;
  modifiedMs: number;
  /** Of a directory: the names now, those that are durable, and what was done between. */
  readonly names: Map<string, Inode>;
  durable: Map<string, Inode>;
  changes: Change[];
}

interface Change {
  readonly author: string;
  /** All of them or none. */
  readonly sets: readonly (readonly [name: string, inode: Inode | null])[];
}

/** Every call of a node, by the name of the port's method ("write", "read" and "finish" of files). */
export type ArchiveCall =
  Exclude<keyof ArchivePort, never> | "write" | "read" | "finish" | "abandon" | "close";

function inodeOf(kind: ArchiveEntry["kind"], author: string, modifiedMs: number): Inode {
  return {
    kind,
    bytes: new Uint8Array(0),
    syncedBytes: kind === "file" ? 0 : null,
    author,
    mode: kind === "directory" ? 0o700 : 0o600,
    modifiedMs,
    names: new Map(),
    durable: new Map(),
    changes: [],
  };
}

function sumOf(bytes: Uint8Array): ArchiveSum {
  return { sizeBytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** The shared directory. */
export class FalseArchiveDisk {
  readonly root = inodeOf("directory", "", 0);
  /** Bytes that fit still. */
  freeBytes = Infinity;
  /** The clock of the file system, Unix milliseconds. */
  nowMs: number;
  /** Calls made so far, by name. */
  readonly calls: { readonly node: string; readonly call: ArchiveCall; readonly path: string }[] =
    [];
  /** Asked before each call: true makes it fail. */
  fails: (call: ArchiveCall, path: string) => boolean = () => false;

  /** `soon`: has the answers of calls given later. */
  constructor(
    readonly soon: (callback: () => void) => void,
    nowMs = 1_700_000_000_000,
  ) {
    this.nowMs = nowMs;
  }

  /** What is under a path, following nothing; undefined when there is nothing. */
  find(path: string): Inode | undefined {
    let inode: Inode | undefined = this.root;
    if (path === "") return inode;
    for (const name of path.split("/")) inode = inode?.names.get(name);
    return inode;
  }

  /** All paths of plain files with their bytes, in order. */
  files(below: Inode = this.root, prefix = ""): Map<string, Uint8Array> {
    const found = new Map<string, Uint8Array>();
    for (const [name, inode] of [...below.names].sort(([a], [b]) => compareText(a, b))) {
      if (inode.kind === "file") found.set(prefix + name, inode.bytes);
      for (const [path, bytes] of this.files(inode, `${prefix}${name}/`)) found.set(path, bytes);
    }
    return found;
  }

  /** Puts a durable file there, or takes the one that is there another content. */
  put(path: string, bytes: Uint8Array): void {
    const names = path.split("/");
    const last = names.pop() as string;
    let directory = this.root;
    for (const name of names) {
      let next = directory.names.get(name);
      if (next === undefined) {
        next = inodeOf("directory", "", this.nowMs);
        this.settle(directory, name, next);
      }
      directory = next;
    }
    const inode = inodeOf("file", "", this.nowMs);
    inode.bytes = bytes.slice();
    inode.syncedBytes = null;
    this.settle(directory, last, inode);
  }

  /** Puts a link there. */
  putLink(path: string): void {
    const parent = this.find(path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
    assert(parent !== undefined, "the directory is there");
    const name = path.slice(path.lastIndexOf("/") + 1);
    this.settle(parent, name, inodeOf("link", "", this.nowMs));
  }

  /** Takes away whatever is there. */
  drop(path: string): void {
    const parent = this.find(path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
    assert(parent !== undefined, "the directory is there");
    const name = path.slice(path.lastIndexOf("/") + 1);
    parent.names.delete(name);
    parent.durable.delete(name);
  }

  private settle(directory: Inode, name: string, inode: Inode): void {
    directory.names.set(name, inode);
    directory.durable.set(name, inode);
  }

  /** Turns bits of one byte over. */
  flip(path: string, offset: number, mask = 1): void {
    const inode = this.find(path);
    assert(inode !== undefined && offset < inode.bytes.length, "there is such a byte");
    inode.bytes = inode.bytes.slice();
    inode.bytes[offset] = (inode.bytes[offset] as number) ^ mask;
  }

  chmod(path: string, mode: number): void {
    (this.find(path) as Inode).mode = mode;
  }

  age(path: string, byMs: number): void {
    (this.find(path) as Inode).modifiedMs -= byMs;
  }

  /** The power of a node fails. What it did and nobody made durable may be gone. */
  crash(node: string, prng: Prng): void {
    this.crashIn(this.root, node, prng);
  }

  private crashIn(directory: Inode, node: string, prng: Prng): void {
    const names = new Map(directory.durable);
    const open: Change[] = [];
    for (const change of directory.changes) {
      const survives = change.author !== node || prng.below(2) === 0;
      if (!survives) continue;
      for (const [name, inode] of change.sets) {
        set(names, name, inode);
        if (change.author === node) set(directory.durable, name, inode);
      }
      if (change.author !== node) open.push(change);
    }
    directory.changes = open;
    directory.names.clear();
    for (const [name, inode] of names) directory.names.set(name, inode);
    for (const inode of names.values()) {
      if (inode.kind === "directory") this.crashIn(inode, node, prng);
      else if (inode.author === node && inode.syncedBytes !== null) tear(inode, prng);
    }
  }

  /** Notes a change of a directory. */
  change(directory: Inode, author: string, sets: Change["sets"]): void {
    directory.changes.push({ author, sets });
    for (const [name, inode] of sets) set(directory.names, name, inode);
    directory.modifiedMs = this.nowMs;
  }

  make(kind: "file" | "directory", author: string): Inode {
    return inodeOf(kind, author, this.nowMs);
  }
}

function set(names: Map<string, Inode>, name: string, inode: Inode | null): void {
  if (inode === null) names.delete(name);
  else names.set(name, inode);
}

function tear(inode: Inode, prng: Prng): void {
  const synced = inode.syncedBytes ?? 0;
  const kept = synced + prng.below(inode.bytes.length - synced + 1);
  inode.bytes = inode.bytes.slice(0, kept);
  if (kept > synced && prng.below(2) === 0) inode.bytes.fill(0, kept - 1);
  inode.syncedBytes = null;
}

/** What one node sees of the shared directory. */
export class FalseArchive implements ArchivePort {
  /** After the end of the node nothing is answered any more, and nothing done. */
  ended = false;

  constructor(
    readonly disk: FalseArchiveDisk,
    readonly node = "a",
  ) {}

  /** Makes the call in a later turn, and answers in it. */
  call<T>(call: ArchiveCall, path: string, done: Done<T>, make: () => ArchiveResult<T>): void {
    const names = path === "" ? [] : path.split("/");
    const plain = names.every((name) => name !== "" && name !== "." && name !== "..");
    assert(plain && !path.includes("\0"), "a path below the root is made of plain names");
    this.disk.soon(() => {
      if (this.ended) return;
      this.disk.calls.push({ node: this.node, call, path });
      if (this.disk.fails(call, path)) return done(failure("failed", `cannot ${call} "${path}"`));
      done(make());
    });
  }

  /** The directory of a path, when all of its components are directories. */
  private parent(path: string): ArchiveResult<{ directory: Inode; name: string }> {
    assert(path !== "", "the root itself is nobody's to change");
    const names = path.split("/");
    const name = names.pop() as string;
    const found = this.directory(names.join("/"));
    return found.ok ? ok({ directory: found.value, name }) : found;
  }

  private directory(path: string): ArchiveResult<Inode> {
    let inode: Inode | undefined = this.disk.root;
    if (inode.kind !== "directory") return failure("link", "the root is no directory");
    for (const name of path === "" ? [] : path.split("/")) {
      inode = inode.names.get(name);
      if (inode === undefined) return failure("missing", `no "${path}"`);
      if (inode.kind !== "directory") return failure("link", `"${path}" is no directory`);
    }
    return ok(inode);
  }

  private entry(name: string, inode: Inode): ArchiveEntry {
    const { kind, bytes, mode, modifiedMs } = inode;
    return { name, kind, sizeBytes: kind === "file" ? bytes.length : 0, mode, modifiedMs };
  }

  examine(path: string, done: Done<ArchiveEntry>): void {
    this.call("examine", path, done, () => {
      if (path === "") return ok(this.entry("", this.disk.root));
      const at = this.parent(path);
      if (!at.ok) return at;
      const inode = at.value.directory.names.get(at.value.name);
      if (inode === undefined) return failure("missing", `no "${path}"`);
      return ok(this.entry(at.value.name, inode));
    });
  }

  list(path: string, done: Done<readonly ArchiveEntry[]>): void {
    this.call("list", path, done, () => {
      const directory = this.directory(path);
      if (!directory.ok) return directory;
      const names = [...directory.value.names].sort(([a], [b]) => compareText(a, b));
      return ok(names.map(([name, inode]) => this.entry(name, inode)));
    });
  }

  private add(path: string, kind: "file" | "directory"): ArchiveResult<Inode> {
    const at = this.parent(path);
    if (!at.ok) return at;
    const { directory, name } = at.value;
    if (directory.names.has(name)) return failure("exists", `"${path}" exists`);
    if (this.disk.freeBytes <= 0) return failure("no-space", `no space for "${path}"`);
    const inode = this.disk.make(kind, this.node);
    this.disk.change(directory, this.node, [[name, inode]]);
    return ok(inode);
  }

  makeDirectory(path: string, done: Done<null>): void {
    this.call<null>("makeDirectory", path, done, () => {
      const made = this.add(path, "directory");
      return made.ok ? ok(null) : made;
    });
  }

  create(path: string, done: Done<ArchiveWriter>): void {
    this.call<ArchiveWriter>("create", path, done, () => {
      const made = this.add(path, "file");
      return made.ok ? ok(new FalseWriter(this, path, made.value)) : made;
    });
  }

  private file(path: string): ArchiveResult<Inode> {
    const at = this.parent(path);
    if (!at.ok) return at;
    const inode = at.value.directory.names.get(at.value.name);
    if (inode === undefined) return failure("missing", `no "${path}"`);
    return inode.kind === "file" ? ok(inode) : failure("link", `"${path}" is no file`);
  }

  open(path: string, done: Done<ArchiveReader>): void {
    this.call<ArchiveReader>("open", path, done, () => {
      const found = this.file(path);
      return found.ok ? ok(new FalseReader(this, path, found.value)) : found;
    });
  }

  touch(path: string, done: Done<null>): void {
    this.call<null>("touch", path, done, () => {
      const found = this.file(path);
      if (!found.ok) return found;
      if (found.value.bytes.length === 0) found.value.bytes = new Uint8Array([0x20]);
      found.value.modifiedMs = this.disk.nowMs;
      return ok(null);
    });
  }

  rename(from: string, to: string, done: Done<null>): void {
    const parentOf = (path: string): string =>
      path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    assert(parentOf(from) === parentOf(to), "a rename stays in its directory");
    this.call<null>("rename", from, done, () => {
      const at = this.parent(from);
      if (!at.ok) return at;
      const { directory, name } = at.value;
      const inode = directory.names.get(name);
      if (inode === undefined) return failure("missing", `no "${from}"`);
      const last = to.slice(to.lastIndexOf("/") + 1);
      if (directory.names.has(last)) return failure("exists", `"${to}" exists`);
      this.disk.change(directory, this.node, [
        [last, inode],
        [name, null],
      ]);
      return ok(null);
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.call<null>("syncDirectory", path, done, () => {
      const directory = this.directory(path);
      if (!directory.ok) return directory;
      directory.value.durable = new Map(directory.value.names);
      directory.value.changes = [];
      return ok(null);
    });
  }

  remove(path: string, done: Done<null>): void {
    this.call<null>("remove", path, done, () => {
      const at = this.parent(path);
      if (!at.ok) return at;
      const { directory, name } = at.value;
      const inode = directory.names.get(name);
      if (inode === undefined) return failure("missing", `no "${path}"`);
      if (inode.kind === "directory") return failure("failed", `"${path}" is a directory`);
      this.disk.change(directory, this.node, [[name, null]]);
      this.disk.freeBytes += inode.bytes.length;
      return ok(null);
    });
  }

  removeTree(path: string, done: Done<null>): void {
    this.call<null>("removeTree", path, done, () => {
      const at = this.parent(path);
      if (!at.ok) return at;
      const { directory, name } = at.value;
      const inode = directory.names.get(name);
      if (inode === undefined) return failure("missing", `no "${path}"`);
      this.empty(inode);
      this.disk.change(directory, this.node, [[name, null]]);
      return ok(null);
    });
  }

  private empty(inode: Inode): void {
    for (const [name, child] of [...inode.names]) {
      this.empty(child);
      this.disk.change(inode, this.node, [[name, null]]);
    }
    this.disk.freeBytes += inode.bytes.length;
  }
}

class FalseWriter implements ArchiveWriter {
  private state: "open" | "busy" | "ended" = "open";
  private readonly hash = createHash("sha256");
  private size = 0;

  constructor(
    private readonly archive: FalseArchive,
    readonly path: string,
    private readonly inode: Inode,
  ) {}

  write(bytes: Uint8Array, done: Done<null>): void {
    assert(this.state === "open", "one call at a time, before the end");
    this.state = "busy";
    this.archive.call<null>("write", this.path, free(this, done), () => {
      const { disk } = this.archive;
      const taken = bytes.subarray(0, Math.min(bytes.length, Math.max(0, disk.freeBytes)));
      const grown = new Uint8Array(this.inode.bytes.length + taken.length);
      grown.set(this.inode.bytes);
      grown.set(taken, this.inode.bytes.length);
      this.inode.bytes = grown;
      this.inode.modifiedMs = disk.nowMs;
      disk.freeBytes -= taken.length;
      if (taken.length < bytes.length) return failure("no-space", `no space for "${this.path}"`);
      this.hash.update(bytes);
      this.size += bytes.length;
      return ok(null);
    });
  }

  /** Lets the next call in. */
  release(): void {
    if (this.state === "busy") this.state = "open";
  }

  finish(done: Done<ArchiveSum>): void {
    assert(this.state === "open", "one call at a time, before the end");
    this.state = "ended";
    this.archive.call<ArchiveSum>("finish", this.path, done, () => {
      this.inode.syncedBytes = null;
      return ok({ sizeBytes: this.size, sha256: this.hash.digest("hex") });
    });
  }

  abandon(done: () => void): void {
    assert(this.state === "open", "one call at a time, before the end");
    this.state = "ended";
    this.archive.remove(this.path, () => done());
  }
}

/** `done`, after the writer may be called again. */
function free<T>(writer: FalseWriter, done: Done<T>): Done<T> {
  return (result) => {
    writer.release();
    done(result);
  };
}

class FalseReader implements ArchiveReader {
  readonly sizeBytes: number;
  private at = 0;
  private readonly parts: Uint8Array[] = [];

  constructor(
    private readonly archive: FalseArchive,
    readonly path: string,
    private readonly inode: Inode,
  ) {
    this.sizeBytes = inode.bytes.length;
  }

  read(maxBytes: number, done: Done<Uint8Array>): void {
    assert(maxBytes > 0, "a read asks for something");
    this.archive.call<Uint8Array>("read", this.path, done, () => {
      const part = this.inode.bytes.slice(this.at, this.at + maxBytes);
      this.at += part.length;
      this.parts.push(part);
      return ok(part);
    });
  }

  sum(): ArchiveSum {
    return sumOf(Buffer.concat(this.parts));
  }

  close(done: () => void): void {
    this.archive.call<null>(
      "close",
      this.path,
      () => done(),
      () => ok(null),
    );
  }
}

/** Digests and signatures as the real ones. */
export function falseSignatures(key: string | null): SignaturePort {
  const sign = (bytes: Uint8Array): string =>
    key === null ? "" : createHmac("sha256", key).update(bytes).digest("hex");
  return {
    hasKey: key !== null,
    sha256: (bytes) => sumOf(bytes).sha256,
    sign,
    verify: (bytes, signature) => {
      const own = sign(bytes);
      if (own === "" || own.length !== signature.length) return false;
      return timingSafeEqual(Buffer.from(own), Buffer.from(signature));
    },
  };
}
