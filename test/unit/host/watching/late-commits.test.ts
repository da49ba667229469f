/** Followers whose watchers wait ask whether an entry is committed, when nothing else tells them. */
import t from "tap";
import { ANNOUNCED_MS, LateCommits } from "../../../../src/host/watching/late-commits.js";
import type { WatchGroup, WatchPorts } from "../../../../src/host/watching/watching.js";

const PARTITION = 3;
/** Whoever announces is given that long (ms). */
const FIRST_ANNOUNCED_MS = 16;

type Follower = ReturnType<typeof follower>;

/** A follower of partition 3 that is told nothing of commits. */
function follower() {
  const timers: { atMs: number; run: () => void }[] = [];
  const state = {
    nowMs: 0,
    isLeader: false,
    leader: 2,
    isWatched: true,
    isClosing: false,
    isAnswered: false,
  };
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
      open.push(() => done(state.isAnswered ? machine.appliedIndex : null));
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

/** Entry 1 was asked about at once, and leader 2 answered. */
function announced() {
  const all = follower();
  const { late, group, machine, state, pass, answer } = all;
  state.isAnswered = true;
  late.appended(group, 1);
  pass(5);
  machine.appliedIndex = 1;
  answer();
  pass(20);
  return all;
}

/** How long after an entry, which is not applied, it is asked about (ms). */
function askedAfterMs({ late, group, state, askedMs, pass, machine, answer }: Follower): number {
  const { nowMs } = state;
  late.appended(group, machine.appliedIndex + 1);
  pass(50);
  machine.appliedIndex++;
  answer();
  pass(100);
  return (askedMs.find((atMs) => atMs >= nowMs) ?? Infinity) - nowMs;
}

t.test("a leader that was asked announces commits: it is given the time to", (t) => {
  const all = announced();
  const { late, group, machine, askedMs, pass, state, timers } = all;
  for (let index = 2; index <= 20; index++) {
    late.appended(group, index);
    pass(5);
    machine.appliedIndex = index;
    pass(50);
  }
  t.equal(askedMs.length, 1, "nothing is asked while they come");
  t.equal(timers.length, 0);
  t.ok(askedAfterMs(all) >= FIRST_ANNOUNCED_MS, "it takes longer than it should");
  state.leader = 3;
  t.ok(askedAfterMs(all) < FIRST_ANNOUNCED_MS, "another leader knows nothing of that");
  t.ok(askedAfterMs(all) >= FIRST_ANNOUNCED_MS);
  state.isAnswered = false;
  askedAfterMs(all);
  t.ok(askedAfterMs(all) < FIRST_ANNOUNCED_MS, "nor one that does not answer");
  t.end();
});

t.test("a leader is asked anew before it stops announcing, and only where entries come", (t) => {
  const { late, group, machine, askedMs, pass, answer } = announced();
  pass(ANNOUNCED_MS / 2);
  t.equal(askedMs.length, 1, "nothing comes");
  for (let index = 2; index <= 200; index++) {
    late.appended(group, index);
    pass(1);
    machine.appliedIndex = index;
    pass(99);
    answer();
  }
  const waits = askedMs.slice(1).map((atMs, at) => atMs - (askedMs[at] as number));
  t.ok(waits.length >= 2 && waits.length <= 5, `${waits.length} questions in 20 s`);
  t.ok(waits.slice(1).every((ms) => ms >= ANNOUNCED_MS / 2 && ms < ANNOUNCED_MS));
  pass(3 * ANNOUNCED_MS);
  const before = askedMs.length;
  late.appended(group, 201);
  pass(5);
  t.equal(askedMs.length, before + 1, "after that as if it never had been asked");
  t.end();
});

t.test("a look whose entry is applied, or that nobody watches, ends", (t) => {
  const { late, group, machine, state, askedMs, pass, timers } = announced();
  state.isWatched = false;
  late.appended(group, 2);
  pass(FIRST_ANNOUNCED_MS + 2);
  t.equal(timers.length, 0, "nobody watches");
  state.isWatched = true;
  machine.appliedIndex = 3;
  late.appended(group, 3);
  pass(FIRST_ANNOUNCED_MS + 2);
  t.equal(timers.length, 0, "it is applied");
  t.equal(askedMs.length, 1);
  t.end();
});
