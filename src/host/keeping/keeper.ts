/**
 * One backup, by the node that was asked for it: from the proved read of meta to the published
 * manifest.
 *
 * In this order: meta is read and its planners are held; replicas hold their logs; images; marks;
 * logs from the images to the marks; meta is read again; the manifest. Where a replica was lost,
 * what is missing is made again, marks after images (P-132). Invariants: 1. It ends once. 2.
 * Nothing is published after a fault, nor unless the partitions are those of before, by a proved
 * read; a coordinated one only in the term of meta that it began in. 3. Every partition is in it,
 * also one that had no entries (P-133). 4. Holds and the hold of the planners are let go in the
 * end, and end by themselves.
 */
import { systemFault } from "../../backup/faults.js";
import type { Lease } from "../../backup/lease.js";
import type { Manifest } from "../../backup/manifest.js";
import { beginBackup, type StagedBackup } from "../../backup/publish.js";
import { present } from "../../base/assert.js";
import { BACKUP_BARRIER_MS } from "../../base/limits.js";
import type { Hlc } from "../../base/hlc.js";
import { failure } from "../../base/result.js";
import { judgeParent } from "../../control/backup-plan.js";
import type { TimerPort } from "../../ports.js";
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import { Artifacts } from "./artifacts.js";
import type { TopologyAnswer } from "../backups/backup-messages.js";
import type {
  BackupCatalogue,
  BackupPhase,
  BackupProgress,
  BackupRequest,
  BackupTaken,
  SubstitutionReason,
  TakenBackup,
  TakingFault,
} from "../backups/backup-taking.js";
import { Cut } from "./cut.js";
import {
  type KeeperWorld,
  type Part,
  type TakingFailure,
  type Undertaking,
  newPart,
  unavailable,
} from "./keeper-world.js";
import { manifestOf } from "./manifest-of.js";
import { Marks } from "./marks.js";
import { protect, readEnds, readParent } from "./parent.js";
import { PlannerHold } from "./planner-hold.js";
import { Shippers } from "./shippers.js";
import { readTopology, topologyFault } from "./topology.js";

const MOVING_AGAIN_MS = 500;
/** A backup that makes what was lost again goes round so often at most. */
const ROUNDS_MAX = 10;

const NOT_COORDINATOR: TakingFailure = failure(
  "NotBackupCoordinator",
  "This node does not lead the meta partition.",
);
const NO_META = unavailable("The meta partition does not answer.");

export interface KeeperDeps {
  readonly timer: TimerPort;
  readonly world: KeeperWorld;
  readonly catalogue: BackupCatalogue;
  /** Advertised peer endpoint of this node. */
  readonly endpoint: string;
  readonly storageType: string;
  readonly proposeOnMeta: ProposeOnMeta;
  /** The next round of cuts in this term of meta. */
  nextRound(metaTerm: number): number;
  /** Who leads the meta partition, for whoever asked the wrong node. */
  leader(): TakingFault["leader"];
}

export class Keeper {
  readonly backupId: string;
  private readonly tag: string;
  private phase: BackupPhase = "beginning";
  private phaseSinceMs: number;
  private partsDone = 0;
  private bytes = 0;
  private cancelled: TakingFailure | null = null;
  private isEnded = false;
  private isPublishing = false;
  private readonly planners: PlannerHold;
  private parts: Part[] = [];
  private topology: TopologyAnswer | null = null;
  private staged: StagedBackup | null = null;
  private shippers: Shippers | null = null;
  private artifacts: Artifacts | null = null;
  private undertaking: Undertaking | null = null;
  private parent: Manifest | null = null;
  private lease: Lease | null = null;
  private substitution: SubstitutionReason | null = null;
  private cutAt: Hlc | null = null;
  private rounds = 0;

