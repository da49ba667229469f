/**
 * The backup calls of a node on a false directory, with whoever takes and restores played by the
 * test.
 */
import type { CallName, EndNamed, RequestNamed } from "../../../src/api/calls.js";
import type {
  BackupEvent,
  BackupRestoring,
  BackupWorld,
} from "../../../src/operations/api/backup-world.js";
import type {
  BackupProgress as TakingProgress,
  BackupRequest,
  TakenBackup,
  TakingFault,
} from "../../../src/host/backups/backup-taking.js";
import type { RequestContext } from "../../../src/operations/api/requests.js";
import { ArchiveBench } from "../backup/archive-bench.js";
import { FalseArchive, FalseArchiveDisk } from "../backup/false-archive.js";
import { SampleCluster, UNSIGNED } from "../backup/sample-backup.js";
import { call } from "./administration.js";
import { Bench } from "./fixture.js";
import { World } from "../host/world.js";

type Restore = BackupRestoring["restore"];
type RestoreProgress = Parameters<Parameters<Restore>[2]>[0];
type RestoreEnd = Parameters<Parameters<Restore>[3]>[0];

/** Something that runs until the test ends it. */
export interface Played<Request, Progress, End> {
  readonly request: Request;
  readonly progress: (progress: Progress) => void;
  readonly done: (end: End) => void;
  cancelled: boolean;
}

export interface BackupBenchOptions {
  readonly world?: Partial<BackupWorld>;
  /** False: no directory is configured. */
  readonly configured?: boolean;
}

export class BackupBench {
  readonly bench: Bench;
  readonly disk: FalseArchiveDisk;
  readonly takes: Played<BackupRequest, TakingProgress, TakenBackup | TakingFault>[] = [];
  readonly restores: Played<Parameters<Restore>[0], RestoreProgress, RestoreEnd>[] = [];
  readonly events: BackupEvent[] = [];
  reclaimed = 0;
  invalid = -1;

  constructor({ world: given = {}, configured = true }: BackupBenchOptions = {}) {
    const world = new World();
    this.disk = new FalseArchiveDisk((callback) => world.timer.soon(callback));
    const made = (): BackupWorld => ({
      archive: configured ? new FalseArchive(this.disk) : null,
      signatures: UNSIGNED,
      retention: { maxChains: 0, maxAgeMs: 0, maxBytes: 0 },
      collectEveryMs: 0,
      taking: {
        take: (request, progress, done) => play(this.takes, request, progress, done),
      },
      restoring: {
        restore: (request, _operation, progress, done) =>
          play(this.restores, request, progress, done),
      },
      witness: {
        ended: (event) => void this.events.push(event),
        reclaimed: (sizeBytes) => void (this.reclaimed += sizeBytes),
        catalogueSeen: (invalid) => void (this.invalid = invalid),
      },
      ...given,
    });
    this.bench = new Bench({}, world, true, made);
  }

  /** Fills the directory with what a cluster of samples took. */
  fill(take: (cluster: SampleCluster) => void): void {
    const samples = new ArchiveBench();
    take(new SampleCluster(samples));
    for (const [path, bytes] of samples.disk.files()) this.disk.put(path, bytes);
  }

  /** Makes a call; its ends come into the list. */
  begin<N extends CallName>(
    name: N,
    request: RequestNamed<N>,
    context: Partial<RequestContext> = {},
  ): EndNamed<N>[] {
    const ends: EndNamed<N>[] = [];
    const { operations, world } = this.bench;
    const deadlineMs = world.timer.nowMs + 1e8;
    const full = { deadlineMs, forwardHops: 0, requestId: "t", ...context };
    call(operations, name, request, full, (end) => void ends.push(end));
    if (ends.length > 0) throw new Error("answered in the turn of the call");
    world.settle();
    return ends;
  }

  /** Makes a call that ends at once. */
  end<N extends CallName>(name: N, request: RequestNamed<N>): EndNamed<N> {
    const [end, ...more] = this.begin(name, request);
    if (end === undefined || more.length > 0) throw new Error(`${name} is answered once`);
    return end;
  }

  /** Lets time pass, on the clock of the file system too. */
  pass(durationMs: number): void {
    this.disk.nowMs += durationMs;
    this.bench.world.pass(durationMs, Math.max(10, durationMs / 100));
  }
}

function play<Request, Progress, End>(
  list: Played<Request, Progress, End>[],
  request: Request,
  progress: (progress: Progress) => void,
  done: (end: End) => void,
): { cancel(): void } {
  const played: Played<Request, Progress, End> = { request, progress, done, cancelled: false };
  list.push(played);
  return {
    cancel: () => {
      played.cancelled = true;
    },
  };
}
