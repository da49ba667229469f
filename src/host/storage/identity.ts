/**
 * Whose data directory this is, and its how manieth start: one row of the node itself in the state
 * store.
 *
 * It is durable before the first log write, and names the members that the groups begin with; a
 * group's own record takes over once a membership change was applied. Invariants: 1. Founders are
 * written once, when the directory is founded. 2. The number of the start grows by one with each,
 * and is durable before anything is sent in it (P-190). 3. Reading is strict.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { BOOTS_TOLD_MAX, VOTERS_MAX } from "../../base/limits.js";
import { type ByteKey, nodeRowKey } from "../../machine/store/keys.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { Founder } from "../../ports.js";

const VERSION = 3;

export const IDENTITY_KEY: ByteKey = nodeRowKey("identity");

export interface NodeIdentity {
  readonly nodeId: number;
  /** The voters of every group when the cluster was founded, by ascending id. */
  readonly founders: readonly Founder[];
  /** A cluster that ran took this very data directory in; it is none of a founder. */
  readonly isJoiner: boolean;
  /** Starts of this directory, the present one included. */
  readonly bootNumber: number;
  /** Nonces of the last starts, that of the present one first. */
  readonly bootNonces: readonly number[];
}

export function encodeIdentity(identity: NodeIdentity): Uint8Array {
  const { nodeId, founders, isJoiner, bootNumber, bootNonces } = identity;
  const writer = new ByteWriter(256).uint8(VERSION).uint32(nodeId).uint32(bootNumber);
  writer.length(bootNonces.length);
  for (const nonce of bootNonces) writer.uint32(nonce);
  writer.boolean(isJoiner).length(founders.length);
  for (const founder of founders) {
    writer.uint32(founder.nodeId).text(founder.endpoint).text(founder.storageId);
  }
  return writer.finish();
}

/** Null when the bytes are not an identity of this version. */
export function decodeIdentity(bytes: Uint8Array): NodeIdentity | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const nodeId = reader.uint32();
  const bootNumber = reader.uint32();
  const starts = reader.length();
  if (reader.failed || starts > BOOTS_TOLD_MAX + 1) return null;
  const bootNonces: number[] = [];
  for (let at = 0; at < starts; at++) bootNonces.push(reader.uint32());
  const isJoiner = reader.boolean();
  const count = reader.length();
  if (reader.failed || count > VOTERS_MAX) return null;
  const founders: Founder[] = [];
  for (let at = 0; at < count; at++) {
    const founder = { nodeId: reader.uint32(), endpoint: reader.text(), storageId: reader.text() };
    founders.push(founder);
  }
  return reader.isComplete() ? { nodeId, founders, isJoiner, bootNumber, bootNonces } : null;
}

interface Adopter extends Pick<NodeIdentity, "nodeId" | "founders"> {
  /** The directory was made by a restore: its node is the only founder there is. */
  readonly adopts?: boolean;
}

/** Whose directory it is, by its row; null: nobody's yet. */
export function knownIdentity(
  row: Uint8Array | null,
  { nodeId, founders, adopts = false }: Adopter,
): Result<
  { readonly identity: NodeIdentity | null; readonly isAdopted: boolean },
  "damaged-state"
> {
  if (row === null) {
    const adopted = { nodeId, founders, isJoiner: false, bootNumber: 0, bootNonces: [] };
    return ok({ identity: adopts ? adopted : null, isAdopted: adopts });
  }
  const identity = decodeIdentity(row);
  if (identity !== null) return ok({ identity, isAdopted: false });
  return failure("damaged-state", "The identity row of the state store is damaged.");
}
