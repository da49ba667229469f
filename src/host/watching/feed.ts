/**
 * What entries do to watched names: from apply into the histories of filters (W1, W11).
 *
 * Owns filters, histories and leases. Invariants: 1. Nothing is told in the turn of an entry that
 * is not decided yet: events gather, and leave when the turn is over. 2. Ends of leases that the
 * clock of an entry passed come before what the entry does. 3. Without filters no machine is
 * looked at (W15). 4. Histories take `historyBytes` together at most: the oldest goes first.
 */
import { WATCH_HISTORY_MS } from "../../base/limits.js";
import type { Hlc } from "../../base/hlc.js";
import type { Command } from "../../machine/commands/command.js";
import { type AppliedCommand, type WatchEvent, eventsOf } from "../../machine/events.js";
import { textToByteKey } from "../../machine/store/keys.js";
import { keyEvent, keyLeaseEnd, lockEvent, lockLeaseEnd } from "../../machine/watched-rows.js";
import type { Filter, NameSort } from "./filters.js";
import { Filters } from "./filters.js";
import { LateCommits } from "./late-commits.js";
import { type LeaseState, WatchedLeases, leaseState, overwrittenBy } from "./leases.js";
import type { Position, Positions } from "./positions.js";
import { Speakers } from "./speakers.js";
import type { WatchTally } from "./watch-tally.js";
import type { WatchGroup, WatchPorts, WatchSettings, WatchedState } from "./watching.js";

export interface FeedEars {
  /** Some filters have news, or groups went on. */
  news(): void;
  /** The rows of the partition are others than entries made them. */
  replaced(partition: number, reason: "image" | "moved"): void;
  /** The first end of a lease of the partition may be another one from now on. */
  leaseNoted(partition: number): void;
  /** Of the names of the filter more leases run than are looked after: their ends are not told. */
  tooManyLeases(filter: Filter): void;
}

/** An end of a lease that filters did not tell of. */
interface MissedEnd {
  readonly event: WatchEvent;
  readonly filters: readonly Filter[];
}

export class Feed {
  readonly filters = new Filters();
  readonly leases = new WatchedLeases();
  /** Filters with news. */
  readonly changed = new Set<Filter>();
  historyBytes = 0;
  private readonly lateCommits: LateCommits;
  private readonly speakers: Speakers;
  private isOn = false;
  /** Ends of leases of some filters may be in rows alone, or come unseen. */
  private missesLeases = false;
  /** Entries that were looked at. */
  private serial = 0;
  private readonly now = new WeakMap<
    ReadonlySet<number>,
    { readonly serial: number; readonly positions: Positions }
  >();

  constructor(
    private readonly ports: WatchPorts,
    private readonly settings: WatchSettings,
    private readonly tally: WatchTally,
    private readonly ears: FeedEars,
  ) {
    this.lateCommits = new LateCommits(ports, (partition) => this.isWatched(partition));
    this.speakers = new Speakers(ports);
    ports.onGroup((group) => {
      if (!this.isOn) return;
      // It may have been here before, and missed what happened meanwhile.
      this.interrupted(group.partition);
      this.tap(group);
    });
  }

  state(partition: number): WatchedState | null {
    const group = this.ports.isClosing() ? null : this.ports.group(partition);
    if (group === null) return null;
    const { machine } = group;
    return { rows: machine.reads.watched, leaseMs: machine.leaseMs };
  }

  noteLease(partition: number, sort: NameSort, name: string, endMs: number): boolean {
    const isKept = this.leases.note(partition, sort, name, endMs);
    if (isKept) this.ears.leaseNoted(partition);
    return isKept;
  }

  /** The filter of what is watched, with its history from now on. Null: there are too many. */
  filter(
    kind: number,
    name: string,
    partitions: ReadonlySet<number>,
    scope: string,
  ): Filter | null {
    const filter = this.filters.take(kind, name, scope);
    if (filter === null) return null;
    if (!this.isOn) this.turn(true);
    if (filter.partitions !== partitions) this.cover(filter, partitions);
    return filter;
  }

