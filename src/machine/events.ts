/**
 * What a watcher of a name is told: one event for each change of it (W1).
 *
 * Types here; see `eventOf`. Pure.
 */
import type { Hlc } from "../base/hlc.js";
import type { SequenceRecord } from "./commands/command.js";

/**
 * One change of one name. Made once for all who watch it, and changed by nobody afterwards: what a
 * front end makes of it is kept in it, for all of them.
 */
export interface WatchEvent {
  /** As `WatchEventType`. */
  readonly type: number;
  readonly name: string;
  /** Of SET; null: holds nothing, or the watcher wants no values. */
  readonly value: Uint8Array | null;
  /** Of a key or sequence; 0 of a lock. */
  readonly revision: number;
  /** Of the entry; for information. */
  readonly stamp: Hlc;
  /** Of a lock; 0 elsewhere. */
  readonly token: bigint;
  readonly owner: Uint8Array | null;
  readonly note: Uint8Array | null;
  /** Of a sequence that is there; `currentValue` is the end of what is reserved (W12). */
  readonly sequence: SequenceRecord | null;
  /** The grant was ended by an administrator. */
  readonly forced: boolean;
  /** What front ends made of it, as bytes and as text; null: nothing yet. */
  bytes: Uint8Array | null;
  text: string | null;
}
