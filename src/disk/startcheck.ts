/**
 * Whether log and state store belong together: each group's applied index must lie within its log.
 *
 * Owns nothing. May call base and ports. Invariants: 1. Nothing is clamped or repaired: a gap
 * between the two means that one of them lost durable data or is a copy from another time (P-024,
 * P-117).
 */
import type { PartitionId } from "../base/ids.js";
import { type Result, failure, ok } from "../base/result.js";
import type { GroupLogImage } from "../ports.js";

/**
 * "store-newer": the store holds what the log no longer has; the log was lost or is an old copy.
 * "store-older": the log was trimmed beyond what the store holds; the store was lost or is an old
 * copy.
 */
export type StartCode = "store-newer" | "store-older";

/** Where log and store lie, for the message. */
export interface StartPaths {
  readonly log: string;
  readonly store: string;
}

/** `applied`: the applied index of each group that the store holds. */
export function checkStart(
  images: ReadonlyMap<PartitionId, GroupLogImage>,
  applied: ReadonlyMap<PartitionId, number>,
  paths: StartPaths,
): Result<null, StartCode> {
  const groups = new Set<PartitionId>([...images.keys(), ...applied.keys()]);
  for (const group of [...groups].sort((a, b) => a - b)) {
    const image = images.get(group);
    const stored = applied.get(group) ?? 0;
    const last = image?.lastIndex ?? 0;
    const floor = image?.floor.index ?? 0;
    const name = `group ${String(group)}: the state store ${paths.store}`;
    const held = `${name} holds index ${String(stored)}`;
    const remedy = "restore both from the same time, or start this node empty and let it catch up";
    if (stored > last) {
      const message = `${held}, but the log ${paths.log} ends at ${String(last)}: ${remedy}`;
      return failure("store-newer", message);
    }
    if (stored < floor) {
      const message = `${held}, but the log ${paths.log} begins after ${String(floor)}: ${remedy}`;
      return failure("store-older", message);
    }
  }
  return ok(null);
}
