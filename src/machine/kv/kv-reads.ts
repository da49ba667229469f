/**
 * Reads of one key: latest or an exact revision, rules K2 to K4 and K10. Pure.
 *
 * Invariants: 1. An exact revision is that revision's row or DoesNotExist. 2. Expiry is judged with
 * the time given.
 */
import { NO_STAMP } from "../../base/hlc.js";
import { KvState, KvType } from "../commands/command.js";
import { isKept } from "./kept-revisions.js";
import { RowKind, historyKey, type ByteKey } from "../store/keys.js";
import { isLive, wholeKvRow } from "./kv.js";
import type { KvRow } from "./kv-row.js";
import { kvKey } from "../store/names.js";
import type { KvReading } from "../decision/reading.js";
import type { ReadableRows } from "../store/rows.js";

export type KvReadMode = "get" | "exists";

const LATEST = -1n;

function nothing(type: number, state: number): KvReading {
  return { type, state, value: null, revision: 0, leaseEndMs: null, lastModified: NO_STAMP };
}

/** The row of exactly this revision, whatever its state; null when it is not retained. */
function findRevision(
  rows: ReadableRows,
  key: ByteKey,
  latest: KvRow,
  revision: bigint,
): KvRow | null {
  if (revision === LATEST || revision === BigInt(latest.revision)) return latest;
  if (revision > BigInt(latest.revision)) return null;
  const wanted = Number(revision);
  if (!isKept(latest.kept, wanted)) return null;
  const bytes = rows.get(RowKind.history, historyKey(key, wanted));
  return bytes === null ? null : wholeKvRow(bytes);
}

/** `mode` decides the type of success and whether the value comes along. */
export function readValue(
  rows: ReadableRows,
  keyText: string,
  revision: bigint,
  nowMs: number,
  mode: KvReadMode,
): KvReading {
  const key = kvKey(keyText);
  if (key === null || revision < LATEST) return nothing(KvType.invalidInput, KvState.undefined);
  const bytes = rows.get(RowKind.value, key);
  if (bytes === null) return nothing(KvType.doesNotExist, KvState.undefined);
  const latest = wholeKvRow(bytes);
  const row = findRevision(rows, key, latest, revision);
  if (!isLive(row, nowMs)) {
    const state = latest.deleted ? KvState.deleted : KvState.undefined;
    return nothing(KvType.doesNotExist, state);
  }
  return {
    type: mode === "get" ? KvType.got : KvType.exists,
    state: KvState.set,
    value: mode === "get" ? row.value : null,
    revision: row.revision,
    leaseEndMs: row.endMs,
    lastModified: row.stamp,
  };
}
