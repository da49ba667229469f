/**
 * Whose data directory this is: one row of the node itself in the state store.
 *
 * It is durable before the first log write, and names the members that the groups begin with; a
 * group's own record takes over once a membership change was applied. May call: base, machine keys.
 * Invariants: 1. Written once, when the directory is founded. 2. Reading is strict.
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import { type ByteKey, nodeRowKey } from "../machine/keys.js";

const VERSION = 2;
/** Says nothing of joiners: whoever is no founder was taken in. */
const VERSION_WITHOUT_JOINER = 1;

export const IDENTITY_KEY: ByteKey = nodeRowKey("identity");

export interface NodeIdentity {
  readonly nodeId: number;
  /** The voters of every group when the cluster was founded, ascending. */
  readonly founders: readonly number[];
  /** A cluster that ran took this very data directory in; it is none of a founder. */
  readonly isJoiner: boolean;
}

export function encodeIdentity(identity: NodeIdentity): Uint8Array {
  const writer = new ByteWriter(64).uint8(VERSION).uint32(identity.nodeId);
  writer.length(identity.founders.length);
  for (const founder of identity.founders) writer.uint32(founder);
  return writer.boolean(identity.isJoiner).finish();
}

/** Null when the bytes are not an identity of this version or the one before. */
export function decodeIdentity(bytes: Uint8Array): NodeIdentity | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const isOld = version === VERSION_WITHOUT_JOINER;
  if (version !== VERSION && !isOld) return null;
  const nodeId = reader.uint32();
  const count = reader.length();
  if (reader.failed || count * 4 + (isOld ? 0 : 1) !== reader.remainingBytes) return null;
  const founders: number[] = [];
  for (let at = 0; at < count; at++) founders.push(reader.uint32());
  const isJoiner = isOld ? !founders.includes(nodeId) : reader.boolean();
  return reader.isComplete() ? { nodeId, founders, isJoiner } : null;
}
