/**
 * One watch: where it stands, and what it is told next.
 *
 * Owns its place in the history of its filter. Invariants: 1. What is told of a name comes in the
 * order of its changes. 2. A watch that is behind holds nothing but its positions (P-185). 3. A
 * cursor is given only where all that is behind it was told, and a mark only when nothing is left
 * to tell (P-187). 4. Where the history does not reach back far enough the state is compared, or
 * told anew: the newest state always comes (P-186).
 */
import { WatchKind, WatchMessageType } from "../../base/result-types.js";
import type { WatchEvent } from "../../machine/events.js";
import type { DueItem } from "../waiting/due-heap.js";
import type { Filter, FilterWatch, Place } from "./filters.js";
import type { WatchRequest } from "./messages.js";
import type { Position, Positions } from "./positions.js";
import { Revisions } from "./revisions.js";
import { Scan, type ScanMode, type ScanPorts } from "./scan.js";
import type { ScanTurns, Scanner } from "./scan-turns.js";
import { type Draft, type Teller, type Told, draft, wanted } from "./told.js";
import type { MergeReason, WatchTally } from "./watch-tally.js";

/** What a watch asks of its node. */
export interface WatchHome extends ScanPorts {
  readonly tally: WatchTally;
  readonly teller: Teller;
  readonly turns: ScanTurns;
  /** Of the map that filters have their partitions by. */
  readonly mapVersion: number;
  /** Where the partitions of the filter stand now. */
  positionsNow(filter: Filter): Positions;
  cursorOf(filter: Filter, positions: Positions): string;
  /** Keys may have come to a partition with stamps of another one. */
  hasMoved(): boolean;
  /** The rows that tell of what ended behind the positions, in their partitions, are there. */
  remembers(filter: Filter, positions: Positions): boolean;
  /** For how long the partitions of the filter may not have been level with their leaders (ms). */
  staleMs(filter: Filter): number;
}

/** The stream of a watch. */
export interface WatchAudience {
  /** `watch` has something to tell. */
  news(watch: Watch): void;
  /** It takes more. */
  readonly canTell: boolean;
  /** Whether the caller may read still. */
  mayRead(): boolean;
  endWatch(watch: Watch, end: number, partition: number | null): void;
}

/** What a step came to: a message; nothing to tell; or that the watch cannot go on. */
export type Step =
  | { readonly kind: "told"; readonly draft: Draft; readonly appliedMs: number }
  /** It went on; there may be more. */
  | { readonly kind: "worked" }
  | { readonly kind: "nothing" }
  | { readonly kind: "lost"; readonly partition: number }
  | { readonly kind: "full" };

const NOTHING: Step = { kind: "nothing" };
const WORKED: Step = { kind: "worked" };

const NOWHERE: Place = { number: 0, offset: 0 };
const UNKNOWN: Positions = new Map();
/** Before everything. */
const NEVER: Position = { l: 0, c: 0, leaseMs: 0 };

export class Watch implements FilterWatch, DueItem, Scanner {
  dueMs = 0;
  heapAt = -1;
  /** When it was told something last (monotonic ms, whole). */
  toldMs = 0;
  wantsMark = false;
  private isRunning = false;
  private isCreated = false;
  private wantsReset = false;
  private place = NOWHERE;
  private positions = UNKNOWN;
  /** Of a watch that goes on: what was told before. */
  private skip: Positions | null = null;
  private scan: Scan | null = null;
  /** What was told before the state that is compared; null: none is. */
  private before: Positions | null = null;
  private revisions: Revisions | null = null;
  /** Revisions are gone: the next event says so, and each mark before it (W8). */
  private owesMerged = false;

  constructor(
    readonly id: number,
    readonly filter: Filter,
    /** What counts once it stands; watches that want the same share it. */
    readonly request: WatchRequest,
    private readonly home: WatchHome,
    readonly audience: WatchAudience,
  ) {}

  get comparedWith(): Positions | null {
    if (this.scan?.mode === "merged") return this.scan.since;
    const isBehind = this.isRunning && this.place.number < this.filter.first;
    return isBehind ? this.positions : null;
  }

  hasNews(): void {
    if (this.isRunning) this.audience.news(this);
  }

  isHeard(): boolean {
    return this.audience.canTell;
  }

  /** The watch stands: its partitions are level with what was answered before it came. */
  begin(cursor: Positions | "foreign" | null, fromRevision: bigint | null): void {
    const { filter, home, request } = this;
    this.isRunning = true;
    this.place = filter.endPlace;
    this.positions = home.positionsNow(filter);
    if (cursor === "foreign") this.startOver();
    else if (cursor !== null) this.goOn(cursor);
    else if (fromRevision !== null) {
      const state = home.state([...filter.partitions][0] ?? 0);
      this.revisions = new Revisions(filter.name, Number(fromRevision), state);
    } else if (request.initial) this.startScan("initial", null);
    if (this.scan === null && !filter.hasEnds(this.positions)) {
      this.setScan(new Scan(filter, "quiet", this.positions, home));
    }
    this.audience.news(this);
  }

