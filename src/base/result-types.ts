/**
 * The numbers of the contract's answer types, which state machine, front ends and client share.
 *
 * Invariant: the name of a type on the wires of text is its member here in upper camel case.
 */

/** The `type` of lock answers. */
export const LockType = {
  locked: 0,
  busy: 1,
  extended: 2,
  unlocked: 3,
  got: 4,
  errored: 99,
  invalidInput: 100,
  mustRetry: 101,
  doesNotExist: 102,
  invalidOwner: 103,
  aborted: 104,
} as const;

/** The `type` of sequence answers. */
export const SequenceType = {
  success: 0,
  notFound: 1,
  alreadyExists: 2,
  invalidInput: 3,
  maxValueExceeded: 4,
  mustRetry: 5,
  aborted: 6,
  error: 99,
} as const;

/** The `type` of key/value answers, as far as it is ever sent. */
export const KvType = {
  set: 0,
  notSet: 1,
  extended: 2,
  got: 3,
  deleted: 4,
  exists: 10,
  errored: 99,
  invalidInput: 100,
  mustRetry: 101,
  aborted: 102,
  doesNotExist: 103,
} as const;

/** What a watch is of. */
export const WatchKind = {
  none: 0,
  key: 1,
  prefix: 2,
  bucket: 3,
  lock: 4,
  lockPrefix: 5,
  sequence: 6,
} as const;

/** What happened to a watched name. */
export const WatchEventType = {
  none: 0,
  set: 1,
  deleted: 2,
  expired: 3,
  locked: 4,
  unlocked: 5,
  lockExpired: 6,
  sequenceCreated: 7,
  sequenceUpdated: 8,
  sequenceDeleted: 9,
  sequenceReserved: 10,
} as const;

/** What a message to a watcher is. */
export const WatchMessageType = { events: 0, created: 1, mark: 2, synced: 3, ended: 4 } as const;

/** Why a watch ended. */
export const WatchEnd = {
  none: 0,
  cancelled: 1,
  invalidInput: 2,
  overloaded: 3,
  shuttingDown: 4,
  stale: 5,
  notHosted: 6,
  forbidden: 7,
} as const;

/** The names of a table by their numbers, as texts have them: `lock-expired`. */
export function hyphenedNames(
  table: Readonly<Record<string, number>>,
): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const [name, number] of Object.entries(table)) {
    names.set(
      number,
      name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    );
  }
  return names;
}

/** The names of a table's types by their numbers. */
export function typeNames(table: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const [name, number] of Object.entries(table)) {
    names.set(number, `${name.charAt(0).toUpperCase()}${name.slice(1)}`);
  }
  return names;
}
