/**
 * A reader that makes up what it reads: what decodes from it is a value of the kind, whichever kind
 * that is. So tests of codecs need no list of values.
 *
 * Invariants: 1. Seeded. 2. Numbers are within their fields, the ends of them often. 3. Text is
 * well-formed.
 */
import { ByteReader } from "../../../src/base/codec.js";
import { EMPTY_BYTES } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";

export class InventingReader extends ByteReader {
  /** `first`: the single bytes that are read first, such as the number of a kind. */
  constructor(
    private readonly random: Prng,
    private readonly first: number[],
  ) {
    super(EMPTY_BYTES);
  }

  private pick<T>(values: readonly T[]): T {
    return values[this.random.below(values.length)] as T;
  }

  /** How much input is left never bounds a list. */
  override get remainingBytes(): number {
    return 1000;
  }

  override uint8(): number {
    return this.first.shift() ?? this.random.below(3);
  }

  override boolean(): boolean {
    return this.random.chance(1, 2);
  }

  override uint32(): number {
    return this.pick([0, 1, 2 ** 32 - 1, this.random.nextUint32()]);
  }

  override int32(): number {
    return this.pick([0, 1, -1, 2 ** 31 - 1, -(2 ** 31), this.random.nextUint32() | 0]);
  }

  override uint53(): number {
    const { random } = this;
    return this.pick([0, 1, 2 ** 53 - 1, random.nextUint32() * 2 ** 20 + random.below(9)]);
  }

  override int53(): number {
    return this.boolean() ? this.uint53() : -this.uint53() + 0;
  }

  override int64(): bigint {
    const noise = BigInt(this.int53()) * 977n;
    return BigInt.asIntN(64, this.pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), noise]));
  }

  override length(): number {
    return this.random.below(5);
  }

  override raw(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.random.nextUint32() & 255);
  }

  override bytes(): Uint8Array {
    return this.raw(this.random.below(40));
  }

  override text(): string {
    const long = "x".repeat(this.random.below(200));
    return this.pick(["", "a", "name/x", "\u0000", "caf\u00e9|\u65e5\u672c/\u{1f600}", long]);
  }
}
