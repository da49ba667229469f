/**
 * RaftCore: one member of one Raft group, as a deterministic state machine. Events go in by method
 * calls, what they ask of the outside accumulates, and the host takes it out (see Effects in
 * types.ts for its duties and their order).
 *
 * Invariants:
 * 1. No I/O, no clock, no promise; never re-entered.
 * 2. Equal inputs give equal effects: randomness comes from the seed, time from tick().
 * 3. Payloads are never seen here.
 */
import { assert } from "../base/assert.js";
import { applyChange } from "./roles/change.js";
import { assertConfig, type CoreConfig } from "./state/config.js";
import { hasEffects, takeEffects } from "./effects.js";
import { campaignNow } from "./roles/election.js";
import { forgetLeader } from "./roles/follower.js";
import { assertState } from "./invariants.js";
import { reportSnapshot, reportUnreachable } from "./roles/leader.js";
import { leaveJointIfDue, propose } from "./roles/proposals.js";
import { requestRead } from "./roles/reads.js";
import { announceCommit } from "./roles/replication.js";
import { Draft, RaftState } from "./state/state.js";
import { passTicks, step, ticksUntilDue } from "./roles/step.js";
import type {
  ConfigChange,
  CoreStatus,
  Effects,
  EntryKind,
  LogIndex,
  Membership,
  Message,
  NodeId,
  ProposeResult,
  ReadRequestResult,
  RestoredState,
  Role,
  SnapshotMeta,
  StepResult,
  Term,
  TermLookup,
  WriteReceipt,
} from "./state/types.js";
import { noNode } from "./state/types.js";

export class RaftCore {
  private readonly raft: RaftState;

  /**
   * A member as it was when its store was written last; a new one has an empty log and perhaps an
   * empty membership.
   */
  constructor(config: CoreConfig, restored: RestoredState) {
    assertConfig(config);
    this.raft = new RaftState(config, restored);
  }

  /** Largest sum of entry sizes in one append, as configured; one entry always goes (bytes). */
  get maxMessageBytes(): number {
    return this.raft.config.maxMessageBytes;
  }

  /** Lets `count` ticks pass. */
  tick(count = 1): void {
    passTicks(this.raft, count);
  }

  /**
   * How many ticks must pass before one does anything but count; at least 1. A host may save ticks
   * up until then, if it feeds the saved ones before any other call to this core.
   */
  ticksUntilDue(): number {
    return ticksUntilDue(this.raft);
  }

  /** A passive node never campaigns; it follows, votes and acknowledges as ever. */
  setPassive(isPassive: boolean): void {
    this.raft.isPassive = isPassive;
  }

  /** Starts an election now; does nothing on a leader and where campaigning is not allowed. */
  campaign(): void {
    campaignNow(this.raft, false);
  }

  /** Proposes one normal entry per size. `token` is carried along if the proposal is forwarded. */
  propose(sizesBytes: readonly number[], token = 0): ProposeResult {
    const proposal = { count: sizesBytes.length, sizesBytes, change: null, token };
    return propose(this.raft, proposal, this.raft.id);
  }

  /**
   * Proposes a membership change whose encoded payload has `sizeBytes`. If it is untimely (another
   * one is pending, or it does not fit a joint or non-joint configuration) an empty entry is
   * appended instead: `replacedByEmpty`.
   */
  proposeConfigChange(change: ConfigChange, sizeBytes: number, token = 0): ProposeResult {
    const proposal = { count: 1, sizesBytes: [sizeBytes], change, token };
    return propose(this.raft, proposal, this.raft.id);
  }

  /**
   * Takes in a message from another core, or a deferred one to this node itself, whose write is
   * durable.
   */
  step(message: Message): StepResult {
    return step(this.raft, message);
  }

  /**
   * The write of `receipt`, and all earlier ones, are durable. Call it after stepping that record's
   * messages to itself. A receipt of an earlier term vouches for no entries, since they may have
   * been replaced; its snapshot still counts.
   */
  written(receipt: WriteReceipt): void {
    const { raft } = this;
    assert(receipt.term <= raft.term, "receipts come from this core");
    if (receipt.index > 0 && receipt.term === raft.term) {
      raft.log.writtenTo(receipt.index, receipt.logTerm);
    }
    if (receipt.snapshotIndex > 0) {
      raft.log.snapshotWritten(receipt.snapshotIndex);
      leaveJointIfDue(raft);
    }
  }

  /**
   * The state contains everything up to `index`; membership changes among it went through
   * applyConfigChange before.
   */
  applied(index: LogIndex): void {
    const { raft } = this;
    raft.log.appliedTo(index);
    leaveJointIfDue(raft);
  }

  /**
   * A committed membership change is applied: once each, in log order. Returns the new membership.
   */
  applyConfigChange(index: LogIndex, change: ConfigChange): Membership {
    return applyChange(this.raft, index, change);
  }

