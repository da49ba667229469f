/**
 * Rows of who asks the planners to wait, as whoever takes a backup does.
 *
 * Pure codec, and the one question that is asked of them. Invariant: a hold ends by itself, by the
 * lease clock of meta.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { ended } from "../decision/lease.js";
import { RowKind } from "../store/keys.js";
import type { ReadableRows } from "../store/rows.js";

const VERSION = 1;

/** The end of a hold (lease clock, ms). */
export function encodePlannerHold(endMs: number): Uint8Array {
  return new ByteWriter(9).uint8(VERSION).uint53(endMs).finish();
}

export function decodePlannerHold(bytes: Uint8Array): number | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const endMs = reader.uint53();
  return reader.isComplete() ? endMs : null;
}

/** Whether a hold is not over at `leaseMs`. */
export function isPlannerHeld(rows: ReadableRows, leaseMs: number): boolean {
  let isHeld = false;
  rows.scan(RowKind.plannerHold, "", null, (_, value) => {
    isHeld = !ended(decodePlannerHold(value) ?? 0, leaseMs);
    return !isHeld;
  });
  return isHeld;
}
