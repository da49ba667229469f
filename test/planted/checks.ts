/**
 * Single situations, for bugs that no group of such cores gets itself into, because other rules keep
 * the situation away, and for bugs that make a leader send without end.
 */
import type { Membership, Message } from "../../src/raft/state/types.js";
import type { Library } from "../unit/raft/explorer/node.js";

const membership: Membership = {
  voters: [1, 2, 3],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

const fromLeader: Message = {
  kind: "append",
  from: 2,
  to: 1,
  term: 3,
  logTerm: 1,
  index: 2,
  commit: 4,
  reject: false,
  rejectHint: 0,
  context: 0,
  entries: null,
  snapshot: null,
  proposal: null,
};

/** A follower with a divergent tail gets an append that ends before it and knows of later commits. */
function commitsOnlyWhatWasVerified(library: Library): string | null {
  const core = new library.RaftCore(library.defaultConfig(1, 1), {
    hardState: { term: 3, vote: 0, commit: 0 },
    floorIndex: 0,
    floorTerm: 0,
    termRuns: [
      { first: 1, term: 1 },
      { first: 3, term: 2 },
    ],
    lastIndex: 4,
    configChanges: [],
    sizeRuns: [{ first: 1, sizeBytes: 4 }],
    appliedIndex: 0,
    awaitsSnapshot: false,
    membership,
  });
  core.step(fromLeader);
  const { commitIndex } = core;
  return commitIndex === 2 ? null : `2 was verified, the commit index is ${commitIndex}`;
}

/** A follower compacts its log, then an append is anchored exactly at the floor. */
function keepsTheTermAtTheFloor(library: Library): string | null {
  const core = new library.RaftCore(library.defaultConfig(1, 1), {
    hardState: { term: 3, vote: 0, commit: 3 },
    floorIndex: 0,
    floorTerm: 0,
    termRuns: [{ first: 1, term: 1 }],
    lastIndex: 3,
    configChanges: [],
    sizeRuns: [{ first: 1, sizeBytes: 3 }],
    appliedIndex: 3,
    awaitsSnapshot: false,
    membership,
  });
  core.compacted(3);
  core.step({ ...fromLeader, index: 3, commit: 3 });
  const [answer] = core.takeEffects().messagesAfterWrite;
  if (answer?.kind === "appendAnswer" && !answer.reject && answer.index === 3) return null;
  return `an append anchored at the floor is answered with ${JSON.stringify(answer)}`;
}

/**
 * The leader's log still begins where the group began: only the word of the one who awaits a
 * snapshot keeps it from sending entries from the first one on.
 */
function sendsTheSnapshotAskedFor(library: Library): string | null {
  const core = new library.RaftCore(
    { ...library.defaultConfig(1, 1), preVote: false },
    {
      hardState: { term: 3, vote: 0, commit: 3 },
      floorIndex: 0,
      floorTerm: 0,
      termRuns: [{ first: 1, term: 1 }],
      lastIndex: 3,
      configChanges: [],
      sizeRuns: [{ first: 1, sizeBytes: 3 }],
      appliedIndex: 3,
      awaitsSnapshot: false,
      membership: { ...membership, voters: [1], learners: [2] },
    },
  );
  core.campaign();
  for (const own of core.takeEffects().messagesAfterWrite) core.step(own);
  const { term } = core;
  const refusal = { kind: "appendAnswer", term, index: 3, reject: true, context: 1 } as const;
  core.step({ ...fromLeader, logTerm: 0, commit: 0, ...refusal });
  const kinds = core
    .takeEffects()
    .messages.filter(({ to }) => to === 2)
    .map(({ kind }) => kind);
  return kinds.includes("snapshot") ? null : `a need of a snapshot is met with ${kinds.join(", ")}`;
}

/** A candidate has a change in its log, and a voter says that it is committed, or speaks of another log. */
function learnsOfAChangeByVotes(library: Library): string | null {
  for (const logTerm of [1, 2]) {
    const core = new library.RaftCore(library.defaultConfig(1, 1), {
      hardState: { term: 3, vote: 0, commit: 1 },
      floorIndex: 0,
      floorTerm: 0,
      termRuns: [{ first: 1, term: 1 }],
      lastIndex: 3,
      configChanges: [{ index: 2, kind: "configChangeV2" }],
      sizeRuns: [{ first: 1, sizeBytes: 3 }],
      appliedIndex: 1,
      awaitsSnapshot: false,
      membership,
    });
    core.campaign();
    core.step({ ...fromLeader, kind: "preVoteAnswer", term: 4, logTerm, index: 0, commit: 2 });
    const { role, commitIndex } = core;
    if (logTerm === 1 && (role !== "follower" || commitIndex !== 2)) {
      return `a ${role} that has committed ${commitIndex} asks members of the past`;
    }
    if (logTerm === 2 && commitIndex !== 1) return "what another log says is taken over";
  }
  return null;
}

/** Each answers what is wrong with the core, or null. */
export const checks = {
  learnsOfAChangeByVotes,
  commitsOnlyWhatWasVerified,
  keepsTheTermAtTheFloor,
  sendsTheSnapshotAskedFor,
};
