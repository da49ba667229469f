/**
 * The four operations on locks, as the client sends and reads them.
 *
 * Invariants: 1. Busy, a missing lock and another owner are results; everything else that is no
 * success is an error.
 */
import { randomBytes } from "node:crypto";
import { decodeText } from "../../base/bytes.js";
import type { Int64Halves, ProtoReader, ProtoWriter } from "../../proto/codec.js";
import * as messages from "../../proto/generated/locks.js";
import {
  InvalidInputError,
  NotAtLevelError,
  ServerError,
  type SvcError,
} from "../values/errors.js";
import { bigintOf, intOf, jsonText, textOrNull, type JsonObject } from "../values/json.js";
import { fromHalves, stampFromJson, stampOf, type Timestamp } from "../values/numbers.js";
import { ownerFromRest, ownerToRest } from "../values/owner-text.js";
import type { Caller, Calling, Operation } from "../call/operation.js";
import { aborted, mustRetry } from "../sequences/sequence-answers.js";
import type { LockExtension, LockGrant, LockInfo, UnlockAnswer } from "./lock-shapes.js";

/** Durability of the wire: 0 ephemeral, 1 persistent. */
export type WireDurability = 0 | 1;

export interface LockRequest {
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
  readonly durability: WireDurability;
  /** Of the one grant that a change is about; absent: whichever it is. */
  readonly fencingToken?: bigint | undefined;
  /** Of the grant, or its new one; absent: none, or as it was. */
  readonly note?: Uint8Array | undefined;
}
/** A try that may wait at the server. */
export interface TryLockRequest extends LockRequest {
  /** How long it is to wait from now on (ms); absent: not at all. */
  readonly leftMs?: () => number;
  /** Names the acquire that this is a try of; the number rises with each repeat (uint64). */
  readonly waitId?: bigint;
  readonly tryNumber?: bigint;
  /** The number of the next try of that acquire, whoever makes it; absent: it has none. */
  readonly nextTry?: () => bigint;
}
export interface LockInfoRequest {
  readonly resource: string;
  readonly durability: WireDurability;
  /** Whose place is wanted; absent: nobody's. */
  readonly owner?: Uint8Array | undefined;
}
interface LockAnswer {
  type: number;
  fencingToken: bigint;
}
/** Answer of a try; null where the server does not know waiting. */
interface TryLockAnswer extends LockAnswer {
  leaseLeftMs: number | null;
  waitedMs: number | null;
  position: number;
  waiters: number;
}
interface ExtendAnswer extends LockAnswer {
  waiters: number;
}
interface LockInfoAnswer extends LockAnswer {
  readonly owner: Uint8Array;
  readonly expires: Timestamp;
  readonly note: Uint8Array | null;
  readonly waiters: number;
  readonly position: number;
}

const Type = messages.GrpcLockResponseType;
const {
  LOCK_RESPONSE_TYPE_LOCKED: LOCKED,
  LOCK_RESPONSE_TYPE_BUSY: BUSY,
  LOCK_RESPONSE_TYPE_EXTENDED: EXTENDED,
  LOCK_RESPONSE_TYPE_UNLOCKED: UNLOCKED,
  LOCK_RESPONSE_TYPE_GOT: GOT,
  LOCK_RESPONSE_TYPE_LOCK_DOES_NOT_EXIST: NOT_HELD,
  LOCK_RESPONSE_TYPE_INVALID_OWNER: OTHER_OWNER,
} = Type;
const NOT_WAITED = { leaseLeftMs: null, waitedMs: null, position: 0, waiters: 0 };
const NO_BYTES = new Uint8Array(0);

export function lockFailure(type: number, resource: string, doubtful: boolean): SvcError {
  switch (type) {
    case Type.LOCK_RESPONSE_TYPE_INVALID_INPUT:
      return new InvalidInputError(`the arguments for the lock "${resource}" are not acceptable`, {
        outcome: doubtful ? "unknown" : "none",
      });
    case Type.LOCK_RESPONSE_TYPE_MUST_RETRY:
      return mustRetry();
    case Type.LOCK_RESPONSE_TYPE_ABORTED:
      return aborted();
    case Type.LOCK_RESPONSE_TYPE_ERRORED:
      return new ServerError("the service failed unexpectedly; its log has the cause");
    default:
      return new ServerError(`the answer has the unexpected type ${type}`, {}, "protocol");
  }
}

