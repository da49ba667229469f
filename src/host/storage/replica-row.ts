/**
 * What a node knows of its replica of one partition: a row of the node itself, beside its identity.
 *
 * Pure codec. It outlives the replica: term and vote bind a node that comes back to a group, and
 * the rows of a new life lie above those of the former one. Invariants: 1. Reading is strict. 2. A
 * row of a replica that is gone is kept for ever.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { incarnation, type Incarnation, type PartitionId } from "../../base/ids.js";
import { NODE_ID_MAX } from "../../base/limits.js";
import { type ByteKey, nodeRowKey } from "../../machine/store/keys.js";

const VERSION = 1;
const states = ["live", "dropping", "gone"] as const;

export interface ReplicaRow {
  /** The life that the row is of; the last one when the replica is gone. */
  readonly incarnation: Incarnation;
  /** "dropping": what it has is being deleted, which a start goes on with. */
  readonly state: (typeof states)[number];
  /** Hard state at the end of the last life; 0 while it is in the log. */
  readonly term: number;
  readonly vote: number;
  /** Highest generation of rows ever begun: those of a new life lie above. */
  readonly lastGeneration: number;
}

/** What must be kept of a life that ends. */
export type LastWords = Omit<ReplicaRow, "state">;

export function replicaRowKey(partition: PartitionId): ByteKey {
  return nodeRowKey(`replica/${partition}`);
}

export function encodeReplicaRow(row: ReplicaRow): Uint8Array {
  const writer = new ByteWriter(32).uint8(VERSION).uint8(states.indexOf(row.state));
  writer.uint53(row.incarnation).uint53(row.term).uint32(row.vote);
  return writer.uint32(row.lastGeneration).finish();
}

/** Null when the bytes are not such a row of this version. */
export function decodeReplicaRow(bytes: Uint8Array): ReplicaRow | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const state = states[reader.uint8()];
  const life = incarnation(reader.uint53());
  const term = reader.uint53();
  const vote = reader.uint32();
  const lastGeneration = reader.uint32();
  if (state === undefined || vote > NODE_ID_MAX || !reader.isComplete()) return null;
  return { incarnation: life, state, term, vote, lastGeneration };
}
