/** The removal of members whose process or disk is gone (contract 5.3 rule 3, P-095). */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { ControlMark } from "../../../src/host/replication/control-marks.js";
import { ANSWER_MS, HEARD_WITHIN_MS } from "../../../src/host/cluster/hearing.js";
import type { LeaveOutcome } from "../../../src/host/cluster/leaving.js";
import { allMembers } from "../../../src/raft/state/membership.js";
import { Cluster } from "../../doubles/host/peerworld.js";
import { BEAT_MS, MemberWorld, founded, join, leave } from "../../doubles/host/member-world.js";

function pass(world: MemberWorld, ms: number): void {
  for (let left = ms; left > 0; left -= BEAT_MS) world.step();
}

/** Asks the leader of the meta partition. */
function remove(world: MemberWorld, member: number, boundMs = 60_000): LeaveOutcome | "open" {
  const outcomes: LeaveOutcome[] = [];
  const { removal } = world.node(world.meta.leader);
  removal.remove(member, world.nowMs + boundMs, (end) => void outcomes.push(end));
  world.run(() => outcomes.length > 0);
  t.ok(outcomes.length <= 1, "one answer");
  return outcomes[0] ?? "open";
}

/** Node 3 has been silent for long enough, and nothing that is ordered now is carried out. */
function withSilentThird(): ReturnType<typeof founded> {
  const world = founded(3);
  for (const group of world.groups) world.elect(group, 1);
  world.kill(3);
  pass(world, HEARD_WITHIN_MS + BEAT_MS);
  world.changesHeld = true;
  return world;
}

t.test("P-095 a dead member is removed, and its place is filled by a new node", (t) => {
  const world = founded(3);
  for (const group of world.groups) world.elect(group, 1);
  world.kill(3);
  t.equal(remove(world, 3), "RefusedStillAlive", "it was heard a moment ago");
  t.equal(world.memberRoles(), "1 voter, 2 voter, 3 voter", "nothing was begun");
  pass(world, HEARD_WITHIN_MS + BEAT_MS);
  t.equal(remove(world, 3), "Committed");
  t.equal(world.memberRoles(), "1 voter, 2 voter");
  t.equal(remove(world, 3), "NotAMember", "repeating is safe");
  const isNamed = (): boolean => {
    return world.groups.some(({ membership }) => allMembers(membership).includes(3));
  };
  t.ok(world.run(() => !isNamed()));
  t.match(join(world, 1, 3, "s3"), { status: "refused" }, "its directory is never let in again");
  t.match(join(world, 1, 3, "s3 anew"), { status: "accepted" }, "its id is free for another one");
  world.nodes.delete(3);
  world.add(3, "s3 anew");
  t.ok(world.run(() => world.memberRoles() === "1 voter, 2 voter, 3 voter"));
  t.ok(world.run(() => world.groups.every(({ membership }) => membership.voters.length === 3)));
  t.end();
});

t.test("P-095 who is alive is never removed, whoever hears it", (t) => {
  const world = founded(3);
  for (const group of world.groups) world.elect(group, 1);
  t.equal(remove(world, 2), "RefusedStillAlive");
  t.equal(remove(world, 1), "RefusedStillAlive", "the one that is asked lives");
  // Only the other voter hears it.
  world.hears = (by, node) => !(by === 1 && node === 3) && !(by === 3 && node === 1);
  t.equal(remove(world, 3), "RefusedStillAlive");
  // That voter does not answer in time: it says nothing.
  world.loses = (from) => from === 2;
  const sinceMs = world.nowMs;
  t.equal(remove(world, 3), "Committed", "an operator may cut off whom nobody reachable hears");
  t.ok(world.nowMs - sinceMs >= ANSWER_MS, "but the answer was waited for");
  t.end();
});

