/**
 * What a machine holds of an interval of keys, and what it holds that it does not own: read off its rows
 * for the checkers of key ranges, past everything that filters them.
 *
 * Pure: looks and changes nothing.
 */
import { decodeText } from "../../../src/base/bytes.js";
import { decodeKvRow } from "../../../src/machine/kv/kv-row.js";
import type { Machine } from "../../../src/machine/machine.js";
import {
  type ByteKey,
  RowKind,
  byteKeyToText,
  historyKey,
  keySuccessor,
  textToByteKey,
} from "../../../src/machine/store/keys.js";
import type { RangeState, SeenKey } from "../../judge/checkers/ranges/range-state.js";
import { type SeenInterval, holds } from "../../judge/checkers/ranges/seen-moves.js";

/** Calls `visit` for every persistent key that has a row in the key space, in byte order. */
function scanSpace(
  machine: Machine,
  keySpace: string,
  visit: (key: ByteKey, bytes: Uint8Array) => void,
): void {
  const space = textToByteKey(keySpace);
  const rows = machine["groupRows"];
  rows.scan(RowKind.value, space, keySuccessor(`${space}/`), (key, bytes) => {
    visit(key, bytes);
    return true;
  });
}

/** `proposedMs`: when the entry was proposed that this is the state of. */
export function rangeStateOf(
  machine: Machine,
  interval: SeenInterval,
  proposedMs: number,
): RangeState {
  const keys = new Map<string, SeenKey>();
  scanSpace(machine, interval.keySpace, (key, bytes) => {
    const name = byteKeyToText(key);
    if (holds(interval, name)) keys.set(name, seenKey(machine, key, bytes));
  });
  return { keys, leaseMs: machine.leaseMs, proposedMs };
}

function seenKey(machine: Machine, key: ByteKey, bytes: Uint8Array): SeenKey {
  const row = decodeKvRow(bytes);
  if (row === null) throw new Error("a row that is no row of a key");
  const { deleted, value, passing, revision, stamp, endMs, kept } = row;
  const latest = { deleted, passing, revision, stamp, kept, isLeased: endMs !== null };
  const texts = [JSON.stringify(latest), textOf(value)];
  let history = 0;
  let historyBytes = 0;
  for (const { first, count } of kept) {
    for (let older = first; older < first + count; older++) {
      const found = machine["groupRows"].get(RowKind.history, historyKey(key, older));
      const was = found === null ? null : decodeKvRow(found);
      if (found === null || was === null) {
        texts.push(`${older} is lost`);
        continue;
      }
      history++;
      historyBytes += found.length;
      const { deleted, revision, stamp } = was;
      texts.push(`${JSON.stringify({ deleted, revision, stamp })} ${textOf(was.value)}`);
    }
  }
  const text = texts.join("; ");
  // Order of stamps: time, then counter.
  const order = stamp.l + stamp.c / 2 ** 20;
  return { text, isTombstone: deleted, endMs, history, historyBytes, stamp: order };
}

function textOf(value: Uint8Array | null): string {
  if (value === null) return "nothing";
  const text = decodeText(value) ?? "no text";
  return text.length <= 40 ? text : `${text.slice(0, 30)}... ${text.length}`;
}

/** Keys with rows, latest or older ones, that the machine does not own. */
export function strangeKeys(machine: Machine): string[] {
  const strange = new Set<string>();
  const look = (key: ByteKey): void => {
    const name = byteKeyToText(key);
    if (!machine.owns(name)) strange.add(name);
  };
  const rows = machine["groupRows"];
  rows.scan(RowKind.value, "", null, (key) => {
    look(key);
    return true;
  });
  rows.scan(RowKind.history, "", null, (name) => {
    const size = (name.charCodeAt(0) << 8) | name.charCodeAt(1);
    look(name.slice(2, 2 + size));
    return true;
  });
  return [...strange];
}

/**
 * Live keys of the interval: at least those without a lease, at most all that were not deleted. When a
 * lease ends no command comes: who has counted lately need not know.
 */
export function liveKeys(
  machine: Machine,
  interval: SeenInterval,
): { readonly least: number; readonly most: number } {
  let least = 0;
  let most = 0;
  scanSpace(machine, interval.keySpace, (key, bytes) => {
    if (!holds(interval, byteKeyToText(key))) return;
    const row = decodeKvRow(bytes);
    if (row === null || row.deleted) return;
    if (row.endMs === null) least++;
    most++;
  });
  return { least, most };
}
