/**
 * Which locks have heirs, and who is named: locks that change hands often, and those who wait for
 * them in turn.
 *
 * Pure. Invariants: 1. Heirs are named in the order of their places, without a gap: where somebody
 * stands who cannot be named, the list ends (Q2). 2. A list is within its bounds.
 */
import { equalBytes } from "../../base/bytes.js";
import { HEIRS_MAX, HEIRS_MAX_BYTES, HEIR_LEASE_MAX_MS } from "../../base/limits.js";
import { heirsBytes } from "../../machine/locks/heirs.js";
import type { Place, Queue } from "./queue.js";
import type { ListedHeir, NamedAsk } from "./succession.js";

/** Those who can be named behind `named`, the heirs that follow upon `holder`. */
export function nextHeirs(
  queue: Queue,
  holder: Uint8Array,
  named: readonly ListedHeir[],
): readonly NamedAsk[] {
  const taken = new Set(named.map(({ owner }) => queue.find(owner)));
  let left = HEIRS_MAX - named.length;
  let leftBytes = HEIRS_MAX_BYTES - heirsBytes(named);
  const added: NamedAsk[] = [];
  for (const place of queue.all()) {
    if (place.living === 0 || taken.has(place)) continue;
    const ask = asked(place);
    if (ask === null || equalBytes(ask.owner, holder)) break;
    leftBytes -= heirsBytes([ask]);
    if (left-- === 0 || leftBytes < 0) break;
    added.push(ask);
  }
  return added;
}

/**
 * All whom `heirs` name are here or may come back, and nobody who waits stands before one of them
 * and is not named before (Q2).
 */
export function isInOrder(queue: Queue, heirs: readonly NamedAsk[]): boolean {
  const named: Place[] = [];
  for (const { owner, waitId } of heirs) {
    const place = queue.find(owner);
    if (place === null) return false;
    if (place.living > 0 && place.trial?.waitId === waitId) named.push(place);
  }
  let at = 0;
  for (const place of queue.all()) {
    if (at === named.length) return true;
    if (place.living > 0 && place !== named[at++]) return false;
  }
  return true;
}

function asked({ trial, owner, expiresMs: leaseMs, note }: Place): NamedAsk | null {
  if (trial === null || leaseMs > HEIR_LEASE_MAX_MS) return null;
  return { owner, waitId: trial.waitId, attempt: trial.attempt, leaseMs, note };
}
