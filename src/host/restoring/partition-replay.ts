/**
 * One partition of a backup becomes the state of a machine: its image, then its log, entry by
 * entry, up to a time.
 *
 * Invariants: 1. The production machine applies, and nothing else decides anything. 2. Each file is
 * hashed while it is replayed: what came of it counts only if it is the file of the manifest
 * (P-136). 3. Where the log of a backup ends, the digest over all entries is the one that live
 * replicas had there, or the restore ends. 4. Memory is bounded: between two slices of a file rows
 * are flushed.
 */
import { type ArtifactDecoder, readArtifact } from "../../backup/artifact-files.js";
import { type BackupFault, cancelled } from "../../backup/faults.js";
import { ImageDecoder, type ImageHead } from "../../backup/image-file.js";
import { LogDecoder } from "../../backup/log-file.js";
import type { Manifest } from "../../backup/manifest.js";
import { imageName, logName } from "../../backup/names.js";
import type { PartitionId } from "../../base/ids.js";
import { present } from "../../base/assert.js";
import { failure, ok } from "../../base/result.js";
import type { DecodedEntry } from "../../machine/commands/codec.js";
import { Machine } from "../../machine/machine.js";
import { isReplayed } from "../../machine/restoring/replay-end.js";
import type { RestoreSink } from "../../machine/snapshot/restore.js";
import type { ArchivePort, ArchiveSum, LogEntry } from "../../ports.js";
import { changeMembership } from "../../raft/state/membership.js";
import type { Membership } from "../../raft/state/types.js";
import {
  EntryKindCode,
  decodeConfigChange,
  decodeMembership,
  encodeMembership,
  membershipOfVoters,
} from "../replication/config-entries.js";
import type { RestoreDone, RestoreFault } from "./restore-faults.js";
import type { RowFlush } from "./row-flush.js";

/** What a replay needs beside the files. */
export interface ReplayOrder {
  readonly archive: ArchivePort;
  /** Root first. */
  readonly chain: readonly Manifest[];
  readonly partition: PartitionId;
  /** Keys are placed in the partition by their hash. */
  readonly isOfPool: boolean;
  /** Who the group began with, where its image does not tell; asked when the image is there. */
  founders(machine: Machine): readonly number[];
  /** Unix milliseconds, 0 = the end of the chain. */
  readonly targetMs: number;
  isCancelled(): boolean;
  /** A slice was read. */
  onSlice(): void;
}

export class PartitionReplay {
  readonly machine: Machine;
  /** Entries of logs that were applied. */
  entries = 0;
  /** The target time was reached: what follows is not applied. */
  hasEnded = false;
  private membership: Membership | null = null;
  private fault: BackupFault | null = null;

  constructor(
    private readonly rows: RowFlush,
    private readonly order: ReplayOrder,
  ) {
    this.machine = new Machine(rows.memtable, order.partition, 0, order.isOfPool);
  }

  /** Replays everything and flushes it; the machine is still open. */
  run(done: RestoreDone<null>): void {
    const { order } = this;
    const next = (at: number): void => {
      const manifest = order.chain[at];
      // What lies behind the target is not read: it was verified, and nothing of it is used.
      if (manifest === undefined || this.hasEnded) return this.rows.flush(done);
      this.backup(manifest, (result) => (result.ok ? next(at + 1) : done(result)));
    };
    next(0);
  }

  private backup(manifest: Manifest, done: RestoreDone<null>): void {
    if (manifest.type !== "Full") return this.log(manifest, done);
    this.image(manifest, (result) => (result.ok ? this.log(manifest, done) : done(result)));
  }