t.test("P-095 whole nodes: whom only another voter hears stays", (t) => {
  const marks = Object.values(ControlMark);
  t.equal(new Set(marks).size, marks.length, "frames are told apart");
  // Awake: a sleeping follower may stand for election when the one that is cut off wakes it.
  const awake = { leaderBalanceEveryMs: 0, quiesceAfterMs: 0 };
  const cluster = new Cluster(3, awake).ready();
  cluster.pass(2000);
  const leader = cluster.node(1).metaGroup().leaderNode();
  const [other, far] = [1, 2, 3].filter((id) => id !== leader) as [number, number];
  cluster.network.cut(leader, far);
  cluster.network.cut(far, leader);
  cluster.pass(HEARD_WITHIN_MS + 2000);
  t.equal(cluster.node(leader).metaGroup().leaderNode(), leader, "it leads on");
  const ends: string[] = [];
  const ask = (): void => {
    const node = cluster.node(cluster.node(leader).metaGroup().leaderNode());
    node.removeMember(far, cluster.nowMs + 60_000, (outcome) => void ends.push(outcome));
    cluster.passUntil(() => ends.length > 0, 60_000);
  };
  ask();
  t.strictSame(ends.splice(0), ["RefusedStillAlive"], `node ${other} hears it`);
  cluster.kill(far);
  cluster.pass(HEARD_WITHIN_MS + 2000);
  ask();
  t.strictSame(ends, ["Committed"]);
  t.end();
});

t.test("P-095 what speaks against a removal", (t) => {
  const world = founded(3);
  t.equal(remove(world, 9), "NotAMember");
  const pair = founded(2);
  for (const group of pair.groups) pair.elect(group, 1);
  pair.kill(2);
  pass(pair, HEARD_WITHIN_MS + BEAT_MS);
  t.equal(remove(pair, 2), "NoLeader", "from a minority nobody is removed");
  const torn = founded(3);
  for (const group of torn.groups) torn.elect(group, 1);
  torn.kill(3);
  pass(torn, HEARD_WITHIN_MS + BEAT_MS);
  torn.hears = (by) => by !== 1;
  t.equal(remove(torn, 3), "RefusedInsufficientVoters", "the link to the other voter is down");
  // Nobody but the leader of the meta partition carries it out.
  const ends: LeaveOutcome[] = [];
  const other = world.node(world.meta.leader === 2 ? 3 : 2);
  other.removal.remove(1, world.nowMs + 1000, (end) => void ends.push(end));
  t.ok(world.run(() => ends.length === 1));
  t.strictSame(ends, ["NoLeader"]);
  // Five voters, two of them dead: one goes, then the other; at the same time they wait.
  const five = founded(5);
  for (const group of five.groups) five.elect(group, 1);
  for (const dead of [4, 5]) five.kill(dead);
  pass(five, HEARD_WITHIN_MS + BEAT_MS);
  const both: string[] = [];
  const { removal } = five.node(1);
  for (const dead of [4, 5, 4]) {
    removal.remove(dead, five.nowMs + 60_000, (end) => void both.push(`${dead} ${end}`));
  }
  t.ok(five.run(() => both.length === 3));
  t.strictSame(both, ["4 Committed", "5 Committed", "4 NotAMember"]);
  five.kill(3);
  pass(five, HEARD_WITHIN_MS + BEAT_MS);
  t.equal(remove(five, 3), "Committed");
  t.equal(five.memberRoles(), "1 voter, 2 voter");
  t.end();
});

t.test("P-095 one drain at a time; a member that died while it left is removed by its id", (t) => {
  const world = founded(5);
  for (const group of world.groups) world.elect(group, 1);
  world.changesHeld = true;
  world.node(4).leaving.leave(world.nowMs + 900_000, 800_000, () => undefined);
  t.ok(world.run(() => world.memberRoles().includes("4 leaving")));
  world.kill(4);
  world.kill(5);
  pass(world, HEARD_WITHIN_MS + BEAT_MS);
  t.equal(remove(world, 5), "RefusedDrainInProgress");
  t.equal(remove(world, 4, 5000), "Timeout");
  world.changesHeld = false;
  t.equal(remove(world, 4), "Committed");
  t.equal(remove(world, 5), "Committed");
  t.end();
});

