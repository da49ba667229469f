/**
 * Reads what lies in a directory of backups at one moment of the world, aside from its time: with the
 * readers that ship, and with nothing of what nodes believe.
 *
 * Invariant: reading changes nothing.
 */
import { readCatalogue, type Catalogue } from "../../../src/backup/catalogue.js";
import { ImageDecoder } from "../../../src/backup/image-file.js";
import { LogDecoder, type LogSummary } from "../../../src/backup/log-file.js";
import type { Manifest } from "../../../src/backup/manifest.js";
import { imageName, logName } from "../../../src/backup/names.js";
import { type VerifiedChain, validateChain } from "../../../src/backup/validate.js";
import { partitionId } from "../../../src/base/ids.js";
import type { Result } from "../../../src/base/result.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import type { LogEntry, SignaturePort } from "../../../src/ports.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import type { FalseArchiveDisk } from "../../doubles/backup/false-archive.js";
import { FakeStore } from "../../doubles/machine/fake-store.js";
import { type GroupRows, rowsOf } from "./shadow.js";

export interface ReadLog {
  readonly entries: readonly LogEntry[];
  readonly summary: LogSummary;
}

export class ChainReader {
  constructor(
    private readonly disk: FalseArchiveDisk,
    private readonly signatures: SignaturePort,
  ) {}

  private bench(): ArchiveBench {
    const bench = new ArchiveBench();
    Object.assign(bench.disk, { root: this.disk.root });
    return bench;
  }

  validate(leafId: string): Result<VerifiedChain, string> {
    const bench = this.bench();
    const { archive } = bench;
    const result = bench.call<Result<VerifiedChain, string>>((done) => {
      validateChain(archive, this.signatures, leafId, {}, done);
    });
    if (result === undefined) throw new Error("the validation does not end");
    return result;
  }

  catalogue(): Catalogue {
    const bench = this.bench();
    return bench.value((done) => readCatalogue(bench.archive, this.signatures, done));
  }

  /** The log of a partition in one backup; null: it is not whole. */
  log(backupId: string, partition: number): ReadLog | null {
    const path = `${backupId}/${logName(partition)}`;
    const bytes = this.disk.find(path)?.bytes;
    if (bytes === undefined) return null;
    const entries: LogEntry[] = [];
    const decoder = new LogDecoder(path, (entry) => {
      entries.push({ ...entry, payload: entry.payload.slice() });
    });
    if (decoder.push(bytes) !== null) return null;
    const end = decoder.end();
    return end.ok ? { entries, summary: end.value } : null;
  }

  /** The rows of an image; null: it is not whole, or there is none. */
  image(backupId: string, partition: number): { index: number; rows: GroupRows } | null {
    const path = `${backupId}/${imageName(partition)}`;
    const bytes = this.disk.find(path)?.bytes;
    if (bytes === undefined) return null;
    const memtable = new Memtable({ store: new FakeStore(), cacheBytes: 0 });
    const machine = new Machine(memtable, partitionId(partition));
    const sink = machine.beginRestore();
    const decoder = new ImageDecoder(path, (chunk) => void sink.take(chunk));
    if (decoder.push(bytes) !== null || !decoder.end().ok) return null;
    machine.install(sink);
    return { index: machine.appliedIndex, rows: rowsOf(memtable, machine) };
  }
}

/** The last entry of each partition that a backup has. */
export function endsOf({ partitionRanges }: Manifest): ReadonlyMap<number, number> {
  return new Map(partitionRanges.map(({ partition, toIndex }) => [partition, toIndex]));
}
