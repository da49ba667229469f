/**
 * Which partition is listened to about a key, where keys move (W14): the one that the map of this
 * node gives the key to; or the target of a move that was adopted here before the map knew its cut.
 *
 * Owns a copy of the ranges, and what is ahead of it. Invariants: 1. One partition at a time speaks
 * for a key: what a late source still brings, or a late target brings that gave it away since, is
 * told to nobody. 2. Nothing is kept of a move that the map knows. 3. Where keys never moved
 * nothing is looked up.
 */
import { compareText } from "../../base/bytes.js";
import { WatchKind } from "../../base/result-types.js";
import { keySpaceOf } from "../../base/routing.js";
import { findRange } from "../../control/ranges.js";
import type { RangeCommand } from "../../machine/commands/command.js";
import {
  type KeyBounds,
  type KeyInterval,
  isOwned,
  isWithin,
} from "../../machine/ownership/ownership-row.js";
import { textToByteKey } from "../../machine/store/keys.js";
import type { Filter } from "./filters.js";
import type { KeyOwner, WatchGroup, WatchPorts } from "./watching.js";

interface Ahead extends KeyInterval {
  readonly target: number;
  readonly moveId: number;
}

export class Speakers {
  /** Intervals that are closed, and await their adoption: by partition and move. */
  private readonly closed = new Map<string, KeyInterval>();
  private ahead: Ahead[] = [];
  private ranges: ReadonlyMap<string, readonly KeyOwner[]> = new Map();
  private hasMoved = false;

  constructor(private readonly ports: WatchPorts) {}

  /** The rows of the group are to be looked at from now on, or are others than before. */
  begins({ partition, machine }: WatchGroup): void {
    for (const row of machine.ownership.all()) {
      if (row.state === "closed") this.closed.set(`${partition}/${row.moveId}`, row);
    }
  }

  /** Nothing was looked at before. */
  restart(): void {
    this.closed.clear();
    this.ahead = [];
    this.readMap();
  }

  private readMap(): void {
    if (this.ports.isClosing()) return;
    this.ranges = this.ports.ranges();
    this.hasMoved = this.ports.hasMoved();
  }

  /** The group applied this, and its rows changed. */
  applied({ partition, machine }: WatchGroup, command: RangeCommand): void {
    const { kind, moveId, keySpace } = command;
    const name = `${partition}/${moveId}`;
    switch (kind) {
      case "range-close": {
        const rows = machine.ownership.rowsOf(textToByteKey(keySpace));
        const row = rows.find((each) => each.moveId === moveId && each.state === "closed");
        if (row !== undefined) this.closed.set(name, row);
        return;
      }
      case "range-adopt": {
        const interval = this.closed.get(name);
        this.closed.delete(name);
        if (interval === undefined || this.ports.knowsCut(keySpace, moveId)) return;
        const { startKey, endKey } = interval;
        this.ahead.push({ keySpace, startKey, endKey, target: partition, moveId });
        return;
      }
      case "range-drop":
        this.closed.delete(name);
        return;
      default:
    }
  }

  /**
   * The map may be another one. Returns the partitions that it gives keys which they have here, and
   * for which they did not speak so far.
   */
  mapChanged(): number[] {
    if (this.ports.isClosing()) return [];
    const { ahead } = this;
    const found = new Set<number>();
    const now = this.ports.ranges();
    for (const keySpace of new Set([...this.ranges.keys(), ...now.keys()])) {
      const had = this.ownersOf(keySpace);
      for (const owner of now.get(keySpace) ?? this.homesOf(keySpace)) {
        const { partitionId: id } = owner;
        if (had.some((each) => each.partitionId === id && isWithin(owner, each))) continue;
        const spoke = ahead.some((each) => each.target === id && each.keySpace === keySpace);
        const ownership = this.ports.group(id)?.machine.ownership;
        const { startKey, endKey } = owner;
        if (!spoke && ownership?.ownsAll({ keySpace, startKey, endKey }) === true) found.add(id);
      }
    }
    this.readMap();
    this.ahead = ahead.filter(({ keySpace, moveId }) => !this.ports.knowsCut(keySpace, moveId));
    return [...found];
  }

  private ownersOf(keySpace: string): readonly KeyOwner[] {
    return this.ranges.get(keySpace) ?? this.homesOf(keySpace);
  }

  /** Of a key space that is placed by hash. */
  private homesOf(keySpace: string): readonly KeyOwner[] {
    const home = this.ports.homeOf(keySpace);
    return home === null ? [] : [{ startKey: null, endKey: null, partitionId: home }];
  }

  /** Whether what the partition has of the key is told. */
  speaksFor(partition: number, name: string): boolean {
    if (!this.hasMoved && this.ahead.length === 0) return true;
    const keySpace = keySpaceOf(name);
    let newest: Ahead | null = null;
    for (const each of this.ahead) {
      if (each.keySpace !== keySpace || !holds(each, name)) continue;
      if (newest === null || each.moveId > newest.moveId) newest = each;
    }
    if (newest !== null) return newest.target === partition;
    const owner = findRange(this.ownersOf(keySpace), name);
    return owner === null || owner.partitionId === partition;
  }

  /**
   * Whether the map gives a partition keys of the filter that the partition itself has not: they
   * are on their way, or the map of this node is old. A partition that gave keys away may have
   * forgotten that. Of what a target adopted ahead of the map its source is not heard any more.
   */
  isInDoubt({ kind, name, partitions }: Filter): boolean {
    if (this.ahead.some((each) => isOf(each, kind, name))) return true;
    for (const keySpace of this.spacesOf(kind, name, partitions)) {
      for (const { partitionId, startKey, endKey } of this.ownersOf(keySpace)) {
        if (!partitions.has(partitionId)) continue;
        const ownership = this.ports.group(partitionId)?.machine.ownership;
        const bounds = { startKey, endKey };
        const hasAll =
          kind === WatchKind.key
            ? !holds(bounds, name) || ownership?.owns(textToByteKey(name))
            : ownership?.ownsAll({ keySpace, ...bounds });
        if (hasAll === false) return true;
      }
    }
    return false;
  }

  /** The key spaces of a filter whose keys may be in another partition than the map says. */
  private spacesOf(kind: number, name: string, partitions: ReadonlySet<number>): Set<string> {
    if (kind === WatchKind.key) return new Set([keySpaceOf(name)]);
    if (kind === WatchKind.bucket) return new Set([name]);
    if (kind !== WatchKind.prefix) return new Set();
    const spaces = new Set(this.ranges.keys());
    for (const partition of partitions) {
      const rows = this.ports.group(partition)?.machine.ownership.all() ?? [];
      for (const row of rows) if (!isOwned(row)) spaces.add(row.keySpace);
    }
    return spaces;
  }
}

/** Keys of the interval may be among what is watched. */
function isOf(interval: KeyInterval, kind: number, name: string): boolean {
  if (kind === WatchKind.key)
    return interval.keySpace === keySpaceOf(name) && holds(interval, name);
  return kind === WatchKind.prefix || (kind === WatchKind.bucket && interval.keySpace === name);
}

function holds({ startKey, endKey }: KeyBounds, key: string): boolean {
  if (startKey !== null && compareText(key, startKey) < 0) return false;
  return endKey === null || compareText(key, endKey) < 0;
}
