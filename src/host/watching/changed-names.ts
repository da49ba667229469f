/**
 * Which names of a filter changed lately, found by one reading of all of them: whoever is compared
 * next looks at these alone (W6, W13).
 *
 * Owns the names. Invariants: 1. Every name that changed behind `since` is among them, or in the
 * history of the filter from `place` on; where that is not known any more it is of no use. 2. It has
 * NAMES_MAX names and NAMES_MAX_BYTES at most.
 */
import { type Position, type Positions, earlier, isBehind } from "./positions.js";

const NAMES_MAX = 1000;
const NAMES_MAX_BYTES = 64 * 1024;

/** What is read of a filter. */
interface NamesHistory {
  readonly watches: Iterable<{ readonly comparedWith: Positions | null }>;
  readonly partitions: ReadonlySet<number>;
  readonly knowsLeases: boolean;
  readonly endsSince: Positions;
  readonly gaps: number;
  /** Numbers of the first batch that is kept, and of the one to come. */
  readonly first: number;
  readonly end: number;
  at(
    number: number,
  ):
    | { readonly partition: number; readonly events: readonly { readonly name: string }[] }
    | undefined;
}

export class ChangedNames {
  /** Somebody needed it since this was set to false. */
  wasUsed = true;
  private readonly names = new Map<number, Set<string>>();
  private count = 0;
  private sizeBytes = 0;
  /** Of the history: everything before is among the names. */
  private place: number;
  private readonly gaps: number;
  private readonly endsSince: Positions;

  private constructor(
    private readonly filter: NamesHistory,
    private readonly since: Positions,
  ) {
    this.place = filter.end;
    this.gaps = filter.gaps;
    this.endsSince = filter.endsSince;
  }

  /**
   * For a reading that begins now, of what changed behind `since`, and behind where others stand
   * who will be compared. Null: ends of leases may be in no history.
   */
  static of(filter: NamesHistory, since: Positions): ChangedNames | null {
    if (!filter.knowsLeases || !isWhole(filter, since)) return null;
    const earliest = new Map(since);
    for (const { comparedWith } of filter.watches) {
      if (comparedWith === null || !isWhole(filter, comparedWith)) continue;
      for (const [partition, at] of earliest) {
        const other = comparedWith.get(partition);
        if (other !== undefined) earliest.set(partition, earlier(at, other));
      }
    }
    return new ChangedNames(filter, earliest);
  }

  /** From where on changes of the partition are to be noted. */
  from(partition: number): Position | null {
    return this.since.get(partition) ?? null;
  }

  note(partition: number, name: string): void {
    const names = this.names.get(partition) ?? new Set();
    if (names.has(name)) return;
    this.count++;
    this.sizeBytes += name.length * 2;
    if (this.isTooMuch) return this.names.clear();
    this.names.set(partition, names.add(name));
  }

  private get isTooMuch(): boolean {
    return this.count > NAMES_MAX || this.sizeBytes > NAMES_MAX_BYTES;
  }

  /** Takes in what happened up to now. False: it is of no use any more. */
  follow(): boolean {
    const { filter } = this;
    const isSame = filter.gaps === this.gaps && filter.endsSince === this.endsSince;
    if (!isSame || !filter.knowsLeases || this.place < filter.first) return false;
    for (; this.place < filter.end && !this.isTooMuch; this.place++) {
      const batch = filter.at(this.place);
      for (const { name } of batch?.events ?? []) this.note(batch?.partition ?? 0, name);
    }
    return !this.isTooMuch;
  }

  /** The names of the partition that changed behind `since` up to now; null: it is not known. */
  behind(since: Positions, partition: number): ReadonlySet<string> | null {
    for (const each of this.filter.partitions) {
      const from = this.since.get(each);
      const at = since.get(each);
      if (from === undefined || at === undefined) return null;
      if (isBehind(from, at) || from.leaseMs > at.leaseMs) return null;
    }
    if (!this.follow()) return null;
    this.wasUsed = true;
    return this.names.get(partition) ?? new Set();
  }
}

function isWhole({ partitions }: NamesHistory, positions: Positions): boolean {
  for (const partition of partitions) if (!positions.has(partition)) return false;
  return true;
}
