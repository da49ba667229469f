/**
 * The requests that the gRPC load driver sends: whole items of the batch streams and bodies of
 * unary calls, as bytes.
 *
 * Invariants: 1. An item is built once per slot and sent many times, but where a lock is handed on:
 * those name the acquire and the grant, as the library does; its request id is the slot's number. 2.
 * Locks alternate between taking and releasing, so that every operation is
 * a durable write that succeeds.
 */
import { encodeMessage, type Encodable, type MessageCodec } from "../../src/proto/codec.js";
import * as keyvalues from "../../src/proto/generated/keyvalues.js";
import * as locks from "../../src/proto/generated/locks.js";
import * as sequences from "../../src/proto/generated/sequences.js";

export const KINDS = [
  "next",
  "lock",
  "handoff",
  "handoff-ephemeral",
  "extend",
  "set",
  "get",
  "noop",
] as const;
export type Kind = (typeof KINDS)[number];

const EPHEMERAL = 0;
const PERSISTENT = 1;
const HANDOFF_WAIT_MS = 600_000;
/** What an heir's lease may be. */
const HANDOFF_LEASE_MS = 60_000;

/** What one operation of a slot looks like on the two surfaces. */
export interface Step {
  /** A repeated `Items` entry of a frame: tag, length and the item. */
  readonly frameEntry: Buffer;
  /** The item as a message of its own, with the gRPC prefix. */
  readonly message: Buffer;
  readonly unaryPath: string;
  /** The request of the unary call, with the gRPC prefix. */
  readonly unaryBody: Buffer;
  /** Of a step that takes a lock: its token, before the next step is asked for. */
  readonly granted?: (token: number) => void;
}

export interface Plan {
  readonly streamPath: string;
  /** The steps that a slot goes through, over and over. */
  stepsOf(slot: number): readonly Step[];
}

