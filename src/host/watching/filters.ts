/**
 * What is watched on a node: one filter for each kind and name, whoever watches it, and what
 * happened to its names lately.
 *
 * Owns the filters and their histories. Invariants: 1. The history of a filter is every change of
 * its names behind `since`, partition by partition, in the order of the logs. 2. Whoever has all of
 * it stands at `end`, and costs nothing. 3. Looking for who watches a name costs one look for names
 * and one for each distinct length of prefixes, however many filters there are.
 */
import { WatchKind } from "../../base/result-types.js";
import { keySpaceOf } from "../../base/routing.js";
import { type WatchEvent, eventBytes } from "../../machine/events.js";
import { type Position, type Positions, isBehind } from "./positions.js";

/** Who is told by a filter that it has news. */
export interface FilterWatch {
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
  /** The cursor that was made last: many who watch stand at the same place. */
  cursor: { readonly positions: Positions; readonly text: string } | null = null;
  private batches: Batch[] = [];
  /** Number of the first batch. */
  private firstNumber = 0;

  constructor(
    readonly kind: number,
    readonly name: string,
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

  /** Whether the end of a lease is behind the beginning of the history, and was not told. */
  misses(partition: number, end: WatchEvent, endMs: number): boolean {
    if (this.knowsLeases || !this.partitions.has(partition)) return false;
    if (endMs <= (this.since.get(partition)?.leaseMs ?? Infinity)) return false;
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
    for (const partition of this.partitions) {
      const from = this.since.get(partition);
      const at = positions.get(partition);
      if (from === undefined || at === undefined) return false;
      if (isBehind(from, at) || at.leaseMs < from.leaseMs) return false;
    }
    return true;
  }
}

export function queryOf(kind: number, name: string): string {
  return `watch/${kind}/${name}`;
}

const NONE: readonly Filter[] = [];

/** Of prefixes, by their length: at most so many lengths (W16). */
const LENGTHS_MAX = 64;

class Prefixes {
  private readonly byLength = new Map<number, Map<string, Filter>>();

  add(filter: Filter): boolean {
    const { length } = filter.name;
    let names = this.byLength.get(length);
    if (names === undefined) {
      if (this.byLength.size >= LENGTHS_MAX) return false;
      names = new Map();
      this.byLength.set(length, names);
    }
    names.set(filter.name, filter);
    return true;
  }

  remove({ name }: Filter): void {
    const names = this.byLength.get(name.length);
    names?.delete(name);
    if (names?.size === 0) this.byLength.delete(name.length);
  }

  find(name: string, found: Filter[]): void {
    for (const [length, names] of this.byLength) {
      if (length > name.length) continue;
      const filter = names.get(length === name.length ? name : name.slice(0, length));
      if (filter !== undefined) found.push(filter);
    }
  }
}

/** The sorts of names: a key and a lock of the same name are two things. */
export type NameSort = "key" | "lock" | "sequence";

export class Filters {
  private readonly byQuery = new Map<string, Filter>();
  private readonly keys = new Map<string, Filter>();
  private readonly buckets = new Map<string, Filter>();
  private readonly prefixes = new Prefixes();
  private readonly locks = new Map<string, Filter>();
  private readonly lockPrefixes = new Prefixes();
  private readonly sequences = new Map<string, Filter>();
  private readonly found: Filter[] = [];

  get size(): number {
    return this.byQuery.size;
  }

  all(): IterableIterator<Filter> {
    return this.byQuery.values();
  }

  get(kind: number, name: string): Filter | null {
    return this.byQuery.get(queryOf(kind, name)) ?? null;
  }

  /** The filter, made if there is none; null: there are prefixes of too many lengths. */
  take(kind: number, name: string): Filter | null {
    const known = this.get(kind, name);
    if (known !== null) return known;
    const filter = new Filter(kind, name);
    const home = this.homeOf(kind);
    if (home instanceof Map) home.set(name, filter);
    else if (!home.add(filter)) return null;
    this.byQuery.set(filter.query, filter);
    return filter;
  }

  remove(filter: Filter): void {
    const home = this.homeOf(filter.kind);
    if (home instanceof Map) home.delete(filter.name);
    else home.remove(filter);
    this.byQuery.delete(filter.query);
  }

  /** Who watches the name. To be used before the next call. */
  of(sort: NameSort, name: string): readonly Filter[] {
    const { found } = this;
    found.length = 0;
    switch (sort) {
      case "key": {
        this.note(this.keys.get(name));
        if (this.buckets.size > 0) this.note(this.buckets.get(keySpaceOf(name)));
        this.prefixes.find(name, found);
        break;
      }
      case "lock":
        this.note(this.locks.get(name));
        this.lockPrefixes.find(name, found);
        break;
      case "sequence":
        this.note(this.sequences.get(name));
    }
    return found.length === 0 ? NONE : found;
  }

  private note(filter: Filter | undefined): void {
    if (filter !== undefined) this.found.push(filter);
  }

  private homeOf(kind: number): Map<string, Filter> | Prefixes {
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
