/**
 * What is watched on a node: one filter for each kind and name, whoever watches it, and what
 * happened to its names lately.
 *
 * Owns the filters and their histories. Invariants: 1. The history of a filter is every change of
 * its names behind `since`, partition by partition, in the order of the logs; but of ends of leases
 * up to `endsSince` those that rows do not tell of. 2. Whoever has all of it stands at `end`, and
 * costs nothing. 3. Looking for who watches a name costs one look for names and one for each
 * distinct length of prefixes, however many filters there are.
 */
import { WatchKind } from "../../base/result-types.js";
import { keySpaceOf } from "../../base/routing.js";
import { type WatchEvent, eventBytes } from "../../machine/events.js";
import type { ChangedNames } from "./changed-names.js";
import { type Position, type Positions, isBehind } from "./positions.js";

/** Who is told by a filter that it has news. */
export interface FilterWatch {
  /** Behind which the state has to be compared, now or soon; null: nothing has to. */
  readonly comparedWith: Positions | null;
  hasNews(): void;
}

/** What one entry did to the names of a filter. */
export interface Batch {
  readonly partition: number;
  readonly position: Position;
  readonly events: WatchEvent[];
  sizeBytes: number;
  /** When it was applied here (monotonic ms). */
  readonly atMs: number;
}

/** A place in a history: the number of a batch, and of an event in it. */
export interface Place {
  readonly number: number;
  readonly offset: number;
}

/** Of a batch without its events (bytes). */
const BATCH_BYTES = 120;

export class Filter {
  readonly watches = new Set<FilterWatch>();
  /** The partitions that may have its names. */
  partitions: ReadonlySet<number> = new Set();
  /** Where the history begins, by partition. */
  readonly since = new Map<number, Position>();
  /** Every lease of its names that runs is looked after. */
  knowsLeases = false;
  /** From where on all their ends are in the history; before, they may be in rows alone. */
  endsSince: Positions = new Map();
  /** Times that its history was interrupted. */
  gaps = 0;
  /** Since when nobody watches (monotonic ms); infinity: somebody does. */
  idleMs = Infinity;
  sizeBytes = 0;
  /** What a comparison of all names found last; null: that is not known, or nobody needs it. */
  changed: ChangedNames | null = null;
  /** The cursor that was made last: many who watch stand at the same place. */
  cursor: { readonly positions: Positions; readonly text: string } | null = null;
  private lastEnd: Place = { number: 0, offset: 0 };
  private batches: Batch[] = [];
  /** Number of the first batch. */
  private firstNumber = 0;

  /** `scope`: as `scopeOf`. */
  constructor(
    readonly kind: number,
    readonly name: string,
    readonly scope = "",
  ) {}

  /** Equal for the same kind and name alone. */
  get query(): string {
    return queryOf(this.kind, this.name);
  }

  /** Its names are keys. */
  get isOfKeys(): boolean {
    return this.kind <= WatchKind.bucket;
  }

  /** Number of the first batch that is kept. */
  get first(): number {
    return this.firstNumber;
  }

  /** Number of the batch to come. */
  get end(): number {
    return this.firstNumber + this.batches.length;
  }

  /** Where whoever has all of it stands: one object for the many who do. */
  get endPlace(): Place {
    const { end } = this;
    if (this.lastEnd.number !== end) this.lastEnd = { number: end, offset: 0 };
    return this.lastEnd;
  }

  at(number: number): Batch | undefined {
    return this.batches[number - this.firstNumber];
  }

  /** Takes in an event of the entry that leads to `position`. Returns how much the history grew. */
  add(partition: number, position: Position, event: WatchEvent, atMs: number): number {
    let batch = this.batches.at(-1);
    let grownBytes = eventBytes(event);
    if (batch?.position !== position || batch.partition !== partition) {
      batch = { partition, position, events: [], sizeBytes: 0, atMs };
      this.batches.push(batch);
      grownBytes += BATCH_BYTES;
    }
    batch.events.push(event);
    batch.sizeBytes += grownBytes;
    this.sizeBytes += grownBytes;
    return grownBytes;
  }

  /** Forgets the first batch. Returns how much that was; 0: there is none. */
  dropFirst(): number {
    const batch = this.batches.shift();
    if (batch === undefined) return 0;
    this.firstNumber++;
    const { partition, position } = batch;
    const since = this.since.get(partition);
    // What came before a gap is kept for who has all of it, and begins nothing.
    if (since === undefined || isBehind(position, since)) this.since.set(partition, position);
    this.sizeBytes -= batch.sizeBytes;
    return batch.sizeBytes;
  }

  /** Between what is known and `position` of the partition there is a gap. */
  gap(partition: number, position: Position): void {
    this.since.set(partition, position);
    this.knowsLeases = false;
    this.gaps++;
  }

  /** Every end of a lease behind `positions` is in the history, as far as that reaches. */
  hasEnds(positions: Positions): boolean {
    if (!this.knowsLeases) return false;
    for (const [partition, { leaseMs }] of this.endsSince) {
      if ((positions.get(partition)?.leaseMs ?? 0) < leaseMs) return false;
    }
    return true;
  }

  /** Every lease that runs is looked after from `positions` on. */
  looksAfterLeases(positions: Positions): void {
    if (this.knowsLeases) return;
    this.knowsLeases = true;
    this.endsSince = positions;
  }

  /** Ends that came since the history began may be in rows alone. */
  get mayMissEnds(): boolean {
    return !this.hasEnds(this.since);
  }

