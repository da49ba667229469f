/**
 * The shapes of all data answers, made in one place: by kind of request and type, with everything
 * "none" spelled out.
 *
 * Pure. Invariants: 1. Every member of every answer is set. 2. One function makes the answer of one
 * API for local and forwarded calls alike. 3. Zero and absent differ.
 */
import { unreachable } from "../../base/assert.js";
import { NO_STAMP } from "../../base/hlc.js";
import { Int64 } from "../../base/int64.js";
import {
  KvState,
  KvType,
  LockType,
  SequenceType,
  type SequenceRecord,
} from "../../machine/commands/command.js";
import type {
  AllocationAnswer,
  DataAnswer,
  ForcedAnswer,
  KvAnswer,
  KvManyAnswer,
  KvManyItem,
  KvPageAnswer,
  LockAnswer,
  Refusal,
  RouteHint,
  SequenceAnswer,
  SequenceView,
} from "./answers.js";
import type { DataRequest, DataRequestKind } from "./data-requests.js";
import { KINDS, isOf } from "./kinds.js";

/** Where an answer comes from: what every answer carries beside its type. */
export interface Origin {
  readonly servedFrom: string | null;
  readonly route: RouteHint | null;
}

/** Of an answer that was given before anything was executed. */
export const NOWHERE: Origin = { servedFrom: null, route: null };

/** The same three ends in the numbers of each API. */
export type CommonEnd = "invalidInput" | "mustRetry" | "aborted" | "errored";

const LOCK_ENDS: Readonly<Record<CommonEnd, number>> = {
  invalidInput: LockType.invalidInput,
  mustRetry: LockType.mustRetry,
  aborted: LockType.aborted,
  errored: LockType.errored,
};
const SEQUENCE_ENDS: Readonly<Record<CommonEnd, number>> = {
  invalidInput: SequenceType.invalidInput,
  mustRetry: SequenceType.mustRetry,
  aborted: SequenceType.aborted,
  errored: SequenceType.error,
};
export const KV_ENDS: Readonly<Record<CommonEnd, number>> = {
  invalidInput: KvType.invalidInput,
  mustRetry: KvType.mustRetry,
  aborted: KvType.aborted,
  errored: KvType.errored,
};

/** A lock answer without a lock to describe, or with its token. */
export function lockAnswer(
  type: number,
  fencingToken: Int64,
  origin: Origin,
  refusal: Refusal | null = null,
): LockAnswer {
  return {
    kind: "lock",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    fencingToken,
    owner: null,
    expires: NO_STAMP,
    expiresInMs: 0,
    leaseLeftMs: null,
    waitedMs: null,
    position: 0,
    waiters: 0,
    note: null,
  };
}

/** A forced release without effect. */
export function forcedAnswer(
  type: number,
  origin: Origin,
  refusal: Refusal | null = null,
): ForcedAnswer {
  const { servedFrom, route } = origin;
  const none = { fencingToken: Int64.ZERO, owner: null, auditId: 0 };
  return { kind: "forced", type, servedFrom, route, refusal, ...none };
}

/** A page of locks, or of forced releases, without items. */
export function emptyLockPage<Kind extends "lock-page" | "lock-audit">(
  kind: Kind,
  type: number,
  origin: Origin,
  refusal: Refusal | null = null,
) {
  const { servedFrom, route } = origin;
  return { kind, type, servedFrom, route, refusal, items: [], nextCursor: null, hasMore: false };
}

export function sequenceView(record: SequenceRecord, currentValue: bigint): SequenceView {
  return {
    name: record.name,
    currentValue: Int64.fromBigInt(currentValue),
    initialValue: Int64.fromBigInt(record.initialValue),
    increment: Int64.fromBigInt(record.increment),
    maxValue: record.maxValue === null ? null : Int64.fromBigInt(record.maxValue),
    blockSize: record.blockSize,
    incarnation: record.incarnation,
    revision: record.revision,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
  };
}