/** A message with the prefix of gRPC. */
export function prefixed(message: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(5 + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  message.copy(bytes, 5);
  return bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** The bytes of a frame message around its entries. */
export function frameMessage(entries: readonly Buffer[]): Buffer {
  let size = 0;
  for (const entry of entries) size += entry.length;
  const head = Buffer.concat([Buffer.from([0x08, 15, 0x8a, 0x01]), varint(size)]);
  const prefix = Buffer.from([0, 0, 0, 0, 0]);
  prefix.writeUInt32BE(head.length + size, 1);
  return Buffer.concat([prefix, head, ...entries]);
}

function step<Item, Request>(
  itemCodec: MessageCodec<Item>,
  item: Encodable<Item>,
  unaryPath: string,
  requestCodec: MessageCodec<Request>,
  request: Encodable<Request>,
): Step {
  const itemBytes = Buffer.from(encodeMessage(itemCodec, item));
  return {
    frameEntry: Buffer.concat([Buffer.from([0x0a]), varint(itemBytes.length), itemBytes]),
    message: prefixed(itemBytes),
    unaryPath,
    unaryBody: prefixed(encodeMessage(requestCodec, request)),
  };
}

/** The unary request that makes sequence number `index` exist. */
export function createSequenceBody(index: number): Buffer {
  return prefixed(
    encodeMessage(sequences.GrpcCreateSequenceRequest, {
      Name: `perf/sequence-${index}`,
      InitialValue: 0,
      Increment: 1,
      Durability: PERSISTENT,
    }),
  );
}

function nextStep(slot: number, objects: number, unaryPath: string): Step {
  const request = { Name: `perf/sequence-${slot % objects}`, Durability: PERSISTENT };
  return step(
    sequences.GrpcBatchClientSequenceRequest,
    {
      Type: sequences.GrpcSequenceClientBatchType.SEQUENCE_BATCH_NEXT,
      RequestId: slot + 1,
      NextSequenceValue: request,
    },
    unaryPath,
    sequences.GrpcNextSequenceRequest,
    request,
  );
}

/** One lock for all connections, which every slot waits for. */
export function sharedName(prefix: string): string {
  return `${prefix.slice(0, prefix.lastIndexOf("/"))}/handed-on`;
}

function lockSteps(slot: number, prefix: string): Step[] {
  const Resource = `${prefix}/lock-${slot}`;
  const Owner = Buffer.from(`${prefix}/owner-${slot}`);
  const take = { Resource, Owner, ExpiresMs: 60_000, Durability: PERSISTENT };
  const release = { Resource, Owner, Durability: PERSISTENT };
  const item = locks.GrpcBatchClientLockRequest;
  const types = locks.GrpcLockClientBatchType;
  return [
    step(
      item,
      { Type: types.TYPE_TRY_LOCK, RequestId: slot + 1, TryLock: take },
      "/Locker/TryLock",
      locks.GrpcTryLockRequest,
      take,
    ),
    step(
      item,
      { Type: types.TYPE_UNLOCK, RequestId: slot + 1, Unlock: release },
      "/Locker/Unlock",
      locks.GrpcUnlockRequest,
      release,
    ),
  ];
}

/** Everybody's turns at one lock: each acquire is named, and so is the grant that is let go of. */
function handoffSteps(slot: number, prefix: string, Durability: number): Step[] {
  const Resource = sharedName(prefix);
  const Owner = Buffer.from(`${prefix}/owner-${slot}`);
  const item = locks.GrpcBatchClientLockRequest;
  const types = locks.GrpcLockClientBatchType;
  const ask = { Resource, Owner, ExpiresMs: HANDOFF_LEASE_MS, Durability, WaitMs: HANDOFF_WAIT_MS };
  let token = 0;
  const take = (): Step => {
    const request = { ...ask, WaitId: 1 + Math.floor(Math.random() * 2 ** 48), Try: 1 };
    const of = { Type: types.TYPE_TRY_LOCK, RequestId: slot + 1, TryLock: request };
    return step(item, of, "/Locker/TryLock", locks.GrpcTryLockRequest, request);
  };
  const release = (): Step => {
    const request = { Resource, Owner, Durability, FencingToken: token };
    const of = { Type: types.TYPE_UNLOCK, RequestId: slot + 1, Unlock: request };
    return step(item, of, "/Locker/Unlock", locks.GrpcUnlockRequest, request);
  };
  const granted = (of: number): void => void (token = of);
  return [built(take, granted), built(release)];
}

/** A step that is built anew each time. */
function built(build: () => Step, granted?: Step["granted"]): Step {
  const { unaryPath } = build();
  return {
    get frameEntry() {
      return build().frameEntry;
    },
    get message() {
      return build().message;
    },
    unaryPath,
    get unaryBody() {
      return build().unaryBody;
    },
    ...(granted === undefined ? {} : { granted }),
  };
}

/** One holder prolongs its lease, over and over; it was granted the lock before. */
function extendStep(slot: number, prefix: string): Step {
  const request = {
    Resource: prefix.slice(0, prefix.lastIndexOf("/")),
    Owner: Buffer.from("holder"),
    ExpiresMs: 3_600_000,
    Durability: PERSISTENT,
  };
  const Type = locks.GrpcLockClientBatchType.TYPE_EXTEND_LOCK;
  return step(
    locks.GrpcBatchClientLockRequest,
    { Type, RequestId: slot + 1, ExtendLock: request },
    "/Locker/TryExtendLock",
    locks.GrpcExtendLockRequest,
    request,
  );
}

function setStep(slot: number, prefix: string, valueBytes: number): Step {
  const request = {
    Key: `${prefix}/${slot % 64}/key-${slot}`,
    Value: Buffer.alloc(valueBytes, 0x61),
    Durability: PERSISTENT,
  };
  return step(
    keyvalues.GrpcBatchClientKeyValueRequest,
    {
      Type: keyvalues.GrpcClientBatchType.TRY_SET_KEY_VALUE,
      RequestId: slot + 1,
      TrySetKeyValue: request,
    },
    "/KeyValuer/TrySetKeyValue",
    keyvalues.GrpcTrySetKeyValueRequest,
    request,
  );
}

function getStep(slot: number, prefix: string): Step {
  const Key = `${prefix}/${slot % 64}/key-${slot}`;
  const request = { Key, Revision: -1, Durability: PERSISTENT };
  return step(
    keyvalues.GrpcBatchClientKeyValueRequest,
    {
      Type: keyvalues.GrpcClientBatchType.TRY_GET_KEY_VALUE,
      RequestId: slot + 1,
      TryGetKeyValue: request,
    },
    "/KeyValuer/TryGetKeyValue",
    keyvalues.GrpcTryGetKeyValueRequest,
    request,
  );
}

/**
 * `objects`: how many sequences share the load. `prefix`: of lock and key names. `valueBytes`: size
 * of set values.
 */
export function planOf(kind: Kind, objects: number, prefix: string, valueBytes: number): Plan {
  switch (kind) {
    case "next":
    case "noop": {
      const path = kind === "noop" ? "/Bench/Noop" : "/Sequencer/NextSequenceValue";
      return {
        streamPath: "/Sequencer/BatchClientSequenceRequests",
        stepsOf: (slot) => [nextStep(slot, objects, path)],
      };
    }
    case "lock":
      return {
        streamPath: "/Locker/BatchClientLockRequests",
        stepsOf: (slot) => lockSteps(slot, prefix),
      };
    case "handoff":
    case "handoff-ephemeral": {
      const durability = kind === "handoff" ? PERSISTENT : EPHEMERAL;
      return {
        streamPath: "/Locker/BatchClientLockRequests",
        stepsOf: (slot) => handoffSteps(slot, prefix, durability),
      };
    }
    case "extend":
      return {
        streamPath: "/Locker/BatchClientLockRequests",
        stepsOf: (slot) => [extendStep(slot, prefix)],
      };
    case "set":
      return {
        streamPath: "/KeyValuer/BatchClientKeyValueRequests",
        stepsOf: (slot) => [setStep(slot, prefix, valueBytes)],
      };
    case "get":
      return {
        streamPath: "/KeyValuer/BatchClientKeyValueRequests",
        stepsOf: (slot) => [getStep(slot, prefix)],
      };
  }
}