  constructor(
    private readonly deps: KeeperDeps,
    private readonly request: BackupRequest,
    private readonly progress: (progress: BackupProgress) => void,
    private readonly done: (end: BackupTaken) => void,
  ) {
    const { world } = deps;
    const hex = (): string => world.uint32().toString(16).padStart(8, "0");
    this.backupId = [hex(), hex(), hex(), hex()].join("");
    this.tag = hex();
    this.planners = new PlannerHold(world, deps.proposeOnMeta, `backup ${this.backupId}`);
    this.phaseSinceMs = world.nowMs();
    world.waits.after(0, () => this.begin());
  }

  /** Ends it, unless it is being published. */
  cancel(why = "The call was cancelled."): void {
    this.giveUp(failure("Cancelled", why));
  }

  private giveUp(why: TakingFailure): void {
    if (this.isPublishing || this.isEnded) return;
    this.cancelled ??= why;
    this.artifacts?.end();
  }

  tick(nowMs: number): void {
    this.artifacts?.tick(nowMs);
  }

  linkDown(node: number): void {
    this.artifacts?.linkDown(node, this.parts);
  }

  private isOver(): boolean {
    return this.cancelled !== null || this.isEnded;
  }

  private enter(phase: BackupPhase): void {
    const { world } = this.deps;
    const nowMs = world.nowMs();
    world.tally.phase(this.phase, nowMs - this.phaseSinceMs);
    this.phase = phase;
    this.phaseSinceMs = nowMs;
    this.partsDone = 0;
    this.tell();
  }

  private readonly told = (): void => {
    this.partsDone++;
    this.tell();
  };

  private tell(): void {
    const { phase, partsDone: partitionsDone, bytes } = this;
    this.progress({ phase, partitionsDone, partitions: this.parts.length, bytes });
  }

  // Steps 1 and 2: the directory, meta, the planners

  private begin(): void {
    const { catalogue, timer, endpoint } = this.deps;
    const { request, backupId, tag } = this;
    const parents = request.kind === "incremental" ? [request.parentId] : [];
    const operation = `backup_${tag}`;
    const backups = [backupId, ...parents];
    const terms = { operation, kind: request.kind, node: endpoint, backups };
    protect(catalogue, timer, terms, (taken) => {
      if (!taken.ok) return this.fail(taken);
      this.lease = taken.value;
      // Without it a collection may take away what is being written.
      taken.value.whenLost((fault) => this.giveUp(systemFault(fault)));
      this.readParent();
    });
  }

  private readParent(): void {
    const { request } = this;
    if (request.kind !== "incremental") return this.readMeta();
    readParent(this.deps.catalogue, request.parentId, (parent) => {
      if (!parent.ok) return this.fail(parent);
      this.parent = parent.value;
      this.readMeta();
    });
  }

  private readMeta(): void {
    const { world } = this.deps;
    if (this.request.kind === "coordinated" && world.leaderOf(0) !== world.nodeId) {
      return this.fail(NOT_COORDINATOR);
    }
    const untilMs = world.nowMs() + BACKUP_BARRIER_MS;
    this.planners.hold();
    const read = (): void => {
      readTopology(
        world,
        untilMs,
        () => this.isOver(),
        (topology) => {
          if (topology === null)
            return this.fail(unavailable("The meta partition does not answer."));
          if (!topology.isMoving) return this.hold(topology);
          if (world.nowMs() >= untilMs - MOVING_AGAIN_MS) {
            return this.fail(failure("TopologyChanged", "Key ranges are on their way."));
          }
          world.waits.after(MOVING_AGAIN_MS, read);
        },
      );
    };
    read();
  }

  // Step 3: replicas hold their logs

  private hold(topology: TopologyAnswer): void {
    this.topology = topology;
    const { parent } = this;
    if (parent !== null) {
      const verdict = judgeParent(parent, {
        clusterId: this.deps.catalogue.clusterId,
        storageType: this.deps.storageType,
        storageRevision: this.deps.catalogue.storageRevision,
        topologyVersion: topology.topologyVersion,
        partitions: topology.partitions,
      });
      if (verdict === "needs-full") {
        const what = "The parent is of another cluster, storage adapter or storage revision.";
        return this.fail(failure("NeedsFull", what));
      }
      if (verdict === "topology-changed") this.substitute("TopologyChangedSinceParent");
    }
    this.parts = topology.partitions.map(newPart);
    this.shippers = new Shippers(this.deps.world, this.parts);
    if (this.parent === null) return this.stage();
    this.enter("holding");
    this.readParentEnds(this.parent, topology);
  }

