/**
 * Verifies a chain with all its files, as far as that goes without replaying it.
 *
 * Invariants: 1. Each file is read once, whole, and is what its manifest says: size, SHA-256, and
 * every record of it. 2. No further file lies beside them. 3. What an artifact says of itself is
 * what its manifest says, and each begins where the one before it ended: index, term, stamp and
 * digest. 4. So many files at most are read at a time.
 */
import { compareHlc } from "../base/hlc.js";
import { failure, ok } from "../base/result.js";
import type { ArchivePort, SignaturePort } from "../ports.js";
import { type ReadOptions, readArtifact } from "./artifact-files.js";
import { readChain, scanTree, structureFault } from "./catalogue.js";
import { type BackupDone, type BackupFault, artifactFault } from "./faults.js";
import { ImageDecoder, type ImageSummary } from "./image-file.js";
import { LogDecoder, type LogPlace, type LogSummary } from "./log-file.js";
import type { Manifest, PartitionRange } from "./manifest.js";
import { imageName, logName } from "./names.js";
import type { ArtifactOrigin } from "./origin.js";

/** Partitions whose files are read at a time: while one is decoded another is opened. */
const PARTITIONS_AT_ONCE = 2;

/** What a chain holds of one partition. */
export interface PartitionEvidence {
  readonly image: ImageSummary;
  /** Root first. */
  readonly logs: readonly LogSummary[];
}

export interface VerifiedChain {
  /** Root first. */
  readonly chain: readonly Manifest[];
  /** A signature could not be checked: there is no key here. */
  readonly isUnchecked: boolean;
  readonly partitions: ReadonlyMap<number, PartitionEvidence>;
}

/** Verifies the chain from its root to `leafId`. */
export function validateChain(
  archive: ArchivePort,
  signatures: SignaturePort,
  leafId: string,
  options: ReadOptions,
  done: BackupDone<VerifiedChain>,
): void {
  readChain(archive, signatures, leafId, (read) => {
    if (!read.ok) return done(read);
    const { chain, isUnchecked } = read.value;
    const evidence = new Evidence();
    const next = (at: number): void => {
      const manifest = chain[at];
      if (manifest === undefined) {
        return done(ok({ chain, isUnchecked, partitions: evidence.partitions() }));
      }
      verifyBackup(archive, manifest, evidence, options, (fault) => {
        if (fault !== null) return done(fault);
        next(at + 1);
      });
    };
    next(0);
  });
}

type Verdict = (fault: BackupFault | null) => void;

/** Verifies the files of one backup, behind those of its parents. */
function verifyBackup(
  archive: ArchivePort,
  manifest: Manifest,
  evidence: Evidence,
  options: ReadOptions,
  done: Verdict,
): void {
  const { backupId: id } = manifest;
  archive.examine(id, (directory) => {
    if (!directory.ok) return done(artifactFault(directory));
    scanTree(archive, id, directory.value, (tree) => {
      const fault = tree.ok ? structureFault(manifest, tree.value) : tree;
      if (fault !== null) return done(fault);
      verifyPartitions(archive, manifest, evidence, options, done);
    });
  });
}

/** `done`: with the first fault, when nothing is being read any more. */
function verifyPartitions(
  archive: ArchivePort,
  manifest: Manifest,
  evidence: Evidence,
  options: ReadOptions,
  done: Verdict,
): void {
  const waiting = [...manifest.partitionRanges].reverse();
  let running = PARTITIONS_AT_ONCE;
  let fault: BackupFault | null = null;
  const next = (): void => {
    const range = fault === null ? waiting.pop() : undefined;
    if (range === undefined) {
      if (--running === 0) done(fault);
      return;
    }
    verifyPartition(archive, { manifest, range }, evidence, options, (found) => {
      fault ??= found;
      next();
    });
  };
  for (let lane = 0; lane < PARTITIONS_AT_ONCE; lane++) next();
}

interface Part {
  readonly manifest: Manifest;
  readonly range: PartitionRange;
}

