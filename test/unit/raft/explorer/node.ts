/**
 * One node of the model world: a core, what its disk holds, what is on its way there, and how far
 * its state machine has come.
 *
 * Invariants: 1. `disk` changes only when a write completes. 2. `log` is the log as the core has
 * asked for it. 3. The state machine applies index after index; `snapshot` is what of it is durable.
 */
import type { CoreConfig } from "../../../../src/raft/state/config.js";
import type { RaftCore } from "../../../../src/raft/core.js";
import type {
  CommittedRange,
  Effects,
  HardState,
  Membership,
  RestoredState,
  SnapshotMeta,
} from "../../../../src/raft/state/types.js";
import { NaiveTerms } from "../naive/terms.js";
import { copyOf, digestOf } from "./copy.js";

/** The modules under test; planted bugs come in through here. */
export interface Library {
  readonly RaftCore: new (config: CoreConfig, restored: RestoredState) => RaftCore;
  readonly defaultConfig: (id: number, seed: number) => CoreConfig;
}

/** What a founding member starts from; a node that waits to be added starts from nothing. */
export const foundingIndex = 1;
export const foundingTerm = 1;

const nobody: Membership = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

export class ModelNode {
  readonly id: number;
  core: RaftCore;
  log: NaiveTerms;
  disk: NaiveTerms;
  hardState: HardState;
  snapshot: SnapshotMeta;
  writes: Effects[] = [];
  batches: CommittedRange[] = [];
  applied: SnapshotMeta;
  /** What was seen after the last event, for what may never fall. */
  term = 0;
  commit = 0;
  lives = 1;
  /** How often the replica has gone and come again, empty; messages are bound to one such life. */
  incarnation = 0;
  private digestValue = 0;

  constructor(library: Library, config: CoreConfig, founders: readonly number[]) {
    const founder = founders.includes(config.id);
    const index = founder ? foundingIndex : 0;
    const term = founder ? foundingTerm : 0;
    this.id = config.id;
    this.disk = new NaiveTerms(index, term);
    this.log = this.disk.copy();
    this.hardState = { term, vote: 0, commit: index };
    const membership = founder ? { ...nobody, voters: [...founders] } : nobody;
    this.snapshot = { index, term, membership };
    this.applied = this.snapshot;
    this.core = this.start(library, config);
  }

  private start(library: Library, config: CoreConfig): RaftCore {
    const { disk, snapshot } = this;
    const core = new library.RaftCore(
      { ...config, seed: config.seed * 1009 + this.lives },
      {
        hardState: this.hardState,
        floorIndex: disk.floor,
        floorTerm: disk.floorTerm,
        termRuns: disk.runs(),
        lastIndex: disk.last,
        configChanges: disk.changes.map((index) => ({ index, kind: "configChangeV2" })),
        sizeRuns: disk.terms.length === 0 ? [] : [{ first: disk.floor + 1, sizeBytes: disk.last }],
        appliedIndex: snapshot.index,
        membership: snapshot.membership,
        awaitsSnapshot: this.awaitsSnapshot,
      },
    );
    this.term = core.term;
    this.commit = core.commitIndex;
    return core;
  }

  /** Nothing but a snapshot, once it is on the disk, makes a replica that was added again whole. */
  get awaitsSnapshot(): boolean {
    return this.incarnation > 0 && this.snapshot.index === 0;
  }

  /** The replica is dropped and made again; of its former life term and vote are left. */
  renew(library: Library, config: CoreConfig): void {
    const { term, vote } = this.hardState;
    this.incarnation++;
    this.disk = new NaiveTerms(0, 0);
    this.hardState = { term, vote, commit: 0 };
    this.snapshot = { index: 0, term: 0, membership: nobody };
    this.crash(library, config, 0);
  }

  /** Puts one record onto the disk. */
  persist(record: Effects): void {
    if (record.hardState !== null) this.hardState = record.hardState;
    if (record.snapshot !== null) {
      this.disk.restart(record.snapshot.index, record.snapshot.term);
      this.snapshot = record.snapshot;
    }
    if (record.append !== null) this.disk.append(record.append);
  }

  /** Loses what is not on the disk; of the writes on their way, the first `kept` arrived. */
  crash(library: Library, config: CoreConfig, kept: number): void {
    for (const record of this.writes.slice(0, kept)) this.persist(record);
    this.writes = [];
    this.batches = [];
    this.applied = this.snapshot;
    this.log = this.disk.copy();
    this.lives++;
    this.core = this.start(library, config);
  }

  /** A node that goes on from the same state by itself. */
  copy(): ModelNode {
    const to = Object.create(ModelNode.prototype) as ModelNode;
    Object.assign(to, this);
    to.core = copyOf(this.core);
    to.log = this.log.copy();
    to.disk = this.disk.copy();
    to.writes = this.writes.slice();
    to.batches = this.batches.slice();
    to.digestValue = 0;
    return to;
  }

  /** The digest; computed once, so only for nodes that change no more. */
  get digest(): number {
    if (this.digestValue === 0) {
      const { core, disk, hardState, snapshot, writes, batches, applied, incarnation } = this;
      const queues = [writes, batches];
      this.digestValue = digestOf(core, disk, hardState, snapshot, queues, applied, incarnation);
    }
    return this.digestValue;
  }
}
