/**
 * What one node asks another, and how it is answered.
 *
 * A call: time that is left (ms), request id, request, and where its caller named a trace, that
 * (25 bytes). Pure. Invariants: 1. Every request has one kind of answer, or "not-taken". 2. What
 * cannot be read whole is not read at all. 3. A trace is sent only to programs that know of it.
 */
import { ByteReader, type ByteWriter } from "../../base/codec.js";
import { MEMBERS_MAX, PARTITIONS_MAX } from "../../base/limits.js";
import { FINALIZE_STATUSES, LEAVE_OUTCOMES } from "../../api/cluster.js";
import type { FinalizeBlocker, FinalizeResult } from "../../host/cluster/finalizing.js";
import type { LeaveAnswer } from "../api/administration.js";
import type { DataAnswer, KvPageItem, Refusal } from "../api/answers.js";
import { LOCK_KINDS } from "../api/lock-requests.js";
import type { DataRequest, LockRequest } from "../api/requests.js";
import { TRACE_BYTES, type TraceParent, readTrace, writeTrace } from "../api/tracing.js";
import { DATA_ANSWER_KINDS, type PlainAnswer, base, pageItems, refusal } from "./answers.js";
import {
  type AuditPartAnswer,
  type AuditPartRequest,
  type LocksPartAnswer,
  type LocksPartRequest,
  auditPart,
  auditPartAnswer,
  locksPart,
  locksPartAnswer,
} from "./lock-parts.js";
import { type KeepPlacesCall, type PlacesKept, keepPlaces } from "./lock-places.js";
import {
  type LockCall,
  type LockCallAnswer,
  lockAnswerMembers,
  lockCall,
  ofLockAnswer,
  ofLockCall,
  toLockCall,
} from "./locks.js";
import { DATA_REQUEST_KINDS, type PlainRequest } from "./requests.js";
import {
  type WatchPullAnswer,
  type WatchPullRequest,
  watchPull,
  watchPulled,
} from "./watch-parts.js";
import type { Int64 } from "../../base/int64.js";
import {
  boolean,
  bytes,
  int32,
  int53,
  lanes64,
  list,
  nullable,
  oneOf,
  record,
  text,
  union,
} from "../../base/shape.js";

type LeaveOutcome = LeaveAnswer["outcome"];

/** A page of the keys that some partitions hold, all of them led by the node that is asked. */
export interface ScanPartRequest {
  readonly kind: "scan-part";
  readonly partitions: readonly number[];
  readonly prefix: string;
  /** UTF-8 of the key above which to begin; null = from the start. */
  readonly after: Uint8Array | null;
  readonly limit: number;
  /** All of it, or word by `next` that it is larger than one answer may be. */
  readonly whole: boolean;
  readonly durability: number;
}

/** Bounds of get-by-range in a bucket. */
export interface SpanBounds {
  readonly startKey: string | null;
  readonly startInclusive: boolean;
  readonly endKey: string | null;
  readonly endInclusive: boolean;
}

/**
 * As a scan part, of clusters whose level knows moves of key ranges: the part says what it owns.
 */
export interface SpanPartRequest extends Omit<ScanPartRequest, "kind"> {
  readonly kind: "span-part";
  /** Null: `prefix` is one of keys; else it is a bucket, of which these keys are asked for. */
  readonly bounds: SpanBounds | null;
  /** It will be asked whether the part stands. */
  readonly isWatched: boolean;
  /** The partitions are to cut no entries so long (ms), so that it does; 0 = they go on. */
  readonly holdMs: number;
}

/** Whether a part that was read a moment ago would be read the same now. */
export interface SpanStandsRequest {
  readonly kind: "span-stands";
  /** As the part named it. */
  readonly watch: number;
}

/** A change of the committed key ranges, for the leader of the meta partition. */
export interface RegisterRangeCall {
  readonly kind: "register-range";
  readonly keySpace: string;
  readonly partitionId: number;
}
export interface UnregisterRangeCall {
  readonly kind: "unregister-range";
  readonly keySpace: string;
}
/** A member whose process or disk is gone is to be removed (contract 5.3 rule 3). */
export interface RemoveMemberCall {
  readonly kind: "remove-member";
  readonly nodeId: number;
}
/** The level of the cluster is to be raised (contract 5.5); 0 = by one. */
export interface FinalizeCall {
  readonly kind: "finalize";
  readonly level: number;
}
export type MetaCall = RegisterRangeCall | UnregisterRangeCall;

/** A call of this life of the asker that waits for a lock is to wait no more. */
export interface CancelWaitCall {
  readonly kind: "cancel-wait";
  readonly id: number;
  /** Its caller may come back within a moment: its place is kept. */
  readonly mayReturn: boolean;
}

/**
 * What was granted to a request of the asker that waited, and was gone when the answer came, is to
 * be given back, if nobody else can have been told of it (P-182).
 */
export interface GiveBackCall {
  readonly kind: "give-back";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly durability: number;
  readonly fencingToken: Int64;
}

