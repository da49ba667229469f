/**
 * The vocabulary of the Raft core: what can happen to a group (messages, proposals, receipts) and
 * what the core asks of its host (Effects). Types only; every value here is plain data and is never
 * changed once it has been handed over.
 *
 * Invariants:
 * 1. Positions only: no payload byte is reachable from any type of this file.
 * 2. Spans are run-length: their object count depends on the number of terms and config changes,
 *    not on entries.
 * 3. Indexes, terms and sizes are safe integers; 0 means "none" for a node, a term and an index.
 * 4. Anything read from an Effects record is immutable, so that two cores may share it.
 */

/** A member of a group; a positive safe integer. 0 is nobody. */
export type NodeId = number;
/** An election term; 0 before the first election. */
export type Term = number;
/** A position in the log; the first entry ever is 1. */
export type LogIndex = number;

/** Nobody: the value of "no leader", "no vote", "no transfer". */
export const noNode: NodeId = 0;
/** Context of a refused append: entries do not help its sender, a snapshot does. */
export const needsSnapshot = 1;

export type Role = "follower" | "preCandidate" | "candidate" | "leader";

export type EntryKind = "normal" | ConfigEntryKind;
export type ConfigEntryKind = "configChangeV1" | "configChangeV2";

/** From `first` on, entries have the term `term`, until the next run begins. */
export interface TermRun {
  readonly first: LogIndex;
  readonly term: Term;
}

/** Where the log holds an entry that is not a normal one. */
export interface ConfigPosition {
  readonly index: LogIndex;
  readonly kind: ConfigEntryKind;
}

/**
 * A non-empty stretch of the log. `termRuns[0].first === first`; `configChanges` ascends and lies
 * within.
 */
export interface LogRange {
  readonly first: LogIndex;
  readonly last: LogIndex;
  readonly termRuns: readonly TermRun[];
  readonly configChanges: readonly ConfigPosition[];
  /** Sum of the payload sizes. */
  readonly sizeBytes: number;
}

/**
 * A stretch of the log on its way to another node: with each payload's size, which that node's core
 * wants to know.
 */
export interface EntrySpan extends LogRange {
  /** One payload size per entry; the host of the receiver replaces it by the sizes that arrived. */
  readonly sizesBytes: readonly number[];
}

/**
 * Who belongs to a group. All lists ascend. `votersOutgoing` is the old half of a joint
 * configuration.
 */
export interface Membership {
  readonly voters: readonly NodeId[];
  readonly votersOutgoing: readonly NodeId[];
  readonly learners: readonly NodeId[];
  /** Voters of the old half that become learners when the joint configuration is left. */
  readonly learnersNext: readonly NodeId[];
  /** Whether the leader leaves the joint configuration by itself. */
  readonly autoLeave: boolean;
}

export interface ConfigOperation {
  readonly kind: "addVoter" | "addLearner" | "remove" | "update";
  readonly node: NodeId;
}

/**
 * A membership change, which the host decodes from the entry's payload. No operations with `auto`
 * means: leave the joint configuration (an empty payload decodes to that). `auto` with one
 * operation switches directly, with more it goes through a joint configuration; `implicit` and
 * `explicit` always do, and `explicit` stays in it until told to leave.
 */
export interface ConfigChange {
  readonly version: 1 | 2;
  readonly transition: "auto" | "implicit" | "explicit";
  readonly operations: readonly ConfigOperation[];
}

/** The position of a state snapshot, with the membership as of it. */
export interface SnapshotMeta {
  readonly index: LogIndex;
  readonly term: Term;
  readonly membership: Membership;
}

/** What must survive a crash besides the log. */
export interface HardState {
  readonly term: Term;
  readonly vote: NodeId;
  readonly commit: LogIndex;
}

/** What need not survive a crash. */
export interface SoftState {
  readonly leader: NodeId;
  readonly role: Role;
}

/** Payloads that somebody wants appended; they have no position yet. */
export interface Proposal {
  /** At least 1; exactly 1 if `change` is given. */
  readonly count: number;
  /** One payload size per entry, in bytes. */
  readonly sizesBytes: readonly number[];
  /** The decoded membership change if this proposes one. */
  readonly change: ConfigChange | null;
  /**
   * Chosen by the host, to find the payloads again when the proposal is forwarded; the core only
   * carries it.
   */
  readonly token: number;
}