  /**
   * `partitions` are from now on those that may have its names. Returns the new ones among them;
   * null: they are as before.
   */
  cover(filter: Filter, partitions: ReadonlySet<number>): number[] | null {
    const before = filter.partitions;
    filter.partitions = partitions;
    const added = [...partitions].filter((partition) => !before.has(partition));
    for (const partition of added) {
      filter.gap(partition, this.positionOf(partition));
      this.missesLeases = true;
    }
    return added.length > 0 || before.size !== partitions.size ? added : null;
  }

  /** Where the partitions of the filter stand, all entries of which are in its history. */
  positionsNow({ partitions }: Filter): Positions {
    const known = this.now.get(partitions);
    if (known?.serial === this.serial) return known.positions;
    const positions = new Map<number, Position>();
    for (const partition of partitions) positions.set(partition, this.positionOf(partition));
    this.now.set(partitions, { serial: this.serial, positions });
    return positions;
  }

  private isWatched(partition: number): boolean {
    for (const { watches, partitions } of this.filters.all()) {
      if (watches.size > 0 && partitions.has(partition)) return true;
    }
    return false;
  }

  private positionOf(partition: number): Position {
    const group = this.ports.isClosing() ? null : this.ports.group(partition);
    if (group === null) return { l: 0, c: 0, leaseMs: 0 };
    const { lastStamp, leaseMs } = group.machine;
    return { l: lastStamp.l, c: lastStamp.c, leaseMs };
  }

  /** Forgets what is old, and filters that nobody came back for. */
  sweep(nowMs: number): void {
    this.missesLeases = false;
    for (const filter of this.filters.all()) {
      this.missesLeases ||= filter.mayMissEnds;
      if (filter.changed?.wasUsed === true) filter.changed.wasUsed = false;
      else filter.changed = null;
      const oldestMs = nowMs - WATCH_HISTORY_MS;
      while ((filter.at(filter.first)?.atMs ?? nowMs) < oldestMs) this.dropFirst(filter);
      if (filter.idleMs < oldestMs) this.remove(filter);
    }
    this.leases.prune((sort, name) => this.filters.of(sort, name).length > 0);
    if (this.isOn && this.filters.size === 0) this.turn(false);
  }

  private remove(filter: Filter): void {
    this.historyBytes -= filter.sizeBytes;
    this.tally.historyBytes = this.historyBytes;
    this.filters.remove(filter);
    this.changed.delete(filter);
    this.leases.pruneSoon();
  }

  private dropFirst(filter: Filter): void {
    this.historyBytes -= filter.dropFirst();
    this.tally.historyBytes = this.historyBytes;
  }

  /** Looks at all machines, or at none. */
  turn(isOn: boolean): void {
    this.isOn = isOn;
    if (!isOn) this.leases.clear();
    this.speakers.restart();
    if (this.ports.isClosing()) return;
    for (const group of this.ports.groups()) {
      if (isOn) this.tap(group);
      else group.machine.tap = null;
    }
  }

  /** Whether what the partition has of the key is told: not where another one took it over. */
  speaksFor(partition: number, name: string): boolean {
    return this.speakers.speaksFor(partition, name);
  }

  /** Keys of the filter are on their way, or this node's map is old. */
  isInDoubt(filter: Filter): boolean {
    return this.speakers.isInDoubt(filter);
  }

  /** Filters cover what they have to: other partitions than before may speak for a key. */
  mapChanged(): void {
    for (const partition of this.speakers.mapChanged()) this.regained(partition);
  }

  /** The partition has left the node. */
  left(partition: number): void {
    this.leases.drop(partition);
  }

  private tap(group: WatchGroup): void {
    const { partition, machine } = group;
    let position: Position | null = null;
    let end: MissedEnd | null = null;
    this.speakers.begins(group);
    machine.tap = {
      begin: (stamp, leaseMs) => {
        position = { l: stamp.l, c: stamp.c, leaseMs };
        this.serial++;
        if (this.leases.nextMs(partition) <= leaseMs) {
          this.expire(group, stamp, position);
        }
        this.ears.news();
      },
      deciding: (command) => {
        end = this.missesLeases && position !== null ? this.missedEnd(group, command) : null;
      },
      changed: (applied) => {
        if (end !== null && position !== null) {
          this.add(partition, end.filters, { ...end.event, stamp: applied.stamp }, position);
        }
        this.note(group, applied, position);
      },
      appended: (index) => this.lateCommits.appended(group, index),
      replaced: () => {
        this.interrupted(partition);
        this.speakers.begins(group);
        this.ears.replaced(partition, "image");
      },
    };
  }

