/**
 * What the world shows of each node to whoever checks it: one sample of a group whenever something
 * of it changed, and the lives of the processes.
 *
 * Types, and the cheap look that finds out whether something changed. Invariants: 1. A sample is
 * taken between two pieces of input of its process, never inside one. 2. Looking changes nothing.
 */
import { META_PARTITION, type PartitionId } from "../../../src/base/ids.js";
import type { Program } from "../../../src/base/levels.js";
import type { Group } from "../../../src/host/group/group.js";
import type { GroupFacts } from "../../../src/host/requests/results.js";
import type { Node } from "../../../src/host/node.js";
import type { Membership } from "../../../src/raft/state/types.js";
import type { SeenEntry } from "../../judge/checkers/levels/permitted-entries.js";
import type { Directory } from "../../judge/checkers/nodes/one-founding.js";
import type { ReadTurnSeen } from "../../judge/checkers/nodes/read-turns.js";
import type { Member, PartitionRecord } from "../../../src/machine/commands/command.js";
import { replicaRowKey, decodeReplicaRow } from "../../../src/host/storage/replica-row.js";
import type { Heard } from "../../judge/checkers/replicas/acks-of-one-life.js";
import type { LogMirror } from "./logmirror.js";
import type { BackupChecks } from "../backups/backup-checks.js";
import type { Leaderships } from "../../judge/checkers/clients/leaderships.js";
import type { RangeChecks } from "./range-checks.js";
import type { ReplicaObserver } from "./replica-observer.js";

export interface GroupSample {
  readonly atMs: number;
  readonly node: number;
  /** Number of the process's life on this node, from 1. */
  readonly life: number;
  readonly partition: number;
  /** Which life of the node's replica of the group it is. */
  readonly incarnation: number;
  /** Index of the last snapshot that it installed; 0 = none. */
  readonly installedIndex: number;
  readonly term: number;
  /** The term that a restart cannot forget, nor the next life of the replica. */
  readonly durableTerm: number;
  readonly leading: boolean;
  readonly serving: boolean;
  /** Serves with what the leader before had in its memory. */
  readonly inherits: boolean;
  readonly leaderNode: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** Term of the entry that was applied last. */
  readonly appliedTerm: number;
  readonly lastIndex: number;
  readonly flushedIndex: number;
  /** Digest over all entries applied up to `appliedIndex`: equal on all nodes at equal index. */
  readonly chainDigest: string;
  /** Level of the group, and of the cluster as applied here (of the meta partition; else 0). */
  readonly level: number;
  readonly clusterLevel: number;
  readonly tokenFloor: bigint;
  readonly leaseMs: number;
  /** The leader's estimate of the lease clock; the committed value elsewhere. */
  readonly leaseNowMs: number;
  /** No lease is known to end after this lease time. */
  readonly leasesUntilMs: number;
  /** Term of an entry of this node's log; null below its floor, undefined beyond its end. */
  readonly termAt: (index: number) => number | null | undefined;
  /**
   * Whether the entry of a term at an index is on this node's disk: also later, as long as this
   * life's log is there.
   */
  readonly isDurable: (index: number, term: number) => boolean;
  /** Who counts for a majority, as a leader knows it; empty unless leading. */
  readonly voters: readonly number[];
}

/** Sizes of one node at one moment. */
export interface NodeMeasure {
  readonly atMs: number;
  readonly logBytes: number;
  readonly unflushedBytes: number;
  readonly queuedBytes: number;
  /** Of clients and of other nodes, that have no answer yet. */
  readonly requests: number;
  /** Its disk or its store does not work as it should. */
  readonly isTroubled: boolean;
}

/** The cluster as a member list says it. */
export interface SeenCluster {
  readonly version: number;
  readonly members: readonly Member[];
  /** Replicas of each partition; 0 = all voters. */
  readonly factor: number;
}

