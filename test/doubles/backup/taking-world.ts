/**
 * A cluster of false nodes that share a directory of backups, and whoever asks them for one.
 *
 * Invariants: 1. Nothing happens by itself: time is passed by hand. 2. What is said to be whole was
 * read whole: every file, by `validateChain`.
 */
import { assert } from "../../../src/base/assert.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { partitionId } from "../../../src/base/ids.js";
import type { Manifest } from "../../../src/backup/manifest.js";
import { type VerifiedChain, validateChain } from "../../../src/backup/validate.js";
import type {
  BackupProgress,
  BackupRequest,
  BackupTaken,
} from "../../../src/host/backups/backup-taking.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { Group, ProposalResult } from "../../../src/host/group/group.js";
import { PlacedCluster } from "../host/placing.js";
import { setCommand } from "../host/world.js";
import { FalseArchive, FalseArchiveDisk, falseSignatures } from "./false-archive.js";
import { UNSIGNED } from "./sample-backup.js";

export const TAKEN_OF = { clusterId: "prod", storageRevision: "v1" } as const;

/** A backup that is being taken. */
export class Asked {
  readonly phases: string[] = [];
  end: BackupTaken | null = null;
  cancel: () => void = () => undefined;

  readonly progress = ({ phase }: BackupProgress): void => {
    if (this.phases.at(-1) !== phase) this.phases.push(phase);
  };

  readonly done = (end: BackupTaken): void => {
    assert(this.end === null, "a backup ends once");
    this.end = end;
  };

  /** Code of the fault, or "taken"; "open" before its end. */
  get said(): string {
    if (this.end === null) return "open";
    return this.end.ok ? "taken" : this.end.code;
  }

  get message(): string {
    return this.end === null || this.end.ok ? "" : this.end.message;
  }

  get manifest(): Manifest {
    assert(this.end?.ok === true, `the backup was taken: ${this.said} ${this.message}`);
    return this.end.manifest;
  }
}

export class TakingCluster extends PlacedCluster {
  readonly disk: FalseArchiveDisk;
  private readonly archives = new Map<number, FalseArchive>();

  /** `replicationFactor` 0: every partition is on every node. */
  constructor(size: number, replicationFactor = 0, settings: Partial<HostSettings> = {}) {
    const { min, max } = PROGRAM.levels;
    assert(max > min, "marks need the highest level");
    super(size, replicationFactor, { entryLevel: max, ...settings });
    this.disk = new FalseArchiveDisk((callback) => this.anyWorld().timer.soon(callback));
  }

  private anyWorld(): { readonly timer: { soon(callback: () => void): void } } {
    const [world] = [...this.worlds.values()];
    assert(world !== undefined, "there is a node");
    return world;
  }

  archive(id: number): FalseArchive {
    let archive = this.archives.get(id);
    if (archive === undefined) {
      archive = new FalseArchive(this.disk, `node ${id}`);
      this.archives.set(id, archive);
    }
    return archive;
  }

  override kill(id: number): void {
    this.archive(id).ended = true;
    this.archives.delete(id);
    super.kill(id);
  }

  ask(id: number, request: BackupRequest, key: string | null = null): Asked {
    const asked = new Asked();
    const signatures = falseSignatures(key);
    const catalogue = { archive: this.archive(id), signatures, ...TAKEN_OF };
    const taking = this.node(id).backupTaking(catalogue);
    const run = taking.take(request, asked.progress, asked.done);
    asked.cancel = () => run.cancel();
    return asked;
  }

  /** Asks, and passes time until it has ended. */
  take(id: number, request: BackupRequest, limitMs = 60_000): Asked {
    const asked = this.ask(id, request);
    this.passUntil(() => asked.end !== null, limitMs);
    return asked;
  }

  /** Runs one thing after the other, so that no moment between two of them is missed. */
  stepUntil(until: () => boolean, limitMs = 120_000): void {
    const endMs = this.nowMs + limitMs;
    while (!until()) {
      assert(this.nowMs < endMs, "it comes true in time");
      let moved = false;
      for (const world of this.worlds.values()) if (!until() && world.timer.step()) moved = true;
      if (moved) continue;
      const nowMs = this.nowMs + 1;
      for (const world of this.worlds.values()) world.timer.nowMs = nowMs;
    }
  }

  /** Everything that a chain has, verified. */
  verified(leafId: string): VerifiedChain {
    let found: VerifiedChain | null = null;
    let wrong = "";
    const reader = new FalseArchive(this.disk, "reader");
    validateChain(reader, UNSIGNED, leafId, {}, (result) => {
      if (result.ok) found = result.value;
      else wrong = `${result.code}: ${result.message}`;
    });
    for (let at = 0; at < 1000 && found === null && wrong === ""; at++) this.pass(10);
    assert(found !== null, `the chain is whole: ${wrong}`);
    return found;
  }

  /** Names in the directory of backups. */
  names(): string[] {
    return [...this.disk.root.names.keys()].sort();
  }

  groupAt(id: number, partition: number): Group {
    const group = this.node(id).group(partitionId(partition));
    assert(group !== null, `node ${id} has partition ${partition}`);
    return group;
  }

  /** Writes to a partition where it is led; whether that was answered well. */
  write(partition: number, key: string, value = "v"): boolean {
    let result: ProposalResult | null = null;
    const { nowMs } = this;
    if (!this.beginWrite(partition, key, value, (end) => (result = end))) return false;
    for (const endMs = nowMs + 2500; result === null && this.nowMs < endMs;) this.pass(10);
    return (result as ProposalResult | null)?.status === "applied";
  }

  /** The same without waiting; false: nobody leads it. */
  beginWrite(
    partition: number,
    key: string,
    value: string,
    done: (result: ProposalResult) => void,
  ): boolean {
    const id = this.serverOf(partition);
    if (id === null) return false;
    const command = setCommand(key, new TextEncoder().encode(value));
    this.groupAt(id, partition).propose(command, 100, this.nowMs + 2000, done);
    return true;
  }
}