  /** What happened in the partition up to now is not in the histories. */
  private interrupted(partition: number): void {
    this.serial++;
    this.leases.drop(partition);
    this.missesLeases = true;
    for (const filter of this.filters.all()) {
      if (filter.partitions.has(partition)) filter.gap(partition, this.positionOf(partition));
    }
  }

  /** The partition has keys that it had not: what stands there is told, and begins histories. */
  private regained(partition: number): void {
    // Keys that left, and are back, may have ended elsewhere: whoever compares the state now is
    // told of that, and notes what runs.
    this.leases.drop(partition, "key");
    this.missesLeases = true;
    for (const filter of this.filters.all()) {
      if (filter.isOfKeys && filter.partitions.has(partition)) {
        filter.gap(partition, this.positionOf(partition));
      }
    }
    this.ears.replaced(partition, "moved");
  }

  private note(group: WatchGroup, applied: AppliedCommand, position: Position | null): void {
    const { command } = applied;
    if (position === null) return;
    switch (command.kind) {
      case "kv-set":
      case "kv-delete":
        return this.told(group, "key", command.key, applied, position);
      case "try-lock":
      case "lock-with-note":
      case "lock-heir":
      case "try-unlock":
      case "unlock-grant":
      case "force-unlock":
        return this.told(group, "lock", command.resource, applied, position);
      case "create-sequence":
      case "update-sequence":
      case "delete-sequence":
      case "allocate":
      case "reserve-block":
        return this.told(group, "sequence", command.name, applied, position);
      case "kv-extend":
        return this.extended(group, "key", command.key, applied, position);
      case "try-extend":
      case "extend-grant":
        this.told(group, "lock", command.resource, applied, position);
        return this.extended(group, "lock", command.resource, applied, position);
      case "range-adopt":
        this.speakers.applied(group, command);
        return this.regained(group.partition);
      // Nobody had these keys for a while: they were not read, and their leases ended unseen.
      case "range-unfreeze":
        return this.regained(group.partition);
      case "range-close":
      case "range-drop":
        return this.speakers.applied(group, command);
      default:
    }
  }

  private told(
    group: WatchGroup,
    sort: NameSort,
    name: string,
    applied: AppliedCommand,
    position: Position,
  ): void {
    const filters = this.filters.of(sort, name);
    if (!filters.some((filter) => filter.partitions.has(group.partition))) return;
    if (sort === "key" && !this.speaksFor(group.partition, name)) return;
    const record = sort === "sequence" ? group.machine.reads.getSequence(name) : null;
    const events = eventsOf(applied, record);
    for (const event of events) this.add(group.partition, filters, event, position);
    if (events.length > 0) this.leased(group, sort, name, applied, position, filters);
  }

  /** Nothing is told of it, but its end may be another one, sooner too. */
  private extended(
    group: WatchGroup,
    sort: NameSort,
    name: string,
    applied: AppliedCommand,
    position: Position,
  ): void {
    if (applied.isLapse) return;
    this.leased(group, sort, name, applied, position, this.filters.of(sort, name));
  }

  private leased(
    group: WatchGroup,
    sort: NameSort,
    name: string,
    { command, outcome }: AppliedCommand,
    { leaseMs }: Position,
    filters: readonly Filter[],
  ): void {
    const { partition } = group;
    let endMs: number | null = null;
    // Whose lease runs behind it, the row knows.
    if ("handover" in outcome) {
      endMs = this.leaseOf(group, sort, name, leaseMs)?.untilMs ?? null;
    } else if ("expiresMs" in command && command.expiresMs > 0) endMs = leaseMs + command.expiresMs;
    if (endMs === null) return;
    const covering = filters.filter(({ partitions }) => partitions.has(partition));
    if (covering.length === 0) return;
    if (this.noteLease(partition, sort, name, endMs)) return;
    for (const filter of covering) {
      filter.knowsLeases = false;
      this.missesLeases = true;
      this.ears.tooManyLeases(filter);
    }
  }

