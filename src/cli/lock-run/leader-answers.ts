/**
 * Who leads an election, as text.
 *
 * Invariants: 1. That nobody leads is told too.
 */
import type { Leader } from "../../client/mod.js";
import { ownerText, valueText, type JsonValue } from "../terminal/format.js";

/** What is told of a leader. */
export type ShownLeader = Pick<Leader, "epoch" | "owner" | "value">;

/** The line of one change. */
export function leaderLine(leader: ShownLeader | null): string {
  if (leader === null) return "- no leader";
  const { epoch, owner, value } = leader;
  return `f${epoch} ${ownerText(owner)} ${valueText(value)}`;
}

/** The document of one change. */
export function leaderDocument(name: string, leader: ShownLeader | null): JsonValue {
  if (leader === null) return { name, isLeader: false, fencingToken: 0n, owner: null, note: null };
  const { epoch, owner, value } = leader;
  const note = value === null ? null : ownerText(value);
  return { name, isLeader: true, fencingToken: epoch, owner: ownerText(owner), note };
}
