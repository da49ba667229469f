/**
 * What goes into a watch and comes out of it.
 *
 * Invariants: 1. 64-bit numbers leave as bigint.
 */
import { hyphenedNames, WatchEventType as Types } from "../../base/result-types.js";
import type { SequenceInfo } from "../sequences/sequence-shapes.js";
import { eachOf, checkSignal, flagOf, optionalText, wrongType } from "../values/arguments.js";
import { InvalidInputError } from "../values/errors.js";
import { int64Of, type Int64Input, type Timestamp } from "../values/numbers.js";

/** What happened to a name. */
export type WatchEventType =
  | "set"
  | "deleted"
  | "expired"
  | "locked"
  | "unlocked"
  | "lock-expired"
  | "sequence-created"
  | "sequence-updated"
  | "sequence-deleted"
  | "sequence-reserved";

/** One change. What does not apply is null, 0n or false. */
export interface WatchEvent {
  readonly type: WatchEventType;
  readonly name: string;
  readonly value: Uint8Array | null;
  /** The value as text, or null when there is none or its bytes are not UTF-8. */
  readonly text: string | null;
  readonly revision: bigint;
  /** For information. */
  readonly stamp: Timestamp;
  readonly fencingToken: bigint;
  readonly owner: Uint8Array | null;
  readonly ownerText: string | null;
  readonly note: Uint8Array | null;
  readonly noteText: string | null;
  /** Its `currentValue` is the end of what is reserved, not the last value handed out. */
  readonly sequence: SequenceInfo | null;
  /** The grant was ended by an administrator. */
  readonly forced: boolean;
}

/** What a watch tells at once. */
export interface WatchBatch {
  readonly events: readonly WatchEvent[];
  /** Where a watch goes on behind it; null: the state, or the comparison, goes on in the next. */
  readonly cursor: string | null;
  /** Part of the state at the start. */
  readonly initial: boolean;
  /** Newest states of names that changed, not each change. */
  readonly merged: boolean;
  /** Forget what was told before: the whole state follows. */
  readonly reset: boolean;
}

/** Options of a watch. */
export interface WatchOptions {
  /** Tell the present state first; a batch with a cursor ends it (default false). */
  readonly initial?: boolean | undefined;
  /** Go on behind a batch of an earlier watch of the same name. */
  readonly cursor?: string | undefined;
  /** Leave the values out (default false). */
  readonly noValues?: boolean | undefined;
  /** Only these types of events (default: all). */
  readonly only?: readonly WatchEventType[] | undefined;
  /** Ends the watch: it rejects with CancelledError. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of a watch of one key. */
export interface KeyWatchOptions extends WatchOptions {
  /** Tell the revisions above this one that are retained, before what changes. */
  readonly fromRevision?: Int64Input | undefined;
}

export const EVENT_TYPES = hyphenedNames(Types);
const NUMBERS = new Map([...EVENT_TYPES].map(([number, name]) => [name, number]));

/** @internal What is watched and how. */
export interface WatchAsked {
  /** As `WatchKind`. */
  readonly kind: number;
  readonly name: string;
  readonly initial: boolean;
  readonly cursor: string | null;
  readonly fromRevision: bigint | null;
  readonly noValues: boolean;
  /** Names of types; empty: all. */
  readonly only: readonly WatchEventType[];
}

function typeOf(type: unknown): WatchEventType {
  const number = typeof type === "string" ? (NUMBERS.get(type) ?? Types.none) : Types.none;
  if (number === Types.none) throw wrongType("only", "a list of types of events", type);
  return type as WatchEventType;
}

/** @internal Checks what a caller gave. */
export function askedOf(kind: number, name: string, options: KeyWatchOptions): WatchAsked {
  const { initial, cursor, noValues, only, signal, fromRevision } = options;
  checkSignal(signal);
  if (!name.isWellFormed()) throw new InvalidInputError("name is not well-formed Unicode");
  return {
    kind,
    name,
    initial: flagOf("initial", initial, false),
    cursor: optionalText("cursor", cursor) ?? null,
    fromRevision: fromRevision === undefined ? null : int64Of("fromRevision", fromRevision),
    noValues: flagOf("noValues", noValues, false),
    only: only === undefined ? [] : eachOf("only", only, typeOf),
  };
}

/** @internal The sum of 2^type. */
export function onlySum(only: readonly WatchEventType[]): number {
  return only.reduce((sum, type) => sum | (1 << (NUMBERS.get(type) ?? 0)), 0);
}