/** `revision`: S14, -1 without success. */
export function sequenceAnswer(
  type: number,
  sequence: SequenceView | null,
  revision: number,
  origin: Origin,
  refusal: Refusal | null = null,
): SequenceAnswer {
  return {
    kind: "sequence",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    sequence,
    revision,
  };
}

export function allocationAnswer(
  type: number,
  allocation: AllocationAnswer["allocation"],
  origin: Origin,
  refusal: Refusal | null = null,
): AllocationAnswer {
  return {
    kind: "allocation",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    allocation,
  };
}

/** A key/value answer that describes no value. */
export function kvAnswer(
  type: number,
  revision: number,
  origin: Origin,
  refusal: Refusal | null = null,
  lastModified = NO_STAMP,
): KvAnswer {
  return {
    kind: "kv",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    value: null,
    revision,
    expires: NO_STAMP,
    lastModified,
    state: KvState.undefined,
  };
}

/** A many-answer without items. */
export function emptyMany(type: number, origin: Origin, refusal: Refusal | null): KvManyAnswer {
  return {
    kind: "kv-many",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    items: [],
    routes: [],
  };
}

/** A page without items. */
export function emptyPage(
  type: number,
  origin: Origin,
  refusal: Refusal | null = null,
  tooLarge = false,
): KvPageAnswer {
  return {
    kind: "kv-page",
    type,
    servedFrom: origin.servedFrom,
    route: origin.route,
    refusal,
    items: [],
    nextCursor: null,
    hasMore: false,
    tooLarge,
  };
}

/** The answer of the right shape for `kind` when it ended without a result of its own. */
export function endAnswer(
  kind: DataRequestKind,
  end: CommonEnd,
  origin: Origin,
  refusal: Refusal | null,
): DataAnswer {
  const { answer } = KINDS[kind];
  switch (answer) {
    case "lock":
      return lockAnswer(LOCK_ENDS[end], Int64.ZERO, origin, refusal);
    case "forced":
      return forcedAnswer(LOCK_ENDS[end], origin, refusal);
    case "lock-page":
    case "lock-audit":
      return emptyLockPage(answer, LOCK_ENDS[end], origin, refusal);
    case "sequence":
      return sequenceAnswer(SEQUENCE_ENDS[end], null, -1, origin, refusal);
    case "allocation":
      return allocationAnswer(SEQUENCE_ENDS[end], null, origin, refusal);
    case "kv":
      return kvAnswer(KV_ENDS[end], 0, origin, refusal);
    case "kv-many":
      return emptyMany(KV_ENDS[end], origin, refusal);
    case "kv-page":
      return emptyPage(KV_ENDS[end], origin, refusal);
    default:
      return unreachable(answer);
  }
}

/** What an item of a many-call says beside its key and where it was served. */
export type ManyResult = Pick<
  KvManyItem,
  "type" | "value" | "revision" | "expires" | "lastModified" | "state"
>;

/**
 * Type of an item for which nothing was done, because another partition has its key or another
 * node leads it. It travels between nodes alone: the one that took the call in places it anew.
 */
export const NOT_OWNED_ITEM = -1;

/** An item that describes no value. */
export function bareItem(type: number): ManyResult {
  return {
    type,
    value: null,
    revision: 0,
    expires: NO_STAMP,
    lastModified: NO_STAMP,
    state: KvState.undefined,
  };
}

/**
 * The answer to a request that ended before anything was executed. A many-call refused as a whole
 * gives its type to the envelope and to every item (K11).
 */
export function unexecuted(
  request: DataRequest,
  end: CommonEnd,
  refusal: Refusal | null,
): DataAnswer {
  if (!isOf(request, "many")) return endAnswer(request.kind, end, NOWHERE, refusal);
  const type = KV_ENDS[end];
  const items = request.items.map(({ key, durability }) => {
    return { key, durability, servedFrom: null, routeIndex: 0, ...bareItem(type) };
  });
  return { ...emptyMany(type, NOWHERE, refusal), items };
}