  /** Whether the end of a lease is behind the beginning of the history, and is not in it. */
  misses(partition: number, end: WatchEvent, endMs: number): boolean {
    if (!this.partitions.has(partition)) return false;
    if (endMs <= (this.since.get(partition)?.leaseMs ?? Infinity)) return false;
    if (this.knowsLeases && endMs > (this.endsSince.get(partition)?.leaseMs ?? 0)) return false;
    const { type, name, revision, token } = end;
    return !this.batches.some(({ events }) =>
      events.some((told) => {
        const isSame = told.type === type && told.name === name;
        return isSame && told.revision === revision && told.token === token;
      }),
    );
  }

  /** Everything behind `positions` is in the history. */
  reaches(positions: Positions): boolean {
    for (const each of this.partitions) if (!this.reachesIn(each, positions)) return false;
    return true;
  }

  /** As `reaches`, of one partition. */
  reachesIn(partition: number, positions: Positions): boolean {
    const from = this.since.get(partition);
    const at = positions.get(partition);
    if (from === undefined || at === undefined) return false;
    return !isBehind(from, at) && at.leaseMs >= from.leaseMs;
  }
}

export function queryOf(kind: number, name: string): string {
  return `watch/${kind}/${name}`;
}

/** Names the partitions of a part of a watch; null: it is whole, which has no name. */
export function scopeOf(partitions: readonly number[] | null): string {
  return partitions === null ? "" : [...partitions].sort((a, b) => a - b).join();
}

const NONE: readonly Filter[] = [];

/** Of single names: for each those that watch all of it, or parts. */
class Names {
  private readonly byName = new Map<string, Filter[]>();

  get size(): number {
    return this.byName.size;
  }

  add(filter: Filter): void {
    const same = this.byName.get(filter.name);
    if (same === undefined) this.byName.set(filter.name, [filter]);
    else same.push(filter);
  }

  remove(filter: Filter): void {
    const same = this.byName.get(filter.name) ?? [];
    const left = same.filter((each) => each !== filter);
    if (left.length === 0) this.byName.delete(filter.name);
    else this.byName.set(filter.name, left);
  }

  find(name: string, found: Filter[]): void {
    const same = this.byName.get(name);
    if (same !== undefined) for (const filter of same) found.push(filter);
  }
}

/** Of prefixes, by their length: at most so many lengths (W16). */
const LENGTHS_MAX = 64;

class Prefixes {
  private readonly byLength = new Map<number, Names>();

  add(filter: Filter): boolean {
    const { length } = filter.name;
    let names = this.byLength.get(length);
    if (names === undefined) {
      if (this.byLength.size >= LENGTHS_MAX) return false;
      names = new Names();
      this.byLength.set(length, names);
    }
    names.add(filter);
    return true;
  }

  remove(filter: Filter): void {
    const { length } = filter.name;
    const names = this.byLength.get(length);
    names?.remove(filter);
    if (names?.size === 0) this.byLength.delete(length);
  }

  find(name: string, found: Filter[]): void {
    for (const [length, names] of this.byLength) {
      if (length > name.length) continue;
      names.find(length === name.length ? name : name.slice(0, length), found);
    }
  }
}

/** The sorts of names: a key and a lock of the same name are two things. */
export type NameSort = "key" | "lock" | "sequence";

export class Filters {
  private readonly byQuery = new Map<string, Filter>();
  private readonly keys = new Names();
  private readonly buckets = new Names();
  private readonly prefixes = new Prefixes();
  private readonly locks = new Names();
  private readonly lockPrefixes = new Prefixes();
  private readonly sequences = new Names();
  private readonly found: Filter[] = [];

  get size(): number {
    return this.byQuery.size;
  }

  all(): IterableIterator<Filter> {
    return this.byQuery.values();
  }

  get(kind: number, name: string, scope = ""): Filter | null {
    return this.byQuery.get(idOf({ query: queryOf(kind, name), scope })) ?? null;
  }

  /** The filter, made if there is none; null: there are prefixes of too many lengths. */
  take(kind: number, name: string, scope = ""): Filter | null {
    const known = this.get(kind, name, scope);
    if (known !== null) return known;
    const filter = new Filter(kind, name, scope);
    if (this.homeOf(kind).add(filter) === false) return null;
    this.byQuery.set(idOf(filter), filter);
    return filter;
  }

  remove(filter: Filter): void {
    this.homeOf(filter.kind).remove(filter);
    this.byQuery.delete(idOf(filter));
  }

  /** Who watches the name. To be used before the next call. */
  of(sort: NameSort, name: string): readonly Filter[] {
    const { found } = this;
    found.length = 0;
    switch (sort) {
      case "key": {
        this.keys.find(name, found);
        if (this.buckets.size > 0) this.buckets.find(keySpaceOf(name), found);
        this.prefixes.find(name, found);
        break;
      }
      case "lock":
        this.locks.find(name, found);
        this.lockPrefixes.find(name, found);
        break;
      case "sequence":
        this.sequences.find(name, found);
    }
    return found.length === 0 ? NONE : found;
  }

  private homeOf(kind: number): Names | Prefixes {
    switch (kind) {
      case WatchKind.key:
        return this.keys;
      case WatchKind.bucket:
        return this.buckets;
      case WatchKind.prefix:
        return this.prefixes;
      case WatchKind.lock:
        return this.locks;
      case WatchKind.lockPrefix:
        return this.lockPrefixes;
      default:
        return this.sequences;
    }
  }
}

function idOf({ query, scope }: Pick<Filter, "query" | "scope">): string {
  return `${scope}/${query}`;
}