/** Type and token: fields 2 and 3 of three of the four answers. */
function answerFromGrpc(reader: ProtoReader, lengthBytes: number): LockAnswer {
  const end = reader.pos + lengthBytes;
  const answer: LockAnswer = { type: 0, fencingToken: 0n };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 16) answer.type = reader.int32();
    else if (tag === 24) answer.fencingToken = fromHalves(reader.int64() as Int64Halves);
    else reader.skipType(tag & 7);
  }
  return answer;
}

function answerFromRest(body: JsonObject): LockAnswer {
  return { type: intOf(body, "type"), fencingToken: bigintOf(body, "fencingToken") };
}

function writeLease({ expiresMs, durability }: LockRequest, writer: ProtoWriter): void {
  writer.uint32(24).int32(expiresMs).uint32(32).int32(durability);
}

/** The bits of an uint64. */
export function toHalves(value: bigint): Int64Halves {
  const high = Number(BigInt.asIntN(32, value >> 32n));
  return { high, low: Number(BigInt.asIntN(32, value)), unsigned: true };
}

/** Only what is given: older services know no other members. */
function restBody(request: LockRequest, more: object = {}): string {
  const { resource, owner, expiresMs, durability, note } = request;
  const told = note === undefined ? {} : { note: ownerToRest(note) };
  return jsonText({ resource, owner: ownerToRest(owner), expiresMs, durability, ...told, ...more });
}

function tokenMember({ fencingToken }: LockRequest): object {
  return fencingToken === undefined ? {} : { fencingToken };
}

function writeToken(writer: ProtoWriter, tag: number, token: bigint | undefined): void {
  if (token !== undefined) writer.uint32(tag).int64(toHalves(token));
}

function writeNote(writer: ProtoWriter, tag: number, note: Uint8Array | undefined): void {
  if (note !== undefined) writer.uint32(tag).bytes(note);
}

/** As `answerFromGrpc`, with fields 5 to 8. */
function triedFromGrpc(reader: ProtoReader, lengthBytes: number): TryLockAnswer {
  const end = reader.pos + lengthBytes;
  const answer: TryLockAnswer = { type: 0, fencingToken: 0n, ...NOT_WAITED };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 16) answer.type = reader.int32();
    else if (tag === 24) answer.fencingToken = fromHalves(reader.int64() as Int64Halves);
    else if (tag === 40) answer.leaseLeftMs = Number(fromHalves(reader.int64() as Int64Halves));
    else if (tag === 48) answer.waitedMs = Number(fromHalves(reader.int64() as Int64Halves));
    else if (tag === 56) answer.position = reader.int32();
    else if (tag === 64) answer.waiters = reader.int32();
    else reader.skipType(tag & 7);
  }
  return answer;
}

/** As `answerFromGrpc`, with field 6. */
function extendedFromGrpc(reader: ProtoReader, lengthBytes: number): ExtendAnswer {
  const end = reader.pos + lengthBytes;
  const answer: ExtendAnswer = { type: 0, fencingToken: 0n, waiters: 0 };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 16) answer.type = reader.int32();
    else if (tag === 24) answer.fencingToken = fromHalves(reader.int64() as Int64Halves);
    else if (tag === 48) answer.waiters = reader.int32();
    else reader.skipType(tag & 7);
  }
  return answer;
}

function numberOrNull(body: JsonObject, name: string): number | null {
  const value = body[name];
  return value === undefined || value === null ? null : Number(value);
}

function triedFromRest(body: JsonObject): TryLockAnswer {
  return {
    ...answerFromRest(body),
    leaseLeftMs: numberOrNull(body, "leaseLeftMs"),
    waitedMs: numberOrNull(body, "waitedMs"),
    position: numberOrNull(body, "position") ?? 0,
    waiters: numberOrNull(body, "waiters") ?? 0,
  };
}