/**
 * Up to which entry of the partition everything is applied at its leader that was answered before
 * this call: for watches on other nodes (W4, W9).
 */
export interface ConfirmIndexCall {
  readonly kind: "confirm-index";
  readonly partition: number;
}

/** The lease clock of the partition is to be committed once it has reached `leaseMs` (W11). */
export interface ClockWishCall {
  readonly kind: "clock-wish";
  readonly partition: number;
  readonly leaseMs: number;
}

type OwnCall =
  | WatchPullRequest
  | KeepPlacesCall
  | ConfirmIndexCall
  | ClockWishCall
  | ScanPartRequest
  | SpanPartRequest
  | SpanStandsRequest
  | LocksPartRequest
  | AuditPartRequest
  | MetaCall
  | RemoveMemberCall
  | FinalizeCall
  | CancelWaitCall
  | GiveBackCall;

export type CallRequest = DataRequest | OwnCall;
/** As it travels. */
export type WireRequest = PlainRequest | OwnCall | LockCall;

export interface ScanPartAnswer {
  readonly kind: "scan-part";
  readonly end: "page" | "mustRetry" | "aborted";
  readonly refusal: Refusal | null;
  readonly items: readonly KvPageItem[];
  /** The last key considered in every one of the partitions; null when there is no more. */
  readonly next: Uint8Array | null;
}

/** Keys from `first` on, below `last`: UTF-8, or the bytes right behind one. */
export interface WireSpan {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}
export interface WireTiles {
  readonly keySpace: string;
  readonly tiles: readonly WireSpan[];
}

export interface SpanPartAnswer extends Omit<ScanPartAnswer, "kind"> {
  readonly kind: "span-part";
  /** What the partitions owned when the part was read. */
  readonly spaces: readonly WireTiles[];
  /** Names what is watched; 0 = nothing is. */
  readonly watch: number;
}

export interface SpanStandsAnswer {
  readonly kind: "span-stands";
  /** The part was the state of every instant since it was read. */
  readonly stands: boolean;
}

export interface MetaAnswer {
  readonly kind: "meta";
  /** How apply ended the command; null when it is not known to have been applied. */
  readonly status: string | null;
  /** Log index of the command; 0 without a status. */
  readonly index: number;
}

/** How the removal of a member ended: an outcome of contract 5.3. */
export interface RemovalAnswer {
  readonly kind: "removal";
  readonly outcome: LeaveOutcome;
}

/** How the raising of the level ended. */
export interface FinalizeAnswer extends FinalizeResult {
  readonly kind: "finalize";
}

/** The call that waited ends, or had ended: its own answer says how. */
export interface WaitCancelled {
  readonly kind: "wait-cancelled";
}

/** `isGiven`: nobody holds that grant any more; otherwise it stays. */
export interface GivenBack {
  readonly kind: "given-back";
  readonly isGiven: boolean;
}

export interface IndexConfirmed {
  readonly kind: "index-confirmed";
  readonly index: number;
}

interface ClockWished {
  readonly kind: "clock-wished";
}

/** Nothing was done, because the node that was asked does not lead, or cannot serve now. */
export interface NotTaken {
  readonly kind: "not-taken";
  /** Who leads as far as that node knows; 0 = unknown. */
  readonly leaderNode: number;
  /** The request could not be read: asking again would not help. */
  readonly unreadable: boolean;
}

/**
 * Nothing was done, because the partition that the asker took for it does not own the key. Only of
 * clusters whose level knows moves of key ranges.
 */
export interface NotOwned {
  readonly kind: "not-owned";
  /** Of the map that the node which was asked has applied. */
  readonly mapVersion: number;
}

type OwnAnswer =
  | ScanPartAnswer
  | SpanPartAnswer
  | SpanStandsAnswer
  | LocksPartAnswer
  | AuditPartAnswer
  | MetaAnswer
  | RemovalAnswer
  | FinalizeAnswer
  | NotTaken
  | NotOwned
  | WaitCancelled
  | GivenBack
  | IndexConfirmed
  | ClockWished
  | PlacesKept
  | WatchPullAnswer;

export type CallAnswer = DataAnswer | OwnAnswer;
export type WireAnswer = PlainAnswer | OwnAnswer | LockCallAnswer;

const blocker = record<FinalizeBlocker>({
  nodeId: int32,
  endpoint: text,
  version: text,
  levelMin: int32,
  levelMax: int32,
});

/** Intervals that one part tells of, and key spaces: every range that a cluster may have. */
const TILES_MAX = 16_384;

const scanPart = {
  partitions: list(int32, PARTITIONS_MAX),
  prefix: text,
  after: nullable(bytes),
  limit: int32,
  whole: boolean,
  durability: int32,
};

const bounds = record<SpanBounds>({
  startKey: nullable(text),
  startInclusive: boolean,
  endKey: nullable(text),
  endInclusive: boolean,
});