  private substitute(reason: SubstitutionReason): void {
    this.deps.world.tally.substituted(reason);
    this.substitution = reason;
    this.parent = null;
  }

  private readParentEnds(parent: Manifest, { lineage }: TopologyAnswer): void {
    const isOver = (): boolean => this.isOver();
    readEnds(this.deps.catalogue, { parent, lineage }, isOver, (ends) => {
      if (!ends.ok) return this.fail(ends);
      if (ends.value === null) {
        this.substitute("TopologyChangedSinceParent");
        return this.stage();
      }
      for (const part of this.parts) {
        const end = ends.value.get(part.partition);
        const at = present(end, "the parent has every partition");
        const { highestToken, highestIncarnation } = at;
        Object.assign(part, { before: at.end, highestToken, highestIncarnation });
      }
      this.holdParts();
    });
  }

  private holdParts(): void {
    const shippers = present(this.shippers, "shippers are there from step 3 on");
    shippers.holdAll(this.told, (end) => {
      if (this.isOver()) return this.fail(null);
      if (end.status === "failed") return this.fail(end.fault);
      if (end.status === "compacted") this.beginFull("ParentLogCompacted");
      if (end.status === "other-history") this.beginFull("TopologyChangedSinceParent");
      this.stage();
    });
  }

  /** The log does not go on from the parent: everything is taken. */
  private beginFull(reason: SubstitutionReason): void {
    this.substitute(reason);
    const empty = { before: null, highestToken: -1n, highestIncarnation: 0 };
    for (const part of this.parts) {
      this.shippers?.leave(part);
      part.tried.clear();
      Object.assign(part, empty);
    }
  }

  private stage(): void {
    const { backupId: id, tag } = this;
    const { catalogue, world } = this.deps;
    if (this.isOver()) return this.fail(null);
    const type = this.parent === null ? "Full" : "Incremental";
    const { archive } = catalogue;
    beginBackup(archive, { id, tag, type }, (staged) => {
      if (!staged.ok) return this.fail(staged);
      this.staged = staged.value;
      const topology = present(this.topology, "meta was read");
      const { clusterId, storageRevision } = catalogue;
      const { storageType } = this.deps;
      const { topologyVersion: topologyGeneration, lineage } = topology;
      const of = { clusterId, lineage, storageType, storageRevision, topologyGeneration };
      this.undertaking = {
        ...{ world, archive, backupId: id, staged: staged.value, topology },
        origin: (partition) => ({ backupId: id, ...of, partition }),
        isOver: () => this.isOver(),
        wrote: (kind, sizeBytes) => {
          this.bytes += sizeBytes;
          world.tally.wrote(kind, sizeBytes);
        },
      };
      const shippers = present(this.shippers, "shippers are there from step 3 on");
      this.artifacts = new Artifacts(this.undertaking, shippers);
      this.makeImages();
    });
  }

  // Steps 4 to 6: images, marks, logs

  private makeImages(): void {
    if (this.isOver()) return this.fail(null);
    this.rounds++;
    if (this.rounds > ROUNDS_MAX) {
      return this.fail(unavailable("Too many replicas were lost while it was taken."));
    }
    const artifacts = present(this.artifacts, "the backup was begun");
    const left = this.parts.filter(({ before }) => before === null);
    if (left.length > 0) this.enter("images");
    artifacts.images(left, this.told, (failed, isAgain) => {
      if (failed !== null || this.isOver()) return this.fail(failed);
      if (isAgain) return this.makeImages();
      this.mark();
    });
  }

  private mark(): void {
    const undertaking = present(this.undertaking, "the backup was begun");
    if (this.parts.every(({ mark }) => mark !== null)) return this.makeLogs();
    this.enter("marks");
    if (this.request.kind === "coordinated") return this.cut(undertaking);
    new Marks(undertaking, this.parts, this.told, (failed) => {
      if (failed !== null || this.isOver()) return this.fail(failed);
      this.makeLogs();
    });
  }

