/**
 * The manifest of a backup: what it has, of what, and the sums of all its files.
 *
 * Pure but for the signature port. Invariants: 1. One text for one manifest: the canonical form has
 * the members in the order of contract 7.2 and no white space, maps by name, lists by partition. 2.
 * The signature is over the canonical form without the member Mac. 3. Whatever is written here is
 * read again by `manifest-reader.ts`.
 */
import { assert } from "../base/assert.js";
import { encodeText } from "../base/bytes.js";
import { type Hlc, compareHlc } from "../base/hlc.js";
import type { ArchiveSum, SignaturePort } from "../ports.js";
import { imageName, logName, uuidOf } from "./names.js";

export const MANIFEST_VERSION = 1;
export const MANIFEST_MAX_BYTES = 16 * 1024 * 1024;

export interface PartitionRange {
  readonly partition: number;
  /** Of a Full: right behind its image; of an Incremental: right behind its parent's end. */
  readonly fromIndex: number;
  /** Largest stamp before `fromIndex`: that of the image, or of the parent's end. */
  readonly fromStamp: Hlc;
  /** The mark. */
  readonly toIndex: number;
  readonly toStamp: Hlc;
  readonly toTerm: number;
}

export interface Manifest {
  /** 32 hexadecimal digits, as are all ids of backups in here. */
  readonly backupId: string;
  readonly type: "Full" | "Incremental";
  /** Unix milliseconds. */
  readonly createdAtMs: number;
  readonly parentBackupId: string | null;
  /** By partition. */
  readonly partitionRanges: readonly PartitionRange[];
  /** Of a coordinated backup. */
  readonly clusterSnapshot: Hlc | null;
  /** As configured. */
  readonly clusterId: string;
  /** Advertised peer endpoint of the node that wrote it. */
  readonly coordinatorNode: string;
  readonly coordinatorTerm: number;
  readonly storageType: string;
  readonly storageRevision: string;
  readonly topologyGeneration: number;
  /** Ids, ascending. */
  readonly clusterPartitions: readonly number[];
  readonly coveredPartitions: readonly number[];
  /** By name below the directory of the backup. */
  readonly files: ReadonlyMap<string, ArchiveSum>;
}

/** Largest FromHlc: from here on every partition is covered. */
export function baseCutOf({ partitionRanges }: Pick<Manifest, "partitionRanges">): Hlc {
  const stamps = partitionRanges.map(({ fromStamp }) => fromStamp).sort(compareHlc);
  return stamps.at(-1) ?? { n: 0, l: 0, c: 0 };
}

/** The names of all files that a backup has, in byte order. */
export function artifactNames({
  type,
  partitionRanges,
}: Pick<Manifest, "type" | "partitionRanges">): string[] {
  const partitions = partitionRanges.map(({ partition }) => partition);
  const images = type === "Full" ? partitions.map(imageName) : [];
  return [...images, ...partitions.map(logName)].sort();
}

