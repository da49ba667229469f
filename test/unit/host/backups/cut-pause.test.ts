/** A group stands still behind the mark of a coordinated cut: for how long, and what can be proved of it. */
import t from "tap";
import { COUNTER_MAX, compareHlc, type Hlc } from "../../../../src/base/hlc.js";
import { PROGRAM } from "../../../../src/base/levels.js";
import { CUT_PAUSE_MAX_MS } from "../../../../src/base/limits.js";
import { CutPause } from "../../../../src/host/pauses/cut-pause.js";
import type { Group, ProposalResult } from "../../../../src/host/group/group.js";
import { Cluster } from "../../../doubles/host/peerworld.js";
import { propose, setCommand, single } from "../../../doubles/host/world.js";

const MARK = { kind: "mark", backupId: "c".repeat(32), round: 1 } as const;

function epoch(round: number, term = 7): { term: number; round: number } {
  return { term, round };
}

/** A stamp that nobody has passed: `aheadMs` above the last of `group`. */
function ahead(group: Group, aheadMs = 500): Hlc {
  return { n: 9, l: group.lastStamp.l + aheadMs, c: COUNTER_MAX };
}

t.test("P-134 a pause is bounded, whatever cuts follow each other", (t) => {
  const pause = new CutPause();
  t.notOk(pause.isOn(0), "at first");
  t.equal(pause.wakeAtMs, Infinity);
  t.ok(pause.begin(epoch(2), 5, 1000));
  t.ok(pause.isOn(1000) && pause.isOn(1000 + CUT_PAUSE_MAX_MS - 1));
  t.notOk(pause.isOn(1000 + CUT_PAUSE_MAX_MS), "it ends by itself");
  t.equal(pause.wakeAtMs, 1000 + CUT_PAUSE_MAX_MS);
  t.notOk(pause.begin(epoch(2), 5, 1100), "the same again does not make it longer");
  t.notOk(pause.begin(epoch(1), 5, 1100), "an earlier one is refused");
  t.notOk(pause.begin(epoch(9, 6), 5, 1100), "and so is one of an earlier term");
  t.ok(pause.lasts(epoch(2), 5, 1100));
  t.ok(pause.begin(epoch(1, 8), 5, 1500), "a later one takes its place");
  t.notOk(pause.lasts(epoch(2), 5, 1500));
  t.ok(pause.lasts(epoch(1, 8), 5, 1500));
  t.notOk(pause.lasts(epoch(1, 8), 6, 1500), "another leadership has not paused");
  t.notOk(pause.isOn(1000 + CUT_PAUSE_MAX_MS), "with what is left of it");
  pause.release(epoch(2));
  t.ok(pause.isOn(1500), "who was replaced releases nothing");
  pause.release(epoch(1, 8));
  t.notOk(pause.isOn(1500));
  t.notOk(pause.begin(epoch(2, 8), 5, 1000 + CUT_PAUSE_MAX_MS), "no turn has come between");
  pause.pass(1600);
  t.equal(pause.wakeAtMs, Infinity);
  t.ok(pause.begin(epoch(2, 8), 5, 2900), "a turn has");
  t.ok(pause.isOn(2900 + CUT_PAUSE_MAX_MS - 1));
  pause.drop();
  t.notOk(pause.lasts(epoch(2, 8), 5, 2900), "broken");
  t.notOk(pause.begin(epoch(2, 8), 5, 2900), "and not begun again");
  t.end();
});

t.test("P-134 behind the mark nothing is cut until the release, and nothing is lost", async (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  const marked: ProposalResult[] = [];
  propose(group, "in flight", results);
  world.pass(10);
  const at = ahead(group);
  const deadlineMs = world.timer.nowMs + 10_000;
  const done = (result: ProposalResult): void => void marked.push(result);
  t.equal(group.closeForCut(epoch(1), MARK, at, deadlineMs, done), "closing");
  for (let number = 0; number < 1500; number++) propose(group, `k${number}`, results);
  world.pass(300);
  t.equal(results.length, 1, "what was there before the mark");
  const [mark] = group.machine.marks;
  t.same(mark?.stamp, at);
  t.match(marked, [{ status: "applied", index: mark?.index }]);
  t.equal(group.facts().lastIndex, mark?.index, "the mark is the end of the log");
  let reads = 0;
  group.read(deadlineMs, ({ status }) => (reads += status === "confirmed" ? 1 : 0));
  const proofs: boolean[] = [];
  group.proveCutPause(epoch(1), deadlineMs, (isProved) => void proofs.push(isProved));
  group.proveCutPause(epoch(2), deadlineMs, (isProved) => void proofs.push(isProved));
  world.pass(10);
  t.equal(reads, 1, "reads go on");
  t.same(proofs, [true, false]);
  group.releaseCutPause(epoch(1));
  world.pass(10);
  t.equal(results.length, 1501, "each is answered once");
  t.ok(results.every(({ status }) => status === "applied"));
  t.ok(compareHlc(group.machine.lastStamp, at) > 0, "all of it above the mark");
  group.proveCutPause(epoch(1), deadlineMs, (isProved) => void proofs.push(isProved));
  world.pass(10);
  t.equal(proofs[2], false, "the pause is over");
});