  private cut(undertaking: Undertaking): void {
    const { term } = undertaking.topology;
    // All of them anew: they end at one stamp, or not at all.
    present(this.artifacts, "the backup was begun").dropLogs(this.parts, () => {
      new Cut(
        undertaking,
        this.parts,
        () => this.deps.nextRound(term),
        (end) => {
          if (end.status === "over") return this.fail(null);
          if (end.status === "failed") return this.fail(end.fault);
          this.cutAt = end.at;
          this.makeLogs();
        },
      );
    });
  }

  private makeLogs(): void {
    const artifacts = present(this.artifacts, "the backup was begun");
    this.enter("logs");
    const left = this.parts.filter(({ log }) => log === null);
    artifacts.logs(left, this.told, (failed, isAgain) => {
      if (failed !== null || this.isOver()) return this.fail(failed);
      if (isAgain) return this.goOn();
      this.check();
    });
  }

  /** Some replica was lost: what is missing is made again. */
  private goOn(): void {
    const isMissing = this.parts.some(({ before }) => before === null);
    if (!isMissing || this.parent === null) return this.makeImages();
    this.fail(unavailable("The log that goes on from the parent was let go meanwhile."));
  }

  // Steps 7 and 8: meta again, the manifest

  private check(): void {
    this.enter("checking");
    const { world } = this.deps;
    readTopology(
      world,
      world.nowMs() + BACKUP_BARRIER_MS,
      () => this.isOver(),
      (topology) => {
        const before = present(this.topology, "meta was read");
        if (this.isOver()) return this.fail(null);
        if (topology === null) return this.fail(NO_META);
        const isLed = world.leaderOf(0) === world.nodeId;
        const fault = topologyFault(before, topology, this.request.kind, isLed);
        if (fault !== null) return this.fail(fault);
        this.publish(before);
      },
    );
  }

  private publish(topology: TopologyAnswer): void {
    const staged = present(this.staged, "the backup was begun");
    this.isPublishing = true;
    this.enter("publishing");
    const { catalogue, world, endpoint, storageType } = this.deps;
    const { backupId, parts, cutAt } = this;
    const parentBackupId = this.parent?.backupId ?? null;
    const createdAtMs = Math.max(0, Math.floor(world.wallMs()));
    const of = { backupId, parentBackupId, cutAt, endpoint, storageType, createdAtMs };
    const manifest = manifestOf(parts, topology, catalogue, of);
    staged.publish(manifest, catalogue.signatures, (published) => {
      if (!published.ok) return this.end(published);
      const requestedKind = this.request.kind === "incremental" ? "Incremental" : "Full";
      const kinds = { requestedKind, actualKind: manifest.type } as const;
      this.end({ ok: true, manifest, ...kinds, substitutionReason: this.substitution });
    });
  }

  // Step 9: the end

  /** Nothing is published. null: it was cancelled. */
  private fail(fault: TakingFailure | null): void {
    const why = this.cancelled ?? fault ?? failure("Cancelled", "The call was cancelled.");
    const { staged } = this;
    if (staged === null) return this.end(why);
    staged.discard(() => this.end(why));
  }

  private end(taken: TakingFailure | TakenBackup): void {
    if (this.isEnded) return;
    this.isEnded = true;
    const { world } = this.deps;
    world.tally.phase(this.phase, world.nowMs() - this.phaseSinceMs);
    this.shippers?.end();
    this.planners.release();
    const { lease } = this;
    if (lease === null) return this.answer(taken);
    lease.release(() => this.answer(taken));
  }

  private answer(taken: TakingFailure | TakenBackup): void {
    const isElsewhere = !taken.ok && taken.code === "NotBackupCoordinator";
    const leader = isElsewhere ? this.deps.leader() : null;
    const { waits } = this.deps.world;
    waits.after(0, () => this.done(taken.ok ? taken : { ...taken, leader }));
  }
}
