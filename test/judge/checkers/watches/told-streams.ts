/**
 * What watchers of real nodes were told, held against what clients were answered: W1, W2, W6 and W9 without a look at logs.
 *
 * Invariants: 1. What was told behind the last cursor is told again to a watch that goes on, and counts where it does not.
 * 2. All times are of the clock of the history. 3. A change that nobody was answered may be told or not.
 */
import { WatchKind } from "../../../../src/base/result-types.js";
import type { Attempt, History, KvResult, LockResult } from "../../history.js";
import { Findings, type Verdict } from "../verdict.js";
import { type Watched, isOf, sortOf } from "./changes.js";

export const TOLD_STREAMS = {
  "changes one by one": 200,
  "answered changes that were told": 100,
  "sets that somebody asked for": 100,
  "grants of waiting clients that were told": 10,
  "resumes elsewhere": 3,
  barriers: 3,
};

/** An event as a client of the library has it. */
export interface StreamEvent {
  readonly type: string;
  readonly name: string;
  readonly text: string | null;
  readonly revision: bigint;
  readonly fencingToken: bigint;
}

export interface StreamBatch {
  readonly events: readonly StreamEvent[];
  readonly cursor: string | null;
  readonly initial: boolean;
  readonly merged: boolean;
  readonly reset: boolean;
}

interface KeptBatch extends StreamBatch {
  readonly atMs: number;
}

/** A grant that somebody was told of. */
export interface AnsweredGrant {
  readonly resource: string;
  readonly token: bigint;
  readonly callMs: number;
  readonly returnMs: number;
}

const ENDS: ReadonlySet<string> = new Set(["deleted", "expired", "unlocked", "lock-expired"]);

/** Where a name stands behind an event: twice its revision or token, and one more behind the end of a lease or grant. */
function placeOf(event: StreamEvent, isLock: boolean): bigint {
  if (isLock) return 2n * event.fencingToken + (event.type === "locked" ? 0n : 1n);
  return 2n * event.revision + (event.type === "expired" ? 1n : 0n);
}

/** One watch, over all nodes that it went on at. */
export class ToldStream {
  /** From then on whatever happens is told. */
  startedMs = Infinity;
  /** Everything that was answered before is told. */
  levelMs = -Infinity;
  resumes = 0;
  barriers = 0;
  failure: string | null = null;
  cursor: string | null = null;
  private readonly whole: KeptBatch[] = [];
  /** Where it went on elsewhere: how much it had been told whole by then, and the cursor. */
  private readonly goings: { readonly behind: number; readonly cursor: string | null }[] = [];
  /** No cursor stands behind them yet: whoever goes on is told of them again. */
  private pending: KeptBatch[] = [];
  private readonly newest = new Map<string, StreamEvent>();

  constructor(
    readonly id: string,
    readonly watched: Watched,
    readonly initial: boolean,
  ) {}

  get isLock(): boolean {
    return sortOf(this.watched.kind) === "lock";
  }

  told({ events, cursor, initial, merged, reset }: StreamBatch, atMs: number): void {
    const kept = events.map(({ type, name, text, revision, fencingToken }) => {
      return { type, name, text, revision, fencingToken };
    });
    this.pending.push({ events: kept, cursor, initial, merged, reset, atMs });
    if (cursor === null) return;
    for (const batch of this.pending) {
      this.whole.push(batch);
      if (batch.reset) this.newest.clear();
      for (const event of batch.events) this.newest.set(event.name, event);
    }
    this.pending = [];
    this.cursor = cursor;
  }

  /** All that it was told once, the oldest first. */
  get batches(): readonly KeptBatch[] {
    return [...this.whole, ...this.pending];
  }

  /** It goes on elsewhere: behind a mark where nothing was told since the last cursor. */
  goesOn(mark: string | null): void {
    if (this.pending.length === 0 && mark !== null) this.cursor = mark;
    this.pending = [];
    this.resumes++;
    this.goings.push({ behind: this.whole.length, cursor: this.cursor });
  }

  /** All that it was told, and where it went on, as JSON: for whoever looks into a run that failed. */
  *lines(): Generator<string, void> {
    const { id } = this;
    const goings = [...this.goings];
    for (const [at, batch] of this.batches.entries()) {
      for (; goings[0]?.behind === at; goings.shift()) {
        yield JSON.stringify({ id, goesOn: goings[0].cursor });
      }
      const events = batch.events.map(({ type, name, revision, fencingToken }) => {
        return `${type} ${name} r${revision} f${fencingToken}`;
      });
      yield JSON.stringify({ id, ...batch, events });
    }
  }

