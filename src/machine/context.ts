/**
 * What a decision sees of the state machine: the rows, the clock of the entry, the floors. Types
 * only.
 *
 * Invariants: 1. A decision is a function of the rows, this context and its command; it reads
 * nothing local. 2. Floors only rise.
 */
import type { Hlc } from "../base/hlc.js";
import type { Rows } from "./rows.js";

export interface DecisionContext {
  readonly rows: Rows;
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
}
