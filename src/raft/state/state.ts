/**
 * The whole state of one core, and its outgoing messages. Other files of this folder are functions
 * on it.
 *
 * Invariants:
 * 1. term never falls; vote changes only from nobody, or with the term.
 * 2. Answers that vouch for a write go to `afterWrite`, everything else to `messages`; each keeps
 *    its order.
 * 3. Only a leader has a transfer target and pending reads.
 * 4. pendingChangeIndex is at or above every membership change that this leader may not have
 *    applied.
 * 5. Who awaits its first snapshot has an empty log, and is no more than a follower.
 */
import { assert } from "../../base/assert.js";
import { Prng } from "../../base/prng.js";
import type { CoreConfig } from "./config.js";
import { RaftLog } from "./log.js";
import { isLearner, isMember } from "./membership.js";
import { ReadQueue } from "./readqueue.js";
import { Tracker } from "./tracker.js";
import {
  noNode,
  type EntrySpan,
  type HardState,
  type LogIndex,
  type Message,
  type MessageKind,
  type NodeId,
  type Proposal,
  type ReadState,
  type RestoredState,
  type Role,
  type SnapshotMeta,
  type Term,
} from "./types.js";

/**
 * A message while it is being filled in; whoever takes it from the outbox sees a Message, which is
 * read-only.
 */
export class Draft implements Message {
  kind: MessageKind;
  from: NodeId;
  to: NodeId;
  term: Term;
  logTerm: Term = 0;
  index: LogIndex = 0;
  commit: LogIndex = 0;
  reject = false;
  rejectHint: LogIndex = 0;
  context = 0;
  entries: EntrySpan | null = null;
  snapshot: SnapshotMeta | null = null;
  proposal: Proposal | null = null;

  constructor(kind: MessageKind, from: NodeId, to: NodeId, term: Term) {
    this.kind = kind;
    this.from = from;
    this.to = to;
    this.term = term;
  }
}

/** A campaign that the leader of the term before ordered. */
export interface TransferOrder {
  readonly term: Term;
  readonly index: LogIndex;
  readonly token: number;
}

export class RaftState {
  readonly config: CoreConfig;
  readonly id: NodeId;
  readonly log: RaftLog;
  readonly tracker: Tracker;
  readonly reads = new ReadQueue();
  readonly prng: Prng;
  role: Role = "follower";
  term: Term;
  vote: NodeId;
  leader: NodeId = noNode;
  /** Ticks since the last sign of a leader, or on a leader since its last check-quorum round. */
  electionElapsed = 0;
  heartbeatElapsed = 0;
  /** The election timeout as drawn last. */
  electionTimeout = 0;
  /** All ticks ever; only differences matter. */
  ticksPassed = 0;
  /**
   * When the latest confirmed read round began, in ticksPassed; -Infinity if there was none in this
   * term.
   */
  leaseStartedTick = -Infinity;
  /** On a leader: the term of the last entry of its log before its own ones. */
  inheritedTerm: Term = 0;
  /** Who is to become leader; noNode if nobody in particular. */
  transferTo: NodeId = noNode;
  /** What the host names the order by; 0 = nothing. */
  transferToken = 0;
  /** The campaign that a leader ordered last: its term, the end of the leader's log, its token. */
  ordered: TransferOrder | null = null;
  /** On a leader: the token of the order that made it one, if nothing came in between; else 0. */
  inheritedToken = 0;
  pendingChangeIndex: LogIndex = 0;
  /**
   * The position up to which membership changes have been applied; may run ahead of log.applied.
   */
  membershipIndex: LogIndex;
  /** Neither log nor members can be relied on before a snapshot was installed. */
  awaitsSnapshot: boolean;
  /** The last snapshot that replaced the log: what was handed out for applying before is moot. */
  restoredIndex: LogIndex = 0;
  /** The snapshot that the host offered for sending; null means the applied state. */
  offeredSnapshot: SnapshotMeta | null = null;

  messages: Message[] = [];
  afterWrite: Message[] = [];
  readStates: ReadState[] = [];
  droppedReads: number[] = [];
  /** What was handed out last. */
  handedHardState: HardState;
  handedLeader: NodeId = noNode;
  handedRole: Role = "follower";

  constructor(config: CoreConfig, restored: RestoredState) {
    const { term, vote } = restored.hardState;
    assert(term >= 0 && vote >= 0, "the hard state is well-formed");
    this.config = config;
    this.id = config.id;
    this.log = new RaftLog(config, restored);
    this.tracker = new Tracker(config);
    this.tracker.change(restored.membership, restored.lastIndex);
    this.prng = new Prng(config.seed);
    this.term = term;
    this.vote = vote;
    this.membershipIndex = restored.appliedIndex;
    this.awaitsSnapshot = restored.awaitsSnapshot;
    assert(!this.awaitsSnapshot || this.log.lastIndex === 0, "who awaits a snapshot has no log");
    this.handedHardState = { term, vote, commit: this.log.committed };
    this.drawElectionTimeout();
  }

  drawElectionTimeout(): void {
    const { electionTicks, electionSpreadTicks, fixedElectionTicks } = this.config;
    const spread = electionSpreadTicks > 0 ? electionSpreadTicks : electionTicks;
    this.electionTimeout =
      fixedElectionTicks > 0 ? fixedElectionTicks : electionTicks + this.prng.below(spread);
  }

  /** The configuration may be that of a former life of this node: it does not campaign. */
  isPassive = false;

  /**
   * Whether this node may become leader: a voter that is not waiting for a snapshot to be
   * installed.
   */
  get promotable(): boolean {
    if (this.isPassive || this.awaitsSnapshot) return false;
    const { membership } = this.tracker;
    if (!isMember(membership, this.id) || isLearner(membership, this.id)) return false;
    return this.log.pendingSnapshot === null;
  }

  /**
   * Whether a message counts as a promise that must not leave before the writes so far are durable.
   */
  private isDeferred(kind: MessageKind): boolean {
    return kind === "appendAnswer" || kind === "voteAnswer" || kind === "preVoteAnswer";
  }

  /** Puts a message into the outbox and returns it, for the caller to fill in at once. */
  post(kind: MessageKind, to: NodeId, term: Term = this.term): Draft {
    const draft = new Draft(kind, this.id, to, term);
    this.enqueue(draft);
    return draft;
  }

  enqueue(message: Message): void {
    if (this.isDeferred(message.kind)) {
      this.afterWrite.push(message);
      return;
    }
    assert(message.to !== this.id && message.to !== noNode, "messages go to other nodes");
    this.messages.push(message);
  }

  /** Passes somebody's message on to the leader. */
  forward(message: Message, term: Term): void {
    this.enqueue({ ...message, to: this.leader, term });
  }

  /**
   * Whether the log's committed part reaches into the current term, so that nothing older can be
   * missing from it.
   */
  get hasCommittedInTerm(): boolean {
    return this.log.matches(this.log.committed, this.term);
  }
}