/** Told of everything that a checker of nodes may want. All members are cheap to leave out. */
export interface Observer {
  /** Told where replicas are on some nodes only. */
  readonly replicas?: ReplicaObserver;
  /** Where key ranges are moved. */
  readonly ranges?: RangeChecks | null;
  /** Where backups are taken. */
  readonly backups?: BackupChecks;
  /** When which leader began to serve. */
  readonly leaderships?: Leaderships;
  sample?(sample: GroupSample): void;
  entry?(
    node: number,
    group: number,
    index: number,
    term: number,
    previousTerm: number,
    digest: number,
  ): void;
  size?(node: number, measured: NodeMeasure): void;
  /** A turn of a node looked at rows for reads of many keys, or left such reads waiting. */
  readTurn?(node: number, atMs: number, seen: ReadTurnSeen): void;
  /** A life of a node runs, and is not paused. */
  ran?(node: number, life: number, atMs: number): void;
  /**
   * Snapshots that a node has installed so far, and entries that it lacks of what leaders
   * committed.
   */
  caughtUp?(node: number, snapshots: number, lag: number): void;
  /**
   * A life of a node has another configuration of a group applied: that of the entry at `index`.
   * `incarnation` counts the lives of its replica.
   */
  membership?(
    node: number,
    life: number,
    group: number,
    index: number,
    membership: Membership,
    incarnation: number,
  ): void;
  /** A life of a node has another partition map applied. */
  records?(records: readonly PartitionRecord[], mapVersion: number, atMs: number): void;
  /** A life of a node has another member list applied; told before the map of the same moment. */
  cluster?(seen: SeenCluster, atMs: number): void;
  /** A replica takes in a message of another one. */
  heard?(heard: Heard): void;
  /** The log of a node forgets a group. */
  dropped?(node: number, group: number): void;
  /** A life of a node has another member list applied; `text` says all of it. */
  members?(node: number, life: number, version: number, text: string): void;
  /** A life begins with `log`, as recovery found it. */
  recovered?(node: number, log: LogMirror): void;
  /** A node sends a frame of the consensus core; `log` is its own. */
  sent?(node: number, to: number, bytes: Uint8Array, log: LogMirror): void;
  /** The disk of a node is empty now. */
  wiped?(node: number): void;
  /** The disk of a node is as it was some lives ago. */
  rolledBack?(node: number): void;
  /** Nodes that refuse a life of `node` because of its data. */
  refusedBy?(node: number, life: number, by: readonly number[]): void;
  /** A node founds a cluster with these directories. */
  founded?(node: number, directories: readonly Directory[]): void;
  /** A node was taken in with an empty disk. */
  admitted?(node: number): void;
  started?(node: number, life: number, atMs: number): void;
  /** A life of `node` opened; its program and its directory have these levels. */
  openedLevel?(node: number, supports: number, stored: number): void;
  /** A life of `node` was refused because of its level. `highest`: that any directory may hold. */
  refusedLevel?(node: number, supports: number, highest: number): void;
  /** A node gets another program. */
  rolled?(how: "forward" | "back"): void;
  /** All groups are at the new level, so long after all nodes were up with a program for it. */
  finalized?(tookMs: number): void;
  /** A node of a program writes an entry to its log. */
  written?(node: number, supports: number, stored: number, entry: SeenEntry): void;
  /** A joiner was taken in by a cluster of `level`. */
  admittedAt?(node: number, supports: number, level: number): void;
  /** A start that was refused because of its level wrote something before. */
  wroteBefore?(node: number): void;
  /** The level was raised while a member ran a program that does not support it. */
  leftBehind?(node: number): void;
  /** What a node speaks with a linked one. */
  spoken?(node: number, own: Program, peer: number, theirs: Program, protocol: number): void;
  ended?(node: number, life: number, atMs: number, why: string): void;
}

interface Last {
  term: number;
  leading: boolean;
  serving: boolean;
  applied: number;
  leader: number;
}

/** All groups are looked at this often, whatever the node says that it ran (ms). */
const FULL_EVERY_MS = 250;