const callRequest = union<WireRequest>({
  ...DATA_REQUEST_KINDS,
  "scan-part": [100, scanPart],
  "span-part": [101, { ...scanPart, bounds: nullable(bounds), isWatched: boolean, holdMs: int32 }],
  "span-stands": [102, { watch: int53 }],
  "lock-call": [103, lockCall],
  "cancel-wait": [104, { id: int53, mayReturn: boolean }],
  "give-back": [105, { resource: text, owner: bytes, durability: int32, fencingToken: lanes64 }],
  "locks-part": [106, locksPart],
  "audit-part": [107, auditPart],
  "confirm-index": [108, { partition: int32 }],
  "clock-wish": [109, { partition: int32, leaseMs: int53 }],
  "register-range": [110, { keySpace: text, partitionId: int32 }],
  "unregister-range": [111, { keySpace: text }],
  "remove-member": [112, { nodeId: int32 }],
  finalize: [113, { level: int32 }],
  "watch-pull": [114, watchPull],
  "keep-places": [115, keepPlaces],
});

const partAnswer = {
  end: oneOf<ScanPartAnswer["end"]>("page", "mustRetry", "aborted"),
  refusal,
  items: pageItems,
  next: nullable(bytes),
};

const wireSpan = record<WireSpan>({ first: bytes, last: bytes });
const wireTiles = record<WireTiles>({ keySpace: text, tiles: list(wireSpan, TILES_MAX) });

const callAnswer = union<WireAnswer>({
  ...DATA_ANSWER_KINDS,
  "scan-part": [100, partAnswer],
  "span-part": [101, { ...partAnswer, spaces: list(wireTiles, TILES_MAX), watch: int53 }],
  "span-stands": [102, { stands: boolean }],
  "lock-answer": [103, { ...base, ...lockAnswerMembers }],
  "wait-cancelled": [104, {}],
  "given-back": [105, { isGiven: boolean }],
  "locks-part": [106, locksPartAnswer],
  "audit-part": [107, auditPartAnswer],
  "index-confirmed": [108, { index: int53 }],
  "clock-wished": [109, {}],
  meta: [110, { status: nullable(text), index: int53 }],
  removal: [112, { outcome: oneOf<LeaveOutcome>(...LEAVE_OUTCOMES) }],
  finalize: [
    113,
    {
      status: oneOf<FinalizeResult["status"]>(...FINALIZE_STATUSES),
      level: int32,
      blockers: list(blocker, MEMBERS_MAX),
      reason: text,
    },
  ],
  "watch-pulled": [114, watchPulled],
  "places-kept": [115, {}],
  "not-taken": [120, { leaderNode: int32, unreadable: boolean }],
  "not-owned": [121, { mapVersion: int53 }],
});

/** All kinds of both, as they travel. */
export const CALL_SHAPES = { request: callRequest, answer: callAnswer } as const;

/** What a call asks, with all that goes along. */
export interface Call {
  /** Time that the asked node has (ms). */
  readonly budgetMs: number;
  readonly requestId: string;
  readonly request: CallRequest;
  /** The nodes of the cluster know all about locks that this one does. */
  readonly knowsLocks: boolean;
  /** The trace that it belongs to; null: none. */
  readonly trace: TraceParent | null;
}

/** One call as it came. */
export interface CallItem extends Call {
  readonly id: number;
}

/** Writes a call without its id. */
export function writeCall(writer: ByteWriter, call: Call): void {
  const { budgetMs, requestId, request, knowsLocks, trace } = call;
  writer.uint32(budgetMs).text(requestId);
  callRequest.write(writer, isLock(request) && knowsLocks ? toLockCall(request) : request);
  if (trace !== null) writeTrace(writer, trace);
}

export function isLock(request: CallRequest): request is LockRequest {
  return request.kind in LOCK_KINDS;
}

/** Null when `body` is no call of this version. */
export function readCall(id: number, body: Uint8Array): CallItem | null {
  const reader = new ByteReader(body);
  const budgetMs = reader.uint32();
  const requestId = reader.text();
  const read = callRequest.read(reader);
  const trace = reader.remainingBytes === TRACE_BYTES ? readTrace(reader) : null;
  return reader.isComplete() ? { id, budgetMs, requestId, ...callOf(read), trace } : null;
}

/** What was read, without regard to its form. */
function callOf(read: WireRequest): Pick<Call, "request" | "knowsLocks"> {
  if (read.kind === "lock-call") return { request: ofLockCall(read), knowsLocks: true };
  return { request: read, knowsLocks: false };
}

/** `knowsLocks`: as of the call that it answers. */
export function writeAnswer(writer: ByteWriter, answer: CallAnswer, knowsLocks: boolean): void {
  const isOfLock = knowsLocks && answer.kind === "lock";
  callAnswer.write(writer, isOfLock ? { ...answer, kind: "lock-answer" } : answer);
}

/** Null when `body` is no answer of this version. */
export function readAnswer(body: Uint8Array): CallAnswer | null {
  const reader = new ByteReader(body);
  const answer = callAnswer.read(reader);
  if (!reader.isComplete()) return null;
  return answer.kind === "lock" || answer.kind === "lock-answer" ? ofLockAnswer(answer) : answer;
}
