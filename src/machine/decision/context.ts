/**
 * What a decision sees of the state machine: the rows, the clock of the entry, the floors.
 *
 * Invariants: 1. A decision is a function of the rows, this context and its command; it reads
 * nothing local. 2. Floors only rise.
 */
import type { Hlc } from "../../base/hlc.js";
import type { Level } from "../../base/ids.js";
import { INT64_MAX } from "../../base/int64.js";
import type { GroupRecord } from "../commands/group-record.js";
import type { Ownership } from "../ownership/ownership.js";
import type { Rows } from "../store/rows.js";

export interface DecisionContext {
  readonly rows: Rows;
  /** Which keys are the group's. */
  readonly ownership: Ownership;
  /** Term of the entry. */
  term: number;
  /** Lease clock of the entry (ms). */
  nowMs: number;
  /** Stamp of the entry. */
  stamp: Hlc;
  /** A grant of a lock without a row gets this token. */
  tokenFloor: bigint;
  /** Largest token that may be granted. */
  readonly tokenCeiling: bigint;
  /** Next unused life of a sequence. */
  nextLife: number;
  /** Of this group: what its entries may hold. It never falls. */
  level: Level;
  /** Of `CollectedEnds`: rises with what is collected. */
  collectedKeysMs: number;
  collectedLocksMs: number;
  /** Leases of locks that were found to have ended without a release: for metrics alone. */
  lapsedLocks: number;
}

/** The context of a group as its record says. */
export function contextOf(rows: Rows, ownership: Ownership, record: GroupRecord): DecisionContext {
  return {
    rows,
    ownership,
    term: record.appliedTerm,
    nowMs: record.leaseMs,
    stamp: record.stamp,
    tokenFloor: record.tokenFloor,
    tokenCeiling: INT64_MAX,
    nextLife: record.nextLife,
    level: record.level,
    // What is not told may be anything that ended up to now.
    collectedKeysMs: record.collected?.keysMs ?? record.leaseMs,
    collectedLocksMs: record.collected?.locksMs ?? record.leaseMs,
    lapsedLocks: 0,
  };
}

interface Decides<C, O, Context> {
  decide(context: Context, command: C): O;
}
/** What apply does with a command. */
export type Rule<C, O, Context = DecisionContext> = Decides<C, O, Context>["decide"];

/** The rules of a family of commands, by kind. */
export type Rules<Commands extends { readonly kind: string }, O, Context = DecisionContext> = {
  readonly [Kind in Commands["kind"]]: Rule<Extract<Commands, { readonly kind: Kind }>, O, Context>;
};
