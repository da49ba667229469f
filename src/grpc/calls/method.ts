/**
 * What the gRPC front end knows of one data method: its messages on one side, its request and
 * answer on the other.
 *
 * Invariants: 1. One description serves the unary call and the batch item, so that both give the
 * same answer. 2. A mapping decides nothing: what is not acceptable goes down as it is and comes
 * back as InvalidInput.
 */
import { ByteSlabs, IN_HEAP_BYTES } from "../../base/byte-slabs.js";
import type {
  DataAnswer,
  DataRequest,
  DataRequestKind,
  RouteHint,
} from "../../operations/api/requests.js";
import type { Encodable, MessageCodec, ProtoReader, ProtoWriter } from "../../proto/codec.js";
import type { GrpcRouteHint } from "../../proto/generated/sequences.js";
import type { Role } from "../h2/access.js";
import { type AnswerExtent, answerExtent } from "./answer-size.js";

export interface DataMethod {
  /** "/Service/Rpc". */
  readonly path: string;
  readonly role: Role;
  readonly kind: DataRequestKind;
  /** What an answer of the kind may hold. */
  readonly extent: AnswerExtent;
  /**
   * The request in the next `lengthBytes` bytes (none: the rest). Throws when they are not such a
   * message.
   */
  read(reader: ProtoReader, lengthBytes?: number): DataRequest;
  /**
   * Writes the response message. `request` null when it could not be read. `elapsedMs`: handling
   * time.
   */
  write(
    answer: DataAnswer,
    request: DataRequest | null,
    elapsedMs: number,
    writer: ProtoWriter,
  ): void;
}

interface DataMethodParts<Q, P> {
  readonly path: string;
  readonly role: Role;
  readonly kind: DataRequestKind;
  readonly request: MessageCodec<Q>;
  readonly response: MessageCodec<P>;
  toRequest(message: Q): DataRequest;
  toResponse(answer: DataAnswer, elapsedMs: number, request: DataRequest | null): Encodable<P>;
}

/** Ties the codecs of a method to its mapping. */
export function dataMethod<Q, P>(parts: DataMethodParts<Q, P>): DataMethod {
  const { path, role, kind, request: requests, response: responses } = parts;
  return {
    path,
    role,
    kind,
    extent: answerExtent(kind),
    read: (reader, lengthBytes) => parts.toRequest(requests.decode(reader, lengthBytes)),
    write: (answer, request, elapsedMs, writer) => {
      responses.encode(parts.toResponse(answer, elapsedMs, request), writer);
    },
  };
}

/** An item type of a batch stream. */
export interface BatchOperation {
  /** Number of the payload field in the request item. */
  readonly requestField: number;
  /** Number of the payload field in the response item. */
  readonly responseField: number;
  readonly method: DataMethod;
}

/** A batch stream: its items by their `Type`. */
export interface BatchStreamKind {
  readonly path: string;
  /** True when frames (type 15, field 17) are spoken. */
  readonly frames: boolean;
  /**
   * True for the stream between servers: every item counts as forwarded, with the hops in field 7.
   */
  readonly forwarded: boolean;
  readonly operations: ReadonlyMap<number, BatchOperation>;
  /** The item that ends the wait of another one; null: none of its items waits. */
  readonly cancel: { readonly type: number; readonly field: number } | null;
}

/**
 * Slabs for received values, which go with their requests. Small ones: a request that waits pins
 * one.
 */
const received = new ByteSlabs(4 * 1024, 1024);

/** A copy of received bytes: what lives on must not pin the buffer of the connection. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.length <= IN_HEAP_BYTES ? new Uint8Array(bytes) : received.copy(bytes);
}

export function ownBytesOrNull(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : ownBytes(bytes);
}

export function routeOf(route: RouteHint | null): Encodable<GrpcRouteHint> | null {
  if (route === null) return null;
  return {
    PartitionId: route.partitionId,
    Endpoint: route.endpoint,
    Provenance: route.provenance,
    Generation: route.generation,
  };
}

/** Milliseconds as the int32 of TimeElapsedMs. */
export function elapsedField(elapsedMs: number): number {
  return Math.max(0, Math.min(2_147_483_647, Math.round(elapsedMs)));
}
