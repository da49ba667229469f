/**
 * What every artifact says of where it is from: of which backup, cluster and storage, and of which
 * partition.
 *
 * Pure codec. A manifest without a signature is held to what its artifacts say here.
 */
import { equalBytes } from "../base/bytes.js";
import type { ByteReader, ByteWriter } from "../base/codec.js";

/** The version of images and logs that this program writes, and the only one it reads. */
export const ARTIFACT_VERSION = 1;

export interface ArtifactOrigin {
  /** 32 hexadecimal digits. */
  readonly backupId: string;
  /** As configured. */
  readonly clusterId: string;
  /** The id that the cluster gave itself when it was founded or restored. */
  readonly lineage: string;
  readonly storageType: string;
  readonly storageRevision: string;
  readonly topologyGeneration: number;
  readonly partition: number;
}

export function writeOrigin(writer: ByteWriter, origin: ArtifactOrigin): void {
  writer.text(origin.backupId).text(origin.clusterId).text(origin.lineage);
  writer.text(origin.storageType).text(origin.storageRevision);
  writer.uint53(origin.topologyGeneration).uint32(origin.partition);
}

export function readOrigin(reader: ByteReader): ArtifactOrigin {
  return {
    backupId: reader.text(),
    clusterId: reader.text(),
    lineage: reader.text(),
    storageType: reader.text(),
    storageRevision: reader.text(),
    topologyGeneration: reader.uint53(),
    partition: reader.uint32(),
  };
}

/** The group's configuration, which may be none. */
export function writeMembership(writer: ByteWriter, membership: Uint8Array | null): void {
  writer.boolean(membership !== null);
  if (membership !== null) writer.bytes(membership);
}

export function readMembership(reader: ByteReader): Uint8Array | null {
  return reader.boolean() ? reader.bytes() : null;
}

export function sameMembership(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : equalBytes(a, b);
}
