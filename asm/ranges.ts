/**
 * Checked 64-bit range arithmetic for many allocations over one cursor. See src/wasm/ranges.ts for
 * the meaning.
 *
 * The room left is divided by the increment once per batch; after that each item is one comparison
 * of step counts, so that nothing can overflow before it is checked.
 */
import {
  RANGE_COUNTS,
  RANGE_END_HIGH,
  RANGE_END_LOW,
  RANGE_ITEMS,
  RANGE_START_HIGH,
  RANGE_START_LOW,
  RANGE_VERDICTS,
  setResult,
} from "./arena";

const VERDICT_OK: u32 = 0;
const VERDICT_BEYOND_MAX: u32 = 1;
const VERDICT_BEYOND_INT64: u32 = 2;
const VERDICT_INVALID: u32 = 3;

function joined(low: u32, high: u32): i64 {
  return (((<u64>high) << 32) | (<u64>low)) as i64;
}

/**
 * How many whole increments lie between `current` and `limit`; the difference of two int64 fits
 * u64.
 */
function stepsWithin(current: i64, limit: i64, increment: i64): u64 {
  return limit <= current ? 0 : (<u64>limit - <u64>current) / <u64>increment;
}

function storeItem(item: usize, start: u64, end: u64, verdict: u32): void {
  const at = item << 2;
  store<u32>(RANGE_START_LOW + at, <u32>start);
  store<u32>(RANGE_START_HIGH + at, <u32>(start >>> 32));
  store<u32>(RANGE_END_LOW + at, <u32>end);
  store<u32>(RANGE_END_HIGH + at, <u32>(end >>> 32));
  store<u32>(RANGE_VERDICTS + at, verdict);
}

export function allocate(
  count: i32,
  currentLow: u32,
  currentHigh: u32,
  incrementLow: u32,
  incrementHigh: u32,
  hasMaximum: i32,
  maximumLow: u32,
  maximumHigh: u32,
): i32 {
  assert(count >= 0 && count <= RANGE_ITEMS);
  let current = joined(currentLow, currentHigh);
  const increment = joined(incrementLow, incrementHigh);
  assert(increment >= 1);
  const maximum = hasMaximum == 0 ? i64.MAX_VALUE : joined(maximumLow, maximumHigh);
  let room64 = stepsWithin(current, i64.MAX_VALUE, increment);
  let room = stepsWithin(current, maximum, increment);
  let granted: i32 = 0;
  for (let item: usize = 0; item < <usize>count; item++) {
    const wanted = load<u32>(RANGE_COUNTS + (item << 2));
    if (wanted == 0 || wanted >= 0x8000_0000) {
      storeItem(item, 0, 0, VERDICT_INVALID);
    } else if (wanted > room64) {
      storeItem(item, 0, 0, VERDICT_BEYOND_INT64);
    } else if (wanted > room) {
      storeItem(item, 0, 0, VERDICT_BEYOND_MAX);
    } else {
      const end = current + increment * wanted;
      assert(end > current);
      storeItem(item, <u64>(current + increment), <u64>end, VERDICT_OK);
      current = end;
      room64 -= wanted;
      room -= wanted;
      granted++;
    }
  }
  setResult(0, <u32>current);
  setResult(1, <u32>((<u64>current) >>> 32));
  return granted;
}
