/**
 * What the core asks of its host, collected since the last time.
 *
 * Invariants:
 * 1. Taking records everything as handed out: nothing is handed out twice, except what was cut and
 *    appended anew.
 * 2. The record shows states only if they differ from what was handed out last.
 * 3. mustSync follows entries, term and vote; a commit index or a snapshot alone does not need it.
 * 4. A record without anything in it is the shared empty one.
 */
import type { RaftState } from "./state/state.js";
import type {
  Effects,
  HardState,
  LogRange,
  Message,
  ReadState,
  WriteReceipt,
} from "./state/types.js";

const noMessages: readonly Message[] = Object.freeze([]);
const noReads: readonly ReadState[] = Object.freeze([]);
const noContexts: readonly number[] = Object.freeze([]);

const noEffects: Effects = Object.freeze({
  softState: null,
  hardState: null,
  mustSync: false,
  append: null,
  snapshot: null,
  committed: null,
  messages: noMessages,
  messagesAfterWrite: noMessages,
  receipt: null,
  readStates: noReads,
  droppedReads: noContexts,
});

function hasNewHardState(raft: RaftState): boolean {
  const handed = raft.handedHardState;
  return (
    raft.term !== handed.term || raft.vote !== handed.vote || raft.log.committed !== handed.commit
  );
}

function hasNewSoftState(raft: RaftState): boolean {
  return raft.leader !== raft.handedLeader || raft.role !== raft.handedRole;
}

/** Whether a take would bring anything. */
export function hasEffects(raft: RaftState): boolean {
  const { log } = raft;
  return (
    raft.messages.length > 0 ||
    raft.afterWrite.length > 0 ||
    log.handedOut < log.lastIndex ||
    log.hasNextCommitted ||
    hasNewHardState(raft) ||
    hasNewSoftState(raft) ||
    (log.pendingSnapshot !== null && !log.snapshotHandedOut) ||
    raft.readStates.length > 0 ||
    raft.droppedReads.length > 0
  );
}

/**
 * The receipt of a write now: it vouches for the whole log, so that a later write makes up for an
 * ignored receipt.
 */
function makeReceipt(raft: RaftState, snapshotIndex: number): WriteReceipt | null {
  const { log, term } = raft;
  if (!log.hasUnwritten && snapshotIndex === 0) return null;
  const index = log.hasUnwritten ? log.lastIndex : 0;
  return { term, index, logTerm: index > 0 ? log.lastTerm : 0, snapshotIndex };
}

function takeHardState(raft: RaftState): HardState | null {
  if (!hasNewHardState(raft)) return null;
  const hardState = { term: raft.term, vote: raft.vote, commit: raft.log.committed };
  raft.handedHardState = hardState;
  return hardState;
}

function takeList<Item>(list: Item[], empty: readonly Item[]): readonly Item[] {
  return list.length === 0 ? empty : list;
}

/** Takes everything that has come up since the last take. */
export function takeEffects(raft: RaftState): Effects {
  if (!hasEffects(raft)) return noEffects;
  const { log, messages, afterWrite, readStates, droppedReads } = raft;
  const { term, vote } = raft.handedHardState;
  const append: LogRange | null = log.nextUnwritten();
  const snapshot = log.snapshotHandedOut ? null : log.pendingSnapshot;
  const softState = hasNewSoftState(raft) ? { leader: raft.leader, role: raft.role } : null;
  const mustSync = append !== null || term !== raft.term || vote !== raft.vote;
  const committed = log.takeCommitted();
  const hardState = takeHardState(raft);
  const writes =
    append !== null || snapshot !== null || hardState !== null || afterWrite.length > 0;
  const receipt = writes ? makeReceipt(raft, snapshot?.index ?? 0) : null;
  log.handedOut = log.lastIndex;
  if (snapshot !== null) log.snapshotHandedOut = true;
  raft.handedLeader = raft.leader;
  raft.handedRole = raft.role;
  if (messages.length > 0) raft.messages = [];
  if (afterWrite.length > 0) raft.afterWrite = [];
  if (readStates.length > 0) raft.readStates = [];
  if (droppedReads.length > 0) raft.droppedReads = [];
  return {
    softState,
    hardState,
    mustSync,
    append,
    snapshot,
    committed,
    messages: takeList(messages, noMessages),
    messagesAfterWrite: takeList(afterWrite, noMessages),
    receipt,
    readStates: takeList(readStates, noReads),
    droppedReads: takeList(droppedReads, noContexts),
  };
}
