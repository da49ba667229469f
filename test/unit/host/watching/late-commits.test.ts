/** Followers whose watchers wait ask whether an entry is committed, when nothing else tells them. */
import t from "tap";
import { LateCommits } from "../../../../src/host/watching/late-commits.js";
import type { WatchGroup, WatchPorts } from "../../../../src/host/watching/watching.js";

const PARTITION = 3;

/** A follower of partition 3 that is told nothing of commits. */
function follower() {
  const timers: { atMs: number; run: () => void }[] = [];
  const state = { nowMs: 0, isLeader: false, leader: 2, isWatched: true, isClosing: false };
  const machine = { appliedIndex: 0 };
  const group = {
    ...{ partition: PARTITION, machine },
    isLeader: () => state.isLeader,
    leaderNode: () => state.leader,
  } as unknown as WatchGroup;
  const askedMs: number[] = [];
  const open: (() => void)[] = [];
  const ports = {
    clock: { monotonicMs: () => state.nowMs },
    timer: {
      after: (ms: number, run: () => void) => timers.push({ atMs: state.nowMs + ms, run }),
    },
    group: () => group,
    isClosing: () => state.isClosing,
    confirmThere: (_partition: number, _untilMs: number, done: (index: number | null) => void) => {
      askedMs.push(state.nowMs);
      open.push(() => done(null));
    },
  } as unknown as WatchPorts;
  const late = new LateCommits(ports, () => state.isWatched);
  const pass = (ms: number): void => {
    const endMs = state.nowMs + ms;
    for (; state.nowMs < endMs; state.nowMs++) {
      for (const timer of timers.splice(0)) {
        if (timer.atMs <= state.nowMs) timer.run();
        else timers.push(timer);
      }
    }
  };
  const answer = (): void => open.splice(0).forEach((done) => done());
  return { late, group, machine, state, askedMs, pass, answer, timers };
}

t.test(
  "a lone entry is asked about until it is applied, the less often the longer it takes",
  (t) => {
    const { late, group, machine, askedMs, pass, answer, timers } = follower();
    late.appended(group, 1);
    late.appended(group, 2);
    pass(10);
    t.equal(askedMs.length, 1, "one question at a time");
    for (let round = 0; round < 300; round++) {
      pass(1);
      answer();
    }
    const waits = askedMs.slice(2).map((atMs, at) => atMs - (askedMs[at + 1] as number));
    t.ok(askedMs.length >= 5 && askedMs.length <= 12, `asked ${askedMs.length} times`);
    t.ok(waits.every((ms, at) => at === 0 || ms >= (waits[at - 1] as number)));
    machine.appliedIndex = 1;
    pass(100);
    answer();
    const before = askedMs.length;
    t.ok(before > 1);
    machine.appliedIndex = 2;
    pass(200);
    answer();
    pass(200);
    t.equal(timers.length, 0, "nothing is left to do");
    t.end();
  },
);

t.test("where entries follow each other nothing is asked", (t) => {
  const { late, group, machine, askedMs, pass, timers } = follower();
  for (let index = 1; index <= 500; index++) {
    late.appended(group, index);
    pass(1);
    machine.appliedIndex = index - 1;
  }
  machine.appliedIndex = 500;
  pass(10);
  t.equal(askedMs.length, 0);
  t.equal(timers.length, 0);
  t.end();
});

t.test("W15 nothing is asked by who leads, knows no leader, stops, or has no watchers", (t) => {
  for (const change of [
    { isLeader: true },
    { leader: 0 },
    { isClosing: true },
    { isWatched: false },
  ]) {
    const { late, group, state, askedMs, pass, timers } = follower();
    Object.assign(state, change);
    late.appended(group, 1);
    pass(50);
    t.equal(askedMs.length, 0, JSON.stringify(change));
    t.equal(timers.length, 0);
  }
  t.end();
});
