/**
 * The messages of the Watcher service: what is asked for to what the operations take, and what they
 * deliver to bytes.
 *
 * Invariants: 1. An event is encoded once, for all streams that it goes to. 2. Optional fields keep
 * the difference between absent and empty.
 */
import { sequenceView } from "../../operations/api/shapes.js";
import type {
  RouteHint,
  WatchEvent,
  WatchMessage,
  WatchRequest,
} from "../../operations/api/requests.js";
import {
  bigIntToHalves,
  encodeMessage,
  halvesToBigInt,
  type ProtoWriter,
} from "../../proto/codec.js";
import {
  GrpcWatchEvent,
  GrpcWatchResponse,
  type GrpcWatchCreate,
} from "../../proto/generated/watch.js";
import { routeOf } from "../calls/method.js";
import { entryOf } from "./sequencer.js";

const EVENTS_TAG = (3 << 3) | 2;

export function watchRequest(create: GrpcWatchCreate): WatchRequest {
  const { FromRevision } = create;
  return {
    kind: create.Kind,
    name: create.Name,
    cursor: create.Cursor,
    fromRevision: FromRevision === null ? null : halvesToBigInt(FromRevision),
    initial: create.Initial,
    noValues: create.NoValues,
    only: create.Only,
    progressMs: create.ProgressMs,
  };
}

function eventBytes(event: WatchEvent): Uint8Array {
  const { stamp, sequence } = event;
  event.bytes ??= encodeMessage(GrpcWatchEvent, {
    Type: event.type,
    Name: event.name,
    Value: event.value,
    Revision: event.revision,
    StampNode: stamp.n,
    StampPhysical: stamp.l,
    StampCounter: stamp.c,
    FencingToken: bigIntToHalves(event.token),
    Owner: event.owner,
    Note: event.note,
    Sequence: sequence === null ? null : entryOf(sequenceView(sequence, sequence.currentValue)),
    Forced: event.forced,
  });
  return event.bytes;
}

/** Writes `message` behind what `writer` holds. */
export function writeMessage(
  message: WatchMessage,
  route: RouteHint | null,
  writer: ProtoWriter,
): void {
  const { events, ...rest } = message;
  GrpcWatchResponse.encode(
    {
      Type: rest.type,
      WatchIds: rest.watchIds,
      Cursor: rest.cursor,
      Initial: rest.initial,
      Merged: rest.merged,
      Reset: rest.reset,
      More: rest.more,
      SyncId: rest.syncId,
      StaleMs: rest.staleMs,
      End: rest.end,
      Route: routeOf(route),
    },
    writer,
  );
  // Fields of a message may come in any order.
  for (const event of events) writer.uint32(EVENTS_TAG).bytes(eventBytes(event));
}