  /** The revision or token that a name has; null: it is not there. */
  stateOf(name: string): bigint | null {
    const event = this.newestOf(name);
    if (event === undefined || ENDS.has(event.type)) return null;
    return this.isLock ? event.fencingToken : event.revision;
  }

  private newestOf(name: string): StreamEvent | undefined {
    for (const { events, reset } of [...this.pending].reverse()) {
      const event = [...events].reverse().find((each) => each.name === name);
      if (event !== undefined || reset) return event;
    }
    return this.newest.get(name);
  }

  /** Names whose newest state it knows. */
  get names(): readonly string[] {
    const pending = this.pending.flatMap(({ events }) => events.map(({ name }) => name));
    return [...new Set([...this.newest.keys(), ...pending])];
  }
}

/** What was told of the name before is shown with a violation. */
const SHOWN = 3;

interface Told {
  readonly place: bigint;
  readonly isState: boolean;
  readonly atMs: number;
}

/** A whole state, the reading of which began at the earliest where it was told to come, and ended before it was told. */
interface State {
  readonly beginsMs: number;
  wholeMs: number;
}

/** What a stream told, by name, and the states that it told: what is not in one was not there when it was read. */
interface Walked {
  readonly told: ReadonlyMap<string, readonly Told[]>;
  readonly states: readonly State[];
}

export function checkToldStreams(
  streams: readonly ToldStream[],
  { attempts }: History,
  grants: readonly AnsweredGrant[],
  minimum: Readonly<Record<string, number>> = TOLD_STREAMS,
): Verdict {
  const findings = new Findings("watchers are told what happened", minimum);
  const asked = setsOf(attempts);
  for (const stream of streams) {
    findings.count("resumes elsewhere", stream.resumes);
    findings.count("barriers", stream.barriers);
    const { failure } = stream;
    if (failure !== null) findings.violation(`${stream.id} ended: ${failure}`);
    const walked = new InOrder(stream, findings, asked).walk();
    for (const attempt of attempts) answeredChange(stream, walked, attempt, findings);
    for (const grant of stream.isLock ? grants : []) {
      const { resource, token, callMs, returnMs } = grant;
      const what = { name: resource, place: 2n * token, callMs, returnMs };
      isTold(stream, walked, what, findings, "grants of waiting clients that were told");
    }
  }
  return findings.verdict();
}

/** By key and value. */
function setsOf(attempts: readonly Attempt[]): ReadonlyMap<string, Attempt> {
  const sets = new Map<string, Attempt>();
  for (const attempt of attempts) {
    const { operation } = attempt;
    if (operation.kind !== "kv-set" || operation.ephemeral) continue;
    sets.set(`${operation.key} = ${operation.value}`, attempt);
  }
  return sets;
}

/** One stream from its first batch to its last: order, gaps, and that what it tells was asked for. */
class InOrder {
  private known = new Map<string, bigint>();
  private floor = new Map<string, bigint>();
  private readonly told = new Map<string, Told[]>();
  private readonly states: State[] = [];

  constructor(
    private readonly stream: ToldStream,
    private readonly findings: Findings,
    private readonly asked: ReadonlyMap<string, Attempt>,
  ) {
    if (stream.initial) this.states.push({ beginsMs: -Infinity, wholeMs: Infinity });
  }

  walk(): Walked {
    for (const batch of this.stream.batches) {
      const state = this.states.at(-1);
      const isOver = batch.reset || batch.cursor !== null;
      if (isOver && state?.wholeMs === Infinity) state.wholeMs = batch.atMs;
      if (batch.reset) {
        this.findings.count("resets");
        const wholeMs = batch.cursor === null ? Infinity : batch.atMs;
        this.states.push({ beginsMs: batch.atMs, wholeMs });
        this.floor = new Map([...this.floor, ...this.known]);
        this.known = new Map();
      }
      const isState = batch.initial || batch.merged || batch.reset;
      if (batch.merged) this.findings.count("merged", batch.events.length);
      for (const event of batch.events) this.event(event, isState, batch.atMs);
    }
    const { told, states } = this;
    return { told, states };
  }

  private event(event: StreamEvent, isState: boolean, atMs: number): void {
    const { stream, known, findings } = this;
    const { name } = event;
    if (!isOf(stream.watched, name)) return this.breach(event, "is not watched");
    // Of a lock without a row nobody knows which grant was the last; before the first one, 0, it has none.
    const isAbsence = event.type === "unlocked" && event.fencingToken === 0n;
    const last = known.get(name) ?? this.floor.get(name);
    const place = isAbsence ? (last ?? -1n) | 1n : placeOf(event, stream.isLock);
    if (last !== undefined) {
      if (place < last) this.breach(event, `goes back behind ${last}`);
      else if (!isState && place === last) this.breach(event, "comes twice");
    }
    if (!isState) {
      const before = known.get(name);
      if (before !== undefined && place > before && !this.isNext(before, place)) {
        this.breach(event, `leaves out what is between ${before} and ${place}`);
      } else if (before !== undefined) findings.count("changes one by one");
    }
    if (event.type === "set") this.wasAsked(event);
    known.set(name, place);
    const list = this.told.get(name);
    if (list === undefined) this.told.set(name, [{ place, isState, atMs }]);
    else list.push({ place, isState, atMs });
  }

