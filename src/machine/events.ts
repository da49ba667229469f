/**
 * What a watcher of a name is told: one event for each change of it (W1, W12).
 *
 * Pure. Invariants: 1. An event is made of what apply decided, never of what was asked for: a
 * refusal makes none (W1). 2. Its bytes are its own, no view on an entry or a row (P-160). 3. A
 * release of a lease that had ended makes none: its end was the change, and was told.
 */
import { WatchEventType } from "../base/result-types.js";
import type { Hlc } from "../base/hlc.js";
import {
  KvType,
  LockType,
  SequenceType,
  type Command,
  type Handover,
  type LockCommand,
  type LockGrant,
  type Outcome,
  type SequenceRecord,
} from "./commands/command.js";

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
  /** Of the entry, or of the row; for information. */
  readonly stamp: Hlc;
  /** Of a lock; 0 elsewhere. */
  readonly token: bigint;
  readonly owner: Uint8Array | null;
  readonly note: Uint8Array | null;
  /** Of a sequence that is there; `currentValue` is the end of what is reserved (W12). */
  readonly sequence: SequenceRecord | null;
  /** The grant was ended by an administrator. */
  readonly forced: boolean;
  /** Of an end that is told late: the lease time at which it came; null: told as it came. */
  readonly endedMs: number | null;
  /** What front ends made of it, as bytes and as text; null: nothing yet. */
  bytes: Uint8Array | null;
  text: string | null;
}

/** An event, by what of it is not nothing. */
export function watchEvent(
  type: number,
  name: string,
  stamp: Hlc,
  told: Partial<WatchEvent> = {},
): WatchEvent {
  return {
    type,
    name,
    value: told.value ?? null,
    revision: told.revision ?? 0,
    stamp,
    token: told.token ?? 0n,
    owner: told.owner ?? null,
    note: told.note ?? null,
    sequence: told.sequence ?? null,
    forced: told.forced ?? false,
    endedMs: told.endedMs ?? null,
    bytes: null,
    text: null,
  };
}

/** Whether it tells that a lease ended by itself. */
export function isExpiry({ type }: Pick<WatchEvent, "type">): boolean {
  return type === WatchEventType.expired || type === WatchEventType.lockExpired;
}

/** `event` for those who want no values. */
export function withoutValue(event: WatchEvent): WatchEvent {
  return event.value === null
    ? event
    : watchEvent(event.type, event.name, event.stamp, {
        ...event,
        value: null,
      });
}

/** About what an event takes in memory and on a wire. */
export function eventBytes({ name, value, owner, note, sequence }: WatchEvent): number {
  const lock = (owner?.length ?? 0) + (note?.length ?? 0);
  return 120 + name.length + (value?.length ?? 0) + lock + (sequence === null ? 0 : 100);
}

/** What apply did with one command, which wrote rows. */
export interface AppliedCommand {
  readonly command: Command;
  readonly outcome: Outcome;
  /** It found that a lease had ended. */
  readonly isLapse: boolean;
  readonly stamp: Hlc;
}

/**
 * The events of one command that wrote rows, in order. `record`: the sequence as it stands behind
 * the command, where that is a sequence's.
 */
export function eventsOf(
  applied: AppliedCommand,
  record: SequenceRecord | null,
): readonly WatchEvent[] {
  const { command, outcome, stamp } = applied;
  if ("handover" in outcome && outcome.handover !== undefined && "resource" in command) {
    return handoverEvents(command.resource, outcome.handover, outcome.kind === "forced", stamp);
  }
  const event = eventOf(applied, record);
  return event === null ? [] : [event];
}

/** A grant of a lock with heirs may be followed by others in one command. */
function handoverEvents(
  resource: string,
  { from, to, isFree }: Handover,
  isForced: boolean,
  stamp: Hlc,
): readonly WatchEvent[] {
  const events: WatchEvent[] = [];
  const tell = (type: number, { token, owner }: LockGrant, more: Partial<WatchEvent>): void => {
    events.push(watchEvent(type, resource, stamp, { token, owner, ...more }));
  };
  let held = from;
  for (const grant of to) {
    if (held !== null) tell(WatchEventType.unlocked, held, { forced: isForced });
    tell(WatchEventType.locked, grant, { note: grant.note });
    held = grant;
  }
  if (isFree && held !== null) tell(WatchEventType.unlocked, held, { forced: isForced });
  return events;
}

/** Of a command that makes one at most; null: of it nothing is told. */
function eventOf(applied: AppliedCommand, record: SequenceRecord | null): WatchEvent | null {
  const { command, outcome, stamp } = applied;
  switch (command.kind) {
    case "kv-set": {
      if (outcome.kind !== "kv" || outcome.type !== KvType.set) return null;
      const value = command.value?.slice() ?? null;
      return watchEvent(WatchEventType.set, command.key, stamp, {
        value,
        revision: outcome.revision,
      });
    }
    case "kv-delete": {
      if (outcome.kind !== "kv" || outcome.type !== KvType.deleted) return null;
      const { revision } = outcome;
      return watchEvent(WatchEventType.deleted, command.key, stamp, { revision });
    }
    case "try-lock":
    case "lock-with-note":
    case "try-unlock":
    case "unlock-grant":
      return outcome.kind === "lock" ? lockEvent(command, outcome, applied) : null;
    case "force-unlock": {
      const isOfTable = command.owner !== null;
      if (outcome.kind !== "forced" || outcome.type !== LockType.unlocked || isOfTable) return null;
      const told = { token: outcome.token, owner: outcome.owner, forced: true };
      return watchEvent(WatchEventType.unlocked, command.resource, stamp, told);
    }
    case "create-sequence":
    case "update-sequence": {
      if (outcome.kind !== "sequence" || outcome.record === null) return null;
      const { sequenceCreated, sequenceUpdated } = WatchEventType;
      const type = command.kind === "create-sequence" ? sequenceCreated : sequenceUpdated;
      return sequenceEvent(type, outcome.record, stamp);
    }
    case "delete-sequence":
      if (outcome.kind !== "sequence" || outcome.type !== SequenceType.success) return null;
      return watchEvent(WatchEventType.sequenceDeleted, command.name, stamp);
    case "allocate":
    case "reserve-block":
      if (outcome.kind !== "allocation" || outcome.type !== SequenceType.success) return null;
      return record === null ? null : sequenceEvent(WatchEventType.sequenceReserved, record, stamp);
    default:
      return null;
  }
}

function lockEvent(
  command: Exclude<LockCommand, { readonly kind: "try-extend" | "extend-grant" }>,
  { type, token }: { readonly type: number; readonly token: bigint },
  { isLapse, stamp }: AppliedCommand,
): WatchEvent | null {
  const { kind, resource } = command;
  const owner = command.owner.slice();
  if (kind === "try-lock" || kind === "lock-with-note") {
    if (type !== LockType.locked) return null;
    const note = kind === "try-lock" ? null : command.note.slice();
    return watchEvent(WatchEventType.locked, resource, stamp, { token, owner, note });
  }
  if (type !== LockType.unlocked || isLapse) return null;
  return watchEvent(WatchEventType.unlocked, resource, stamp, { token, owner });
}

export function sequenceEvent(type: number, sequence: SequenceRecord, stamp: Hlc): WatchEvent {
  const { name, revision } = sequence;
  return watchEvent(type, name, stamp, { sequence, revision });
}
