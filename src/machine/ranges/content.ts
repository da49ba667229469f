/**
 * What an interval holds, as two groups compare it: number of keys, and a digest that does not
 * depend on the order in which they came.
 *
 * The digest is a sum modulo 2^64 over rows, so that a row can be added and taken away. It covers
 * key, revision, stamp, flags, kept revisions and value of the latest row and of all older ones;
 * lease ends are left out: they differ between the clocks of two groups.
 */
import { ByteWriter } from "../../base/codec.js";
import { xxh32 } from "../../base/xxhash.js";
import { writeStamp } from "../commands/group-record.js";
import type { KvRow } from "../kv/kv-row.js";
import { RowKind, fromByteKey, type ByteKey } from "../store/keys.js";

const SEED_LOW = 0x4d6f7665;
const SEED_HIGH = 0x52616e67;
const TWO_POWER_32 = 0x1_0000_0000;

const writer = new ByteWriter(4096);

/** The row but for its value and its lease end. */
function headOf(kind: number, key: ByteKey, row: KvRow): Uint8Array {
  writer.reset().uint8(kind).boolean(row.deleted).boolean(row.passing);
  writer
    .boolean(row.value === null)
    .boolean(row.endMs !== null)
    .uint53(row.revision);
  writeStamp(writer, row.stamp);
  writer.length(row.kept.length);
  for (const { first, count } of row.kept) writer.uint53(first).uint32(count);
  return writer.raw(fromByteKey(key)).finish();
}

export class Content {
  constructor(
    public keys = 0,
    /** Unsigned halves. */
    public digestLow = 0,
    public digestHigh = 0,
  ) {}

  /** `kind`: of the latest row, or of an older one, of the key. */
  add(kind: number, key: ByteKey, row: KvRow): void {
    this.change(kind, key, row, 1);
  }

  remove(kind: number, key: ByteKey, row: KvRow): void {
    this.change(kind, key, row, -1);
  }

  private change(kind: number, key: ByteKey, row: KvRow, sign: 1 | -1): void {
    if (kind === RowKind.value) this.keys += sign;
    const head = headOf(kind, key, row);
    const { value } = row;
    let low = xxh32(head, SEED_LOW);
    let high = xxh32(head, SEED_HIGH);
    if (value !== null) {
      low = xxh32(value, low);
      high = xxh32(value, high);
    }
    const sumLow = this.digestLow + sign * low;
    const carry = sumLow >= TWO_POWER_32 ? 1 : sumLow < 0 ? -1 : 0;
    this.digestLow = sumLow - carry * TWO_POWER_32;
    this.digestHigh = (this.digestHigh + sign * high + carry) >>> 0;
  }
}
