/**
 * Batch compaction: last write per key, survivors of a segment, one reservation for many calls. See
 * src/wasm/compact.ts.
 *
 * Owns the order, scratch, verdict and share areas, and the void lanes of the group table.
 */
import {
  GROUPS,
  GROUPS_MAX,
  GROUP_BYTES,
  KEYS_MAX,
  KEY_LANES,
  ORDER,
  ROW_BYTES,
  SCAN_RECORDS,
  SCAN_TABLE,
  SCRATCH,
  SHARE_COUNTS,
  SHARE_ITEMS,
  SHARE_OFFSET_HIGH,
  SHARE_OFFSET_LOW,
  VERDICTS,
  setResult,
} from "./arena";

/**
 * A sort item: u64 of the eight bytes behind the common prefix, big endian; u32 key number; u32
 * spare.
 */
const ITEM: usize = 16;
const SCRATCH_HALF: usize = <usize>KEYS_MAX * ITEM;

function keyAt(key: u32): usize {
  return load<u32>(KEY_LANES + ((<usize>key) << 3));
}

function keyLength(key: u32): u32 {
  return load<u32>(KEY_LANES + ((<usize>key) << 3), 4);
}

/** Length of the prefix that all keys share. */
function commonPrefix(count: i32): u32 {
  const first = keyAt(0);
  let shared = keyLength(0);
  for (let key: u32 = 1; key < <u32>count && shared > 0; key++) {
    const at = keyAt(key);
    if (keyLength(key) < shared) shared = keyLength(key);
    let same: u32 = 0;
    while (same < shared && load<u8>(first + same) == load<u8>(at + same)) same++;
    shared = same;
  }
  return shared;
}

/** Up to eight bytes from `skip` on as a big-endian number; missing bytes count as zero. */
function digit(key: u32, skip: u32): u64 {
  const length = keyLength(key) - skip;
  const at = keyAt(key) + skip;
  if (length >= 8) return bswap<u64>(load<u64>(at));
  let value: u64 = 0;
  for (let byte: u32 = 0; byte < length; byte++) {
    value |= (<u64>load<u8>(at + byte)) << (56 - ((<u64>byte) << 3));
  }
  return value;
}

/** Compares two keys whose first `skip` bytes are known to be equal. */
function compareFrom(left: u32, right: u32, skip: u32): i32 {
  const leftLength = keyLength(left);
  const rightLength = keyLength(right);
  const shared = min(leftLength, rightLength);
  if (shared > skip) {
    const order = memory.compare(keyAt(left) + skip, keyAt(right) + skip, shared - skip);
    if (order != 0) return order;
  }
  return leftLength < rightLength ? -1 : leftLength > rightLength ? 1 : 0;
}

/** True if the item at `right` belongs before the one at `left`, which came earlier. */
function precedes(right: usize, left: usize, skip: u32): bool {
  const rightDigit = load<u64>(right);
  const leftDigit = load<u64>(left);
  if (rightDigit != leftDigit) return rightDigit < leftDigit;
  return compareFrom(load<u32>(right, 8), load<u32>(left, 8), skip) < 0;
}

function copyItem(to: usize, from: usize): void {
  store<u64>(to, load<u64>(from));
  store<u32>(to, load<u32>(from, 8), 8);
}

/** Merges the sorted runs [left, middle) and [middle, end) to `out`; ties keep their order. */
function merge(left: usize, middle: usize, end: usize, out: usize, skip: u32): void {
  let first = left;
  let second = middle;
  let to = out;
  while (first < middle && second < end) {
    if (precedes(second, first, skip)) {
      copyItem(to, second);
      second += ITEM;
    } else {
      copyItem(to, first);
      first += ITEM;
    }
    to += ITEM;
  }
  memory.copy(to, first, middle - first);
  to += middle - first;
  memory.copy(to, second, end - second);
}

/** Sorts short runs of eight by insertion. */
function sortRuns(from: usize, end: usize, skip: u32): void {
  for (let run = from; run < end; run += 8 * ITEM) {
    const runEnd = min(run + 8 * ITEM, end);
    for (let item = run + ITEM; item < runEnd; item += ITEM) {
      const digits = load<u64>(item);
      const key = load<u32>(item, 8);
      let hole = item;
      while (hole > run) {
        const before = load<u64>(hole - ITEM);
        if (before < digits) break;
        if (before == digits && compareFrom(key, load<u32>(hole - ITEM, 8), skip) >= 0) break;
        copyItem(hole, hole - ITEM);
        hole -= ITEM;
      }
      store<u64>(hole, digits);
      store<u32>(hole, key, 8);
    }
  }
}

