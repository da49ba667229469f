/**
 * The core by itself: what single messages do to single states. What whole groups do is in the
 * scenarios (test/golden) and in the explorer.
 */
import fc from "fast-check";
import t from "tap";
import { defaultConfig } from "../../../src/raft/state/config.js";
import { RaftCore } from "../../../src/raft/core.js";
import { changeMembership, membershipFault } from "../../../src/raft/state/membership.js";
import type { EntrySpan, Message, MessageKind, Role } from "../../../src/raft/state/types.js";
import { membershipOf, message } from "../../doubles/raft/fresh.js";
import { acknowledge, carryOut, elect, makeCore, restored, settle, spanOf } from "./group.js";

t.test("P-001 a node that learned a higher term from a vote refuses the old leader", (t) => {
  for (const grant of [true, false]) {
    const core = makeCore({ terms: [1, 1] }, { checkQuorum: true });
    core.step(message("append", { from: 3, term: 1, index: 2, logTerm: 1 }));
    settle(core);
    core.tick(10);
    const logTerm = grant ? 1 : 0;
    core.step(message("vote", { from: 2, term: 2, index: 2, logTerm }));
    const effects = carryOut(core);
    t.equal(effects.hardState?.term, 2, "the term is written before the answer");
    t.equal(effects.messagesAfterWrite[0]?.reject, !grant);
    const late = message("append", { from: 3, term: 1, index: 2, logTerm: 1 });
    core.step({ ...late, entries: spanOf(3, [1]) });
    const [answer] = settle(core);
    t.match(answer, { kind: "appendAnswer", to: 3, term: 2, index: 0 });
    t.equal(core.lastIndex, 2, "nothing was appended");
  }
  t.end();
});

/** One membership change at 10, of term 3. */
const leaveSpan: EntrySpan = {
  ...spanOf(10, [3]),
  configChanges: [{ index: 10, kind: "configChangeV2" }],
};

/** Carries out one record, but applies nothing. */
function carryOutWrite(core: RaftCore): void {
  const effects = core.takeEffects();
  for (const own of effects.messagesAfterWrite) if (own.to === core.id) core.step(own);
  if (effects.receipt !== null) core.written(effects.receipt);
}

const roles: readonly Role[] = ["follower", "preCandidate", "candidate", "leader"];

/** Node 1 in term 5 in the role asked for, in a group of three, with two entries. */
function inRole(role: Role, checked: boolean): RaftCore {
  const term = role === "candidate" || role === "leader" ? 4 : 5;
  const preVote = role === "preCandidate";
  const core = makeCore(
    { terms: [1, 1], hardState: { term, vote: 0, commit: 0 } },
    { preVote, checkQuorum: checked },
  );
  if (role === "leader") elect(core);
  else if (role !== "follower") {
    core.campaign();
    settle(core);
  }
  return core;
}

const kinds: readonly MessageKind[] = [
  "append",
  "appendAnswer",
  "vote",
  "voteAnswer",
  "preVote",
  "preVoteAnswer",
  "snapshot",
  "heartbeat",
  "heartbeatAnswer",
  "transferLeader",
  "timeoutNow",
  "readIndexAnswer",
];

/** A message of the kind, plausible in that term. */
function sample(kind: MessageKind, term: number): Message {
  const snapshot =
    kind === "snapshot" ? { index: 9, term: 3, membership: membershipOf([1, 2, 3]) } : null;
  return message(kind, { term, index: 2, logTerm: 1, snapshot });
}

t.test("P-002 the term rule: every kind, in every role, of a lower, equal and higher term", (t) => {
  for (const role of roles) {
    for (const kind of kinds) {
      const name = `${kind} to a ${role}`;
      for (const checked of [false, true]) {
        const core = inRole(role, checked);
        t.equal(core.role, role, `${name}: made`);
        const before = JSON.stringify(core.status());
        core.step(sample(kind, 4));
        const answers = settle(core);
        t.equal(JSON.stringify(core.status()), before, `${name}, lower: nothing changes`);
        const told = kind === "append" || kind === "heartbeat";
        const answered = kind === "preVote" || (told && (checked || role === "preCandidate"));
        t.equal(answers.length, answered ? 1 : 0, `${name}, lower: answered or not`);
        if (answered) t.equal(answers[0]?.term, 5, `${name}, lower: the answer carries the term`);
      }
      const equal = inRole(role, false);
      if (!(role === "leader" && ["append", "heartbeat", "snapshot"].includes(kind))) {
        equal.step(sample(kind, 5));
        settle(equal);
        t.ok(equal.term >= 5, `${name}, equal: the term does not fall`);
      }
      const higher = inRole(role, false);
      const asking = kind === "preVote" || kind === "preVoteAnswer";
      higher.step(sample(kind, 7));
      const term = asking ? 5 : kind === "timeoutNow" ? 8 : 7;
      if (!(kind === "preVoteAnswer" && role === "preCandidate")) {
        t.equal(higher.term, term, `${name}, higher: the term is taken over`);
      }
      const leads = kind === "append" || kind === "heartbeat" || kind === "snapshot";
      if (leads) t.equal(higher.leader, 2, `${name}, higher: the sender leads`);
      if (!asking && kind !== "timeoutNow") {
        t.equal(higher.role, "follower", `${name}, higher: a follower now`);
        if (!leads) t.equal(higher.leader, 0, `${name}, higher: nobody leads`);
      }
      settle(higher);
    }
  }
  const refused = inRole("preCandidate", false);
  refused.step(message("preVoteAnswer", { term: 7, reject: true }));
  t.equal(refused.term, 7, "a refused pre-vote tells the term");
  const checked = inRole("follower", true);
  checked.step(message("heartbeat", { from: 3, term: 5 }));
  settle(checked);
  checked.step(message("vote", { term: 7, index: 2, logTerm: 1 }));
  t.equal(checked.term, 5, "P-005 a loyal follower does not listen to candidates");
  t.strictSame(settle(checked), []);
  checked.step(message("vote", { term: 7, index: 2, logTerm: 1, context: 1 }));
  t.equal(checked.term, 7, "unless the leader itself ordered the campaign");
  t.end();
});