  /**
   * Asks for a linearizable read index; a ReadState with this context answers, or droppedReads
   * names it.
   */
  requestRead(context: number): ReadRequestResult {
    return requestRead(this.raft, context);
  }

  /**
   * As the leader: tells the others now how far the log is committed. They hear it with the next
   * entries anyway, or with the next heartbeat.
   */
  announceCommit(): void {
    if (this.raft.role === "leader") announceCommit(this.raft);
  }

  /**
   * Asks that `to` become leader; a follower passes the request on to its leader, if it knows one.
   * `token` names the order to the heir (`inheritedToken`); 0 = none.
   */
  transferLeadership(to: NodeId, token = 0): void {
    const draft = new Draft("transferLeader", to, this.raft.id, 0);
    draft.context = token;
    step(this.raft, draft);
  }

  /**
   * A follower forgets who leads, and stays in its term. Nothing happens on others, and with
   * lease-based reads.
   */
  forgetLeader(): void {
    forgetLeader(this.raft);
  }

  /** The last message to `id` may be lost. */
  reportUnreachable(id: NodeId): void {
    reportUnreachable(this.raft, id);
  }

  /** How the transfer of a snapshot to `id` ended, as far as its sender can tell. */
  reportSnapshot(id: NodeId, ok: boolean): void {
    reportSnapshot(this.raft, id, ok);
  }

  /**
   * Entries up to and including `floor`, which are committed and written, are gone from the log.
   */
  compacted(floor: LogIndex): void {
    this.raft.log.compact(floor);
  }

  /**
   * The state snapshot to send to a follower that is too far behind. Without one, the applied state
   * as of sending.
   */
  snapshotAvailable(snapshot: SnapshotMeta): void {
    this.raft.offeredSnapshot = snapshot;
  }

  hasEffects(): boolean {
    return hasEffects(this.raft);
  }

  /** Everything asked for since the last take. */
  takeEffects(): Effects {
    return takeEffects(this.raft);
  }

  get id(): NodeId {
    return this.raft.id;
  }

  get role(): Role {
    return this.raft.role;
  }

  get term(): Term {
    return this.raft.term;
  }

  get vote(): NodeId {
    return this.raft.vote;
  }

  get leader(): NodeId {
    return this.raft.leader;
  }

  get commitIndex(): LogIndex {
    return this.raft.log.committed;
  }

  get appliedIndex(): LogIndex {
    return this.raft.log.applied;
  }

  /** Leadership is being handed over: nothing is proposed until that ends. */
  get isTransferring(): boolean {
    return this.raft.transferTo !== noNode;
  }

  /**
   * On a leader: the token of the order by which the leader of the term before made it one, if
   * nothing was committed since that order was given; else 0.
   */
  get inheritedToken(): number {
    return this.raft.inheritedToken;
  }

  /** On a leader: the term of the last entry before those of its leadership. */
  get inheritedTerm(): Term {
    return this.raft.inheritedTerm;
  }

  get lastIndex(): LogIndex {
    return this.raft.log.lastIndex;
  }

  /** Payload bytes of entries `first` to `last`, above what was compacted and applied. */
  payloadBytes(first: LogIndex, last: LogIndex): number {
    return this.raft.log.payloadBytes(first, last);
  }

  get membership(): Membership {
    return this.raft.tracker.membership;
  }

  /**
   * Whether the committed part of the log reaches into the current term: on a leader, whether it
   * may answer anything.
   */
  get hasCommittedInTerm(): boolean {
    return this.raft.hasCommittedInTerm;
  }

  status(): CoreStatus {
    const { raft } = this;
    return {
      id: raft.id,
      role: raft.role,
      term: raft.term,
      vote: raft.vote,
      leader: raft.leader,
      commitIndex: raft.log.committed,
      appliedIndex: raft.log.applied,
      lastIndex: raft.log.lastIndex,
      writtenIndex: raft.log.written,
      floorIndex: raft.log.floorIndex,
      transferTo: raft.transferTo,
      membership: raft.tracker.membership,
      progress: raft.role === "leader" ? raft.tracker.peers.map((peer) => peer.describe()) : [],
    };
  }

  /** The term at `index`: known, compacted away, or beyond the end. */
  termAt(index: LogIndex): TermLookup {
    return this.raft.log.terms.lookup(index);
  }

  /** What kind of entry stands at `index`, which is not yet applied or above the floor. */
  kindAt(index: LogIndex): EntryKind {
    return this.raft.log.changes.kindAt(index);
  }

  /** For tests: the election timeout in ticks, until the next draw. */
  setElectionTimeout(ticks: number): void {
    assert(ticks > 0, "an election timeout takes time");
    this.raft.electionTimeout = ticks;
  }

  /** Throws AssertionError if a numbered invariant of this folder is broken. */
  assertState(): void {
    assertState(this.raft);
  }
}
