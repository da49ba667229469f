/**
 * The last write of each key of a batch, in key order. See src/wasm/compact.ts for the meaning.
 *
 * Owns the order and scratch areas. Keys sort by eight bytes at a time: a merge sort over numbers
 * that lie side by side touches the keys themselves once per level, not once per comparison.
 */
import { KEYS_MAX, KEY_WORDS, ORDER, SCRATCH } from "./arena";

/**
 * A sort item: u64 of up to eight key bytes, big endian; u32 key number; u32 how many of the eight
 * bytes the key really has. Bytes that are missing count as zero, and the number tells "a" from
 * "a" and a zero byte.
 */
const ITEM: usize = 16;
const SCRATCH_HALF: usize = <usize>KEYS_MAX * ITEM;
const RUN: usize = 8 * ITEM;

function keyAt(key: u32): usize {
  return load<u32>(KEY_WORDS + ((<usize>key) << 3));
}

function keyLength(key: u32): u32 {
  return load<u32>(KEY_WORDS + ((<usize>key) << 3), 4);
}

/**
 * Length of the prefix that the keys of all items share, when they share the first `skip` bytes.
 */
function commonPrefix(items: usize, end: usize, skip: u32): u32 {
  const firstKey = load<u32>(items, 8);
  const first = keyAt(firstKey);
  let shared = keyLength(firstKey);
  for (let item = items + ITEM; item < end && shared > skip; item += ITEM) {
    const key = load<u32>(item, 8);
    const at = keyAt(key);
    shared = min(shared, keyLength(key));
    let same = skip;
    while (same + 8 <= shared && load<u64>(first + same) == load<u64>(at + same)) same += 8;
    while (same < shared && load<u8>(first + same) == load<u8>(at + same)) same++;
    shared = same;
  }
  return shared;
}

/** Puts the key bytes from `skip` on into an item. */
function setDigit(item: usize, skip: u32): void {
  const key = load<u32>(item, 8);
  const length = keyLength(key) - skip;
  const at = keyAt(key) + skip;
  if (length >= 8) {
    store<u64>(item, bswap<u64>(load<u64>(at)));
    store<u32>(item, 8, 12);
    return;
  }
  let value: u64 = 0;
  for (let byte: u32 = 0; byte < length; byte++) {
    value |= (<u64>load<u8>(at + byte)) << (56 - ((<u64>byte) << 3));
  }
  store<u64>(item, value);
  store<u32>(item, length, 12);
}

/** True if the item at `right`, which came later, belongs before the one at `left`. */
function precedes(right: usize, left: usize): bool {
  const rightDigit = load<u64>(right);
  const leftDigit = load<u64>(left);
  if (rightDigit != leftDigit) return rightDigit < leftDigit;
  return load<u32>(right, 12) < load<u32>(left, 12);
}

function copyItem(to: usize, from: usize): void {
  store<u64>(to, load<u64>(from));
  store<u64>(to, load<u64>(from, 8), 8);
}

/** Merges the sorted runs [left, middle) and [middle, end) to `out`; ties keep their order. */
function merge(left: usize, middle: usize, end: usize, out: usize): void {
  let first = left;
  let second = middle;
  let to = out;
  if (second < end && precedes(second, middle - ITEM)) {
    while (first < middle && second < end) {
      if (precedes(second, first)) {
        copyItem(to, second);
        second += ITEM;
      } else {
        copyItem(to, first);
        first += ITEM;
      }
      to += ITEM;
    }
  }
  memory.copy(to, first, middle - first);
  to += middle - first;
  memory.copy(to, second, end - second);
}

/** Sorts one short run by insertion. */
function sortRun(run: usize, end: usize): void {
  for (let item = run + ITEM; item < end; item += ITEM) {
    if (!precedes(item, item - ITEM)) continue;
    const digit = load<u64>(item);
    const rest = load<u64>(item, 8);
    const taken = <u32>(rest >>> 32);
    let hole = item;
    do {
      copyItem(hole, hole - ITEM);
      hole -= ITEM;
      if (hole == run) break;
      const before = load<u64>(hole - ITEM);
      if (before < digit || (before == digit && load<u32>(hole - ITEM, 12) <= taken)) break;
    } while (true);
    store<u64>(hole, digit);
    store<u64>(hole, rest, 8);
  }
}

/** Sorts the items of [items, end) by their digits; stable; the result is in place. */
function sortDigits(items: usize, end: usize): void {
  for (let run = items; run < end; run += RUN) sortRun(run, min(run + RUN, end));
  const bytes = end - items;
  let from = items;
  let to = items + SCRATCH_HALF;
  for (let width = RUN; width < bytes; width <<= 1) {
    for (let at: usize = 0; at < bytes; at += width << 1) {
      const middle = min(at + width, bytes);
      merge(from + at, from + middle, from + min(at + (width << 1), bytes), to + at);
    }
    const swapped = from;
    from = to;
    to = swapped;
  }
  if (from != items) memory.copy(items, from, bytes);
}

/**
 * Sorts items whose keys share the first `known` bytes: by the next eight, then each run of equals
 * by what follows. Every level takes at least eight bytes off keys that are still equal, so that
 * the depth is bounded by the longest key. Appends the last of each run of equal keys to the order
 * area behind `kept` others; returns how many are there then.
 */
function sortKeys(items: usize, end: usize, known: u32, kept: i32): i32 {
  const skip = commonPrefix(items, end, known);
  for (let item = items; item < end; item += ITEM) setDigit(item, skip);
  sortDigits(items, end);
  let next = kept;
  let run = items;
  while (run < end) {
    const digit = load<u64>(run);
    const taken = load<u32>(run, 12);
    let runEnd = run + ITEM;
    while (runEnd < end && load<u64>(runEnd) == digit && load<u32>(runEnd, 12) == taken) {
      runEnd += ITEM;
    }
    if (runEnd - run > ITEM && taken == 8) {
      next = sortKeys(run, runEnd, skip + 8, next);
    } else {
      store<u32>(ORDER + ((<usize>next) << 2), load<u32>(runEnd - ITEM, 8));
      next++;
    }
    run = runEnd;
  }
  return next;
}

export function fold(count: i32): i32 {
  assert(count >= 0 && count <= KEYS_MAX);
  if (count == 0) return 0;
  for (let key: u32 = 0; key < <u32>count; key++) {
    store<u32>(SCRATCH + <usize>key * ITEM, key, 8);
  }
  return sortKeys(SCRATCH, SCRATCH + <usize>count * ITEM, 0, 0);
}