t.test("P-004 votes go to logs that are at least as good: last term first, then length", (t) => {
  const position = fc.record({ term: fc.integer({ min: 1, max: 4 }), index: fc.nat(5) });
  fc.assert(
    fc.property(position, fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 5 }), (to, own) => {
      const terms = [...own].sort((left, right) => left - right);
      const core = makeCore({ terms });
      const from = { term: 9, index: to.index, logTerm: to.index === 0 ? 0 : to.term };
      core.step(message("vote", from));
      const [answer] = settle(core);
      const lastTerm = terms.at(-1) ?? 0;
      const better =
        from.logTerm > lastTerm || (from.logTerm === lastTerm && from.index >= terms.length);
      return answer?.reject === !better;
    }),
  );
  const longer = makeCore({ terms: [1, 2] });
  longer.step(message("vote", { term: 9, index: 50, logTerm: 1 }));
  t.equal(settle(longer)[0]?.reject, true, "a longer log with an older last term loses");
  t.end();
});

t.test("P-003 P-022 answers and the leader's own copy wait for the write", (t) => {
  const voter = makeCore();
  voter.step(message("vote", { term: 1 }));
  const vote = voter.takeEffects();
  t.strictSame(vote.messages, [], "nothing leaves before the write");
  t.equal(vote.messagesAfterWrite[0]?.kind, "voteAnswer");
  t.strictSame(vote.hardState, { term: 1, vote: 2, commit: 0 });
  t.equal(vote.mustSync, true);
  const leader = makeCore();
  elect(leader);
  acknowledge(leader, 2, 1);
  acknowledge(leader, 3, 1);
  t.equal(leader.propose([1]).ok, true);
  const effects = leader.takeEffects();
  t.equal(effects.messages.length, 2, "appends leave at once");
  t.equal(leader.status().progress[0]?.match, 1, "the leader has not counted its own copy");
  leader.step(message("appendAnswer", { from: 2, term: 1, index: 2 }));
  t.equal(leader.commitIndex, 1, "one of three, and the leader's own is not written");
  for (const own of effects.messagesAfterWrite) leader.step(own);
  t.equal(leader.commitIndex, 2, "counted now");
  t.equal(leader.takeEffects().committed, null, "P-024 but not handed out before it is written");
  if (effects.receipt !== null) leader.written(effects.receipt);
  t.strictSame(leader.takeEffects().committed, { first: 2, last: 2 });
  t.end();
});

t.test("P-023 receipts of an earlier term or of a replaced position vouch for nothing", (t) => {
  const core = makeCore({ terms: [1] });
  core.step(message("append", { term: 1, index: 1, logTerm: 1, entries: spanOf(2, [1]) }));
  const first = core.takeEffects();
  core.step(message("append", { from: 3, term: 2, index: 1, logTerm: 1, entries: spanOf(2, [2]) }));
  const second = core.takeEffects();
  core.step(message("append", { term: 3, index: 1, logTerm: 1, entries: spanOf(2, [1, 3]) }));
  const third = core.takeEffects();
  t.strictSame(first.receipt, { term: 1, index: 2, logTerm: 1, snapshotIndex: 0 });
  for (const { receipt } of [first, second]) {
    if (receipt !== null) core.written(receipt);
    t.equal(core.status().writtenIndex, 1);
  }
  if (third.receipt !== null) core.written(third.receipt);
  t.equal(core.status().writtenIndex, 3);
  t.end();
});

t.test("a leader announces a commit index once to whoever lacks nothing else", (t) => {
  const leader = makeCore();
  elect(leader);
  for (const follower of [2, 3]) acknowledge(leader, follower, 1);
  settle(leader);
  const announced = (): Message[] => {
    leader.announceCommit();
    return settle(leader);
  };
  announced();
  t.strictSame(announced(), [], "nothing is new");
  leader.propose([1]);
  settle(leader);
  t.strictSame(announced(), [], "nothing is committed yet");
  acknowledge(leader, 2, 2);
  t.strictSame(settle(leader), [], "as a rule it goes with the next entries");
  const told = announced();
  t.match(told, [
    { kind: "append", to: 2, index: 2, commit: 2, entries: null },
    { kind: "append", to: 3, index: 2, commit: 2, entries: null },
  ]);
  t.strictSame(announced(), [], "it is told once");
  const follower = makeCore({ terms: [1] });
  follower.announceCommit();
  t.strictSame(settle(follower), []);
  t.end();
});

