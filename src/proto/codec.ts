/**
 * Protocol Buffers at the border: a writer that fills one buffer in one pass, a strict reader, and
 * exact 64-bit numbers.
 *
 * Owns the way in which the generated codec (protobufjs, static) is called; shared by the gRPC
 * server and the client. Invariants: 1. Text that is not valid UTF-8 is refused, unknown fields are
 * skipped. 2. A 64-bit number never passes through a double unless it is a safe integer. 3. What a
 * writer hands out was written completely (no old memory).
 */
import protobuf from "protobufjs/minimal.js";
import { assert } from "../base/assert.js";
import { INT64_MAX, INT64_MIN } from "../base/int64.js";
import { ProtoWriter, type Int64Halves } from "./writer.js";

export { ProtoWriter, type Int64Halves };

type EncodableField<F> = F extends Int64Halves
  ? Int64Halves | number
  : F extends Uint8Array
    ? Uint8Array
    : F extends readonly (infer Element)[]
      ? readonly Encodable<Element>[]
      : F extends object
        ? Encodable<F>
        : F;
/**
 * What `encode` takes for a message: any fields, 64-bit ones also as safe integers. null = absent.
 */
export type Encodable<T> = { readonly [K in keyof T]?: EncodableField<T[K]> };

/** What the generated code offers for one message. */
export interface MessageCodec<T> {
  encode(message: Encodable<T>, writer: ProtoWriter): ProtoWriter;
  decode(reader: ProtoReader, lengthBytes?: number): T;
}

/** One .proto file as the reflection service hands it out. */
export interface FileDescription {
  readonly path: string;
  readonly dependency: readonly string[];
  readonly services: readonly string[];
  readonly symbols: readonly string[];
  /** The FileDescriptorProto. */
  readonly base64: string;
}

/** The reader of the codec, over one received message. */
export type ProtoReader = InstanceType<typeof protobuf.BufferReader>;

/** A reader over `bytes` that skips unknown fields and does not keep them. */
export function protoReader(bytes: Buffer): ProtoReader {
  const reader = new protobuf.BufferReader(bytes);
  reader.discardUnknown = true;
  return reader;
}

/**
 * Decodes one whole message, or null when `bytes` is not one (malformed, truncated, text not valid
 * UTF-8).
 */
export function decodeMessage<T>(codec: MessageCodec<T>, bytes: Buffer): T | null {
  try {
    return codec.decode(protoReader(bytes));
  } catch {
    return null;
  }
}

/** Encodes one message on its own. */
export function encodeMessage<T>(codec: MessageCodec<T>, message: Encodable<T>): Buffer {
  const writer = new ProtoWriter(128);
  codec.encode(message, writer);
  return writer.view(0);
}

/** The exact value of a signed 64-bit field. */
export function halvesToBigInt(halves: Int64Halves): bigint {
  if (halves.high === 0) return BigInt(halves.low >>> 0);
  return (BigInt(halves.high | 0) << 32n) | BigInt(halves.low >>> 0);
}

/** The halves of a value in the int64 range (asserted). */
export function bigIntToHalves(value: bigint): Int64Halves {
  assert(value >= INT64_MIN && value <= INT64_MAX, "a 64-bit field takes an int64");
  const low = Number(BigInt.asIntN(32, value));
  return { low, high: Number(BigInt.asIntN(32, value >> 32n)), unsigned: false };
}

export function isZeroHalves(halves: Int64Halves): boolean {
  return halves.low === 0 && halves.high === 0;
}