function verifyPartition(
  archive: ArchivePort,
  part: Part,
  evidence: Evidence,
  options: ReadOptions,
  done: Verdict,
): void {
  const { manifest, range } = part;
  const open = (name: string): { path: string; sum: { sizeBytes: number; sha256: string } } => {
    const sum = manifest.files.get(name) ?? { sizeBytes: 0, sha256: "" };
    return { path: `${manifest.backupId}/${name}`, sum };
  };
  const readLog = (): void => {
    const { path, sum } = open(logName(range.partition));
    readArtifact(archive, path, sum, new LogDecoder(path), options, (log) => {
      done(log.ok ? evidence.log(part, path, log.value) : log);
    });
  };
  if (manifest.type !== "Full") return readLog();
  const { path, sum } = open(imageName(range.partition));
  readArtifact(archive, path, sum, new ImageDecoder(path), options, (image) => {
    const fault = image.ok ? evidence.image(part, path, image.value) : image;
    if (fault !== null) return done(fault);
    readLog();
  });
}

/** What the files said so far, each held to its manifest and to the one before it. */
class Evidence {
  private readonly images = new Map<number, ImageSummary>();
  private readonly logs = new Map<number, LogSummary[]>();
  private lineage: string | null = null;

  partitions(): Map<number, PartitionEvidence> {
    const found = new Map<number, PartitionEvidence>();
    for (const [partition, image] of this.images) {
      found.set(partition, { image, logs: this.logs.get(partition) ?? [] });
    }
    return found;
  }

  image(part: Part, path: string, image: ImageSummary): BackupFault | null {
    const { range } = part;
    const { head } = image;
    const fault = this.originFault(part, path, head.origin);
    if (fault !== null) return fault;
    const isThere =
      head.index + 1 === range.fromIndex && compareHlc(head.stamp, range.fromStamp) === 0;
    if (!isThere) return differs(path, "where it is");
    this.images.set(range.partition, image);
    return null;
  }

  log(part: Part, path: string, log: LogSummary): BackupFault | null {
    const { range } = part;
    const fault = this.originFault(part, path, log.head.origin);
    if (fault !== null) return fault;
    const { before } = log.head;
    const { end } = log.trailer;
    const isThere =
      before.index + 1 === range.fromIndex &&
      compareHlc(before.stamp, range.fromStamp) === 0 &&
      end.index === range.toIndex &&
      end.term === range.toTerm &&
      compareHlc(end.stamp, range.toStamp) === 0;
    if (!isThere) return differs(path, "from where to where it leads");
    const earlier = this.logs.get(range.partition) ?? [];
    const last = earlier.at(-1)?.trailer.end ?? this.endOfImage(range.partition);
    if (last === null || !isSamePlace(last, before)) {
      return failure("CorruptChain", `"${path}" does not continue what is before it`);
    }
    this.logs.set(range.partition, [...earlier, log]);
    return null;
  }

  private endOfImage(partition: number): LogPlace | null {
    const image = this.images.get(partition);
    if (image === undefined) return null;
    const { index, term, stamp } = image.head;
    return { index, term, stamp, chain: image.chain };
  }

  private originFault(
    { manifest, range }: Part,
    path: string,
    origin: ArtifactOrigin,
  ): BackupFault | null {
    const isOwn =
      origin.backupId === manifest.backupId &&
      origin.clusterId === manifest.clusterId &&
      origin.storageType === manifest.storageType &&
      origin.storageRevision === manifest.storageRevision &&
      origin.topologyGeneration === manifest.topologyGeneration &&
      origin.partition === range.partition;
    if (!isOwn) return differs(path, "where it is from");
    this.lineage ??= origin.lineage;
    if (origin.lineage === this.lineage) return null;
    return failure("CorruptChain", `"${path}" is of another cluster than the files before it`);
  }
}

function isSamePlace(a: LogPlace, b: LogPlace): boolean {
  const isThere = a.index === b.index && a.term === b.term && a.chain === b.chain;
  return isThere && compareHlc(a.stamp, b.stamp) === 0;
}

function differs(path: string, what: string): BackupFault {
  return failure("CorruptArtifact", `"${path}" and its manifest do not agree on ${what}`);
}