t.test(
  "P-020 P-021 the commit index never passes what an append verified; nothing committed is cut",
  (t) => {
    const core = makeCore({ terms: [1, 1, 1, 1, 1] });
    core.step(message("append", { term: 1, index: 2, logTerm: 1, commit: 5 }));
    t.equal(core.commitIndex, 2, "an empty append at 2 verifies 2");
    core.step(message("heartbeat", { term: 1, commit: 3 }));
    t.equal(core.commitIndex, 3);
    core.step(message("append", { term: 1, index: 1, logTerm: 1, entries: spanOf(2, [1]) }));
    t.equal(settle(core).at(-1)?.index, 3, "an append below the commit index is answered with it");
    t.equal(core.lastIndex, 5, "a short late append takes nothing away");
    core.step(message("append", { term: 1, index: 3, logTerm: 1, entries: spanOf(4, [1]) }));
    t.equal(core.lastIndex, 5);
    const wrong = message("append", { term: 9, index: 3, logTerm: 1, entries: spanOf(4, [9]) });
    core.step(wrong);
    t.equal(core.lastIndex, 4, "cut from the first conflict");
    core.step(message("append", { term: 9, index: 4, logTerm: 9, commit: 4 }));
    t.equal(core.commitIndex, 4);
    const lying = message("append", {
      term: 10,
      index: 4,
      logTerm: 9,
      entries: spanOf(4, [8, 10]),
    });
    t.throws(() => core.step(lying), /contradicts a committed entry/, "the node stops");
    t.end();
  },
);

t.test("P-021 appends of one leader, shortened, doubled, in any order: the log only grows", (t) => {
  const piece = fc.record({ anchor: fc.nat(8), count: fc.nat(4), commit: fc.nat(8) });
  const terms = [1, 1, 2, 2, 2, 5, 5, 5];
  const termOf = (index: number): number => (index === 0 ? 0 : (terms[index - 1] ?? 0));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const core = makeCore({ terms: [1, 1, 2, 4, 4, 4, 4] });
      let verified = 3;
      for (const { anchor, count, commit } of pieces) {
        const part = terms.slice(anchor, anchor + count);
        const entries = part.length === 0 ? null : spanOf(anchor + 1, part);
        const logTerm = termOf(anchor);
        const counts = anchor >= core.commitIndex && anchor <= verified;
        core.step(message("append", { term: 5, index: anchor, logTerm, commit, entries }));
        if (counts) verified = Math.max(verified, anchor + part.length);
        if (core.lastIndex < Math.min(verified, 3)) return false;
        if (core.commitIndex > verified) return false;
        for (let index = 1; index <= verified; index++) {
          const found = core.termAt(index);
          if (found.kind !== "known" || found.term !== termOf(index)) return false;
        }
        core.assertState();
        settle(core);
      }
      return true;
    }),
  );
  t.end();
});

t.test("P-024 a state or commit index ahead of the log is refused at start, never clamped", (t) => {
  t.throws(() => makeCore({ terms: [1], appliedIndex: 2 }), /not ahead of its log/);
  const commit = { term: 1, vote: 0, commit: 2 };
  t.throws(() => makeCore({ terms: [1], hardState: commit }), /known to be committed/);
  const late = makeCore({ terms: [1, 1], appliedIndex: 2, hardState: { ...commit, commit: 1 } });
  t.equal(late.commitIndex, 2, "the applied index may be ahead of the stored commit index");
  t.throws(() => makeCore({ floorIndex: 5, floorTerm: 1, appliedIndex: 4 }), /floor/);
  t.end();
});

t.test(
  "P-026 match rises only by acceptance; refusals count only if they answer the probe",
  (t) => {
    const core = makeCore({ terms: [1, 1, 1, 1] });
    elect(core);
    const peer = (): unknown => core.status().progress[1];
    t.match(peer(), { state: "probe", match: 0, next: 5 });
    const refusal = { from: 2, term: core.term, reject: true };
    core.step(message("appendAnswer", { ...refusal, index: 3, rejectHint: 1, logTerm: 1 }));
    t.match(peer(), { state: "probe", match: 0, next: 5 }, "not the probe in flight");
    core.step(message("appendAnswer", { ...refusal, index: 4, rejectHint: 2, logTerm: 1 }));
    t.match(peer(), { state: "probe", match: 0, next: 3 });
    settle(core);
    acknowledge(core, 2, 3);
    t.match(peer(), { state: "replicate", match: 3 });
    core.step(message("appendAnswer", { ...refusal, index: 2, rejectHint: 1, logTerm: 1 }));
    t.match(peer(), { state: "replicate", match: 3 }, "stale: not above match");
    core.step(message("appendAnswer", { ...refusal, index: 5, rejectHint: 0 }));
    t.match(peer(), { state: "probe", match: 3, next: 4 }, "never below match + 1");
    const old = message("appendAnswer", { from: 2, term: core.term - 1, index: 5 });
    core.step(old);
    t.match(peer(), { match: 3 }, "an answer of an older term counts for nothing");
    const stranger = core.step(message("appendAnswer", { from: 9, term: core.term, index: 5 }));
    t.strictSame(stranger, { ok: false, reason: "peer-not-found" });
    core.step(message("voteAnswer", { from: 3, term: core.term }));
    t.match(core.status().progress[2], { match: 0 }, "a vote is no position");
    t.end();
  },
);

