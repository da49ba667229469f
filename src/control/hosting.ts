/**
 * Whether a node is to have a replica of a partition, by the committed partition map as that node
 * has applied it: facts in, one step out.
 *
 * Pure. Invariants: 1. A replica comes only because the map places it there, in a life that was not
 * here before. 2. It goes only because a record that is newer than its own life is without that
 * life (P-097): an older map says nothing about it. 3. A partition without a record is unknown, not
 * removed: a map that is behind its own node deletes nothing.
 */
import { FOUNDING_INCARNATION, type Incarnation } from "../base/ids.js";
import type { PartitionRecord } from "../machine/commands/command.js";

/** The last life of a partition's replica on this node. */
export interface KnownLife {
  readonly incarnation: Incarnation;
  /** It is here; else it was, and is gone. */
  readonly isLive: boolean;
}

export type HostingStep =
  | { readonly kind: "come"; readonly incarnation: Incarnation }
  | { readonly kind: "drop" }
  | { readonly kind: "stay" };

const STAY: HostingStep = { kind: "stay" };

/** The life that the record gives to the replica of `nodeId`; null: it gives it none. */
function placedLife(record: PartitionRecord, nodeId: number): Incarnation | null {
  if (record.state === "Removed") return null;
  if (record.mode === "full") return FOUNDING_INCARNATION;
  return record.replicas.find((replica) => replica.nodeId === nodeId)?.incarnation ?? null;
}

/** `known`: null when this node never had a replica of the partition. */
export function hostingStep(
  record: PartitionRecord | null,
  self: number,
  known: KnownLife | null,
): HostingStep {
  if (record === null) return STAY;
  const life = placedLife(record, self);
  if (known?.isLive !== true) {
    if (life === null || (known !== null && life <= known.incarnation)) return STAY;
    return { kind: "come", incarnation: life };
  }
  const isIts = life !== null && life <= known.incarnation;
  return isIts || record.generation <= known.incarnation ? STAY : { kind: "drop" };
}
