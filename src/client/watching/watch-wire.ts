/**
 * Watches on the wire: the messages of the stream over gRPC, and polls over REST.
 *
 * Invariants: 1. Both wires give the same events. 2. An end is a failure, or says that another node
 * is to be asked.
 */
import { hyphenedNames, WatchKind, WatchMessageType } from "../../base/result-types.js";
import { decodeText } from "../../base/bytes.js";
import { ProtoWriter, protoReader } from "../../proto/codec.js";
import * as messages from "../../proto/generated/watch.js";
import type { Operation } from "../call/operation.js";
import { infoFromGrpc, infoFromRest } from "../sequences/sequence-operations.js";
import { ServerError } from "../values/errors.js";
import {
  asObject,
  bigintOf,
  boolOf,
  bytesOrNull,
  jsonText,
  listOf,
  textOf,
  textOrNull,
  type JsonObject,
} from "../values/json.js";
import { fromHalves, stampFromJson, stampOf, toHalvesOrNull } from "../values/numbers.js";
import { ownerFromRest } from "../values/owner-text.js";
import {
  EVENT_TYPES,
  onlySum,
  type WatchAsked,
  type WatchEvent,
  type WatchEventType,
} from "./watch-shapes.js";

const KINDS = hyphenedNames(WatchKind);
const EVENT_NAMES = new Set<string | undefined>(EVENT_TYPES.values());
const WATCH_ID = 1;

/** What a node tells. */
export interface WatchMessage {
  /** As `WatchMessageType`. */
  readonly type: number;
  readonly events: readonly WatchEvent[];
  readonly cursor: string | null;
  readonly initial: boolean;
  readonly merged: boolean;
  readonly reset: boolean;
  readonly more: boolean;
  readonly syncId: number;
  /** As `WatchEnd`. */
  readonly end: number;
  /** Of an end: the node that may tell on; null: none is named. */
  readonly route: string | null;
}

function encoded(request: Parameters<typeof messages.GrpcWatchRequest.encode>[0]): Uint8Array {
  return messages.GrpcWatchRequest.encode(request, new ProtoWriter(128)).view(0);
}

export function createBytes(asked: WatchAsked): Uint8Array {
  const { kind, name, cursor, fromRevision, initial, noValues, only } = asked;
  return encoded({
    Create: {
      ...{ WatchId: WATCH_ID, Kind: kind, Name: name, Cursor: cursor, Initial: initial },
      FromRevision: toHalvesOrNull(fromRevision),
      ...{ NoValues: noValues, Only: onlySum(only), ProgressMs: 0 },
    },
  });
}

export function syncBytes(syncId: number): Uint8Array {
  return encoded({ Sync: { SyncId: syncId, WatchId: WATCH_ID } });
}

function eventTypeOf(name: string | undefined): WatchEventType {
  if (EVENT_NAMES.has(name) && name !== "none") return name as WatchEventType;
  throw new ServerError("an event has an unknown type", {}, "protocol");
}

/** With the texts of its bytes. */
function eventOf(event: Omit<WatchEvent, "text" | "ownerText" | "noteText">): WatchEvent {
  const { value, owner, note } = event;
  const textIn = (bytes: Uint8Array | null): string | null =>
    bytes === null ? null : decodeText(bytes);
  return { ...event, text: textIn(value), ownerText: textIn(owner), noteText: textIn(note) };
}

function copyOrNull(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : Uint8Array.from(bytes);
}

function eventFromGrpc(event: messages.GrpcWatchEvent): WatchEvent {
  return eventOf({
    type: eventTypeOf(EVENT_TYPES.get(event.Type)),
    name: event.Name,
    value: copyOrNull(event.Value),
    revision: fromHalves(event.Revision),
    stamp: stampOf(event.StampNode, event.StampPhysical, event.StampCounter),
    fencingToken: fromHalves(event.FencingToken),
    owner: copyOrNull(event.Owner),
    note: copyOrNull(event.Note),
    sequence: event.Sequence === null ? null : infoFromGrpc(event.Sequence),
    forced: event.Forced,
  });
}

/** Throws when it is no message. */
export function messageFrom(bytes: Buffer): WatchMessage {
  const message = messages.GrpcWatchResponse.decode(protoReader(bytes), bytes.length);
  return {
    type: message.Type,
    events: message.Events.map(eventFromGrpc),
    cursor: message.Cursor,
    initial: message.Initial,
    merged: message.Merged,
    reset: message.Reset,
    more: message.More,
    syncId: message.SyncId,
    end: message.End,
    route: message.Route?.Endpoint ?? null,
  };
}

function eventFromRest(body: JsonObject): WatchEvent {
  const bytesIn = (name: string): Uint8Array | null => {
    const text = textOrNull(body, name);
    return text === null ? null : ownerFromRest(text);
  };
  const { sequence } = body;
  return eventOf({
    type: eventTypeOf(textOf(body, "type")),
    name: textOf(body, "name"),
    value: bytesOrNull(body, "value"),
    revision: bigintOf(body, "revision"),
    stamp: stampFromJson(body, "stamp"),
    fencingToken: bigintOf(body, "fencingToken"),
    owner: bytesIn("owner"),
    note: bytesIn("note"),
    sequence: sequence === null ? null : infoFromRest(asObject(sequence, "sequence")),
    forced: boolOf(body, "forced"),
  });
}

export interface PollRequest extends WatchAsked {
  readonly waitMs: number;
}

/** Over REST alone. */
export const pollWatch: Operation<PollRequest, WatchMessage, WatchMessage> = {
  name: "watch.poll",
  path: "/Watcher/Watch",
  reads: true,
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/watch/poll",
    body: ({ kind, only, fromRevision, ...rest }) =>
      jsonText({
        ...rest,
        kind: KINDS.get(kind),
        only: only.length === 0 ? null : only,
        fromRevision: fromRevision === null ? null : fromRevision.toString(),
      }),
  },
  write() {
    throw new ServerError("watches over gRPC have a stream of their own");
  },
  fromGrpc() {
    throw new ServerError("watches over gRPC have a stream of their own");
  },
  fromRest(body) {
    return {
      type: WatchMessageType.events,
      events: listOf(body, "events").map(eventFromRest),
      cursor: textOrNull(body, "cursor"),
      initial: boolOf(body, "initial"),
      merged: boolOf(body, "merged"),
      reset: boolOf(body, "reset"),
      more: boolOf(body, "more"),
      ...{ syncId: 0, end: 0, route: null },
    };
  },
  waits: () => true,
  repeat: () => true,
  settle: (answer) => answer,
};