t.test("P-026 two tails of 10,000 entries in 40 terms meet within a round per term", (t) => {
  const terms = (parity: number): number[] => {
    return Array.from({ length: 10_000 }, (_, at) => 2 + 2 * Math.floor(at / 500) + parity);
  };
  const leader = makeCore({ terms: [1, ...terms(1)] });
  const follower = makeCore({ terms: [1, ...terms(0)] }, { id: 2 });
  const inbox = elect(leader).filter(({ kind, to }) => kind === "append" && to === 2);
  let rounds = 0;
  while (follower.lastIndex !== leader.lastIndex || leader.status().progress[1]?.match !== 10_002) {
    rounds++;
    for (const appended of inbox.splice(0)) follower.step(appended);
    for (const answer of settle(follower)) leader.step(answer);
    inbox.push(...settle(leader).filter(({ to }) => to === 2));
    if (rounds > 60) break;
  }
  t.ok(rounds <= 23, `${rounds} rounds`);
  t.strictSame(follower.termAt(10_001), leader.termAt(10_001));
  t.end();
});

t.test("P-027 the term at the floor is known, below it compacted, behind the end unknown", (t) => {
  const check = (core: RaftCore, floor: number, end: number, name: string): void => {
    t.strictSame(core.termAt(floor - 1), { kind: "compacted" }, name);
    t.equal(core.termAt(floor).kind, "known", name);
    t.equal(core.termAt(end + 1).kind, "beyond", name);
    for (const index of [floor - 1, floor]) {
      const found = core.termAt(index);
      const logTerm = found.kind === "known" ? found.term : 1;
      core.step(message("append", { term: 9, index, logTerm }));
      const [answer] = settle(core);
      t.equal(answer?.reject, false, `${name}: ${index} is below or at the commit index`);
    }
  };
  const core = makeCore({ terms: [1, 1, 2, 2, 3], appliedIndex: 4 });
  core.compacted(3);
  check(core, 3, 5, "after compaction");
  t.strictSame(core.termAt(3), { kind: "known", term: 2 });
  check(makeCore({ floorIndex: 3, floorTerm: 2, terms: [2, 3] }), 3, 5, "after a restart");
  const receiver = makeCore();
  const snapshot = { index: 7, term: 4, membership: membershipOf([1, 2, 3]) };
  receiver.step(message("snapshot", { term: 4, snapshot }));
  settle(receiver);
  check(receiver, 7, 7, "after a snapshot");
  receiver.step(message("append", { term: 9, index: 7, logTerm: 4, entries: spanOf(8, [9]) }));
  t.equal(settle(receiver)[0]?.index, 8, "the log goes on at the floor");
  t.end();
});

t.test("P-034 the unapplied tail is limited; entries without payload are exempt", (t) => {
  const core = makeCore({}, { maxUncommittedBytes: 100 });
  elect(core);
  t.equal(core.propose([500]).ok, true, "one entry always goes");
  t.strictSame(core.propose([1]), { ok: false, reason: "uncommitted-limit" });
  t.equal(core.propose([0]).ok, true);
  settle(core);
  acknowledge(core, 2, 3);
  t.equal(core.appliedIndex, 3);
  t.equal(core.propose([60, 40]).ok, true, "the room is back");
  t.equal(core.propose([1]).ok, false);
  const heir = makeCore({ terms: [1, 1, 1] }, { maxUncommittedBytes: 3 });
  elect(heir);
  t.equal(
    heir.propose([1]).ok,
    false,
    "an inherited tail counts, the first entry of the term went",
  );
  acknowledge(heir, 2, 4);
  t.equal(heir.propose([3]).ok, true);
  t.end();
});

