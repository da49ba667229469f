/**
 * One group and the other nodes: what arrived from them and what goes to them, and whether they all
 * may sleep.
 *
 * Invariants: 1. Everything that arrives is stepped in the order of arrival, in the group's own
 * turn; but the sign that a sleeping follower asked its leader for is taken at once. 2. What wakes
 * a group is decided in `quiescence.ts` alone. 3. A granted vote tells what is known here of the
 * leader's lease clock, in two members of the message that the core leaves at 0: who does not know
 * them ignores them. 4. How level this node is it knows from messages that arrive anyway: nothing
 * is sent for it. 5. A commit is announced only if somebody wants to know of late, and no entries
 * follow that tell it.
 */
import type { RaftCore } from "../../raft/core.js";
import { jointIndex } from "../../raft/state/quorum.js";
import type { Membership, Message } from "../../raft/state/types.js";
import type { Leadership } from "./leadership.js";
import type { PeerOutbox } from "../replication/peer-outbox.js";
import { Quiescence, type QuiescenceSettings } from "./quiescence.js";
import type { HeartbeatSign, RaftItem } from "../replication/raft-frames.js";
import type { ReplicaDigests } from "../replication/replica-digests.js";
import {
  type InboxObserver,
  Replication,
  type ReplicationParts,
} from "../replication/replication.js";

export interface GroupPeersParts extends Omit<ReplicationParts, "heartbeatSign"> {
  readonly settings: QuiescenceSettings;
  readonly leadership: Leadership;
  readonly digests: ReplicaDigests;
  readonly outbox: PeerOutbox;
  readonly clock: { monotonicMs(): number };
  /** Nothing is queued, on its way to the disk, or unapplied. */
  isQuiet(): boolean;
  /** The monotonic clock of another node, as far as it was told (ms); 0 = not. */
  clockOf(node: number): number;
}

export class GroupPeers implements InboxObserver {
  readonly replication: Replication;
  private readonly quiescence: Quiescence;
  readonly core: RaftCore;
  readonly leadership: Leadership;
  /** When a node was heard that leads the group, or that this node leads (monotonic ms). */
  private readonly heardMs = new Map<number, number>();
  /** Commits are announced until then (monotonic ms). */
  private announcesUntilMs = 0;

  constructor(private readonly parts: GroupPeersParts) {
    this.core = parts.core;
    this.leadership = parts.leadership;
    const { leadership, digests } = parts;
    const heartbeatSign = (): HeartbeatSign => ({
      lease: leadership.leaseSign(),
      digest: digests.latest,
    });
    this.replication = new Replication({ ...parts, heartbeatSign });
    this.quiescence = new Quiescence(parts.settings, this);
  }

  get isQuiesced(): boolean {
    return this.quiescence.isQuiesced;
  }

  /** Awake, or asking its leader whether it may sleep on: the next tick must not be late. */
  get isRestless(): boolean {
    return !this.quiescence.isAtRest;
  }

  get isQuiet(): boolean {
    return this.parts.isQuiet();
  }

  isLinked(node: number): boolean {
    return this.parts.outbox.isUp(node);
  }

  unlinkedMs(node: number, nowMs: number): number {
    return this.parts.outbox.unlinkedMs(node, nowMs);
  }

  send(message: Message): void {
    const isGrant = message.kind === "voteAnswer" && !message.reject;
    this.replication.send(isGrant ? this.withLease(message) : message);
  }

  private withLease(grant: Message): Message {
    const { term, leaseMs } = this.leadership.heardLease.latest;
    return { ...grant, context: term, rejectHint: leaseMs };
  }

  /** Takes in a message of another node's core. */
  receive(item: RaftItem): void {
    // Nothing that came before it waits, which may wake the group.
    const isSign = !this.replication.hasWork && this.quiescence.isSign(item.message);
    if (isSign) return this.after(item.message, item.sign);
    this.replication.receive(item);
    this.parts.wake();
  }

  /** Steps what has arrived; `execute` takes the core's effects, false: a snapshot is installed. */
  stepInbox(execute: () => boolean): void {
    this.replication.stepInbox(execute, this);
  }

  /** Lets `count` ticks pass, unless the group sleeps. */
  tick(count: number, nowMs: number): void {
    if (this.quiescence.tick(nowMs)) this.core.tick(count);
  }

  /** Something is wanted of this group, or a member came or went. */
  unquiesce(nowMs: number = this.parts.clock.monotonicMs()): void {
    this.quiescence.wake(nowMs);
  }

  /** From now on, until then, whoever follows hears of each commit at once. */
  announceUntil(untilMs: number): void {
    this.announcesUntilMs = untilMs;
  }

  /** In a turn of a leader, behind all that it proposes. */
  announceCommit(nowMs: number): void {
    const { core, announcesUntilMs } = this;
    if (nowMs < announcesUntilMs && core.commitIndex === core.lastIndex) core.announceCommit();
  }

  before(message: Message): void {
    this.quiescence.before(message);
  }

  after(message: Message, sign: HeartbeatSign): void {
    const { core, leadership } = this;
    const nowMs = this.parts.clock.monotonicMs();
    this.quiescence.after(message, nowMs);
    const isOfTerm = message.term === core.term;
    if (isOfTerm && (core.role === "leader" || message.from === core.leader)) {
      this.heardMs.set(message.from, nowMs);
    }
    if (message.kind === "voteAnswer" && !message.reject && isOfTerm) {
      const { context: term, rejectHint: leaseMs } = message;
      leadership.heardLease.toldByVoter(message.term, { term, leaseMs });
      return;
    }
    // A heartbeat of the present leader, as stepping it has just shown.
    if (message.kind !== "heartbeat" || !isOfTerm) return;
    if (message.from !== core.leader) return;
    leadership.heardLease.heard(core.term, sign.lease);
    this.parts.digests.told(sign.digest);
  }

  /**
   * When this node was level with the leader of the group last, as far as is known (monotonic ms):
   * it heard the leader, or a majority heard that it leads. A group sleeps only with all that is
   * committed, and whatever is new reaches it over the link.
   */
  levelMs(nowMs: number, membership: Membership): number {
    const { core, leadership, heardMs } = this;
    // 0: never, which no clock says of what was heard.
    const heard = (node: number): number => {
      if (node === core.id) return nowMs;
      return this.isQuiesced && this.isLinked(node) ? nowMs : (heardMs.get(node) ?? 0);
    };
    let levelMs = 0;
    if (leadership.isServing) levelMs = jointIndex(membership, heard);
    else if (!leadership.isLeading && leadership.leader !== 0) levelMs = heard(leadership.leader);
    return levelMs > 0 ? levelMs : -Infinity;
  }

  /** The group sleeps no more: heartbeats tell the lease clock again. */
  woken(): void {
    const { leadership, parts } = this;
    leadership.heardLease.woken(parts.clockOf(leadership.leader));
  }
}
