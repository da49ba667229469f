/**
 * Memory for many small byte strings, carved from slabs: an allocation of its own costs several
 * times the copying of its bytes, because the engine keeps no more than IN_HEAP_BYTES beside the
 * object and asks the system for the rest.
 *
 * Invariants: 1. Bytes handed out are never handed out again: a slab goes when nothing views it.
 * 2. What is larger than the bound has memory of its own. 3. Whatever is kept pins its slab: things
 * that stay and things that soon go do not share slabs.
 */

/** Typed arrays up to this size lie in the engine's own heap: nothing is saved by a slab. */
export const IN_HEAP_BYTES = 64;

export class ByteSlabs {
  private slab: ArrayBuffer | null = null;
  private used = 0;

  /** Slabs of `slabBytes`; arrays above `largeBytes` are allocated by themselves. */
  constructor(
    private readonly slabBytes: number,
    private readonly largeBytes: number,
  ) {}

  /** `size` bytes, zero. */
  take(size: number): Uint8Array {
    if (size > this.largeBytes) return new Uint8Array(size);
    let { slab } = this;
    if (slab === null || this.used + size > this.slabBytes) {
      slab = this.slab = new ArrayBuffer(this.slabBytes);
      this.used = 0;
    }
    const bytes = new Uint8Array(slab, this.used, size);
    this.used += size;
    return bytes;
  }

  /** A copy that pins nothing but its slab. */
  copy(bytes: Uint8Array): Uint8Array {
    if (bytes.length > this.largeBytes) return new Uint8Array(bytes);
    const own = this.take(bytes.length);
    own.set(bytes);
    return own;
  }
}
