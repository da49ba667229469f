/**
 * The rows of one group and one generation, as decisions and reads see them: a kind and a name,
 * never a whole store key.
 *
 * May call the overlay. Invariants: 1. Every change goes through the digest, so that replicas with
 * equal digests made equal changes. 2. A name part never leaves its kind: scans end with the kind.
 */
import type { StateDigest } from "./digest.js";
import { ROW_KIND_END, RowKind, readUint32Key, type ByteKey } from "./keys.js";
import type { Overlay, RowVisitor } from "./overlay.js";

/** What reads need. */
export interface ReadableRows {
  get(kind: number, name: ByteKey): Uint8Array | null;
  /** Visits rows with first ≤ name < last (null: all) in byte order until `visit` returns false. */
  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void;
}

/** What decisions need. */
export interface Rows extends ReadableRows {
  put(kind: number, name: ByteKey, value: Uint8Array): void;
  /** As `put`, for a row that `get` just said is absent. */
  insert(kind: number, name: ByteKey, value: Uint8Array): void;
  delete(kind: number, name: ByteKey): void;
}

export class GroupRows implements Rows {
  private readonly overlay: Overlay;
  private readonly digest: StateDigest | null;
  private readonly prefixes: readonly ByteKey[];
  /**
   * The key made last: a decision reads a row and then writes it, and need not build and hash the
   * key twice.
   */
  private lastKind = -1;
  private lastName: ByteKey = "";
  private lastKey: ByteKey = "";

  /**
   * `prefix`: what all rows of the generation begin with. `digest`: takes in every change; null for
   * none.
   */
  constructor(
    overlay: Overlay,
    readonly prefix: ByteKey,
    digest: StateDigest | null,
  ) {
    this.overlay = overlay;
    this.digest = digest;
    const prefixes: ByteKey[] = [];
    for (let kind = 0; kind <= ROW_KIND_END; kind++) {
      prefixes.push(prefix + String.fromCharCode(kind));
    }
    this.prefixes = prefixes;
  }

  private key(kind: number, name: ByteKey): ByteKey {
    // History rows are touched once each: comparing their long names would cost more than it saves.
    if (kind === RowKind.history) return (this.prefixes[kind] as string) + name;
    if (kind !== this.lastKind || name !== this.lastName) {
      this.lastKind = kind;
      this.lastName = name;
      this.lastKey = (this.prefixes[kind] as string) + name;
    }
    return this.lastKey;
  }

  get(kind: number, name: ByteKey): Uint8Array | null {
    return this.overlay.get(this.key(kind, name));
  }

  put(kind: number, name: ByteKey, value: Uint8Array): void {
    const key = this.key(kind, name);
    this.overlay.put(key, value);
    this.takeIn(kind, name, key, value);
  }

  insert(kind: number, name: ByteKey, value: Uint8Array): void {
    const key = this.key(kind, name);
    this.overlay.insert(key, value);
    this.takeIn(kind, name, key, value);
  }

  delete(kind: number, name: ByteKey): void {
    const key = this.key(kind, name);
    this.overlay.delete(key);
    this.takeIn(kind, name, key, null);
  }

  private takeIn(kind: number, name: ByteKey, key: ByteKey, value: Uint8Array | null): void {
    if (this.digest === null) return;
    if (kind !== RowKind.history) this.digest.row(kind, name, value);
    else {
      // The bytes of a history row were taken in when they were the latest revision: which one
      // moved is enough.
      const revision = readUint32Key(key, key.length - 4);
      this.digest.moved(value === null ? kind + 1 : kind, revision);
    }
  }

  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    const prefix = this.prefixes[kind] as string;
    const end = last === null ? (this.prefixes[kind + 1] as string) : prefix + last;
    const size = prefix.length;
    this.overlay.scan(prefix + first, end, (key, value) => visit(key.slice(size), value));
  }
}
