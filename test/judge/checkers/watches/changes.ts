/**
 * What really happened to names, in the order of the logs: what watches are held against.
 *
 * Invariants: 1. Changes of one name stand in their order, whichever partitions it was in. 2. A change
 * stands here from when the first replica applied it: it is committed then.
 */
import { WatchEventType, WatchKind } from "../../../../src/base/result-types.js";
import { type Hlc, compareHlc } from "../../../../src/base/hlc.js";
import { keySpaceOf } from "../../../../src/base/routing.js";

/** A key and a lock of the same name are two things. */
export type ChangeSort = "key" | "lock" | "sequence";

export interface Change {
  readonly sort: ChangeSort;
  readonly name: string;
  /** As `WatchEventType`. */
  readonly type: number;
  /** Of a key or a sequence; 0 of a lock. */
  readonly revision: number;
  /** Incarnation of a sequence; 0 elsewhere. */
  readonly incarnation: number;
  /** Of a lock; 0 elsewhere. */
  readonly token: bigint;
  readonly value: string | null;
  /** Of its entry. */
  readonly stamp: Hlc;
  readonly partition: number;
  /** Of its entry. */
  readonly index: number;
  /** When it was applied first (true time). */
  readonly atMs: number;
}

/** What somebody watches. */
export interface Watched {
  /** As `WatchKind`. */
  readonly kind: number;
  readonly name: string;
}

const NONE: readonly Change[] = [];

export class Changes {
  private readonly byName = new Map<string, Change[]>();
  private readonly names = new Map<ChangeSort, Set<string>>();

  add(change: Change): void {
    const { sort, name } = change;
    const id = `${sort} ${name}`;
    const known = this.byName.get(id);
    if (known !== undefined) return void known.push(change);
    this.byName.set(id, [change]);
    this.names.set(sort, (this.names.get(sort) ?? new Set()).add(name));
  }

  of(sort: ChangeSort, name: string): readonly Change[] {
    return this.byName.get(`${sort} ${name}`) ?? NONE;
  }

  /** The names of what is watched that ever changed. */
  namesOf(watched: Watched): string[] {
    const names = this.names.get(sortOf(watched.kind)) ?? new Set<string>();
    return [...names].filter((name) => isOf(watched, name));
  }
}

export function sortOf(kind: number): ChangeSort {
  if (kind === WatchKind.sequence) return "sequence";
  return kind === WatchKind.lock || kind === WatchKind.lockPrefix ? "lock" : "key";
}

export function isOf({ kind, name: watched }: Watched, name: string): boolean {
  switch (kind) {
    case WatchKind.prefix:
    case WatchKind.lockPrefix:
      return name.startsWith(watched);
    case WatchKind.bucket:
      return keySpaceOf(name) === watched;
    default:
      return name === watched;
  }
}

const ENDS: ReadonlySet<number> = new Set([
  ...[WatchEventType.deleted, WatchEventType.expired, WatchEventType.unlocked],
  ...[WatchEventType.lockExpired, WatchEventType.sequenceDeleted],
]);

/** Whether nothing is there behind the change. */
export function isEnd({ type }: Pick<Change, "type">): boolean {
  return ENDS.has(type);
}

export function isExpiry({ type }: Pick<Change, "type">): boolean {
  return type === WatchEventType.expired || type === WatchEventType.lockExpired;
}

/** Whether an event of this stamp can tell what a name is behind the change at `place`. */
export function isStateOf(list: readonly Change[], place: number, stamp: Hlc): boolean {
  // An end of a lease writes nothing: what was written before it stands.
  const written = isExpiry(list[place] as Change) ? place - 1 : place;
  const from = list[written];
  if (from === undefined || compareHlc(from.stamp, stamp) > 0) return from === undefined;
  const next = list.find((change, at) => at > written && !isExpiry(change));
  return next === undefined || compareHlc(next.stamp, stamp) > 0;
}

const TYPE_NAMES = new Map<number, string>(
  Object.entries(WatchEventType).map(([name, type]) => [type, name]),
);

/** An event or a change in words. */
export function inWords(what: Pick<Change, "type" | "name" | "revision" | "token">): string {
  const { type, name, revision, token } = what;
  const which = token === 0n ? `r${revision}` : `f${token}`;
  return `${TYPE_NAMES.get(type) ?? type} ${name} ${which}`;
}