/**
 * Kinds whose answers vouch for a write ("deferred") are appendAnswer, voteAnswer and
 * preVoteAnswer.
 */
export type MessageKind =
  | "append"
  | "appendAnswer"
  | "vote"
  | "voteAnswer"
  | "preVote"
  | "preVoteAnswer"
  | "snapshot"
  | "heartbeat"
  | "heartbeatAnswer"
  | "propose"
  | "transferLeader"
  | "timeoutNow"
  | "readIndex"
  | "readIndexAnswer";

/**
 * One message between two cores. A field that a kind does not use is 0, false or null; of a granted
 * vote the host fills `rejectHint` and `context` on the wire, and no core looks at them.
 */
export interface Message {
  readonly kind: MessageKind;
  readonly from: NodeId;
  readonly to: NodeId;
  /**
   * The sender's term; of a pre-vote request and its grant that term + 1; 0 on propose and
   * readIndex.
   */
  readonly term: Term;
  /**
   * append: term at `index`. (Pre-)vote: the candidate's last term. Refused append: term at
   * `rejectHint`.
   */
  readonly logTerm: Term;
  /**
   * append: the position before the entries. appendAnswer: last position known to match, or the
   * refused one.
   */
  readonly index: LogIndex;
  readonly commit: LogIndex;
  readonly reject: boolean;
  readonly rejectHint: LogIndex;
  /**
   * heartbeat and its answer: the read round (0 if none). readIndex and its answer: the asker's own
   * context. (Pre-)vote: 1 if a leadership transfer ordered the campaign, else 0. transferLeader
   * and timeoutNow: the token of the order; timeoutNow names the end of the leader's log beside it.
   * Refused append: `needsSnapshot` from a replica that has no base for any log, else 0.
   */
  readonly context: number;
  /** append only; null for an append without entries. The host adds the payloads on the wire. */
  readonly entries: EntrySpan | null;
  /** snapshot only. The host sends the snapshot; it may send a later one, with that one's meta. */
  readonly snapshot: SnapshotMeta | null;
  /** propose only. The host adds the payloads on the wire. */
  readonly proposal: Proposal | null;
}

/** The answer to one requested read: state up to `index`, applied, is fresh enough. */
export interface ReadState {
  readonly context: number;
  readonly index: LogIndex;
}

/**
 * Handed out with a write; given back by `written` when that write and all earlier ones are
 * durable.
 */
export interface WriteReceipt {
  /** The core's term when the write was asked for. */
  readonly term: Term;
  /** The end of the log at that moment; 0 if every entry was known to be written already. */
  readonly index: LogIndex;
  readonly logTerm: Term;
  /** The index of the snapshot that this write installs; 0 if none. */
  readonly snapshotIndex: LogIndex;
}

/** A stretch of committed entries, to be applied in order. */
export interface CommittedRange {
  readonly first: LogIndex;
  readonly last: LogIndex;
}

/**
 * Everything that the core asks for since the last take. The host's duties, in order: write
 * `hardState`, then install `snapshot`, then write `append` (a record may have both: entries behind
 * the snapshot); sync if `mustSync`; then deliver `messagesAfterWrite` (those to this node by
 * `step`) and give `receipt` to `written`. `messages` may leave before the write is durable.
 * `committed` may be applied as soon as it is handed out. Receipts are given back in the order of
 * the takes; a record without a write completes after the records before it.
 */
export interface Effects {
  readonly softState: SoftState | null;
  readonly hardState: HardState | null;
  /**
   * True if entries, term or vote changed: the write must be durable before anything that depends
   * on it.
   */
  readonly mustSync: boolean;
  /** Entries to write; the log is cut at `append.first` before. */
  readonly append: LogRange | null;
  /** A state snapshot, received with a snapshot message, to install in place of the whole log. */
  readonly snapshot: SnapshotMeta | null;
  readonly committed: CommittedRange | null;
  readonly messages: readonly Message[];
  readonly messagesAfterWrite: readonly Message[];
  readonly receipt: WriteReceipt | null;
  readonly readStates: readonly ReadState[];
  /** Contexts of reads requested here that will never be answered, because leadership ended. */
  readonly droppedReads: readonly number[];
}

export type ProgressState = "probe" | "replicate" | "snapshot";