t.test("P-014 P-045 P-047 P-048 P-049 reads", (t) => {
  const core = makeCore({ terms: [1] });
  elect(core);
  t.equal(core.requestRead(1), "accepted");
  t.strictSame(settle(core), [], "no round before an own-term entry is committed");
  t.equal(core.hasCommittedInTerm, false);
  acknowledge(core, 2, 2);
  t.equal(core.hasCommittedInTerm, true);
  core.requestRead(2);
  const effects = core.takeEffects();
  const rounds = effects.messages.filter(({ kind, to }) => kind === "heartbeat" && to === 2);
  t.equal(effects.readStates.length, 0);
  const [round] = rounds;
  const echo = message("heartbeatAnswer", { term: core.term, context: (round?.context ?? 0) - 1 });
  core.step(echo);
  t.notMatch(core.takeEffects().readStates, [{ context: 2 }], "an earlier echo confirms nothing");
  core.step({ ...echo, context: round?.context ?? 0 });
  t.match(core.takeEffects().readStates.at(-1), { context: 2, index: 2 });
  core.requestRead(3);
  core.step(message("heartbeat", { from: 3, term: core.term + 1 }));
  t.strictSame(core.takeEffects().droppedReads, [3], "P-049 a deposed leader gives its reads up");
  t.equal(core.requestRead(4), "forwarded");
  core.step(message("timeoutNow", { term: core.term }));
  t.equal(core.requestRead(5), "no-leader");
  const one = makeCore({ terms: [1, 1], membership: membershipOf([1]) });
  one.campaign();
  carryOut(one);
  t.equal(one.role, "leader");
  one.requestRead(6);
  t.strictSame(one.takeEffects().readStates, [], "P-047 a group of one waits, too");
  const few = makeCore({}, { maxPendingReads: 2 });
  elect(few);
  t.equal(few.requestRead(1), "accepted");
  t.equal(few.requestRead(2), "accepted");
  t.equal(few.requestRead(3), "too-many");
  t.end();
});

t.test("P-046 a lease is counted from the round that confirms it and ends with a transfer", (t) => {
  const core = makeCore({}, { readMode: "leaseBased", checkQuorum: true });
  elect(core);
  acknowledge(core, 2, 1);
  const answered = (context: number): boolean => {
    core.requestRead(context);
    const effects = core.takeEffects();
    return effects.readStates.some((read) => read.context === context);
  };
  t.equal(answered(1), false, "no lease yet: a round");
  core.tick(1);
  const beat = core.takeEffects().messages.find(({ to }) => to === 2);
  core.tick(3);
  core.step(message("heartbeatAnswer", { term: 1, context: beat?.context ?? 0 }));
  settle(core);
  t.equal(answered(2), true, "confirmed");
  core.tick(5);
  t.equal(answered(3), true, "8 of 10 ticks after the round began");
  core.tick(1);
  t.equal(answered(4), false, "too close to the end");
  core.step(message("heartbeatAnswer", { term: 1, context: Number.MAX_SAFE_INTEGER }));
  t.equal(answered(5), true);
  core.transferLeadership(2);
  t.equal(answered(6), false, "given up before the order leaves");
  t.end();
});

t.test("P-084 P-086 membership changes: kinds survive a restart, refusals are typed", (t) => {
  const add = {
    version: 2,
    transition: "auto",
    operations: [{ kind: "addLearner", node: 4 }],
  } as const;
  const core = makeCore({
    terms: [1, 1, 1],
    hardState: { term: 1, vote: 0, commit: 2 },
    configChanges: [{ index: 2, kind: "configChangeV2" }],
  });
  t.equal(core.kindAt(2), "configChangeV2");
  core.campaign();
  t.equal(core.role, "follower", "no campaign with a committed change unapplied");
  t.throws(() => core.applyConfigChange(1, add), /membership change at this index/);
  t.throws(() => core.applyConfigChange(3, add), /committed/);
  t.strictSame(core.takeEffects().committed, { first: 1, last: 2 });
  t.strictSame(core.applyConfigChange(2, add).learners, [4]);
  t.throws(() => core.applyConfigChange(2, add), /applied once/);
  core.applied(2);
  elect(core);
  t.equal(core.role, "leader");
  acknowledge(core, 2, 4);
  const five = { ...add, operations: [{ kind: "addVoter", node: 5 } as const] };
  t.match(core.proposeConfigChange(five, 9), { ok: true, firstIndex: 5, replacedByEmpty: false });
  t.match(core.proposeConfigChange(five, 9), { ok: true, firstIndex: 6, replacedByEmpty: true });
  t.equal(core.kindAt(6), "normal");
  settle(core);
  core.step(message("appendAnswer", { from: 2, term: core.term, index: 6 }));
  t.strictSame(core.takeEffects().committed, { first: 5, last: 6 });
  core.applyConfigChange(5, five);
  core.applied(6);
  const none = [1, 2, 3, 5].map((node) => ({ kind: "remove", node }) as const);
  const refused = core.proposeConfigChange({ ...add, operations: none }, 9);
  t.strictSame(refused, { ok: false, reason: "invalid-change" }, "the last voter stays");
  const cut = makeCore({ terms: [1, 1], configChanges: [{ index: 2, kind: "configChangeV1" }] });
  cut.step(message("append", { term: 2, index: 1, logTerm: 1, entries: spanOf(2, [2]) }));
  t.equal(cut.kindAt(2), "normal", "a change that is cut off leaves no trace");
  t.end();
});