t.test("P-094 the removal goes on when its call, its leader or its node is gone", (t) => {
  const world = founded(5);
  for (const group of world.groups) world.elect(group, 1);
  world.kill(5);
  pass(world, HEARD_WITHIN_MS + BEAT_MS);
  world.changesHeld = true;
  const ends: LeaveOutcome[] = [];
  const { removal } = world.node(1);
  removal.remove(5, world.nowMs + 60_000, (end) => void ends.push(end));
  t.ok(world.run(() => world.memberRoles().includes("5 leaving")));
  removal.stop();
  t.ok(world.run(() => ends.length === 1));
  t.strictSame(ends, ["Timeout"], "whoever asked a node that stops hears that it is open");
  world.kill(1);
  world.changesHeld = false;
  const listed = (): string => world.node(2).machine.meta.members().map(String).join();
  t.ok(
    world.run(
      () =>
        !world
          .node(2)
          .machine.meta.members()
          .some(({ nodeId }) => nodeId === 5),
    ),
  );
  t.ok(listed().length > 0);
  t.end();
});

t.test("P-095 whoever is removed by force keeps no role, and hears so from its own leave", (t) => {
  const world = withSilentThird();
  const ends: LeaveOutcome[] = [];
  world.node(1).removal.remove(3, world.nowMs + 60_000, (end) => void ends.push(end));
  t.ok(world.run(() => world.memberRoles().includes("3 leaving")));
  t.equal(world.node(1).machine.meta.member(3)?.evicted, true);
  world.node(3).isUp = true;
  t.equal(leave(world, 3, 2000), "Timeout", "it is not told that it stays");
  t.equal(world.memberRoles(), "1 voter, 2 voter, 3 leaving");
  world.changesHeld = false;
  t.ok(world.run(() => ends.length === 1));
  t.strictSame(ends, ["Committed"]);
  t.end();
});

t.test("P-095 below its level a removal by force is a leave as any other", (t) => {
  const world = withSilentThird();
  world.evictsFromLevel = 2;
  world.node(1).removal.remove(3, world.nowMs + 60_000, () => undefined);
  t.ok(world.run(() => world.memberRoles().includes("3 leaving")));
  t.equal(world.node(1).machine.meta.member(3)?.evicted, false);
  t.end();
});

t.test("P-095 a member that comes back while it is removed leaves as a living one", (t) => {
  const world = withSilentThird();
  const ends: LeaveOutcome[] = [];
  world.node(1).removal.remove(3, world.nowMs + 60_000, (end) => void ends.push(end));
  t.ok(world.run(() => world.memberRoles().includes("3 leaving")));
  world.node(3).isUp = true;
  world.changesHeld = false;
  t.ok(world.run(() => ends.length === 1));
  t.strictSame(ends, ["Committed"]);
  t.equal(leave(world, 3), "NotAMember");
  t.end();
});

t.test("fuzz: frames of hearing are strict, and never throw (P-128)", (t) => {
  const random = new Prng(12);
  const world = founded(2);
  const { hearing } = world.node(1);
  let ended = 0;
  world.hears = () => false;
  hearing.ask(2, [], () => void ended++);
  for (let round = 0; round < 20_000; round++) {
    const bytes = new Uint8Array(random.below(24));
    for (let at = 0; at < bytes.length; at++) bytes[at] = random.below(256);
    if (bytes.length > 0) bytes[0] = ControlMark.hearing;
    if (bytes.length > 1) bytes[1] = random.below(4);
    hearing.frame(2, bytes);
  }
  pass(world, ANSWER_MS);
  t.equal(ended, 1);
  t.ok(hearing.badFrames > 10_000);
  t.end();
});