export function fold(count: i32): i32 {
  assert(count >= 0 && count <= KEYS_MAX);
  if (count == 0) return 0;
  const skip = commonPrefix(count);
  for (let key: u32 = 0; key < <u32>count; key++) {
    const at = SCRATCH + <usize>key * ITEM;
    store<u64>(at, digit(key, skip));
    store<u32>(at, key, 8);
  }
  const bytes = <usize>count * ITEM;
  let from: usize = SCRATCH;
  let to: usize = SCRATCH + SCRATCH_HALF;
  sortRuns(from, from + bytes, skip);
  for (let width: usize = 8 * ITEM; width < bytes; width <<= 1) {
    for (let at: usize = 0; at < bytes; at += width << 1) {
      const middle = min(at + width, bytes);
      const end = min(at + (width << 1), bytes);
      merge(from + at, from + middle, from + end, to + at, skip);
    }
    const swapped = from;
    from = to;
    to = swapped;
  }
  return keepLast(from, count, skip);
}

/** Writes the last item of each run of equal keys to the order area. */
function keepLast(from: usize, count: i32, skip: u32): i32 {
  let kept: i32 = 0;
  for (let at: i32 = 0; at < count; at++) {
    const item = from + <usize>at * ITEM;
    const key = load<u32>(item, 8);
    if (at + 1 < count && load<u64>(item) == load<u64>(item, ITEM)) {
      if (compareFrom(key, load<u32>(item, ITEM + 8), skip) == 0) continue;
    }
    store<u32>(ORDER + ((<usize>kept) << 2), key);
    kept++;
  }
  return kept;
}

const KIND_ENTRY: u32 = 1;
const KIND_HARD_STATE: u32 = 2;
const KIND_TRUNCATE: u32 = 3;
const KIND_DROP: u32 = 4;
const KIND_INSTALL: u32 = 5;
const KIND_RESTATED: u32 = 6;
const KIND_FIRST_OF_CALLER: u32 = 16;

const DEAD: u8 = 0;
const LIVE: u8 = 1;
const UNKNOWN_GROUP: u8 = 2;

const HARD_STATE_SEEN: u32 = 1;
const INSTALL_SEEN: u32 = 2;
const DROP_SEEN: u32 = 4;

/** Address of the row of `group` in the ascending group table, or 0. */
function findGroup(groups: i32, group: u32): usize {
  let low: i32 = 0;
  let high = groups - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const at = GROUPS + <usize>middle * GROUP_BYTES;
    const found = load<u32>(at);
    if (found == group) return at;
    if (found < group) low = middle + 1;
    else high = middle - 1;
  }
  return 0;
}

/** Sets a flag of a group; true if it was not set before. */
function setFlag(group: usize, flag: u32): bool {
  const flags = load<u32>(group, 24);
  store<u32>(group, flags | flag, 24);
  return (flags & flag) == 0;
}

/**
 * What becomes of one record of a known group and incarnation; notes what it means for earlier
 * ones.
 */
function judge(group: usize, row: usize): u8 {
  const kind: u32 = load<u8>(row, 8);
  if (kind >= KIND_FIRST_OF_CALLER) return LIVE;
  if ((load<u32>(group, 24) & DROP_SEEN) != 0) return DEAD;
  // The index lanes of a row are not aligned to 8 bytes; WASM loads them all the same.
  const index = load<u64>(row, 20);
  const voided = load<u64>(group, 16);
  switch (kind) {
    case KIND_ENTRY:
    case KIND_RESTATED:
      if (kind == KIND_ENTRY && index < voided) store<u64>(group, index, 16);
      if (index >= voided || index <= load<u64>(group, 8)) return DEAD;
      return (load<u32>(group, 24) & INSTALL_SEEN) == 0 ? LIVE : DEAD;
    case KIND_HARD_STATE:
      return setFlag(group, HARD_STATE_SEEN) ? LIVE : DEAD;
    case KIND_INSTALL:
      return setFlag(group, INSTALL_SEEN) ? LIVE : DEAD;
    case KIND_TRUNCATE:
      if (index < voided) store<u64>(group, index, 16);
      return DEAD;
    case KIND_DROP:
      setFlag(group, DROP_SEEN);
      return DEAD;
    default:
      return LIVE;
  }
}

export function mark(records: i32, groups: i32): i32 {
  assert(records >= 0 && records <= SCAN_RECORDS && groups >= 0 && groups <= GROUPS_MAX);
  let live: i32 = 0;
  let lastGroup: u32 = 0;
  let lastAt: usize = 0;
  for (let record = records - 1; record >= 0; record--) {
    const row = SCAN_TABLE + <usize>record * ROW_BYTES;
    const group = load<u32>(row, 12);
    if (lastAt == 0 || group != lastGroup) {
      lastAt = findGroup(groups, group);
      lastGroup = group;
    }
    let verdict = UNKNOWN_GROUP;
    if (lastAt != 0) {
      const incarnation = load<u32>(row, 16);
      const current = load<u32>(lastAt, 4);
      if (incarnation == current) verdict = judge(lastAt, row);
      else if (incarnation < current) verdict = DEAD;
    }
    store<u8>(VERDICTS + <usize>record, verdict);
    if (verdict == LIVE) live++;
  }
  return live;
}

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