/** `YYYY-MM-DDThh:mm:ss.fffZ` of Unix milliseconds, by the rules of the calendar. */
export function utcText(atMs: number): string {
  const days = Math.floor(atMs / 86_400_000);
  const ofDay = atMs - days * 86_400_000;
  // Days since 1 March of the year 0, in eras of 400 years (Howard Hinnant, "chrono-compatible
  // low-level date algorithms").
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const leaps = Math.floor(ofEra / 1460) - Math.floor(ofEra / 36_524) + Math.floor(ofEra / 146_096);
  const yearOfEra = Math.floor((ofEra - leaps) / 365);
  const ofYear =
    ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * ofYear + 2) / 153);
  const day = ofYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const time = `${two(ofDay / 3_600_000)}:${two((ofDay / 60_000) % 60)}:${two((ofDay / 1000) % 60)}`;
  const fraction = String(ofDay % 1000).padStart(3, "0");
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}T${time}.${fraction}Z`;
}

const UTC = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z$/;

/** The time of a UTC text; null when it is none. */
export function parseUtcText(text: string): number | null {
  const match = UTC.exec(text);
  if (match === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = match
    .slice(1)
    .map(Number);
  const shiftedYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(shiftedYear / 400);
  const yearOfEra = shiftedYear - era * 400;
  const ofYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const ofEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + ofYear;
  const days = era * 146_097 + ofEra - 719_468;
  const atMs = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
  // A day or an hour that there is not reads back as another one.
  return utcText(atMs) === text ? atMs : null;
}

type Members = readonly (readonly [name: string, value: string])[];

function object(members: Members): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

function stampMembers(prefix: string, infix: string, stamp: Hlc | null): Members {
  const { n, l, c } = stamp ?? { n: null, l: null, c: null };
  const parts = { Node: n, Physical: l, Counter: c };
  return Object.entries(parts).map(([name, value]) => [`${prefix}${infix}${name}`, String(value)]);
}

function rangeText(range: PartitionRange): string {
  return object([
    ["PartitionId", String(range.partition)],
    ["FromIndex", String(range.fromIndex)],
    ...stampMembers("From", "Hlc", range.fromStamp),
    ["ToIndex", String(range.toIndex)],
    ...stampMembers("To", "Hlc", range.toStamp),
    ["ToTerm", String(range.toTerm)],
  ]);
}

function filesText(
  files: ReadonlyMap<string, ArchiveSum>,
  valueOf: (sum: ArchiveSum) => string,
): string {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  return object(sorted.map(([name, sum]) => [name, valueOf(sum)]));
}

/** `mac` undefined: without the member Mac, which is what is signed. */
function canonicalText(manifest: Manifest, mac: string | null | undefined): string {
  const uuid = (id: string | null): string => (id === null ? "null" : JSON.stringify(uuidOf(id)));
  return object([
    ["FormatVersion", String(MANIFEST_VERSION)],
    ["BackupId", uuid(manifest.backupId)],
    ["Type", JSON.stringify(manifest.type)],
    ["CreatedAtUtc", JSON.stringify(utcText(manifest.createdAtMs))],
    ["ParentBackupId", uuid(manifest.parentBackupId)],
    ["PartitionRanges", `[${manifest.partitionRanges.map(rangeText).join(",")}]`],
    ...stampMembers("ClusterSnapshot", "", manifest.clusterSnapshot),
    ...stampMembers("BaseCut", "", baseCutOf(manifest)),
    ["ClusterId", JSON.stringify(manifest.clusterId)],
    ["CoordinatorNode", JSON.stringify(manifest.coordinatorNode)],
    ["CoordinatorTerm", String(manifest.coordinatorTerm)],
    ["StorageType", JSON.stringify(manifest.storageType)],
    ["StorageRevision", JSON.stringify(manifest.storageRevision)],
    ["TopologyGeneration", String(manifest.topologyGeneration)],
    ["ClusterPartitions", JSON.stringify(manifest.clusterPartitions)],
    ["CoveredPartitions", JSON.stringify(manifest.coveredPartitions)],
    ...(mac === undefined ? [] : [["Mac", JSON.stringify(mac)] as const]),
    ["Checksums", filesText(manifest.files, ({ sha256 }) => JSON.stringify(sha256))],
    ["Sizes", filesText(manifest.files, ({ sizeBytes }) => String(sizeBytes))],
  ]);
}

/** What the signature of a manifest is over. */
export function signedBytes(manifest: Manifest): Uint8Array {
  return encodeText(canonicalText(manifest, undefined));
}

/** The whole manifest in its canonical form; `mac` null: not signed. */
export function manifestText(manifest: Manifest, mac: string | null): string {
  return canonicalText(manifest, mac);
}

/** The bytes of the file of a manifest, signed when there is a key. */
export function encodeManifest(manifest: Manifest, signatures: SignaturePort): Uint8Array {
  const mac = signatures.hasKey ? signatures.sign(signedBytes(manifest)) : null;
  const bytes = encodeText(manifestText(manifest, mac));
  assert(
    bytes.length <= MANIFEST_MAX_BYTES,
    "a manifest of as many partitions as there can be fits",
  );
  return bytes;
}
