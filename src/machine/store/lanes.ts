/**
 * Reading fixed little-endian numbers straight from row bytes, for the rows that every operation
 * decodes.
 *
 * Pure. Invariants: 1. The caller has checked that the bytes are there. 2. The forms are those of
 * ByteWriter.
 */

export function uint32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  );
}

/** A uint53; -1 when the eight bytes hold more than that. */
export function uint53At(bytes: Uint8Array, at: number): number {
  const high = uint32At(bytes, at + 4);
  return high >= 0x20_0000 ? -1 : high * 0x1_0000_0000 + uint32At(bytes, at);
}

export function int64At(bytes: Uint8Array, at: number): bigint {
  const high = uint32At(bytes, at + 4);
  const low = uint32At(bytes, at);
  if (high < 0x20_0000) return BigInt(high * 0x1_0000_0000 + low);
  return (BigInt(high | 0) << 32n) | BigInt(low);
}
