/**
 * Restores in memory: false directories of backups and of targets, and state stores that are kept by
 * their path, so that a test reads from top to bottom.
 */
import { level } from "../../../src/base/ids.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { Prng } from "../../../src/base/prng.js";
import { ok } from "../../../src/base/result.js";
import type {
  RestoreEnd,
  RestoreProgress,
  RestoreRequest,
} from "../../../src/host/restoring/restore-types.js";
import { Restore } from "../../../src/host/restoring/restore.js";
import type { RestorePorts, RestoreSettings } from "../../../src/host/restoring/restore-ports.js";
import type { SignaturePort, StoreChange, StorePort } from "../../../src/ports.js";
import { FakeStore } from "../machine/fake-store.js";
import { newMember } from "../machine/members.js";
import { ArchiveBench } from "./archive-bench.js";
import { FalseArchive, FalseArchiveDisk } from "./false-archive.js";
import { SampleCluster, UNSIGNED, sampleId } from "./sample-backup.js";

export const RESTORE_ROOT = "/restores";

/** Answers in later turns, and may be full. */
class LaterStore implements StorePort {
  constructor(
    private readonly later: (callback: () => void) => void,
    private readonly rows: FakeStore,
    private readonly isFull: () => boolean,
  ) {}

  get(key: Uint8Array): Uint8Array | null {
    return this.rows.get(key);
  }

  scan(...given: Parameters<StorePort["scan"]>): void {
    this.rows.scan(...given);
  }

  write(changes: readonly StoreChange[], done: Parameters<StorePort["write"]>[1]): void {
    this.later(() => {
      if (this.isFull()) return done({ ok: false, code: "full", message: "no space" });
      this.rows.write(changes, done);
    });
  }

  sizeBytes(): number {
    return this.rows.sizeBytes();
  }

  close(done: () => void): void {
    this.later(done);
  }
}

/** Makes a cluster of the sample groups, with two members and two data partitions. */
export function foundSample(cluster: SampleCluster): void {
  for (const group of cluster.groups) group.apply([{ kind: "set-level", level: level(2) }]);
  cluster.groups[0]?.apply([
    {
      ...{ kind: "found-cluster", clusterId: "old", dataPartitions: 2, replicationFactor: 0 },
      ...{ level: level(2), members: [newMember(1, "n1:1", "s1"), newMember(2, "n2:1", "s2")] },
    },
  ]);
}

export class RestoreBench {
  readonly backups = new ArchiveBench();
  readonly targets: FalseArchive;
  /** By path below the restore root, as it was when its directory got that name. */
  readonly stores = new Map<string, FakeStore>();
  readonly levels = new Map<string, number>();
  readonly progress: RestoreProgress[] = [];
  readonly cluster: SampleCluster;
  storeIsFull = false;
  /** Looked at before every turn. */
  atTurn: () => void = () => undefined;
  private readonly prng: Prng;

  constructor(
    readonly signatures: SignaturePort = UNSIGNED,
    partitions: readonly number[] = [0, 1, 2],
    seed = 1,
  ) {
    this.prng = new Prng(seed);
    const inLine = this.backups.disk.soon;
    const soon = (callback: () => void): void => {
      inLine(() => {
        this.atTurn();
        callback();
      });
    };
    Object.assign(this.backups.disk, { soon });
    this.targets = new FalseArchive(new FalseArchiveDisk(soon));
    this.cluster = new SampleCluster(this.backups, partitions, signatures);
    foundSample(this.cluster);
  }

  ports(): RestorePorts {
    const { soon } = this.targets.disk;
    return {
      ...{ backups: this.backups.archive, signatures: this.signatures, targets: this.targets },
      stores: {
        open: (path, done) => {
          const rows = this.stores.get(path) ?? new FakeStore();
          this.stores.set(path, rows);
          const store = new LaterStore(soon, rows, () => this.storeIsFull);
          soon(() => done(ok(store)));
        },
        noteLevel: (path, to, done) => {
          this.levels.set(path, to);
          soon(() => done(ok(null)));
        },
      },
      clock: { monotonicMs: () => 0, wallMs: () => 1_700_000_500_000 },
      timer: { soon, after: () => ({ cancel: () => undefined }) },
      entropy: { uint32: () => this.prng.nextUint32() },
      logger: { log: () => undefined },
    };
  }

  settings(): RestoreSettings {
    return {
      ...{ restoreRoot: RESTORE_ROOT, realRestoreRoot: "/mnt/restores" },
      ...{ occupied: ["/backups", "/restores/live/data"], program: PROGRAM, nodeName: "n1" },
    };
  }

  begin(request: Partial<RestoreRequest> = {}): Restore {
    const whole = {
      ...{ leafId: sampleId(1), targetDir: `${RESTORE_ROOT}/new` },
      ...{ targetTimeMs: 0, sequenceSkip: 0n, ...request },
    };
    return new Restore(this.settings(), this.ports(), whole, (progress) => {
      this.progress.push(progress);
    });
  }

  restore(request: Partial<RestoreRequest> = {}): RestoreEnd | undefined {
    return this.backups.call<RestoreEnd>((done) => this.begin(request).run(done));
  }

  /** "ok", or code and message of the failure. */
  said(request: Partial<RestoreRequest> = {}): string {
    const end = this.restore(request);
    if (end === undefined) return "no answer";
    return end.ok ? "ok" : `${end.code}: ${end.message}`;
  }

  /** The rows of the only state store whose staging directory got the target's name. */
  state(at = -1): FakeStore {
    const paths = [...this.stores.keys()].filter((path) => path.endsWith("/state"));
    return this.stores.get(paths.at(at) ?? "") ?? new FakeStore();
  }
}