  private add(
    partition: number,
    filters: readonly Filter[],
    event: WatchEvent,
    position: Position,
  ): void {
    const nowMs = this.ports.clock.monotonicMs();
    let isTold = false;
    for (const filter of filters) {
      if (!filter.partitions.has(partition)) continue;
      isTold = true;
      this.historyBytes += filter.add(partition, position, event, nowMs);
      this.changed.add(filter);
    }
    if (!isTold) return;
    this.tally.events[event.type] = (this.tally.events[event.type] ?? 0) + 1;
    if (this.historyBytes > this.settings.historyBytes) this.makeRoom();
    this.tally.historyBytes = this.historyBytes;
  }

  /** Of each filter in turn the oldest half, until three quarters of the room are enough. */
  private makeRoom(): void {
    const roomBytes = (this.settings.historyBytes * 3) / 4;
    while (this.historyBytes > roomBytes) {
      for (const filter of this.filters.all()) {
        const keepFrom = filter.first + Math.ceil((filter.end - filter.first) / 2);
        while (filter.first < keepFrom) this.dropFirst(filter);
        if (this.historyBytes <= roomBytes) return;
      }
    }
  }

  /**
   * The end of a lease that no history has, and whose row the command may write over: no read
   * of what is there finds it then.
   */
  private missedEnd(group: WatchGroup, command: Command): MissedEnd | null {
    const { partition } = group;
    const overwritten = overwrittenBy(command);
    if (overwritten === null) return null;
    const { sort, name } = overwritten;
    const filters = this.filters.of(sort, name);
    const isCovered = filters.some(({ mayMissEnds, partitions }) => {
      return mayMissEnds && partitions.has(partition);
    });
    if (!isCovered) return null;
    const { end = null } = this.leaseOf(group, sort, name, group.machine.leaseMs) ?? {};
    if (end === null) return null;
    const { event, endMs } = end;
    const missing = filters.filter((filter) => filter.misses(partition, event, endMs));
    return missing.length === 0 ? null : { event: { ...event, endedMs: endMs }, filters: missing };
  }

  private expire(group: WatchGroup, stamp: Hlc, position: Position): void {
    const { partition } = group;
    const { leaseMs } = position;
    for (
      let noted = this.leases.take(partition, leaseMs);
      noted !== null;
      noted = this.leases.take(partition, leaseMs)
    ) {
      const { sort, name } = noted;
      const lease = this.leaseOf(group, sort, name, leaseMs);
      const filters = this.filters.of(sort, name);
      if (lease === null || filters.length === 0) continue;
      const { untilMs, end } = lease;
      // It was extended.
      if (untilMs !== null) this.leases.note(partition, sort, name, untilMs);
      else if (end !== null) this.add(partition, filters, { ...end.event, stamp }, position);
    }
    // The end behind it is the one to be waited for.
    this.ears.leaseNoted(partition);
  }

  /** Null: the name has no row, or one that this partition does not speak for. */
  private leaseOf(
    { partition, machine }: WatchGroup,
    sort: NameSort,
    name: string,
    nowMs: number,
  ): LeaseState | null {
    const { watched } = machine.reads;
    const key = textToByteKey(name);
    if (sort === "key") {
      const row = this.speaksFor(partition, name) ? watched.key(key) : null;
      if (row === null) return null;
      const untilMs = keyLeaseEnd(row, nowMs);
      return leaseState(untilMs, row.endMs, () => keyEvent(name, row, nowMs));
    }
    const row = sort === "lock" ? watched.lock(key) : null;
    if (row === null) return null;
    const untilMs = lockLeaseEnd(row, nowMs);
    return leaseState(untilMs, row.endMs, () => lockEvent(name, row, nowMs));
  }
}