/** One wait at the server; who wants longer asks again in its place (ms). */
const WAIT_SLICE_MS = 60_000;
/** Between the numbers of two tries: nodes that forward count in between. */
const TRY_STEP = 65_536n;

/** A wait that begins: all its tries, and what they have in common (Q14). */
export function newWait(
  leftMs: () => number,
): Required<Pick<TryLockRequest, "leftMs" | "waitId" | "tryNumber" | "nextTry">> {
  let tryNumber = 1n;
  const nextTry = (): bigint => (tryNumber += TRY_STEP);
  return { leftMs, waitId: randomBytes(8).readBigUInt64BE(), tryNumber, nextTry };
}

function waitMsOf({ leftMs }: TryLockRequest): number {
  if (leftMs === undefined) return 0;
  return Math.max(0, Math.min(WAIT_SLICE_MS, Math.ceil(leftMs())));
}

export const tryLock: Operation<TryLockRequest, TryLockAnswer, LockGrant> = {
  name: "locks.tryLock",
  path: "/Locker/TryLock",
  stream: { kind: "locks", type: 1, field: 3 },
  route: { space: "locks", field: 4, name: ({ resource }) => resource },
  rest: {
    method: "POST",
    path: () => "/v1/locks/try-lock",
    body(request) {
      const waitMs = waitMsOf(request);
      if (waitMs === 0) return restBody(request);
      const { waitId = 0n, tryNumber = 0n } = request;
      return restBody(request, { waitMs, waitId, try: tryNumber });
    },
    // A note stays: whoever gives one is told that it would be lost.
    plainBody: (request) => restBody(request),
  },
  write(request, writer) {
    writer.uint32(10).string(request.resource).uint32(18).bytes(request.owner);
    writeLease(request, writer);
    writeNote(writer, 58, request.note);
    const waitMs = waitMsOf(request);
    if (waitMs === 0) return;
    writer.uint32(40).int32(waitMs);
    if (request.waitId !== undefined) writer.uint32(48).uint64(toHalves(request.waitId));
    if (request.tryNumber !== undefined) writer.uint32(64).uint64(toHalves(request.tryNumber));
  },
  fromGrpc: triedFromGrpc,
  fromRest: triedFromRest,
  waits: ({ leftMs }) => leftMs !== undefined,
  repeat: () => true,
  again: (request) => {
    const { nextTry } = request;
    return nextTry === undefined ? request : { ...request, tryNumber: nextTry() };
  },
  settle({ type, fencingToken, ...wait }, request, doubtful) {
    if (type === LOCKED) return { acquired: true, fencingToken, doubtful, ...wait };
    if (type === BUSY) return { acquired: false, fencingToken: 0n, doubtful, ...wait };
    throw lockFailure(type, request.resource, doubtful);
  },
};

export const tryExtend: Operation<LockRequest, ExtendAnswer, LockExtension> = {
  name: "locks.tryExtend",
  path: "/Locker/TryExtendLock",
  stream: { kind: "locks", type: 2, field: 5 },
  route: { space: "locks", field: 4, name: ({ resource }) => resource },
  rest: {
    method: "POST",
    path: () => "/v1/locks/try-extend",
    body: (request) => restBody(request, tokenMember(request)),
  },
  write(request, writer) {
    writer.uint32(10).string(request.resource).uint32(18).bytes(request.owner);
    writeLease(request, writer);
    writeToken(writer, 40, request.fencingToken);
    writeNote(writer, 50, request.note);
  },
  fromGrpc: extendedFromGrpc,
  fromRest: (body) => {
    return { ...answerFromRest(body), waiters: numberOrNull(body, "waiters") ?? 0 };
  },
  repeat: () => true,
  settle(answer, request, doubtful) {
    const { type, fencingToken, waiters } = answer;
    if (type === EXTENDED) return { extended: true, refusal: null, fencingToken, waiters };
    const none = { extended: false, fencingToken: 0n, waiters } as const;
    if (type === NOT_HELD) return { ...none, refusal: "not-held" };
    if (type === OTHER_OWNER) return { ...none, refusal: "other-owner" };
    throw lockFailure(type, request.resource, doubtful);
  },
};

