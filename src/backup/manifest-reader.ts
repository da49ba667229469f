/**
 * Reads a manifest strictly: every member of contract 7.2 and no other, in its order, each of its
 * form, and all of them in agreement with each other.
 *
 * Pure but for the signature port. Invariants: 1. White space apart, only the canonical form is
 * read: a doubled member, another order or another way to write a number is refused. 2. A newer
 * FormatVersion is told apart from damage. 3. A refusal says which member, and what is wrong.
 */
import { compareText, decodeText } from "../base/bytes.js";
import { COUNTER_MAX, type Hlc, compareHlc } from "../base/hlc.js";
import { INT32_MAX, INT32_MIN } from "../base/int64.js";
import { PARTITIONS_MAX } from "../base/limits.js";
import { failure, ok } from "../base/result.js";
import type { ArchiveSum, SignaturePort } from "../ports.js";
import type { BackupResult } from "./faults.js";
import {
  MANIFEST_MAX_BYTES,
  MANIFEST_VERSION,
  type Manifest,
  type PartitionRange,
  artifactNames,
  baseCutOf,
  manifestText,
  parseUtcText,
  signedBytes,
} from "./manifest.js";
import { idOfUuid } from "./names.js";

const HEX64 = /^[0-9a-f]{64}$/;
/** Nothing that a manifest names is longer. */
const TEXT_MAX = 1024;

/** What is wrong, for the reader's own use: it never leaves this file. */
class Refusal {
  constructor(readonly reason: string) {}
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = Readonly<Record<string, Json>>;

/** The members of one object, each asked for once, by name. */
class Members {
  constructor(
    private readonly at: string,
    private readonly members: JsonObject,
  ) {}

  private value(name: string): Json {
    if (!Object.hasOwn(this.members, name)) throw new Refusal(`${this.at}${name} is missing`);
    return this.members[name] as Json;
  }

  private refuse(name: string, what: string): never {
    throw new Refusal(`${this.at}${name} is ${what}`);
  }

  integer(name: string, from = 0, to = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(name);
    const isInteger = typeof value === "number" && Number.isSafeInteger(value);
    if (!isInteger || Object.is(value, -0)) return this.refuse(name, "no whole number");
    return value < from || value > to ? this.refuse(name, "out of range") : value;
  }

  text(name: string): string {
    const value = this.value(name);
    if (typeof value !== "string") return this.refuse(name, "no text");
    return value.length > TEXT_MAX ? this.refuse(name, "too long") : value;
  }

  id(name: string): string {
    const id = idOfUuid(this.text(name));
    return id === null ? this.refuse(name, "no id of a backup") : id;
  }

  isNull(name: string): boolean {
    return this.value(name) === null;
  }

  utc(name: string): number {
    const atMs = parseUtcText(this.text(name));
    return atMs === null || atMs < 0 ? this.refuse(name, "no time") : atMs;
  }

  stamp(prefix: string): Hlc {
    const n = this.integer(`${prefix}Node`, INT32_MIN, INT32_MAX);
    const l = this.integer(`${prefix}Physical`);
    return { n, l, c: this.integer(`${prefix}Counter`, 0, COUNTER_MAX) };
  }

  list(name: string): readonly Json[] {
    const value = this.value(name);
    if (!Array.isArray(value)) return this.refuse(name, "no list");
    const list = value as readonly Json[];
    if (list.length === 0) return this.refuse(name, "empty");
    return list.length > PARTITIONS_MAX ? this.refuse(name, "too long") : list;
  }

  map(name: string): JsonObject {
    return asObject(this.value(name), `${this.at}${name}`);
  }
}

function asObject(value: Json | undefined, at: string): JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject) throw new Refusal(`${at === "" ? "the manifest" : at} is no object`);
  return value as JsonObject;
}

function rangeOf(value: Json, at: number): PartitionRange {
  const where = `PartitionRanges[${at}]`;
  const members = new Members(`${where}.`, asObject(value, where));
  return {
    partition: members.integer("PartitionId", 0, 0xffff_ffff),
    fromIndex: members.integer("FromIndex", 1),
    fromStamp: members.stamp("FromHlc"),
    toIndex: members.integer("ToIndex", 1),
    toStamp: members.stamp("ToHlc"),
    toTerm: members.integer("ToTerm", 1),
  };
}

function partitionsOf(members: Members, name: string): number[] {
  const ids = members.list(name).map((id) => {
    const isId = typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= 0xffff_ffff;
    if (!isId) throw new Refusal(`${name} holds what is no partition`);
    return id;
  });
  if (!ascends(ids)) throw new Refusal(`${name} does not ascend`);
  return ids;
}

function ascends(ids: readonly number[]): boolean {
  return ids.every((id, at) => at === 0 || id > (ids[at - 1] as number));
}

function filesOf(members: Members): Map<string, ArchiveSum> {
  const checksums = members.map("Checksums");
  const sizes = members.map("Sizes");
  const files = new Map<string, ArchiveSum>();
  const reader = new Members("Sizes.", sizes);
  for (const [name, sha256] of Object.entries(checksums)) {
    if (typeof sha256 !== "string" || !HEX64.test(sha256)) {
      throw new Refusal(`Checksums.${name} is no SHA-256`);
    }
    files.set(name, { sizeBytes: reader.integer(name, 1), sha256 });
  }
  if (Object.keys(sizes).length !== files.size) throw new Refusal("Sizes has another file");
  return files;
}