  private goOn(cursor: Positions): void {
    const { filter, request } = this;
    const { replays = "always" } = request.part ?? {};
    // A cursor of before a partition had such names tells nothing of it.
    // Where parts have been told of until now nothing was missed.
    const nothing = [...filter.partitions].filter((each) => {
      return replays === "always" && !cursor.has(each);
    });
    if (nothing.length === 0) this.positions = cursor;
    else this.positions = new Map([...cursor, ...nothing.map((each) => [each, NEVER] as const)]);
    const mayReplay = replays === "unless-moved" ? !this.hasMovedKeys : replays === "always";
    const isKnown = mayReplay && filter.reaches(cursor);
    if (isKnown && (filter.hasEnds(cursor) || this.findsEnds(cursor))) {
      this.place = { number: filter.first, offset: 0 };
      this.skip = cursor;
    } else this.compareMoved();
  }

  private get hasMovedKeys(): boolean {
    return this.filter.isOfKeys && this.home.hasMoved();
  }

  /** Keys that moved have stamps of former partitions: no position says what was told of them. */
  private compareMoved(): void {
    const { filter, positions } = this;
    // What is in memory says that nothing came from elsewhere.
    const isStrange = (each: number): boolean => !filter.reachesIn(each, positions);
    this.compare("resumed", this.hasMovedKeys ? [...filter.partitions].filter(isStrange) : []);
  }

  /** The rows still tell of leases that ended behind the positions. */
  private findsEnds(positions: Positions): boolean {
    return this.filter.kind === WatchKind.sequence || this.home.remembers(this.filter, positions);
  }

  /**
   * Each change cannot be told any more: the state is compared with what was told (W6). `strange`:
   * what these partitions hold came from elsewhere, and all of it is told.
   */
  fallBack(reason: MergeReason, strange: readonly number[] = []): void {
    if (!this.isRunning) return;
    if (this.scan?.mode === "quiet") this.setScan(null);
    // Half of a state was told, or nothing can be compared.
    const isHalf = this.scan?.mode === "initial" || this.revisions !== null || this.owesMerged;
    if (isHalf) this.startOver();
    else this.compare(reason, strange);
    this.audience.news(this);
  }

  private compare(reason: MergeReason, strange: readonly number[] = []): void {
    const { home, filter } = this;
    // What was compared before is compared again, from where that began.
    const since = new Map(this.scan?.since ?? this.positions);
    // Who came to have names since is not older than that.
    const before = this.before ?? new Map([...home.positionsNow(filter), ...this.positions]);
    const isTold = !filter.isOfKeys || home.remembers(filter, before);
    if (filter.kind === WatchKind.lockPrefix || !isTold) return this.startOver();
    for (const partition of strange) since.delete(partition);
    home.tally.mergedBy(reason);
    this.startScan("merged", since);
    this.before = before;
  }

  private startOver(): void {
    this.home.tally.resets++;
    this.wantsReset = true;
    this.revisions = null;
    this.owesMerged = false;
    this.startScan("initial", null);
  }

  private startScan(mode: ScanMode, since: Positions | null): void {
    this.skip = null;
    this.place = this.filter.endPlace;
    this.setScan(new Scan(this.filter, mode, since, this.home));
  }

  private setScan(scan: Scan | null): void {
    const wasBehind = this.scan?.mode === "merged";
    const isBehind = scan?.mode === "merged";
    if (isBehind !== wasBehind) this.home.tally.behind += isBehind ? 1 : -1;
    this.scan = scan;
    this.before = null;
    if (scan === null) this.home.turns.leave(this);
  }

  end(): void {
    this.isRunning = false;
    this.setScan(null);
  }

  /** All that happened before the batch of this number was told. */
  isLevel(number: number): boolean {
    if (!this.isRunning || !this.isCreated || this.scan !== null || this.revisions !== null) {
      return false;
    }
    return this.place.number >= number && this.place.offset === 0;
  }

  /**
   * Where it stands in its history, if it is told that and nothing else; watches that stand there
   * and want the same are told the same. -1: it is told something of its own, as each is that is
   * compared because its place is not in the history any more.
   */
  get sharedPlace(): number {
    if (!this.isRunning || !this.isCreated || this.skip !== null || this.owesMerged) return -1;
    if (this.place.number < this.filter.first) return -1;
    const isPlain = this.scan === null && this.revisions === null && this.place.offset === 0;
    return isPlain ? this.place.number : -1;
  }

  /** What it is told now. */
  step(): Step {
    if (!this.isRunning) return NOTHING;
    if (!this.isCreated) return this.created();
    if (this.wantsReset) {
      this.wantsReset = false;
      return told(draft({ reset: true, initial: true }));
    }
    if (this.revisions !== null) return this.revisionsOn(this.revisions);
    if (this.place.number < this.filter.first) this.fallBack("behind");
    if (this.wantsReset) return this.step();
    return this.historyOn() ?? this.scanOn() ?? this.mark();
  }

  /** As another watch that it shares with was told. */
  follow(leader: Watch): void {
    this.place = leader.place;
    this.positions = leader.positions;
  }