t.test("P-134 a pause that nobody ends ends by itself, and is proved no more", async (t) => {
  for (const lingerMs of [0, 20]) {
    const { world, group } = single({ lingerMs });
    const results: ProposalResult[] = [];
    const deadlineMs = world.timer.nowMs + 10_000;
    const none = (): void => undefined;
    t.equal(group.closeForCut(epoch(1), MARK, ahead(group), deadlineMs, none), "closing");
    propose(group, "k", results, deadlineMs);
    const short: ProposalResult[] = [];
    propose(group, "short", short, world.timer.nowMs + 500);
    world.pass(CUT_PAUSE_MAX_MS - 50);
    t.same(results, []);
    t.match(short, [{ status: "aborted" }], "whoever waits for less than the pause is told");
    world.pass(100);
    t.match(results, [{ status: "applied" }]);
    const proofs: boolean[] = [];
    group.proveCutPause(epoch(1), deadlineMs, (isProved) => void proofs.push(isProved));
    world.pass(10);
    t.same(proofs, [false]);
  }
});

t.test("P-134 a group does not close below its stamps, nor for an old epoch", async (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  const done = (result: ProposalResult): void => void results.push(result);
  propose(group, "k", results);
  world.settle();
  const close = (round: number, at: Hlc): string =>
    group.closeForCut(epoch(round), MARK, at, 1e9, done);
  const { n, l } = group.lastStamp;
  t.equal(close(2, { n, l: l - 1, c: COUNTER_MAX }), "passed");
  propose(group, "k", results);
  world.settle();
  t.equal(results.length, 2, "nothing was paused by that");
  t.equal(close(2, ahead(group)), "closing", "the epoch is not used up either");
  t.equal(close(2, ahead(group)), "stale");
  t.equal(close(1, ahead(group)), "stale");
  world.settle();
  t.equal(results.length, 3, "one mark, and no answer of what was refused");
  t.equal(close(3, ahead(group)), "closing", "a later epoch takes the place");
  world.settle();
  t.same(
    group.machine.marks.map(({ index }) => index),
    [group.facts().lastIndex - 1, group.facts().lastIndex],
  );
});

t.test("P-134 an entry that comes anyway breaks the pause", async (t) => {
  const { world, group } = single();
  const none = (): void => undefined;
  const proofs: boolean[] = [];
  const prove = (): void => {
    group.proveCutPause(epoch(1), 1e9, (isProved) => void proofs.push(isProved));
    world.settle();
  };
  t.equal(group.closeForCut(epoch(1), MARK, ahead(group), 1e9, none), "closing");
  prove();
  // It goes before everything that is queued, as the last commands before a move do.
  t.equal(group.proposeMark(MARK, ahead(group), 1e9, none), "proposed");
  prove();
  t.same(proofs, [true, false]);
});

/** Three nodes, and the group of partition 1 closed on its leader for `epoch(1)`. */
function closed(): { cluster: Cluster; leader: number; group: Group; at: Hlc } {
  const cluster = new Cluster(3, { initialPartitions: 1, leaderBalanceEveryMs: 0 }).ready();
  const leader = cluster.serverOf(1) ?? 0;
  const group = cluster.node(leader).groups()[1];
  if (group === undefined) throw new Error("the partition is there");
  cluster.passUntil(() => group.machine.level >= PROGRAM.levels.max);
  const at = ahead(group, 5000);
  const none = (): void => undefined;
  const said = group.closeForCut(epoch(1), MARK, at, cluster.nowMs + 5000, none);
  if (said !== "closing") throw new Error(said);
  cluster.pass(50);
  return { cluster, leader, group, at };
}

t.test("P-134 a leader that cannot reach the others proves nothing", (t) => {
  const { cluster, leader, group } = closed();
  const proofs: boolean[] = [];
  const prove = (): void => {
    group.proveCutPause(epoch(1), cluster.nowMs + 500, (isProved) => void proofs.push(isProved));
  };
  prove();
  cluster.pass(50);
  t.same(proofs, [true]);
  cluster.network.cutOff(leader, false);
  prove();
  cluster.pass(50);
  t.same(proofs, [true], "it does not say so before it knows");
  cluster.pass(1000);
  t.same(proofs, [true, false]);
  t.end();
});

t.test("P-134 whoever leads next has the mark, and stamps above it", (t) => {
  const { cluster, leader, at } = closed();
  cluster.kill(leader);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  const next = cluster.node(cluster.serverOf(1) ?? 0).groups()[1];
  if (next === undefined) throw new Error("the partition is there");
  t.same(next.machine.marks[0]?.stamp, at);
  const results: ProposalResult[] = [];
  next.propose(setCommand("k"), 64, cluster.nowMs + 5000, (result) => void results.push(result));
  cluster.pass(100);
  t.match(results, [{ status: "applied" }], "the pause ended with its leader");
  t.ok(compareHlc(next.machine.lastStamp, at) > 0, "whatever its clock says");
  t.end();
});

t.test("P-134 a pause ends with the leadership, and who waited is answered", (t) => {
  const { cluster, leader, group } = closed();
  const results: ProposalResult[] = [];
  group.propose(setCommand("k"), 64, cluster.nowMs + 5000, (result) => void results.push(result));
  cluster.node(leader).withdraw();
  cluster.passUntil(() => !group.isLeader(), 1500);
  const proofs: boolean[] = [];
  group.proveCutPause(epoch(1), cluster.nowMs + 500, (isProved) => void proofs.push(isProved));
  cluster.pass(1000);
  t.same(proofs, [false]);
  t.equal(results.length, 1);
  t.end();
});