/** The manifest of an object whose members are of the right form. */
function manifestOf(object: JsonObject): Manifest {
  const members = new Members("", object);
  const type = members.text("Type");
  if (type !== "Full" && type !== "Incremental") throw new Refusal("Type is not known");
  const partitionRanges = members.list("PartitionRanges").map(rangeOf);
  const isCoordinated = !members.isNull("ClusterSnapshotNode");
  return {
    backupId: members.id("BackupId"),
    type,
    createdAtMs: members.utc("CreatedAtUtc"),
    parentBackupId: members.isNull("ParentBackupId") ? null : members.id("ParentBackupId"),
    partitionRanges,
    clusterSnapshot: isCoordinated ? members.stamp("ClusterSnapshot") : null,
    clusterId: members.text("ClusterId"),
    coordinatorNode: members.text("CoordinatorNode"),
    coordinatorTerm: members.integer("CoordinatorTerm"),
    storageType: members.text("StorageType"),
    storageRevision: members.text("StorageRevision"),
    topologyGeneration: members.integer("TopologyGeneration"),
    clusterPartitions: partitionsOf(members, "ClusterPartitions"),
    coveredPartitions: partitionsOf(members, "CoveredPartitions"),
    files: filesOf(members),
  };
}

/** What the members of a manifest must have to do with each other; null when they do. */
function disagreement(manifest: Manifest): string | null {
  const { type, parentBackupId, partitionRanges, clusterSnapshot, files } = manifest;
  if ((type === "Full") !== (parentBackupId === null)) return "ParentBackupId does not fit Type";
  const ids = partitionRanges.map(({ partition }) => partition);
  if (!ascends(ids)) return "PartitionRanges does not ascend";
  if (!sameList(ids, manifest.coveredPartitions)) return "CoveredPartitions is not what is covered";
  for (const { partition, fromIndex, fromStamp, toIndex, toStamp } of partitionRanges) {
    const isForward = toIndex >= fromIndex && compareHlc(fromStamp, toStamp) <= 0;
    if (!isForward) return `the range of partition ${partition} leads backwards`;
    const isCut = clusterSnapshot === null || compareHlc(toStamp, clusterSnapshot) === 0;
    if (!isCut) return `partition ${partition} does not end at ClusterSnapshot`;
  }
  if (clusterSnapshot !== null && type !== "Full") return "an Incremental has a ClusterSnapshot";
  const names = [...files.keys()].sort(compareText);
  return sameList(names, artifactNames(manifest)) ? null : "Checksums does not have its files";
}

function sameList<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at]);
}

/** A JSON text without the white space between its tokens. */
function withoutSpace(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g, (_all, quoted?: string) => quoted ?? "");
}

interface Parsed {
  readonly manifest: Manifest;
  readonly mac: string | null;
}

function parse(text: string): Parsed {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    throw new Refusal("it is no JSON");
  }
  const object = asObject(value, "");
  const version = object["FormatVersion"];
  if (typeof version === "number" && Number.isInteger(version) && version > MANIFEST_VERSION) {
    throw new NewerVersion(version);
  }
  if (version !== MANIFEST_VERSION) throw new Refusal("FormatVersion is not known");
  const manifest = manifestOf(object);
  const mac = object["Mac"] ?? null;
  if (mac !== null && typeof mac !== "string") throw new Refusal("Mac is no text");
  if (object["BaseCutNode"] === undefined) throw new Refusal("BaseCutNode is missing");
  const members = new Members("", object);
  if (compareHlc(members.stamp("BaseCut"), baseCutOf(manifest)) !== 0) {
    throw new Refusal("BaseCut is not the largest FromHlc");
  }
  const fault = disagreement(manifest);
  if (fault !== null) throw new Refusal(fault);
  if (withoutSpace(text) !== manifestText(manifest, mac)) {
    throw new Refusal("it is not in canonical form: a member too many, twice or out of order");
  }
  return { manifest, mac };
}

class NewerVersion {
  constructor(readonly version: number) {}
}

export interface ReadManifest {
  readonly manifest: Manifest;
  /** It is signed, and nobody could check it: there is no key here. */
  readonly isUnchecked: boolean;
}

/** Reads the bytes of the file `path`, which should be the manifest of the backup `id`. */
export function decodeManifest(
  path: string,
  id: string,
  bytes: Uint8Array,
  signatures: SignaturePort,
): BackupResult<ReadManifest> {
  const corrupt = (why: string): BackupResult<never> =>
    failure("CorruptArtifact", `"${path}": ${why}`);
  if (bytes.length > MANIFEST_MAX_BYTES) return corrupt("it is larger than a manifest can be");
  const text = decodeText(bytes);
  if (text === null) return corrupt("it is no UTF-8");
  let parsed: Parsed;
  try {
    parsed = parse(text);
  } catch (error) {
    if (error instanceof Refusal) return corrupt(error.reason);
    if (!(error instanceof NewerVersion)) throw error;
    return failure("UnsupportedFormat", `"${path}" has FormatVersion ${error.version}`);
  }
  const { manifest, mac } = parsed;
  if (manifest.backupId !== id) return corrupt("it is the manifest of another backup");
  if (!signatures.hasKey) return ok({ manifest, isUnchecked: mac !== null });
  if (mac === null) return corrupt("it is not signed");
  if (!signatures.verify(signedBytes(manifest), mac)) return corrupt("its signature is wrong");
  return ok({ manifest, isUnchecked: false });
}

/**
 * What a manifest that is no good still says of where it belongs, for those who must not delete
 * what it may need; null: nobody knows.
 */
export function parentAsTold(bytes: Uint8Array): { readonly parent: string | null } | null {
  try {
    const object = asObject(JSON.parse(decodeText(bytes) ?? "") as Json, "");
    const { Type: type, ParentBackupId: parent } = object;
    if (type === "Full" && parent === null) return { parent: null };
    const id = type === "Incremental" && typeof parent === "string" ? idOfUuid(parent) : null;
    return id === null ? null : { parent: id };
  } catch {
    return null;
  }
}
