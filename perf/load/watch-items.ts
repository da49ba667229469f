/**
 * What the drivers of watches say to a node of ours and to one of etcd, and what they read from the
 * answers: watches of one key or of a prefix, events counted for each watch.
 *
 * Owns no state. The bodies for etcd are written by hand from the field numbers of its public
 * rpc.proto. Invariants: 1. A set's number is the beginning of its value, so that an event names the
 * set that it tells. 2. An event counts once for each watch that it is for.
 */
import { encodeMessage, protoReader, type ProtoReader } from "../../src/proto/codec.js";
import * as keyvalues from "../../src/proto/generated/keyvalues.js";
import * as watch from "../../src/proto/generated/watch.js";
import { putCall, watchBody } from "./etcd-items.js";
import { prefixed } from "./grpc-items.js";

/** What a message of a watch stream told. */
export interface WatchListener {
  created(): void;
  /** Set number `set` came, for so many watches. */
  told(set: number, watches: number): void;
  ended(): void;
}

/** A service that has watches, as a driver speaks to it. */
export interface WatchService {
  readonly streamPath: string;
  readonly setPath: string;
  /** The message that begins watch `id`, with the gRPC prefix. */
  create(id: number, name: string, isPrefix: boolean): Buffer;
  set(key: string, value: Buffer): Buffer;
  read(message: Buffer, listener: WatchListener): void;
}

const NUMBER_CHARACTERS = 10;
const PERSISTENT = 1;

/** A value of `valueBytes` that begins with the number of its set. */
export function valueOf(set: number, valueBytes: number): Buffer {
  const text = String(set).padStart(NUMBER_CHARACTERS, "0");
  return Buffer.from(text.padEnd(valueBytes, "a"), "latin1");
}

function numberAt(message: Buffer, start: number): number {
  return Number(message.toString("latin1", start, start + NUMBER_CHARACTERS));
}

/** Numbers of a packed field: as many as bytes that end one. */
function packedCount(message: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if ((message[at] as number) < 0x80) count += 1;
  return count;
}

function skip(reader: ProtoReader, tag: number): void {
  reader.skipType(tag & 7, 0, tag >>> 3);
}

/** Reads the head of a field with contents: where it begins; the reader stands behind it. */
function passed(reader: ProtoReader): number {
  const size = reader.uint32();
  const start = reader.pos;
  reader.pos = start + size;
  return start;
}

/** Where the contents of a field within [start, end) begin; -1: there is none. */
function fieldAt(reader: ProtoReader, start: number, end: number, wanted: number): number {
  reader.pos = start;
  let found = -1;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === ((wanted << 3) | 2)) found = passed(reader);
    else skip(reader, tag);
  }
  return found;
}

const Own = { type: 0x08, ids: 0x12, id: 0x10, event: 0x1a, value: 3 } as const;
const { WATCH_CREATED, WATCH_ENDED, WATCH_EVENTS } = watch.GrpcWatchResponseType;

export const OWN_WATCHES: WatchService = {
  streamPath: "/Watcher/Watch",
  setPath: "/KeyValuer/TrySetKeyValue",
  create(WatchId, Name, isPrefix) {
    const { WATCH_KEY, WATCH_PREFIX } = watch.GrpcWatchKind;
    const Create = { WatchId, Name, Kind: isPrefix ? WATCH_PREFIX : WATCH_KEY };
    return prefixed(encodeMessage(watch.GrpcWatchRequest, { Create }));
  },
  set(Key, Value) {
    const request = { Key, Value, Durability: PERSISTENT };
    return prefixed(encodeMessage(keyvalues.GrpcTrySetKeyValueRequest, request));
  },
  read(message, listener) {
    const reader = protoReader(message);
    let type: number = WATCH_EVENTS;
    let watches = 0;
    const events: number[] = [];
    while (reader.pos < message.length) {
      const tag = reader.tag();
      if (tag === Own.type) type = reader.int32();
      else if (tag === Own.ids) {
        const start = passed(reader);
        watches += packedCount(message, start, reader.pos);
      } else if (tag === Own.event) {
        const start = passed(reader);
        events.push(start, reader.pos);
      } else {
        if (tag === Own.id) watches += 1;
        skip(reader, tag);
      }
    }
    if (type === WATCH_CREATED) listener.created();
    if (type === WATCH_ENDED) listener.ended();
    for (let at = 0; at < events.length; at += 2) {
      const value = fieldAt(reader, events[at] as number, events[at + 1] as number, Own.value);
      if (value >= 0) listener.told(numberAt(message, value), watches);
    }
  },
};

const Etcd = { created: 0x18, cancelled: 0x20, event: 0x5a, keyValue: 2, value: 5 } as const;

export const ETCD_WATCHES: WatchService = {
  streamPath: "/etcdserverpb.Watch/Watch",
  setPath: "/etcdserverpb.KV/Put",
  create: (_id, name, isPrefix) => prefixed(watchBody(name, isPrefix)),
  set: (key, value) => putCall(key, value).body,
  read(message, listener) {
    const reader = protoReader(message);
    const events: number[] = [];
    while (reader.pos < message.length) {
      const tag = reader.tag();
      if (tag === Etcd.created) {
        if (reader.bool()) listener.created();
      } else if (tag === Etcd.cancelled) {
        if (reader.bool()) listener.ended();
      } else if (tag === Etcd.event) {
        const start = passed(reader);
        events.push(start, reader.pos);
      } else skip(reader, tag);
    }
    for (let at = 0; at < events.length; at += 2) {
      const end = events[at + 1] as number;
      const keyValue = fieldAt(reader, events[at] as number, end, Etcd.keyValue);
      const value = fieldAt(reader, keyValue, end, Etcd.value);
      if (value >= 0) listener.told(numberAt(message, value), 1);
    }
  },
};
