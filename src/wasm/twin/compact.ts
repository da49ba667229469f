/**
 * Twin of asm/compact.ts: last write per key, survivors of a segment, one reservation for many
 * calls.
 *
 * Works on the arena it is given; owns nothing. May call the layout.
 *
 * Invariants: 1. Keys order as unsigned bytes, a prefix before its extensions; equal keys keep
 * their write order. 2. Survivors are found from the last record to the first, because only later
 * records void earlier ones.
 */
import { areas, groupLane, recordKind, scanLane, sizes, survival } from "../layout.js";

const keyLanes = areas.keyLanes >>> 2;
const order = areas.order >>> 2;
const two32 = 0x1_0000_0000;

function compareKeys(bytes: Uint8Array, lanes: Uint32Array, left: number, right: number): number {
  const leftAt = lanes[keyLanes + left * 2] as number;
  const rightAt = lanes[keyLanes + right * 2] as number;
  const leftLength = lanes[keyLanes + left * 2 + 1] as number;
  const rightLength = lanes[keyLanes + right * 2 + 1] as number;
  const shared = leftLength < rightLength ? leftLength : rightLength;
  for (let at = 0; at < shared; at++) {
    const leftByte = bytes[leftAt + at] as number;
    const rightByte = bytes[rightAt + at] as number;
    if (leftByte !== rightByte) return leftByte - rightByte;
  }
  return leftLength - rightLength;
}

/** See `KernelExports.fold`. */
export function fold(lanes: Uint32Array, bytes: Uint8Array, count: number): number {
  if (count === 0) return 0;
  const sorted = new Uint32Array(count);
  for (let at = 0; at < count; at++) sorted[at] = at;
  // The index decides between equal keys, so that any sort is stable here.
  sorted.sort((left, right) => compareKeys(bytes, lanes, left, right) || left - right);
  let kept = 0;
  for (let at = 0; at < count; at++) {
    const key = sorted[at] as number;
    const next = sorted[at + 1];
    if (next !== undefined && compareKeys(bytes, lanes, key, next) === 0) continue;
    lanes[order + kept] = key;
    kept++;
  }
  return kept;
}

/** Row of `group` in the ascending group table, or -1. */
function findGroup(lanes: Uint32Array, groups: number, group: number): number {
  let low = 0;
  let high = groups - 1;
  while (low <= high) {
    const middle = low + ((high - low) >>> 1);
    const found = lanes[(areas.groups >>> 2) + middle * sizes.groupLanes] as number;
    if (found === group) return middle;
    if (found < group) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

const hardStateSeen = 1;
const installSeen = 2;
const dropSeen = 4;

/**
 * Lowers the first voided index of the group at lane `at` to `low`, `high` when that is smaller.
 */
function voidFrom(lanes: Uint32Array, at: number, low: number, high: number): void {
  const before = (lanes[at + groupLane.voidHigh] as number) * two32;
  if (high * two32 + low >= before + (lanes[at + groupLane.voidLow] as number)) return;
  lanes[at + groupLane.voidLow] = low;
  lanes[at + groupLane.voidHigh] = high;
}

function judgeEntry(lanes: Uint32Array, at: number, row: number, voids: boolean): number {
  const low = lanes[row + scanLane.indexLow] as number;
  const high = lanes[row + scanLane.indexHigh] as number;
  const index = high * two32 + low;
  const voided =
    (lanes[at + groupLane.voidHigh] as number) * two32 + (lanes[at + groupLane.voidLow] as number);
  const floor =
    (lanes[at + groupLane.floorHigh] as number) * two32 +
    (lanes[at + groupLane.floorLow] as number);
  const flags = lanes[at + groupLane.flags] as number;
  if (voids) voidFrom(lanes, at, low, high);
  if (index >= voided || index <= floor || (flags & installSeen) !== 0) return survival.dead;
  return survival.live;
}

/**
 * What becomes of one record of a known group and incarnation; notes what it means for earlier
 * ones.
 */
function judge(lanes: Uint32Array, at: number, row: number): number {
  const kind = (lanes[row + scanLane.kind] as number) & 255;
  if (kind >= recordKind.firstOfCaller) return survival.live;
  const flags = lanes[at + groupLane.flags] as number;
  if ((flags & dropSeen) !== 0) return survival.dead;
  switch (kind) {
    case recordKind.entry:
    case recordKind.restated:
      return judgeEntry(lanes, at, row, kind === recordKind.entry);
    case recordKind.hardState:
      lanes[at + groupLane.flags] = flags | hardStateSeen;
      return (flags & hardStateSeen) === 0 ? survival.live : survival.dead;
    case recordKind.install:
      lanes[at + groupLane.flags] = flags | installSeen;
      return (flags & installSeen) === 0 ? survival.live : survival.dead;
    case recordKind.truncate:
      voidFrom(
        lanes,
        at,
        lanes[row + scanLane.indexLow] as number,
        lanes[row + scanLane.indexHigh] as number,
      );
      return survival.dead;
    case recordKind.drop:
      lanes[at + groupLane.flags] = flags | dropSeen;
      return survival.dead;
    default:
      return survival.live;
  }
}

/** See `KernelExports.mark`. */
export function mark(
  lanes: Uint32Array,
  bytes: Uint8Array,
  records: number,
  groups: number,
): number {
  let live = 0;
  for (let record = records - 1; record >= 0; record--) {
    const row = (areas.scanTable >>> 2) + record * sizes.scanLanes;
    const found = findGroup(lanes, groups, lanes[row + scanLane.group] as number);
    let verdict: number = survival.unknownGroup;
    if (found >= 0) {
      const at = (areas.groups >>> 2) + found * sizes.groupLanes;
      const incarnation = lanes[row + scanLane.incarnation] as number;
      const current = lanes[at + groupLane.incarnation] as number;
      if (incarnation === current) verdict = judge(lanes, at, row);
      else if (incarnation < current) verdict = survival.dead;
    }
    bytes[areas.verdicts + record] = verdict;
    if (verdict === survival.live) live++;
  }
  return live;
}

/**
 * See `KernelExports.share`. Counts are below 2^32 and at most 8,192, so that no sum passes 2^45.
 */
export function share(
  lanes: Uint32Array,
  count: number,
  limitLow: number,
  limitHigh: number,
): number {
  const limit = (limitHigh >>> 0) * two32 + (limitLow >>> 0);
  let total = 0;
  let taken = 0;
  for (; taken < count; taken++) {
    const next = total + (lanes[(areas.shareCounts >>> 2) + taken] as number);
    if (next > limit) break;
    lanes[(areas.shareOffsetLow >>> 2) + taken] = total >>> 0;
    lanes[(areas.shareOffsetHigh >>> 2) + taken] = Math.floor(total / two32);
    total = next;
  }
  lanes[areas.results >>> 2] = total >>> 0;
  lanes[(areas.results >>> 2) + 1] = Math.floor(total / two32);
  return taken;
}