  private image(manifest: Manifest, done: RestoreDone<null>): void {
    const { rows, machine } = this;
    let sink: RestoreSink | null = null;
    const { path, sum } = fileOf(manifest, imageName(this.order.partition));
    // Checked once, as they are taken: by what fills the generation, as one of its own group.
    const decoder = new ImageDecoder(path, undefined, (_partition, visit) => {
      sink = machine.beginRestore(rows.imageRow, visit);
      return sink.check;
    });
    this.read(path, sum, decoder, (image) => {
      if (!image.ok) return done(image);
      // Rows are read from here on.
      rows.flush((flushed) => {
        if (!flushed.ok) return done(flushed);
        machine.install(present(sink, "an image that is whole was followed"));
        this.membership = this.membershipOf(image.value.head);
        done(ok(null));
      });
    });
  }

  private membershipOf({ membership }: ImageHead): Membership | null {
    if (membership === null) return membershipOfVoters(this.order.founders(this.machine));
    return decodeMembership(membership);
  }

  private log(manifest: Manifest, done: RestoreDone<null>): void {
    const { path, sum } = fileOf(manifest, logName(this.order.partition));
    const decoder = new LogDecoder(path, (entry, decoded) => this.entry(path, entry, decoded));
    this.read(path, sum, decoder, (log) => {
      if (!log.ok) return done(log);
      const { end } = log.value.trailer;
      const { machine } = this;
      if (this.hasEnded || machine.chainDigest === end.chain) return done(ok(null));
      const what = `replayed up to index ${end.index}, it leads to another state than there was`;
      done(failure("CorruptArtifact", `"${path}": ${what}`));
    });
  }

  private entry(path: string, entry: LogEntry, decoded: DecodedEntry | null): void {
    if (this.hasEnded || this.fault !== null) return;
    if (!isReplayed(decoded?.stamp.stamp ?? null, this.order.targetMs)) {
      this.hasEnded = true;
      return;
    }
    const { index, term } = entry;
    if (decoded !== null) {
      const { leaseMs, stamp } = decoded.stamp;
      this.machine.apply({ index, term, leaseMs, stamp }, decoded.commands, []);
    } else if (entry.kind === EntryKindCode.normal) this.machine.applyEmpty({ index, term });
    else if (!this.change(entry)) {
      const what = `entry ${index} changes members in a way that is not known`;
      this.fault = failure("CorruptArtifact", `"${path}": ${what}`);
      return;
    }
    this.entries++;
  }

  /** The members are part of the digest, and of nothing else that is restored. */
  private change(entry: LogEntry): boolean {
    const ordered = decodeConfigChange(entry.payload);
    if (ordered === null || this.membership === null) return false;
    const changed = changeMembership(this.membership, ordered.change);
    if (!changed.ok) return false;
    this.membership = changed.membership;
    this.machine.applyMembership(entry, encodeMembership(changed.membership), ordered.generation);
    return true;
  }

  private read<S>(
    path: string,
    sum: ArchiveSum,
    decoder: ArtifactDecoder<S>,
    done: RestoreDone<S>,
  ): void {
    const { order, rows } = this;
    let unflushed: RestoreFault | null = null;
    const careful = {
      push: (slice: Uint8Array): BackupFault | null => decoder.push(slice) ?? this.fault,
      end: () => decoder.end(),
    };
    const between = (next: () => void): void => {
      order.onSlice();
      rows.relieve((relieved) => {
        if (!relieved.ok) unflushed = relieved;
        next();
      });
    };
    const isCancelled = (): boolean => order.isCancelled() || unflushed !== null;
    readArtifact(order.archive, path, sum, careful, { isCancelled, between }, (result) => {
      if (unflushed !== null) return done(unflushed);
      if (order.isCancelled()) return done(cancelled());
      done(result);
    });
  }
}

/** Where a file of a backup is, and what it is by its manifest. */
function fileOf(
  manifest: Manifest,
  name: string,
): { readonly path: string; readonly sum: ArchiveSum } {
  const sum = manifest.files.get(name) ?? { sizeBytes: 0, sha256: "" };
  return { path: `${manifest.backupId}/${name}`, sum };
}