t.test("P-084 a candidate learns from any voter that a change in its log is committed", (t) => {
  const change = {
    version: 2,
    transition: "auto",
    operations: [{ kind: "remove", node: 1 }],
  } as const;
  const restarted = (id: number, terms: readonly number[], commit: number): RaftCore =>
    makeCore(
      {
        ...{
          terms,
          membership: membershipOf([1, 2, 3, 4]),
          hardState: { term: 1, vote: 0, commit },
        },
        configChanges: [{ index: 2, kind: "configChangeV2" }],
      },
      { id, preVote: true },
    );
  // The leader, 2, is gone for good, and 1 was removed. 4 has more of the log, and knows less of it.
  const knows = restarted(3, [1, 1, 1], 2);
  const longer = restarted(4, [1, 1, 1, 1], 1);
  const applyAll = (core: RaftCore): void => {
    const { committed } = core.takeEffects();
    if (committed === null) return;
    if (committed.first <= 2 && committed.last >= 2) core.applyConfigChange(2, change);
    core.applied(committed.last);
  };
  const ask = (from: RaftCore, of: RaftCore): void => {
    from.campaign();
    for (let round = 0; round < 4; round++) {
      const sent = settle(from).filter(({ to }) => to === of.id);
      for (const one of sent) of.step(one);
      for (const answer of settle(of)) if (answer.to === from.id) from.step(answer);
    }
  };
  applyAll(knows);
  t.strictSame(knows.membership.voters, [2, 3, 4]);
  applyAll(longer);
  ask(knows, longer);
  t.equal(knows.role, "preCandidate", "its log is too short");
  t.equal(longer.commitIndex, 1, "who is asked learns nothing");
  longer.campaign();
  const [asked] = settle(longer).filter(({ to }) => to === 3);
  knows.step(asked as Message);
  const [answer] = settle(knows);
  t.match(answer, { kind: "preVoteAnswer", reject: false, commit: 2, logTerm: 1 });
  longer.step({ ...(answer as Message), logTerm: 9 });
  t.equal(longer.commitIndex, 1, "what is in another log says nothing of this one");
  longer.campaign();
  settle(longer);
  longer.step(answer as Message);
  t.equal(longer.role, "follower", "the old members are asked no more");
  t.equal(longer.commitIndex, 2);
  longer.campaign();
  t.equal(longer.role, "follower", "not before the change is applied");
  applyAll(longer);
  ask(longer, knows);
  t.equal(longer.role, "leader", "two of three are enough");
  t.end();
});

t.test("P-036 P-037 one function decides between append, snapshot and silence", (t) => {
  const start = { floorIndex: 10, floorTerm: 1, terms: [1, 1], appliedIndex: 12 } as const;
  const core = makeCore({ ...start, membership: membershipOf([1, 2, 3]) });
  elect(core);
  const refusal = { from: 2, term: core.term, reject: true, index: 12, rejectHint: 3 };
  core.step(message("appendAnswer", refusal));
  t.match(settle(core), [{ kind: "snapshot", snapshot: { index: 12 } }]);
  t.match(core.status().progress[1], { state: "snapshot", pendingSnapshot: 12, next: 13 });
  core.reportSnapshot(2, false);
  t.match(core.status().progress[1], { state: "probe", next: 1, paused: true });
  core.step(message("heartbeatAnswer", { term: core.term }));
  t.match(settle(core), [{ kind: "snapshot" }], "tried again after a heartbeat");
  core.reportSnapshot(2, true);
  t.match(core.status().progress[1], { state: "probe", next: 13, paused: true });
  acknowledge(core, 2, 11);
  t.match(core.status().progress[1], { state: "replicate", match: 11 });
  core.tick(1);
  settle(core);
  t.match(core.status().progress[2], { active: false });
  core.snapshotAvailable({ index: 11, term: 1, membership: membershipOf([1, 2, 3]) });
  core.step(message("appendAnswer", { ...refusal, from: 3 }));
  t.match(settle(core), [{ kind: "snapshot", snapshot: { index: 11 } }], "what the host offers");
  t.end();
});

t.test("P-037 a silent peer gets no snapshot until it is heard again", (t) => {
  const core = makeCore({ terms: [1] }, { checkQuorum: true });
  elect(core);
  acknowledge(core, 3, 2);
  acknowledge(core, 2, 2);
  for (let round = 0; round < 3; round++) {
    core.propose([1]);
    settle(core);
    acknowledge(core, 2, core.lastIndex);
  }
  core.compacted(5);
  core.reportUnreachable(3);
  core.tick(10);
  settle(core);
  t.match(core.status().progress[2], { state: "probe", next: 3, active: false, paused: false });
  core.propose([1]);
  const to = (messages: readonly Message[]): unknown[] => {
    return messages.filter((sent) => sent.to === 3).map(({ kind }) => kind);
  };
  t.strictSame(to(settle(core)), [], "nothing, rather than a snapshot into the void");
  core.step(message("heartbeatAnswer", { from: 3, term: core.term }));
  t.strictSame(to(settle(core)), ["snapshot"]);
  t.end();
});

t.test("P-038 P-087 snapshots and learners", (t) => {
  const members = membershipOf([2, 3], [1]);
  const learner = makeCore({ membership: members });
  learner.tick(100);
  learner.campaign();
  t.equal(learner.role, "follower", "a learner never campaigns");
  learner.step(
    message("snapshot", { term: 2, snapshot: { index: 5, term: 2, membership: members } }),
  );
  const effects = learner.takeEffects();
  t.match(effects.snapshot, { index: 5 });
  t.equal(effects.committed, null);
  t.equal(effects.messagesAfterWrite[0]?.index, 5, "acknowledged when installed");
  learner.step(
    message("append", { term: 2, index: 5, logTerm: 2, commit: 6, entries: spanOf(6, [2]) }),
  );
  t.equal(learner.takeEffects().committed, null, "nothing is applied before the installation");
  if (effects.receipt !== null) learner.written(effects.receipt);
  t.equal(learner.appliedIndex, 5);
  const foreign = { index: 9, term: 2, membership: membershipOf([2, 3]) };
  learner.step(message("snapshot", { term: 2, snapshot: foreign }));
  t.equal(learner.lastIndex, 6, "one that does not name the receiver is ignored");
  t.end();
});

