/**
 * The rows of one group and one generation, as decisions and reads see them: a kind and a name, never a whole store key.
 *
 * May call the overlay. Invariants: 1. Every change goes through the digest, so that replicas with equal digests made
 * equal changes. 2. A name part never leaves its kind: scans end with the kind.
 */
import type { StateDigest } from "./digest.js";
import { ROW_KIND_END, type ByteKey } from "./keys.js";
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

  /** `prefix`: what all rows of the generation begin with. `digest`: takes in every change; null for none. */
  constructor(overlay: Overlay, prefix: ByteKey, digest: StateDigest | null) {
    this.overlay = overlay;
    this.digest = digest;
    const prefixes: ByteKey[] = [];
    for (let kind = 0; kind <= ROW_KIND_END; kind++) {
      prefixes.push(prefix + String.fromCharCode(kind));
    }
    this.prefixes = prefixes;
  }

  get(kind: number, name: ByteKey): Uint8Array | null {
    return this.overlay.get((this.prefixes[kind] as string) + name);
  }

  put(kind: number, name: ByteKey, value: Uint8Array): void {
    this.digest?.row(kind, name, value);
    this.overlay.put((this.prefixes[kind] as string) + name, value);
  }

  insert(kind: number, name: ByteKey, value: Uint8Array): void {
    this.digest?.row(kind, name, value);
    this.overlay.insert((this.prefixes[kind] as string) + name, value);
  }

  delete(kind: number, name: ByteKey): void {
    this.digest?.row(kind, name, null);
    this.overlay.delete((this.prefixes[kind] as string) + name);
  }

  scan(kind: number, first: ByteKey, last: ByteKey | null, visit: RowVisitor): void {
    const prefix = this.prefixes[kind] as string;
    const end = last === null ? (this.prefixes[kind + 1] as string) : prefix + last;
    const size = prefix.length;
    this.overlay.scan(prefix + first, end, (key, value) => visit(key.slice(size), value));
  }
}