  private isNext(before: bigint, place: bigint): boolean {
    const isEnded = (before & 1n) === 1n;
    if (!this.stream.isLock) return place === before + 1n || (!isEnded && place === before + 2n);
    // Numbers of grants may have gaps; a grant ends before the next one is told.
    return isEnded ? (place & 1n) === 0n : place === before + 1n;
  }

  private wasAsked(event: StreamEvent): void {
    const { name, text, revision } = event;
    const attempt = this.asked.get(`${name} = ${text}`);
    if (attempt === undefined) return this.breach(event, `nobody set it to ${text}`);
    const { outcome } = attempt;
    this.findings.count("sets that somebody asked for");
    if (outcome?.kind === "refused") this.breach(event, "was refused", [attempt]);
    if (outcome?.kind !== "ok") return;
    const answered = outcome.result as KvResult;
    if (answered.type === "Set" && answered.revision === revision) return;
    this.breach(event, `was answered ${answered.type} ${answered.revision}`, [attempt]);
  }

  private breach(event: StreamEvent, how: string, events: readonly Attempt[] = []): void {
    const { type, name, revision, fencingToken } = event;
    const what = `${type} ${name} r${revision} f${fencingToken}`;
    const before = (this.told.get(name) ?? []).slice(-SHOWN).map(({ place, isState, atMs }) => {
      return `${place}${isState ? " as a state" : ""} at ${atMs.toFixed(0)} ms`;
    });
    const text = `${this.stream.id}: ${what} ${how}; before it ${before.join(", ")}`;
    this.findings.violation(text, events);
  }
}

interface Answered {
  readonly name: string;
  readonly place: bigint;
  readonly callMs: number;
  readonly returnMs: number;
}

/** What was answered while a watch stood is told, or something newer of the name was merged over it. */
function isTold(
  stream: ToldStream,
  { told, states }: Walked,
  { name, place, callMs, returnMs }: Answered,
  findings: Findings,
  counted: string,
  attempt: Attempt | null = null,
): void {
  if (callMs <= stream.startedMs || returnMs >= stream.levelMs) return;
  if (!isOf(stream.watched, name)) return;
  const first = told.get(name)?.find((one) => one.place >= place);
  const isAnew = states.some(({ beginsMs, wholeMs }) => {
    return wholeMs > callMs && beginsMs <= (first?.atMs ?? Infinity);
  });
  const shown = attempt === null ? [] : [attempt];
  const what = `${stream.id}: ${name} was answered ${place >> 1n}`;
  if (first?.place === place) findings.count(counted);
  else if (isAnew) findings.count("told anew");
  else if (first === undefined) findings.violation(`${what}, and nothing of it is told`, shown);
  else if (first.isState) findings.count("merged over");
  else findings.violation(`${what}, and ${first.place} is told instead`, shown);
}

function answeredChange(
  stream: ToldStream,
  walked: Walked,
  attempt: Attempt,
  findings: Findings,
): void {
  const { operation, outcome, callMs, returnMs } = attempt;
  if (outcome?.kind !== "ok" || returnMs === null) return;
  const counted = "answered changes that were told";
  if (stream.isLock) {
    if (operation.kind !== "try-lock" || operation.ephemeral) return;
    const { type, token } = outcome.result as LockResult;
    if (type !== "Locked" || token === null) return;
    const what = { name: operation.resource, place: 2n * token, callMs, returnMs };
    return isTold(stream, walked, what, findings, counted, attempt);
  }
  if (operation.kind !== "kv-set" && operation.kind !== "kv-delete") return;
  const { type, revision } = outcome.result as KvResult;
  if (operation.ephemeral || (type !== "Set" && type !== "Deleted")) return;
  const what = { name: operation.key, place: 2n * revision, callMs, returnMs };
  isTold(stream, walked, what, findings, counted, attempt);
}

/** What kinds of watches chaos has. */
export const STREAM_KINDS = {
  key: WatchKind.key,
  prefix: WatchKind.prefix,
  bucket: WatchKind.bucket,
  lock: WatchKind.lock,
  lockPrefix: WatchKind.lockPrefix,
} as const;
export type StreamKind = keyof typeof STREAM_KINDS;