t.test("P-038 a snapshot below the commit index changes nothing, compacted or not", (t) => {
  const core = makeCore({ floorIndex: 5, floorTerm: 2, terms: [2, 2], appliedIndex: 7 });
  for (const index of [3, 5, 6, 7]) {
    const snapshot = { index, term: 1, membership: membershipOf([1, 2]) };
    core.step(message("snapshot", { term: 3, snapshot }));
    t.match(settle(core), [{ kind: "appendAnswer", index: 7, reject: false }]);
    t.equal(core.lastIndex, 7);
    t.strictSame(core.membership.voters, [1, 2, 3]);
  }
  t.end();
});

t.test("P-039 a snapshot brings its whole membership, joint parts included", (t) => {
  const core = makeCore({ membership: membershipOf([]) });
  const membership = {
    voters: [1, 4],
    votersOutgoing: [2, 4],
    learners: [7],
    learnersNext: [2],
    autoLeave: true,
  };
  core.step(message("snapshot", { term: 3, snapshot: { index: 9, term: 3, membership } }));
  settle(core);
  t.strictSame(core.membership, membership);
  core.step(message("append", { term: 3, index: 9, logTerm: 3, commit: 10, entries: leaveSpan }));
  carryOutWrite(core);
  t.strictSame(core.applyConfigChange(10, { version: 2, transition: "auto", operations: [] }), {
    voters: [1, 4],
    votersOutgoing: [],
    learners: [2, 7],
    learnersNext: [],
    autoLeave: false,
  });
  t.equal(core.takeEffects().softState, null);
  t.end();
});

t.test("a voter that goes to be a learner waits in learnersNext; changes that cannot be", (t) => {
  const joint = changeMembership(membershipOf([1, 2, 3], [4]), {
    version: 2,
    transition: "auto",
    operations: [
      { kind: "addLearner", node: 3 },
      { kind: "addVoter", node: 4 },
      { kind: "update", node: 2 },
    ],
  });
  t.match(joint, {
    ok: true,
    membership: {
      voters: [1, 2, 4],
      votersOutgoing: [1, 2, 3],
      learners: [],
      learnersNext: [3],
      autoLeave: true,
    },
  });
  const base = joint.ok ? joint.membership : membershipOf([]);
  const one = [{ kind: "remove", node: 2 } as const];
  const change = { version: 2, transition: "auto", operations: one } as const;
  t.match(changeMembership(base, change), { ok: false }, "nothing but leaving while joint");
  t.match(changeMembership(base, { ...change, transition: "explicit" }), { ok: false });
  const leave = { ...change, operations: [] };
  const left = changeMembership(base, leave);
  t.match(left, { ok: true, membership: { voters: [1, 2, 4], learners: [3], learnersNext: [] } });
  t.match(changeMembership(membershipOf([1]), leave), { ok: false }, "nothing to leave");
  t.match(changeMembership(membershipOf([2]), change), { ok: false }, "the last voter");
  const nobody = [{ kind: "addVoter", node: 0 } as const];
  t.match(changeMembership(base, { ...change, operations: nobody }), { ok: false });
  t.equal(membershipFault(base), null);
  t.not(membershipFault({ ...base, learners: [1] }), null);
  t.not(membershipFault({ ...base, learnersNext: [9] }), null);
  t.not(membershipFault({ ...membershipOf([1]), autoLeave: true }), null);
  t.not(membershipFault(membershipOf([10, 9])), null);
  t.end();
});

t.test("a vote is written although the term is old news; a voter gives the candidate time", (t) => {
  const core = makeCore({ hardState: { term: 4, vote: 0, commit: 0 } });
  core.setElectionTimeout(10);
  core.tick(9);
  core.step(message("vote", { term: 4 }));
  const effects = core.takeEffects();
  t.strictSame(effects.hardState, { term: 4, vote: 2, commit: 0 });
  t.equal(effects.mustSync, true);
  core.tick(9);
  t.equal(core.role, "follower", "the timer was started anew");
  core.tick(1);
  t.equal(core.role, "candidate");
  t.end();
});