  private created(): Step {
    this.isCreated = true;
    const isLevel = this.scan === null || this.scan.mode === "quiet" || this.scan.mode === "merged";
    const cursor = isLevel && this.revisions === null ? this.cursor() : null;
    // Whoever joins parts is to know which of them compare.
    const merged = this.request.part !== undefined && this.scan?.mode === "merged";
    const { mapVersion } = this.home;
    return told(draft({ type: WatchMessageType.created, cursor, merged, mapVersion }));
  }

  /** Some of what is behind `standing` was told. */
  get isAhead(): boolean {
    return this.scan?.mode === "merged" || this.place.offset > 0;
  }

  /** Where it could go on elsewhere; null: nothing whole was told. */
  get standing(): string | null {
    const isInState = this.scan?.mode === "initial" || this.revisions !== null;
    return this.isCreated && !isInState && !this.owesMerged ? this.cursor() : null;
  }

  private cursor(): string {
    return this.home.cursorOf(this.filter, this.positions);
  }

  /** The history up to now. Null: there is nothing to tell of it. */
  private historyOn(): Step | null {
    const { filter, request, scan } = this;
    if (this.place.number >= filter.end) {
      this.skip = null;
      return null;
    }
    const accepts =
      scan === null
        ? null
        : (partition: number, event: WatchEvent): boolean => scan.accepts(partition, event);
    const next = this.home.teller.on(
      filter,
      this.place,
      this.positions,
      request,
      this.skip,
      accepts,
    );
    this.take(next);
    if (next.events.length === 0) return this.historyOn();
    if (scan?.mode === "quiet") for (const event of next.events) scan.noteTold(event);
    const isWhole = scan === null && !next.isCut;
    const cursor = isWhole ? this.cursor() : null;
    const { events, isCut: more, appliedMs } = next;
    return told(draft({ events, cursor, more, merged: this.owed() }), appliedMs);
  }

  private take({ place, positions }: Told): void {
    this.place = place;
    // What is compared is compared with where it began.
    if (this.scan === null) this.positions = positions;
  }

  /** Reads on until there is something to tell. Null: there is nothing to read. */
  private scanOn(): Step | null {
    const { scan, filter, home, request } = this;
    if (scan === null) return null;
    const isQuiet = scan.mode === "quiet";
    // Another watch may have found meanwhile that rows tell of no end that the history has not.
    if (scan.isDone || (isQuiet && filter.hasEnds(this.positions))) {
      this.setScan(null);
      this.positions = home.positionsNow(filter);
      if (scan.knowsLeases) filter.looksAfterLeases(scan.endsSince ?? this.positions);
      if (isQuiet) return WORKED;
      return told(draft({ type: WatchMessageType.mark, cursor: this.cursor(), ...this.stale() }));
    }
    if (scan.isOfMany && !home.turns.ask(this)) return NOTHING;
    // What was to be found may have been collected since.
    if (isQuiet && !this.findsEnds(this.positions)) {
      this.fallBack("behind");
      return WORKED;
    }
    if (this.before !== null && filter.isOfKeys && !home.remembers(filter, this.before)) {
      // What ended may have gone before it was read.
      this.startOver();
      return WORKED;
    }
    const slice = scan.next();
    if (slice.kind !== "events") return slice;
    const events: WatchEvent[] = [];
    for (const each of slice.events) {
      const event = wanted(each, request);
      if (event !== null) events.push(event);
    }
    if (events.length === 0) return WORKED;
    const merged = this.owed() || scan.mode === "merged";
    return told(draft({ events, initial: scan.mode === "initial", merged }));
  }

  private stale(): { readonly staleMs: number } {
    return { staleMs: Math.ceil(this.home.staleMs(this.filter)) };
  }

  private revisionsOn(revisions: Revisions): Step {
    const { filter, home, request } = this;
    const [partition = 0] = filter.partitions;
    const state = home.state(partition);
    if (state === null) return { kind: "lost", partition };
    const { events, merged } = revisions.next(state);
    this.owesMerged ||= merged;
    if (revisions.isDone) this.revisions = null;
    const cursor = this.revisions === null && this.scan === null ? this.cursor() : null;
    const shown = events.map((event) => wanted(event, request)).filter((event) => event !== null);
    if (shown.length === 0) return WORKED;
    return told(draft({ events: shown, merged: this.owed(), cursor }));
  }

  /** Whether the events that are told now are the first behind a gap. */
  private owed(): boolean {
    const isOwed = this.owesMerged;
    this.owesMerged = false;
    return isOwed;
  }

  private mark(): Step {
    if (!this.wantsMark) return NOTHING;
    this.wantsMark = false;
    this.positions = this.home.positionsNow(this.filter);
    // Whoever goes on from here is not told of the gap again.
    const rest = { cursor: this.cursor(), merged: this.owesMerged, ...this.stale() };
    return told(draft({ type: WatchMessageType.mark, ...rest }));
  }
}

function told(message: Draft, appliedMs = 0): Step {
  return { kind: "told", draft: message, appliedMs };
}
