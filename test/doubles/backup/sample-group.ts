/**
 * A partition with a little history: a real machine, its log, and what a backup takes of both.
 *
 * Invariant: the same calls make the same bytes.
 */
import { encodeEntry } from "../../../src/machine/commands/codec.js";
import type { Command } from "../../../src/machine/commands/command.js";
import { decodeSequenceRow } from "../../../src/machine/sequences/sequence-row.js";
import { RowKind } from "../../../src/machine/store/keys.js";
import { SnapshotCheck } from "../../../src/machine/snapshot/check.js";
import type { ArtifactOrigin } from "../../../src/backup/origin.js";
import type { ImageHead } from "../../../src/backup/image-file.js";
import type { LogPlace, LogTrailer } from "../../../src/backup/log-file.js";
import type { LogEntry } from "../../../src/ports.js";
import { Bench, create, lock, set } from "../machine/bench.js";

export const SAMPLE_ORIGIN: Omit<ArtifactOrigin, "backupId" | "partition"> = {
  clusterId: "prod",
  lineage: "0f1e2d3c",
  storageType: "lmdb",
  storageRevision: "v1",
  topologyGeneration: 3,
};

export class SampleGroup {
  readonly bench: Bench;
  readonly log: LogEntry[] = [];
  private nowMs = 1_700_000_000_000;
  private term = 3;

  constructor(readonly partition: number) {
    this.bench = new Bench(undefined, partition);
  }

  get machine(): Bench["machine"] {
    return this.bench.machine;
  }

  origin(backupId: string): ArtifactOrigin {
    return { ...SAMPLE_ORIGIN, backupId, partition: this.partition };
  }

  /** One entry with these commands, `laterMs` after the one before. */
  apply(commands: readonly Command[], laterMs = 10, counter = 0): void {
    this.nowMs += laterMs;
    this.at({ n: 1, l: this.nowMs, c: counter }, commands);
  }

  private at(stamp: { n: number; l: number; c: number }, commands: readonly Command[]): void {
    const index = this.machine.appliedIndex + 1;
    const { term } = this;
    const entry = { leaseMs: index * 5, stamp };
    this.log.push({ index, term, kind: 0, payload: encodeEntry(entry, commands) });
    this.machine.apply({ index, term, ...entry }, commands, []);
  }

  /** The first entry of a new leader. */
  newTerm(): void {
    this.term++;
    const index = this.machine.appliedIndex + 1;
    this.log.push({ index, term: this.term, kind: 0, payload: new Uint8Array(0) });
    this.machine.applyEmpty({ index, term: this.term });
  }

  /** Some writes of each kind. */
  write(count: number): void {
    for (let at = 0; at < count; at++) {
      const number = this.machine.appliedIndex;
      this.apply([
        set(`key-${number}`, `value ${number}`),
        lock(`lock-${number % 3}`, "owner", 60_000),
        create(`sequence-${number}`),
      ]);
    }
  }

  /** The mark of a backup; at an exact stamp, or at the end of the next millisecond. */
  mark(backupId: string, at?: { n: number; l: number; c: number }): void {
    const command: Command = { kind: "mark", backupId, round: 1 };
    if (at === undefined) return this.apply([command], 1, 0xffff_ffff);
    this.nowMs = at.l;
    this.at(at, [command]);
  }

  place(): LogPlace {
    const { machine } = this;
    const { appliedIndex: index, appliedTerm: term, lastStamp: stamp } = machine;
    return { index, term, stamp, chain: machine.chainDigest };
  }

  /** The state as it is now. */
  image(backupId: string, chunkBytes = 300): { head: ImageHead; chunks: Uint8Array[] } {
    const source = this.machine.openSnapshot(1 << 24);
    const { index, term, stamp } = this.place();
    const { membership } = this.machine;
    const chunks: Uint8Array[] = [];
    for (;;) {
      const chunk = source.next(chunkBytes);
      if (chunk === "overrun") throw new Error("overrun");
      chunks.push(chunk.bytes);
      if (chunk.last) break;
    }
    return { head: { origin: this.origin(backupId), index, term, stamp, membership }, chunks };
  }

  /** The entries behind an index. */
  since(index: number): LogEntry[] {
    return this.log.filter((entry) => entry.index > index);
  }

  trailer(): Omit<LogTrailer, "count"> {
    let highestIncarnation = 0;
    const check = new SnapshotCheck(this.partition, ({ kind, value }) => {
      if (kind !== RowKind.sequence) return;
      const { incarnation = 0 } = decodeSequenceRow(value) ?? {};
      highestIncarnation = Math.max(highestIncarnation, incarnation);
    });
    for (const chunk of this.image("").chunks) check.take(chunk);
    return {
      end: this.place(),
      highestToken: 41n,
      highestIncarnation,
      ephemeralFloor: this.machine.ephemeralFloor,
      ephemeralTerm: this.term,
    };
  }
}
