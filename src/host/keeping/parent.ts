/**
 * The directory as the keeper meets it: its lease there, and the parent of an incremental backup
 * with where its logs end.
 *
 * Invariants: 1. The whole chain is there and in order before anything is added to it. 2. What is
 * gone on from is read from the parent's own files, and these are what its manifest says (P-136). 3.
 * Nothing of the cluster is looked at here.
 */
import { readArtifact } from "../../backup/artifact-files.js";
import { checkRoot, readChain } from "../../backup/catalogue.js";
import { systemFault } from "../../backup/faults.js";
import { type Lease, type LeaseTerms, takeLease } from "../../backup/lease.js";
import { LogDecoder, type LogTrailer } from "../../backup/log-file.js";
import type { Manifest } from "../../backup/manifest.js";
import { logName, manifestName, uuidOf } from "../../backup/names.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { TimerPort } from "../../ports.js";
import type { BackupCatalogue, TakingFaultCode } from "../backups/backup-taking.js";

type Done<T> = (result: Result<T, TakingFaultCode>) => void;

/** Takes a lease in the directory, if that is safe to use. */
export function protect(
  { archive }: BackupCatalogue,
  timer: TimerPort,
  terms: LeaseTerms,
  done: Done<Lease>,
): void {
  checkRoot(archive, (root) => {
    if (!root.ok) return done(root);
    takeLease({ archive, timer }, terms, (taken) => done(taken.ok ? taken : systemFault(taken)));
  });
}

/** The manifest of a parent with a whole chain. */
export function readParent(catalogue: BackupCatalogue, id: string, done: Done<Manifest>): void {
  const { archive, signatures } = catalogue;
  archive.examine(manifestName(id), (entry) => {
    if (!entry.ok && entry.code === "missing") {
      return done(failure("ParentMissing", `There is no backup ${uuidOf(id)}.`));
    }
    readChain(archive, signatures, id, (read) => {
      if (!read.ok) return done(read);
      const parent = read.value.chain.at(-1);
      if (parent === undefined) return done(failure("CorruptChain", "An empty chain."));
      done(ok(parent));
    });
  });
}

/**
 * Where the log of each partition of the parent ends; null where a file is of another cluster than
 * `lineage`, by the id that each gave itself. Clusters that were restored or forced may be alike in
 * all that a manifest says, and in index and term of what they hold.
 */
export function readEnds(
  { archive }: BackupCatalogue,
  { parent, lineage }: { readonly parent: Manifest; readonly lineage: string },
  isOver: () => boolean,
  done: Done<ReadonlyMap<number, LogTrailer> | null>,
): void {
  const ends = new Map<number, LogTrailer>();
  const next = (at: number): void => {
    const range = parent.partitionRanges[at];
    if (range === undefined) return done(ok(ends));
    const name = logName(range.partition);
    const path = `${parent.backupId}/${name}`;
    const sum = parent.files.get(name) ?? { sizeBytes: 0, sha256: "" };
    readArtifact(archive, path, sum, new LogDecoder(path), { isCancelled: isOver }, (log) => {
      if (!log.ok) return done(log);
      const { trailer, head } = log.value;
      if (head.origin.lineage !== lineage) return done(ok(null));
      const isEnd = trailer.end.index === range.toIndex && trailer.end.term === range.toTerm;
      if (!isEnd) return done(failure("CorruptArtifact", `"${path}" ends elsewhere`));
      ends.set(range.partition, trailer);
      next(at + 1);
    });
  };
  next(0);
}