export const unlock: Operation<LockRequest, LockAnswer, UnlockAnswer> = {
  name: "locks.unlock",
  path: "/Locker/Unlock",
  stream: { kind: "locks", type: 3, field: 4 },
  route: { space: "locks", field: 3, name: ({ resource }) => resource },
  rest: {
    method: "POST",
    path: () => "/v1/locks/try-unlock",
    body: (request) => {
      const { resource, owner, durability } = request;
      return jsonText({ resource, owner: ownerToRest(owner), durability, ...tokenMember(request) });
    },
  },
  write(request, writer) {
    writer.uint32(10).string(request.resource).uint32(18).bytes(request.owner);
    writer.uint32(24).int32(request.durability);
    writeToken(writer, 32, request.fencingToken);
  },
  fromGrpc: answerFromGrpc,
  fromRest: answerFromRest,
  repeat: () => true,
  settle({ type }, request, doubtful) {
    if (type === UNLOCKED) return { unlocked: true, refusal: null, doubtful };
    if (type === NOT_HELD) return { unlocked: doubtful, refusal: "not-held", doubtful };
    if (type === OTHER_OWNER) return { unlocked: false, refusal: "other-owner", doubtful };
    throw lockFailure(type, request.resource, doubtful);
  },
};

/**
 * Changes a grant. A node that has not heard yet that its cluster knows which grant is meant is
 * told of none, as those are that never will.
 */
export async function changeGrant<Answer, Result>(
  caller: Caller,
  operation: Operation<LockRequest, Answer, Result>,
  request: LockRequest,
  calling: Calling | undefined,
): Promise<Result> {
  try {
    return await caller.call(operation, request, calling);
  } catch (error) {
    if (!(error instanceof NotAtLevelError) || request.fencingToken === undefined) throw error;
    return caller.call(operation, { ...request, fencingToken: undefined }, calling);
  }
}

export const getLock: Operation<LockInfoRequest, LockInfoAnswer, LockInfo | null> = {
  name: "locks.info",
  reads: true,
  path: "/Locker/GetLock",
  stream: { kind: "locks", type: 4, field: 6 },
  route: { space: "locks", field: 8, name: ({ resource }) => resource },
  rest: {
    method: "POST",
    path: () => "/v1/locks/get-info",
    body: ({ owner, ...rest }) =>
      jsonText(owner === undefined ? rest : { ...rest, owner: ownerToRest(owner) }),
  },
  write({ resource, durability, owner = null }, writer) {
    messages.GrpcGetLockRequest.encode({ Resource: resource, durability, Owner: owner }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetLockResponse.decode(reader, lengthBytes);
    const { ExpiresNode, ExpiresPhysical, ExpiresCounter } = message;
    return {
      type: message.Type,
      fencingToken: fromHalves(message.FencingToken),
      owner: message.Owner === null ? NO_BYTES : Uint8Array.from(message.Owner),
      expires: stampOf(ExpiresNode, ExpiresPhysical, ExpiresCounter),
      note: message.Note === null ? null : Uint8Array.from(message.Note),
      waiters: message.Waiters,
      position: message.Position,
    };
  },
  fromRest(body) {
    return {
      ...answerFromRest(body),
      owner: ownerFromRest(textOrNull(body, "owner")),
      expires: stampFromJson(body, "expires"),
      note: typeof body["note"] === "string" ? ownerFromRest(body["note"]) : null,
      waiters: numberOrNull(body, "waiters") ?? 0,
      position: numberOrNull(body, "position") ?? 0,
    };
  },
  repeat: () => true,
  settle(answer, request) {
    if (answer.type === NOT_HELD) return null;
    if (answer.type !== GOT) throw lockFailure(answer.type, request.resource, false);
    const { owner, fencingToken, expires, note, waiters, position } = answer;
    const texts = {
      ownerText: decodeText(owner),
      noteText: note === null ? null : decodeText(note),
    };
    return { owner, fencingToken, expires, note, waiters, position, ...texts };
  },
};