/** Looks at the groups of one life: at those that were run, and now and then at all. */
export class GroupWatch {
  private fullAtMs = -Infinity;
  private readonly ran: PartitionId[] = [];
  private readonly last = new Map<Group, Last>();

  constructor(
    private readonly node: number,
    private readonly life: number,
    private readonly log: Pick<LogMirror, "termAt" | "durableTerm" | "isDurable">,
  ) {}

  /** Calls `tell` for every group that looks other than at the last call. */
  look(from: Node, atMs: number, tell: (sample: GroupSample) => void): void {
    if (this.fullAtMs === -Infinity) {
      from.onRun((partition) => this.ran.push(partition));
      from.onGroupLeft((group) => this.last.delete(group));
    }
    if (atMs >= this.fullAtMs + FULL_EVERY_MS) {
      this.fullAtMs = atMs;
      for (const group of from.groups()) this.lookAt(from, group, atMs, tell);
    } else {
      for (const partition of this.ran) {
        const group = from.group(partition);
        if (group !== null) this.lookAt(from, group, atMs, tell);
      }
    }
    this.ran.length = 0;
  }

  private lookAt(
    from: Node,
    group: Group,
    atMs: number,
    tell: (sample: GroupSample) => void,
  ): void {
    let last = this.last.get(group);
    const term = group.term();
    const leading = group.isLeader();
    const serving = group.isServing();
    const applied = group.machine.appliedIndex;
    const leader = group.leaderNode();
    if (last === undefined) {
      last = { term: -1, leading, serving, applied, leader };
      this.last.set(group, last);
    }
    const same = last.term === term && last.applied === applied && last.leading === leading;
    if (same && last.serving === serving && last.leader === leader) return;
    last.term = term;
    last.leading = leading;
    last.serving = serving;
    last.applied = applied;
    last.leader = leader;
    tell(this.sample(from, group, atMs));
  }

  private votersOf(peers: GroupFacts["peers"]): number[] {
    return [this.node, ...peers.filter((peer) => !peer.learner).map((peer) => peer.node)];
  }

  sample(from: Node, group: Group, atMs: number): GroupSample {
    const facts = group.facts();
    const { machine } = group;
    const isMeta = facts.partition === META_PARTITION;
    const incarnation = group["replica"].lives.own;
    return {
      atMs,
      node: this.node,
      life: this.life,
      partition: facts.partition,
      incarnation,
      installedIndex: machine.installed.index,
      term: facts.term,
      durableTerm: Math.max(
        this.log.durableTerm(facts.partition),
        incarnation === 0 ? 0 : formerTerm(from, facts.partition),
      ),
      leading: facts.leading,
      serving: facts.serving,
      inherits: facts.inherits,
      leaderNode: facts.leaderNode,
      commitIndex: facts.commitIndex,
      appliedIndex: facts.appliedIndex,
      appliedTerm: machine.appliedTerm,
      lastIndex: facts.lastIndex,
      flushedIndex: facts.flushedIndex,
      chainDigest: machine.chainDigest,
      level: machine.level,
      clusterLevel: isMeta ? (machine.meta.cluster()?.level ?? 0) : 0,
      tokenFloor: machine.tokenFloor,
      leaseMs: machine.leaseMs,
      leaseNowMs: group.leaseNowMs(),
      leasesUntilMs: facts.leasesUntilMs,
      termAt: (index) => this.log.termAt(facts.partition, index),
      isDurable: (index, term) => this.log.isDurable(facts.partition, index, term),
      voters: facts.leading ? this.votersOf(facts.peers) : [],
    };
  }
}

/** The term that the life of a replica began with. */
function formerTerm(node: Node, partition: PartitionId): number {
  const bytes = node["parts"].registry.memtable.get(replicaRowKey(partition));
  return bytes === null ? 0 : (decodeReplicaRow(bytes)?.term ?? 0);
}
