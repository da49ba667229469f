/**
 * Batch compaction: survivors of a segment, one reservation for many calls. See
 * src/wasm/compact.ts.
 *
 * Owns the verdict and share areas, and the void lanes of the group table.
 */
import {
  GROUPS,
  GROUPS_MAX,
  GROUP_BYTES,
  ROW_BYTES,
  SCAN_RECORDS,
  SCAN_TABLE,
  SHARE_COUNTS,
  SHARE_ITEMS,
  SHARE_OFFSET_HIGH,
  SHARE_OFFSET_LOW,
  VERDICTS,
  setResult,
} from "./arena";

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
