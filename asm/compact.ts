/**
 * Batch compaction: one reservation for many calls. See src/wasm/compact.ts.
 *
 * Owns the share areas.
 */
import { SHARE_COUNTS, SHARE_ITEMS, SHARE_OFFSET_HIGH, SHARE_OFFSET_LOW, setResult } from "./arena";

export function share(count: i32, limitLow: u32, limitHigh: u32): i32 {
  assert(count >= 0 && count <= SHARE_ITEMS);
  const limit = ((<u64>limitHigh) << 32) | (<u64>limitLow);
  let total: u64 = 0;
  let taken: i32 = 0;
  for (; taken < count; taken++) {
    const at = (<usize>taken) << 2;
    const next = total + <u64>load<u32>(SHARE_COUNTS + at);
    if (next > limit) break;
    store<u32>(SHARE_OFFSET_LOW + at, <u32>total);
    store<u32>(SHARE_OFFSET_HIGH + at, <u32>(total >>> 32));
    total = next;
  }
  setResult(0, <u32>total);
  setResult(1, <u32>(total >>> 32));
  return taken;
}