/** How far a leader knows a peer to be. */
export interface PeerProgress {
  readonly id: NodeId;
  readonly state: ProgressState;
  readonly match: LogIndex;
  readonly next: LogIndex;
  readonly learner: boolean;
  readonly paused: boolean;
  readonly pendingSnapshot: LogIndex;
  readonly active: boolean;
  readonly inflightCount: number;
  readonly inflightFull: boolean;
}

export interface CoreStatus {
  readonly id: NodeId;
  readonly role: Role;
  readonly term: Term;
  readonly vote: NodeId;
  readonly leader: NodeId;
  readonly commitIndex: LogIndex;
  readonly appliedIndex: LogIndex;
  readonly lastIndex: LogIndex;
  readonly writtenIndex: LogIndex;
  readonly floorIndex: LogIndex;
  readonly transferTo: NodeId;
  readonly membership: Membership;
  /** Ascending by id; empty unless this node leads. */
  readonly progress: readonly PeerProgress[];
}

/** What a store hands back at start. Nothing here is proportional to the number of entries. */
export interface RestoredState {
  readonly hardState: HardState;
  /**
   * The position just below the first entry: what the log was last compacted to, (0, 0) for a fresh
   * one.
   */
  readonly floorIndex: LogIndex;
  readonly floorTerm: Term;
  /** Ascending; the first run begins at floorIndex + 1. Empty if there are no entries. */
  readonly termRuns: readonly TermRun[];
  readonly lastIndex: LogIndex;
  /** Ascending positions of membership changes above the floor. */
  readonly configChanges: readonly ConfigPosition[];
  /**
   * Sizes by stretch, ascending, e.g. one per log segment, together covering the log; sizes within
   * are averaged.
   */
  readonly sizeRuns: readonly SizeRun[];
  /** The index up to which the state has been applied; its membership is `membership`. */
  readonly appliedIndex: LogIndex;
  readonly membership: Membership;
  /**
   * The replica was added to a group whose beginning it does not know: until it has installed a
   * snapshot it takes no entries, grants no votes and never campaigns. Its log is empty.
   */
  readonly awaitsSnapshot: boolean;
}

/**
 * Entries `first` up to the next run, or up to the end of the log, have payloads of `sizeBytes`
 * together.
 */
export interface SizeRun {
  readonly first: LogIndex;
  readonly sizeBytes: number;
}

export type ProposalRefusal =
  /** No leader is known, or an election is going on. */
  | "no-leader"
  /** This node does not lead, and forwarding is switched off. */
  | "not-leader"
  /** The leader is no member of its own group any more. */
  | "not-member"
  /** The leader is busy handing over leadership. */
  | "transferring"
  /** The uncommitted tail of the log is as large as it may be. */
  | "uncommitted-limit"
  /** The membership change could never be applied (for example it removes the last voter). */
  | "invalid-change";

export interface Appended {
  readonly ok: true;
  readonly kind: "appended";
  readonly term: Term;
  readonly firstIndex: LogIndex;
  readonly lastIndex: LogIndex;
  /** True if a membership change was refused; an empty normal entry stands at its place. */
  readonly replacedByEmpty: boolean;
}

export interface Forwarded {
  readonly ok: true;
  readonly kind: "forwarded";
  readonly to: NodeId;
}

export interface Refused {
  readonly ok: false;
  readonly reason: ProposalRefusal;
}

export type ProposeResult = Appended | Forwarded | Refused;

export type StepRefusal =
  /** An answer from a node that is in no part of the configuration. */
  | "peer-not-found"
  /** A forwarded proposal was refused here. */
  | "proposal-dropped";

export type StepResult =
  /**
   * `proposed` is set if the message was a forwarded proposal that was appended or forwarded on.
   */
  | { readonly ok: true; readonly proposed: Appended | Forwarded | null }
  | { readonly ok: false; readonly reason: StepRefusal };

export type ReadRequestResult =
  | "accepted"
  | "forwarded"
  /** No leader is known; ask again later. */
  | "no-leader"
  /** Too many reads wait already. */
  | "too-many";

/** What a lookup of a term can answer; unknown is never a number. */
export type TermLookup =
  | { readonly kind: "known"; readonly term: Term }
  | { readonly kind: "compacted" }
  | { readonly kind: "beyond" };
