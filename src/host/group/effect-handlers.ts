/**
 * What the effects of one group's core lead to: role changes, payloads for the log, messages out,
 * snapshots, and everybody who must hear of the end of a leadership.
 *
 * Invariants: 1. The end of a leadership ends callers: reads "retry", queued commands "not-leader";
 * proposed ones wait until their entry is applied or replaced, an election timeout at most where
 * the leadership was lost. 2. Nothing is answered here directly: callers hear at the end of the
 * turn.
 */
import { EMPTY_BYTES } from "../../base/bytes.js";
import type { PartitionId } from "../../base/ids.js";
import type { HardState, LogEntry } from "../../ports.js";
import type { Machine } from "../../machine/machine.js";
import type { RaftCore } from "../../raft/core.js";
import type {
  CommittedRange,
  LogRange,
  Message,
  SnapshotMeta,
  SoftState,
} from "../../raft/state/types.js";
import type { Applier } from "./applier.js";
import type { Batcher } from "../requests/batcher.js";
import type { EffectsTarget } from "./effects.js";
import type { EntryCache } from "../replication/entry-cache.js";
import type { GroupMembers } from "./group-members.js";
import type { GroupPeers } from "./group-peers.js";
import type { Move } from "./move.js";
import type { Leadership } from "./leadership.js";
import type { Proposals } from "../requests/proposals.js";
import type { Reads } from "../requests/reads.js";
import { termIn } from "../replication/replication.js";
import type { ProposalResult, ReadResult } from "../requests/results.js";
import type { HostPorts } from "../settings.js";

export const NOT_LEADER: ProposalResult = { status: "refused", reason: "not-leader" };
export const RETRY: ReadResult = { status: "retry" };

/** The parts of the group, and its way to snapshots. */
export interface TargetGroup {
  readonly partition: PartitionId;
  readonly core: RaftCore;
  readonly batcher: Batcher;
  readonly proposals: Proposals;
  readonly reads: Reads;
  readonly leadership: Leadership;
  readonly members: GroupMembers;
  readonly peers: GroupPeers;
  readonly cache: EntryCache;
  readonly applier: Applier;
  readonly machine: Machine;
  readonly move: Move;
  /** Shortest election timeout (ms). */
  readonly electionMs: number;
  sendSnapshot(to: number): void;
  installSnapshot(meta: SnapshotMeta, hardState: HardState, done: () => void): void;
}

export class EffectHandlers implements EffectsTarget {
  private lastLeader = 0;
  private wasCandidate = false;

  constructor(
    private readonly group: TargetGroup,
    private readonly ports: HostPorts,
  ) {}

  roleChanged(soft: SoftState): void {
    const { leadership, core, partition } = this.group;
    const isNew = soft.leader !== 0 && soft.leader !== this.lastLeader;
    if (isNew) this.ports.meter.leaderChanged(partition);
    if (isNew) this.lastLeader = soft.leader;
    leadership.setLeader(soft.leader);
    const leads = soft.role === "leader";
    this.noteElection(soft.role);
    if (leadership.isLeading && !(leads && leadership.term === core.term)) {
      this.endLeadership("leadership lost");
    }
    if (!leads || leadership.isLeading) return;
    leadership.begin(core.term, core.inheritedTerm, core.inheritedToken);
    const fields = { partition, term: core.term };
    this.ports.logger.log("debug", "This node leads a partition.", fields);
  }

  /** A candidacy, asking beforehand or not, ends with leading or with following. */
  private noteElection(role: SoftState["role"]): void {
    const isCandidate = role !== "leader" && role !== "follower";
    // Who is alone leads at once, and was never seen as a candidate.
    const isEnd = this.wasCandidate ? !isCandidate : role === "leader";
    if (isEnd) this.ports.meter.electionEnded(role === "leader");
    this.wasCandidate = isCandidate;
  }

  payloadFor(index: number, term: number, kind: number): Uint8Array {
    const { proposals, peers } = this.group;
    const known = proposals.at(index, term) ?? peers.replication.received(index, term);
    if (known !== null) return known.payload;
    // The core itself appends the empty entry that begins its term, and the one that leaves a joint
    // configuration; nobody else proposes them.
    proposals.add({
      index,
      term,
      kind,
      payload: EMPTY_BYTES,
      stamp: null,
      commands: [],
      waiters: [],
      sizeBytes: 0,
      proposedAtMs: this.ports.clock.monotonicMs(),
    });
    return EMPTY_BYTES;
  }

  rewritten(range: LogRange): void {
    const { core, proposals } = this.group;
    // A leader adds to its log only; what a follower is sent may replace what it proposed once.
    if (core.role === "leader") return;
    proposals.rewritten(range.first, range.last, (index) => termIn(range, index));
  }

  appended(entry: LogEntry): void {
    if (!this.group.members.isAlone) this.group.cache.put(entry);
    this.group.machine.tap?.appended(entry.index);
  }

  send(message: Message): void {
    if (message.kind === "snapshot") this.group.sendSnapshot(message.to);
    else this.group.peers.send(message);
  }

  install(meta: SnapshotMeta, hardState: HardState, done: () => void): void {
    this.group.installSnapshot(meta, hardState, done);
  }

  committed(range: CommittedRange): void {
    this.group.applier.commit(range);
  }

  readCaptured(context: number, index: number): void {
    this.group.reads.captured(context, index);
  }

  readDropped(context: number): void {
    this.group.reads.drop(context);
  }

  /** Ends a leadership with everybody who counted on it. */
  endLeadership(reason: string): void {
    const { leadership, members, peers, reads, batcher, proposals, electionMs } = this.group;
    const isPlanned = this.group.move.leadershipEnded();
    leadership.end(reason);
    members.reset();
    peers.replication.reset();
    reads.endAll(RETRY);
    batcher.endAll(NOT_LEADER);
    // Entries on their way may commit yet, and do so after a planned move: the heir has them.
    if (!isPlanned) proposals.endBy(this.ports.clock.monotonicMs() + electionMs);
  }
}
