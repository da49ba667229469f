/** What the core takes, with everything unset but what a test says. */
import type {
  Membership,
  Message,
  MessageKind,
  RestoredState,
} from "../../../src/raft/state/types.js";

export function membershipOf(
  voters: readonly number[],
  learners: readonly number[] = [],
): Membership {
  return { voters, votersOutgoing: [], learners, learnersNext: [], autoLeave: false };
}

/** A message from node 2 to node 1. */
export function message(kind: MessageKind, fields: Partial<Message>): Message {
  return {
    kind,
    from: 2,
    to: 1,
    term: 0,
    logTerm: 0,
    index: 0,
    commit: 0,
    reject: false,
    rejectHint: 0,
    context: 0,
    entries: null,
    snapshot: null,
    proposal: null,
    ...fields,
  };
}

/** A member with an empty log. */
export function freshState(
  membership: Membership,
  hardState: RestoredState["hardState"] = { term: 0, vote: 0, commit: 0 },
): RestoredState {
  return {
    hardState,
    floorIndex: 0,
    floorTerm: 0,
    termRuns: [],
    lastIndex: 0,
    configChanges: [],
    sizeRuns: [],
    appliedIndex: 0,
    awaitsSnapshot: false,
    membership,
  };
}
