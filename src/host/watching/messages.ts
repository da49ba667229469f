/**
 * What a watch asks for and what it is told, who takes it, and what is no request at all.
 *
 * Pure. Invariants: 1. Messages of one stream come in one order, marks behind the events
 * before them (P-187). 2. A message and its events are changed by nobody who gets them; events are
 * shared by all who watch the name.
 */
import {
  WATCH_CURSOR_MAX_BYTES,
  WATCH_PROGRESS_MAX_MS,
  WATCH_PROGRESS_MIN_MS,
} from "../../base/limits.js";
import { WatchKind } from "../../base/result-types.js";
import type { WatchEvent } from "../../machine/events.js";
import { kvKey, resourceKey, sequenceKey } from "../../machine/store/names.js";

export type { WatchEvent } from "../../machine/events.js";

/** A part of a watch whose partitions several nodes have (W14). */
export interface PartScope {
  /** It is told of these alone; all of them are here. */
  readonly partitions: readonly number[];
  readonly replays: Replays;
}

/**
 * Whether a part goes on by what is in memory: always; unless keys moved, as other parts may be
 * ahead of it; or never, as some of that was told.
 */
export type Replays = "always" | "unless-moved" | "never";

/**
 * The end of a part one of whose partitions took in keys: it is to begin anew, behind the others.
 * Not told to clients.
 */
export const PART_MOVED = 100;

export interface WatchRequest {
  /** As `WatchKind`. */
  readonly kind: number;
  readonly name: string;
  /** Where an earlier watch of the same kind and name came to. */
  readonly cursor: string | null;
  /** Of a key: the retained revisions above it come first. */
  readonly fromRevision: bigint | null;
  /** The present state comes first. */
  readonly initial: boolean;
  readonly noValues: boolean;
  /** Sum of 2^type over the wanted event types; 0 = all. */
  readonly only: number;
  /** Longest time without a message (ms); 0 = as the node has it. */
  readonly progressMs: number;
  /** A message ends before an entry that would bring more events; omitted = all that fit. */
  readonly eventsMax?: number;
  /** It is a part of a watch, and begins when it is told to; omitted = it is whole. */
  readonly part?: PartScope;
}

export interface WatchMessage {
  /** As `WatchMessageType`. */
  readonly type: number;
  /** The watches of the stream that it is for. */
  readonly watchIds: readonly number[];
  readonly events: readonly WatchEvent[];
  /**
   * Where the watches stand behind it; null: a log entry goes on in the next message. Of an end as
   * NOT_HOSTED: where the watch goes on elsewhere, `more` if it told some of what is behind that;
   * null: nothing whole was told.
   */
  readonly cursor: string | null;
  /** Part of the state at the start. */
  readonly initial: boolean;
  /**
   * Newest states of names that changed, not each change (W6); or revisions that are gone were left
   * out before it (W8), of a mark too.
   */
  readonly merged: boolean;
  /** Forget what you know: the whole state follows (W7). */
  readonly reset: boolean;
  /** The entry goes on in the next message. */
  readonly more: boolean;
  /** Of SYNCED; 0 elsewhere. */
  readonly syncId: number;
  /** Of a mark: for how long this node may not have been level with the leaders (ms). */
  readonly staleMs: number;
  /** As `WatchEnd`; 0 but in the last message of a watch. */
  readonly end: number;
  /** Of an end: the partition that another node may serve; null: none is meant. */
  readonly partition: number | null;
  /** Of CREATED and SYNCED: the version of the map that they go by; 0 elsewhere. */
  readonly mapVersion: number;
}

/** Who takes the messages of a stream: a front end. Neither method calls back into the stream. */
export interface WatchSink {
  /** Never in the turn of the call that led to it. */
  deliver(message: WatchMessage): void;
  /**
   * So much is unsent that nothing more is to be delivered but ends; once that is over, the front
   * end calls `ready` of its stream.
   */
  isFull(): boolean;
  /** Whether the caller may read still: asked at every mark (W10). */
  mayRead(): boolean;
}

/** The watches of one gRPC stream, one stream of server-sent events or one poll. */
export interface WatchStream {
  /**
   * Begins a watch. `watchId`: at least 1, and of no other watch of the stream, or else the new one
   * ends as INVALID_INPUT. CREATED comes once it stands; or ENDED with why not.
   */
  create(watchId: number, request: WatchRequest): void;
  /** Ends one, with CANCELLED; nothing is told where there is none. */
  cancel(watchId: number): void;
  /** SYNCED comes behind all that was answered to anybody before this call. `watchId` 0: of all. */
  sync(syncId: number, watchId: number): void;
  /** The sink is no longer full. */
  ready(): void;
  /** The caller is gone: nothing is delivered any more. */
  close(): void;
}

/**
 * What of a request counts once its watch stands: all but where it begins, which may be long. That
 * is `before` if it is the same, so that many who ask for the same keep it once.
 */
export function keptOf(request: WatchRequest, before: WatchRequest | null): WatchRequest {
  const { kind, name, cursor, fromRevision, initial, noValues, only, progressMs } = request;
  const isSame =
    before?.kind === kind &&
    before.name === name &&
    before.initial === initial &&
    before.noValues === noValues &&
    before.only === only &&
    before.progressMs === progressMs &&
    before.eventsMax === request.eventsMax &&
    before.part === request.part;
  if (isSame) return before;
  const isKept = cursor === null && fromRevision === null;
  return isKept ? request : { ...request, cursor: null, fromRevision: null };
}

const ONLY_MAX = 2 ** 11 - 1;

/** Whether the request is one, whatever there is (W1, W8, section 11). */
export function isAcceptable(request: WatchRequest): boolean {
  const { kind, name, cursor, fromRevision, only, progressMs } = request;
  if (!isWatched(kind, name)) return false;
  if (cursor !== null && cursor.length > WATCH_CURSOR_MAX_BYTES) return false;
  if (fromRevision !== null && (kind !== WatchKind.key || fromRevision < -1n)) return false;
  if (!Number.isInteger(only) || only < 0 || only > ONLY_MAX) return false;
  if (progressMs === 0) return true;
  const { isInteger } = Number;
  return (
    isInteger(progressMs) &&
    progressMs >= WATCH_PROGRESS_MIN_MS &&
    progressMs <= WATCH_PROGRESS_MAX_MS
  );
}

function isWatched(kind: number, name: string): boolean {
  switch (kind) {
    case WatchKind.key:
    case WatchKind.prefix:
    case WatchKind.bucket:
      return kvKey(name) !== null;
    case WatchKind.lock:
    case WatchKind.lockPrefix:
      return resourceKey(name) !== null;
    case WatchKind.sequence:
      return sequenceKey(name) !== null;
    default:
      return false;
  }
}