t.test("P-019 after a change the commit index is looked at again", (t) => {
  const core = makeCore({ terms: [1], membership: membershipOf([1, 2, 3, 4]) });
  elect(core, [2, 3]);
  acknowledge(core, 2, 2);
  acknowledge(core, 3, 2);
  const remove = {
    version: 1,
    transition: "auto",
    operations: [{ kind: "remove", node: 4 }],
  } as const;
  core.proposeConfigChange(remove, 5);
  settle(core);
  core.step(message("appendAnswer", { from: 3, term: core.term, index: 3 }));
  core.step(message("appendAnswer", { from: 2, term: core.term, index: 3 }));
  const { committed } = core.takeEffects();
  t.strictSame(committed, { first: 3, last: 3 });
  core.propose([1]);
  carryOutWrite(core);
  core.step(message("appendAnswer", { from: 2, term: core.term, index: 4 }));
  t.equal(core.commitIndex, 3, "two of four");
  core.applyConfigChange(3, remove);
  t.equal(core.commitIndex, 4, "two of three");
  core.applied(3);
  core.assertState();
  t.end();
});

t.test("P-085 leaving a joint configuration is exempt from the limit", (t) => {
  const joint = {
    voters: [1, 2],
    votersOutgoing: [1, 2, 3],
    learners: [],
    learnersNext: [],
    autoLeave: true,
  };
  const core = makeCore({ terms: [1], membership: joint }, { maxUncommittedBytes: 1 });
  elect(core);
  core.propose([0]);
  core.step(message("appendAnswer", { from: 2, term: core.term, index: 1 }));
  settle(core);
  acknowledge(core, 2, 2);
  t.equal(core.kindAt(4), "configChangeV2", "proposed although the tail is full");
  t.end();
});

t.test("P-007 election timeouts are drawn anew, evenly, from [T, 2T)", (t) => {
  const counts = new Map<number, number>();
  for (let seed = 0; seed < 2000; seed++) {
    const core = new RaftCore({ ...defaultConfig(1, seed), preVote: false }, restored());
    const ticks = core.ticksUntilDue();
    counts.set(ticks, (counts.get(ticks) ?? 0) + 1);
    core.tick(ticks - 1);
    if (core.role !== "follower") t.fail("too early");
    core.tick(1);
    if (core.role !== "candidate") t.fail("too late");
  }
  t.strictSame(
    [...counts.keys()].sort((left, right) => left - right),
    [10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
  );
  t.ok(
    [...counts.values()].every((count) => count > 120 && count < 280),
    "evenly",
  );
  t.end();
});

t.test("ticks may be saved up until they are due", (t) => {
  fc.assert(
    fc.property(
      fc.integer(),
      fc.boolean(),
      fc.integer({ min: 1, max: 60 }),
      (seed, leads, total) => {
        const settings = { seed, heartbeatTicks: 3, checkQuorum: true };
        const single = makeCore({}, settings);
        const saved = makeCore({}, settings);
        for (const core of [single, saved]) {
          if (leads) elect(core);
          settle(core);
        }
        let kept = 0;
        for (let tick = 0; tick < total; tick++) {
          single.tick(1);
          kept++;
          if (kept < saved.ticksUntilDue()) {
            if (single.hasEffects()) return false;
            continue;
          }
          saved.tick(kept);
          kept = 0;
          if (JSON.stringify(settle(single)) !== JSON.stringify(settle(saved))) return false;
        }
        saved.tick(kept);
        return JSON.stringify(single.status()) === JSON.stringify(saved.status());
      },
    ),
  );
  t.end();
});

t.test(
  "records: spans are run-length, empty takes are shared, equal inputs give equal effects",
  (t) => {
    const core = makeCore();
    elect(core);
    acknowledge(core, 2, 1);
    core.propose(new Array<number>(64).fill(10));
    const effects = core.takeEffects();
    t.equal(effects.append?.termRuns.length, 1, "one run for 64 entries");
    t.equal(effects.append?.sizeBytes, 640);
    t.equal(effects.messages[0]?.entries?.sizesBytes.length, 64);
    t.equal(core.takeEffects(), core.takeEffects(), "nothing to do costs nothing");
    const history = (seed: number): string => {
      const one = makeCore({}, { seed, preVote: true, checkQuorum: true });
      let text = "";
      for (let tick = 0; tick < 200; tick++) {
        one.tick(1);
        text += JSON.stringify(carryOut(one));
      }
      return text;
    };
    t.equal(history(7), history(7));
    t.not(history(7), history(8));
    t.end();
  },
);

t.test("a core is built from a log of any length without walking it", (t) => {
  const lastIndex = 2 ** 40;
  const core = makeCore({
    hardState: { term: 9, vote: 0, commit: lastIndex },
    termRuns: [
      { first: 1, term: 1 },
      { first: 2 ** 39, term: 9 },
    ],
    lastIndex,
    sizeRuns: [{ first: 1, sizeBytes: 2 ** 44 }],
    appliedIndex: lastIndex - 2,
  });
  t.strictSame(core.termAt(2 ** 39 - 1), { kind: "known", term: 1 });
  t.strictSame(core.takeEffects().committed, { first: lastIndex - 1, last: lastIndex });
  core.applied(lastIndex);
  elect(core);
  const refusal = { from: 2, term: core.term, reject: true, index: lastIndex, rejectHint: 5 };
  core.step(message("appendAnswer", { ...refusal, logTerm: 1 }));
  const [sent] = settle(core);
  t.equal(sent?.entries?.first, 6);
  t.ok((sent?.entries?.sizeBytes ?? 0) <= 1 << 20, "paged by size");
  t.end();
});
