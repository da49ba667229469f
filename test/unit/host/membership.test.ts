/**
 * Membership from one end to the other: planners against naive models, and whole joins, leaves and
 * foundings over a cluster in which only membership moves.
 */
import t from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import { membershipVersion } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import {
  type GroupStep,
  decideLeave,
  nextGroupChange,
  nextMemberChange,
  wishedVoters,
  isFreshReplica,
} from "../../../src/control/membership.js";
import { decodeIdentity, encodeIdentity } from "../../../src/host/storage/identity.js";
import type { LeaveOutcome } from "../../../src/host/cluster/leaving.js";
import type { Member, MemberRole } from "../../../src/machine/commands/command.js";
import type { JoinAnswer } from "../../../src/ports.js";
import { changeMembership, membershipFault } from "../../../src/raft/state/membership.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { MemberWorld, founded, join, leave } from "../../doubles/host/member-world.js";
import { member as line, newMember } from "../../doubles/machine/members.js";

function member(nodeId: number, role: MemberRole, joined = nodeId): Member {
  return line(nodeId, { role, joinedVersion: membershipVersion(joined) });
}

function membershipOf(voters: number[], learners: number[] = []): Membership {
  return { voters, learners, votersOutgoing: [], learnersNext: [], autoLeave: false };
}

/** The wish, written once more: voters first, then learners by age, nine in all. */
function naiveWish(members: readonly Member[]): Set<number> {
  const wish = new Set<number>();
  for (const role of ["voter", "learner"]) {
    const left = members.filter((one) => one.role === role);
    while (left.length > 0 && wish.size < 9) {
      let oldest = left[0] as Member;
      for (const one of left) {
        if (one.joinedVersion < oldest.joinedVersion) oldest = one;
      }
      wish.add(oldest.nodeId);
      left.splice(left.indexOf(oldest), 1);
    }
  }
  return wish;
}

interface Scene {
  membership: Membership;
  members: Member[];
  removed: Set<number>;
  dead: Set<number>;
  caughtUp: Set<number>;
  leader: number;
}

function randomScene(random: Prng): Scene {
  const ids = Array.from({ length: 12 }, (_, at) => at + 1);
  const roles: MemberRole[] = ["voter", "voter", "voter", "learner", "leaving"];
  const members: Member[] = [];
  for (const id of ids) {
    if (random.chance(1, 2)) continue;
    let role = roles[random.below(roles.length)] as MemberRole;
    if (role === "leaving" && members.some((one) => one.role === "leaving")) role = "voter";
    const voters = members.filter((one) => one.role === "voter").length;
    if (voters === 9) role = "learner";
    members.push(member(id, role, 1 + random.below(20)));
  }
  if (!members.some((one) => one.role === "voter")) {
    const free = ids.find((id) => !members.some((one) => one.nodeId === id)) as number;
    members.push(member(free, "voter"));
  }
  const voters = ids.filter(() => random.chance(2, 5)).slice(0, 9);
  if (voters.length === 0) voters.push(1 + random.below(12));
  const learners = ids.filter((id) => !voters.includes(id) && random.chance(1, 4));
  const listed = new Set(members.map((one) => one.nodeId));
  const removed = new Set(ids.filter((id) => !listed.has(id)));
  const leader = voters[random.below(voters.length)] as number;
  const spare = Math.ceil(voters.length / 2) - 1;
  const dead = new Set(voters.filter((id) => id !== leader).slice(0, random.below(spare + 1)));
  return {
    membership: membershipOf(voters, learners),
    members,
    removed,
    dead,
    caughtUp: new Set(),
    leader,
  };
}

function liveMajority({ membership, dead }: Scene): boolean {
  const { voters } = membership;
  return voters.filter((id) => !dead.has(id)).length * 2 > voters.length;
}

function planIn(scene: Scene): GroupStep {
  return nextGroupChange({
    self: scene.leader,
    membership: scene.membership,
    members: scene.members,
    removed: scene.removed,
    isLive: (id) => !scene.dead.has(id),
    isCaughtUp: (id) => scene.caughtUp.has(id) && !scene.dead.has(id),
  });
}

/** Takes one step; throws when it breaks a rule. */
function takeStep(scene: Scene, step: GroupStep): void {
  if (step.kind === "transfer") {
    if (!scene.membership.voters.includes(step.to)) throw new Error("only a voter leads");
    if (scene.dead.has(step.to)) throw new Error("leadership goes to a live node");
    scene.leader = step.to;
  }
  if (step.kind !== "change") return;
  if (step.change.operations.length !== 1) throw new Error("one operation at a time (P-092)");
  const [operation] = step.change.operations;
  if (operation?.kind === "addVoter" && !scene.caughtUp.has(operation.node)) {
    throw new Error("only who has caught up is promoted (P-091)");
  }
  const result = changeMembership(scene.membership, step.change);
  if (!result.ok) throw new Error(result.reason);
  scene.membership = result.membership;
  const fault = membershipFault(scene.membership);
  if (fault !== null) throw new Error(fault);
  if (!scene.membership.voters.includes(scene.leader)) throw new Error("a leader removed itself");
  if (scene.membership.voters.length > 9) throw new Error("nine voters at most");
  if (!liveMajority(scene)) throw new Error("a step cost the majority (P-092)");
}

t.test("P-091 P-092 P-094 plans end in the wished membership, never below a majority", (t) => {
  const kinds = { change: 0, transfer: 0, wait: 0, settled: 0 };
  for (let seed = 1; seed <= 2000; seed++) {
    const random = new Prng(seed);
    const scene = randomScene(random);
    for (let round = 0; round < 120; round++) {
      const step = planIn(scene);
      kinds[step.kind]++;
      takeStep(scene, step);
      if (random.chance(1, 3)) scene.caughtUp.add(1 + random.below(12));
      // A flicker of who answers, as long as the group can still decide anything.
      const id = 1 + random.below(12);
      if (scene.dead.delete(id) || id === scene.leader) continue;
      if (random.chance(1, 4)) {
        scene.dead.add(id);
        if (!liveMajority(scene)) scene.dead.delete(id);
      }
    }
    scene.dead.clear();
    for (let id = 1; id <= 12; id++) scene.caughtUp.add(id);
    let steps = 0;
    for (let step = planIn(scene); step.kind !== "settled"; step = planIn(scene)) {
      if (step.kind === "wait") throw new Error(`seed ${seed} waits: ${step.why}`);
      takeStep(scene, step);
      if (steps++ > 60) throw new Error(`seed ${seed} does not end`);
    }
    const wish = naiveWish(scene.members);
    const rest = scene.members.map((one) => one.nodeId).filter((id) => !wish.has(id));
    const ascending = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);
    const { voters, learners } = scene.membership;
    const isWished =
      voters.join() === ascending(wish).join() &&
      learners.join() === ascending(rest).join() &&
      wishedVoters(scene.members).length === wish.size;
    if (!isWished) throw new Error(`seed ${seed} ends with ${voters.join()}, ${learners.join()}`);
  }
  t.ok(kinds.change > 7000 && kinds.transfer > 100 && kinds.wait > 1000, JSON.stringify(kinds));
  t.end();
});

t.test("P-097 who is merely absent from the member list known here is left alone", (t) => {
  const facts = {
    self: 1,
    membership: membershipOf([1, 2, 3], [4]),
    members: [member(1, "voter"), member(2, "voter")],
    removed: new Set<number>(),
    isLive: () => true,
    isCaughtUp: () => true,
  };
  const step = nextGroupChange(facts);
  t.equal(step.kind, "wait");
  t.match(step, { why: /says nothing of voter 3/ });
  t.match(nextGroupChange({ ...facts, removed: new Set([4]) }), {
    kind: "change",
    change: { operations: [{ kind: "remove", node: 4 }] },
  });
  t.match(
    nextGroupChange({ ...facts, members: [] }),
    { kind: "wait" },
    "P-093 no member list, no step",
  );
  t.match(nextGroupChange({ ...facts, membership: { ...facts.membership, votersOutgoing: [1] } }), {
    kind: "wait",
  });
  t.end();
});

t.test("P-088 P-096 two voters to one: the leader hands over first", (t) => {
  const facts = {
    self: 1,
    membership: membershipOf([1, 2]),
    members: [member(2, "voter")],
    removed: new Set([1]),
    isLive: () => true,
    isCaughtUp: () => true,
  };
  t.match(nextGroupChange(facts), { kind: "transfer", to: 2 });
  t.match(nextGroupChange({ ...facts, isLive: (id) => id === 1 }), { kind: "wait" });
  t.match(nextGroupChange({ ...facts, self: 2 }), {
    change: { operations: [{ kind: "remove", node: 1 }] },
  });
  t.end();
});

t.test("decideLeave and the member list's next step (5.3, P-091, P-096)", (t) => {
  const three = [member(1, "voter"), member(2, "voter"), member(3, "voter")];
  const facts = { members: three, nodeId: 1, metaLed: true, otherVoters: [2, 2] };
  t.equal(decideLeave(facts), "remove");
  t.equal(decideLeave({ ...facts, liveOtherVoters: [2, 2] }), "remove");
  t.equal(decideLeave({ ...facts, liveOtherVoters: [2, 1] }), "RefusedInsufficientVoters");
  t.equal(decideLeave({ ...facts, otherVoters: [2, 0] }), "RefusedInsufficientVoters");
  t.equal(decideLeave({ ...facts, nodeId: 9 }), "NotAMember");
  t.equal(decideLeave({ ...facts, members: null }), "NotInitialized");
  t.equal(decideLeave({ ...facts, metaLed: false }), "NoLeader");
  const again = [member(1, "leaving"), member(2, "voter")];
  t.equal(
    decideLeave({ ...facts, members: again, otherVoters: [1] }),
    "remove",
    "a repeat goes on",
  );
  t.equal(
    decideLeave({ ...facts, members: [member(1, "voter"), member(2, "leaving")] }),
    "RefusedDrainInProgress",
  );
  const view = (voters: number[], isFresh = true) => {
    return {
      membership: membershipOf(
        voters,
        [1, 2, 3, 4].filter((id) => !voters.includes(id)),
      ),
      isFresh,
    };
  };
  const nobody: ReadonlySet<number> = new Set();
  const joined = [...three, member(4, "learner")];
  t.equal(
    nextMemberChange(joined, { groups: [view([1, 2, 3, 4]), view([1, 2, 3])], placedOn: nobody }),
    null,
  );
  t.equal(
    nextMemberChange(joined, {
      groups: [view([1, 2, 3, 4]), view([1, 2, 3, 4], false)],
      placedOn: nobody,
    }),
    null,
  );
  t.equal(nextMemberChange(joined, { groups: [], placedOn: nobody }), null);
  t.strictSame(
    nextMemberChange(joined, {
      groups: [view([1, 2, 3, 4]), view([1, 2, 3, 4])],
      placedOn: nobody,
    }),
    {
      kind: "set-member-role",
      nodeId: 4,
      role: "voter",
    },
  );
  const leaving = [member(1, "leaving"), member(2, "voter"), member(3, "voter")];
  t.equal(
    nextMemberChange(leaving, { groups: [view([2, 3]), view([1, 2, 3])], placedOn: nobody }),
    null,
  );
  t.strictSame(
    nextMemberChange(leaving, { groups: [view([2, 3]), view([2, 3])], placedOn: nobody }),
    {
      kind: "remove-member",
      nodeId: 1,
    },
  );
  const named = { groups: [view([2, 3]), view([2, 3])], placedOn: new Set([1]) };
  t.equal(nextMemberChange(leaving, named), null, "a record names it: a group may count on it");
  t.end();
});

t.test("several founders: one member list; each tells its data directory, wherever it is", (t) => {
  const world = founded(3);
  const { meta } = world.node(2).machine;
  t.equal(meta.cluster()?.clusterId, "cluster");
  t.equal(meta.cluster()?.membershipVersion, 3, "founding, and two lines told by followers");
  t.equal(world.memberRoles(), "1 voter, 2 voter, 3 voter");
  const before = world.log.length;
  for (let step = 0; step < 100; step++) world.step();
  t.equal(world.log.length, before, "and then nothing more is proposed");
  world.nodes.delete(3);
  world.add(3, "s3", "moved:1");
  t.ok(
    world.run(() => meta.member(3)?.endpoint === "moved:1"),
    "another endpoint is told",
  );
  world.nodes.delete(3);
  world.add(3, "other", "thief:1");
  for (let step = 0; step < 100; step++) world.step();
  t.equal(meta.member(3)?.endpoint, "moved:1", "another data directory is not that member (P-090)");
  t.end();
});

t.test("a join by any member: learner, voter of every group, voter; refusals (5.2)", (t) => {
  const world = founded(3);
  t.strictSame(join(world, 3, 4, "s4"), {
    status: "accepted",
    clusterId: "cluster",
    level: 1,
    founders: [1, 2, 3],
  });
  t.match(world.memberRoles(), /4 learner/);
  t.ok(world.groups.every((group) => !group.membership.voters.includes(4)));
  for (let step = 0; step < 100; step++) world.step();
  t.match(world.memberRoles(), /4 learner/, "a node that is not there does not rise (P-091)");
  world.add(4, "s4");
  t.match(join(world, 2, 4, "s4"), { status: "accepted" }, "a repeat is accepted again");
  t.ok(world.run(() => world.memberRoles().includes("4 voter")));
  for (const { membership } of world.groups) t.strictSame(membership.voters, [1, 2, 3, 4]);
  t.match(join(world, 1, 4, "s4b"), { status: "refused", reason: /other data/ });
  t.match(join(world, 1, 5, ""), { status: "refused" });
  for (const id of [1, 2, 3]) world.node(id).isUp = false;
  t.match(join(world, 4, 5, "s5"), { status: "retry" });
  for (const id of [1, 2, 3]) world.node(id).isUp = true;
  const hint: JoinAnswer[] = [];
  world.losesFrames = true;
  const asked = {
    nodeId: 5,
    storageId: "s5",
    endpoint: "n5:1",
    storage: "lmdb",
    program: PROGRAM,
  } as const;
  world.node(3).joining.asked(asked, (answer) => void hint.push(answer));
  t.ok(world.run(() => hint.length > 0));
  t.match(hint[0], { status: "retry", reason: "leader=n1:1" });
  t.end();
});

t.test("nine vote; the tenth stays a learner until one leaves (contract 11)", (t) => {
  const world = founded(1, 2);
  for (let id = 2; id <= 10; id++) {
    t.match(join(world, 1, id, `s${id}`), { status: "accepted" });
    world.add(id, `s${id}`);
  }
  t.ok(world.run(() => world.memberRoles().includes("9 voter")));
  for (let step = 0; step < 100; step++) world.step();
  t.match(world.memberRoles(), /10 learner/);
  t.equal(leave(world, 4), "Committed");
  t.ok(world.run(() => world.memberRoles().includes("10 voter")));
  t.end();
});

t.test("a leave: hands over, is removed, does not come back by itself (5.3, P-096)", (t) => {
  const world = founded(3);
  world.elect(world.groups[0] as never, 1);
  t.equal(leave(world, 1), "Committed");
  t.equal(world.node(2).machine.meta.members().length, 2);
  for (const group of world.groups) t.notOk(group.membership.voters.includes(1));
  // The process may end now: two nodes hold every majority.
  world.node(1).isUp = false;
  t.ok(world.run(() => world.groups.every((group) => !group.membership.learners.includes(1))));
  t.ok(world.groups.every((group) => group.hasQuorum(world.isUp)));
  world.node(1).isUp = true;
  t.equal(leave(world, 1), "NotAMember");
  t.match(join(world, 2, 1, "s1"), { status: "refused", reason: /empty data directory/ });
  t.match(join(world, 2, 1, "s1 anew"), { status: "accepted" });
  world.add(1, "s1 anew");
  t.equal(leave(world, 2), "Committed", "two voters to one");
  t.end();
});

t.test("leaves that are refused, and two at once (5.3, P-096)", (t) => {
  const alone = founded(1);
  t.equal(leave(alone, 1), "RefusedInsufficientVoters");
  t.equal(alone.memberRoles(), "1 voter");
  const world = founded(3);
  world.node(3).isUp = false;
  t.equal(leave(world, 2), "RefusedInsufficientVoters", "the rest would have no live majority");
  world.node(3).isUp = true;
  world.catchUpMs = 1e9;
  const ends: string[] = [];
  const end = (who: number) => (outcome: LeaveOutcome) => void ends.push(`${who} ${outcome}`);
  const { nowMs } = world;
  world.node(2).leaving.leave(nowMs + 30_000, 20_000, end(2));
  world.node(2).leaving.leave(nowMs + 40_000, 20_000, end(2));
  world.run(() => world.memberRoles().includes("2 leaving"));
  t.equal(leave(world, 3), "RefusedDrainInProgress");
  world.catchUpMs = 0;
  t.ok(world.run(() => ends.length === 2));
  t.strictSame(ends, ["2 Committed", "2 NotAMember"], "one after the other");
  const silent = founded(3);
  silent.node(1).isUp = false;
  silent.node(3).isUp = false;
  t.equal(leave(silent, 2), "NoLeader", "after an election could have ended");
  const fresh = new MemberWorld([{ nodeId: 1, endpoint: "n1:1" }], 1);
  const early: LeaveOutcome[] = [];
  fresh.node(1).leaving.leave(99_000, 1000, (outcome) => void early.push(outcome));
  fresh.node(1).leaving.tick(1001);
  for (const callback of fresh.later.splice(0)) callback();
  t.strictSame(early, ["NotInitialized"]);
  t.end();
});

t.test("P-096 a drain that takes too long gives the role back; a retry resumes", (t) => {
  const world = founded(3);
  // Nobody has caught up enough to take over from the leader that leaves.
  for (const group of world.groups) world.elect(group, 2);
  world.catchUpMs = 1e9;
  t.equal(leave(world, 2, 3000), "DrainTimedOut");
  t.equal(world.memberRoles(), "1 voter, 2 voter, 3 voter");
  world.catchUpMs = 0;
  t.ok(world.run(() => world.groups.every(({ membership }) => membership.voters.length === 3)));
  t.equal(leave(world, 2), "Committed");
  t.end();
});

t.test("P-096 beyond nine voters the role that comes back is that of a learner", (t) => {
  const world = founded(9);
  world.add(10, "s10");
  t.match(join(world, 1, 10, "s10"), { status: "accepted" });
  t.ok(world.run(() => world.memberRoles().includes("10 learner")));
  // Nobody sees all groups: the member list does not go on.
  world.isFresh = false;
  world.node(10).leaving.leave(world.nowMs + 90_000, 60_000, () => undefined);
  t.ok(world.run(() => world.memberRoles().includes("10 leaving")));
  // Its process ends, and the next one knows nothing of the role before.
  world.nodes.delete(10);
  world.add(10, "s10");
  t.equal(leave(world, 10, 3000), "DrainTimedOut");
  t.match(world.memberRoles(), /10 learner$/);
  t.end();
});

t.test("P-096 a node that was removed while it was away answers its leave", (t) => {
  const world = founded(3);
  for (const id of [1, 2]) world.node(id).isUp = false;
  const { leaving } = world.node(3);
  const ends: LeaveOutcome[] = [];
  leaving.leave(world.nowMs + 90_000, 60_000, (end) => void ends.push(end));
  // Nobody listens to it but to say so; its own member list still lists it.
  leaving.refusedAsRemoved();
  t.ok(world.run(() => ends.length === 1));
  t.strictSame(ends, ["NotAMember"]);
  t.equal(leave(world, 3), "NotAMember", "and again");
  t.end();
});

t.test("P-096 who hears that it is needed is not removed for an earlier call", (t) => {
  const world = founded(3);
  for (const group of world.groups) world.elect(group, 2);
  world.catchUpMs = 1e9;
  world.node(2).leaving.leave(world.nowMs + 90_000, 60_000, () => undefined);
  t.ok(world.run(() => world.memberRoles().includes("2 leaving")));
  // Its process ends, and the next one knows nothing of the call.
  world.nodes.delete(2);
  world.add(2, "s2");
  world.node(3).isUp = false;
  t.equal(leave(world, 2), "RefusedInsufficientVoters");
  t.equal(world.memberRoles(), "1 voter, 2 voter, 3 voter");
  t.end();
});

t.test("P-096 a replica that does not know what was committed speaks for no group", (t) => {
  const facts = { leader: 1, term: 5, commitIndex: 9, appliedIndex: 9, appliedTerm: 5 };
  t.ok(isFreshReplica(facts));
  t.notOk(isFreshReplica({ ...facts, leader: 0 }));
  t.notOk(isFreshReplica({ ...facts, appliedIndex: 8 }));
  t.notOk(isFreshReplica({ ...facts, appliedTerm: 4 }), "its leader was only just elected");
  t.end();
});

t.test("P-096 a removal waits for leaders of groups that hear of the role late", (t) => {
  const world = founded(3);
  for (const group of world.groups) world.elect(group, 1);
  const ends: LeaveOutcome[] = [];
  world.node(2).leaving.leave(world.nowMs + 90_000, 60_000, (end) => void ends.push(end));
  t.ok(world.run(() => world.groups.every(({ membership }) => !membership.voters.includes(2))));
  const sinceMs = world.nowMs;
  t.ok(world.run(() => ends.length === 1));
  t.ok(world.nowMs - sinceMs >= 500, `${world.nowMs - sinceMs} ms`);
  t.end();
});

t.test("P-096 the role comes back although the call ended before that was committed", (t) => {
  for (const moves of [false, true]) {
    const world = founded(3);
    for (const group of world.groups) world.elect(group, 2);
    world.elect(world.meta, 1);
    world.catchUpMs = 1e9;
    const outcomes: LeaveOutcome[] = [];
    const { nowMs } = world;
    world.node(2).leaving.leave(nowMs + 30_000, 20_000, (end) => void outcomes.push(end));
    t.ok(world.run(() => world.memberRoles().includes("2 leaving")));
    // From now on nothing that node 2 asks arrives.
    world.loses = (from, to) => from === 2 || to === 2;
    t.ok(world.run(() => outcomes.length > 0));
    t.strictSame(outcomes, ["Timeout"]);
    for (let step = 0; step < 300; step++) world.step();
    t.match(world.memberRoles(), /2 leaving/);
    if (moves) world.elect(world.meta, 3);
    world.loses = () => false;
    t.ok(
      world.run(() => world.memberRoles() === "1 voter, 2 voter, 3 voter", 300),
      world.memberRoles(),
    );
    const before = world.log.length;
    for (let step = 0; step < 200; step++) world.step();
    t.equal(world.log.length, before, "and then nothing more is proposed");
    world.catchUpMs = 0;
    t.equal(leave(world, 2), "Committed");
  }
  t.end();
});

t.test("meta proposals that are lost on the lane are asked again, and carried out once", (t) => {
  const world = founded(3);
  world.elect(world.meta, 1);
  for (const lost of ["asks", "answers"] as const) {
    const before = world.log.length;
    let count = 0;
    // Two frames of one direction are lost.
    world.loses = (from) => (from === 2) === (lost === "asks") && count++ < 2;
    const results: string[] = [];
    const nodeId = lost === "asks" ? 6 : 7;
    const { nowMs } = world;
    const add = { kind: "add-member", ...newMember(nodeId, "x:1", "x") } as const;
    world.node(2).metaProposer.propose(add, nowMs + 10_000, (result) => {
      results.push(result.status === "applied" ? result.outcome : result.status);
    });
    t.ok(world.run(() => results.length > 0));
    t.strictSame(results, ["done"], lost);
    t.ok(world.nowMs - nowMs < 3000, `${lost}: after ${world.nowMs - nowMs} ms`);
    t.equal(world.log.length, before + 1, `${lost}: proposed once`);
  }
  t.end();
});

t.test("P-094 P-096 who leaves dies in the drain, or the meta leader does: it goes on", (t) => {
  const world = founded(4);
  const { nowMs } = world;
  world.node(2).leaving.leave(nowMs + 90_000, 60_000, () => undefined);
  world.run(() => world.memberRoles().includes("2 leaving"));
  world.node(2).isUp = false;
  t.ok(
    world.run(() => !world.memberRoles().includes("2")),
    "the others finish it",
  );
  const other = founded(4);
  const outcomes: LeaveOutcome[] = [];
  other.node(2).leaving.leave(other.nowMs + 90_000, 60_000, (end) => void outcomes.push(end));
  other.run(() => other.memberRoles().includes("2 leaving"));
  other.node(other.meta.leader).isUp = false;
  t.ok(other.run(() => outcomes.length > 0));
  t.strictSame(outcomes, ["Committed"]);
  t.end();
});

t.test("P-097 an id is given out again when no group lists its former life", (t) => {
  const world = founded(4);
  // The leaders of the groups cannot take the last step: they list node 3 as a learner.
  t.ok(world.run(() => world.groups.every(({ membership }) => membership.voters.length === 4)));
  const outcomes: LeaveOutcome[] = [];
  world.node(3).leaving.leave(world.nowMs + 90_000, 60_000, (end) => void outcomes.push(end));
  while (outcomes.length === 0) {
    world.step();
    const listed = world.groups.every(({ membership }) => membership.learners.includes(3));
    if (listed) world.changesHeld = true;
  }
  t.strictSame(outcomes, ["Committed"]);
  t.equal(world.memberRoles(), "1 voter, 2 voter, 4 voter");
  for (const via of [1, 2, 4]) {
    t.match(join(world, via, 3, "anew"), { status: "retry", reason: /still lists/ }, `via ${via}`);
  }
  t.match(join(world, 1, 3, "s3"), { status: "retry" }, "nor its former disk, for now");
  t.match(join(world, 2, 4, "s4"), { status: "accepted" }, "a member asks again");
  t.match(join(world, 2, 4, "other"), { status: "refused", reason: /other data/ });
  world.changesHeld = false;
  t.ok(world.run(() => world.groups.every(({ membership }) => !membership.learners.includes(3))));
  world.isFresh = false;
  t.match(
    join(world, 2, 3, "anew"),
    { status: "retry" },
    "who does not see the groups cannot tell",
  );
  world.isFresh = true;
  t.match(join(world, 2, 3, "s3"), { status: "refused", reason: /empty data directory/ });
  t.match(join(world, 2, 3, "anew"), { status: "accepted" });
  // The removal is on its way when the next life asks: it must not slip in behind it.
  t.match(join(world, 2, 5, "s5"), { status: "accepted" });
  const late: JoinAnswer[] = [];
  const leader = world.node(world.meta.leader);
  const remove = { kind: "remove-member", nodeId: 5 } as const;
  leader.metaProposer.propose(remove, world.nowMs + 5000, () => undefined);
  const request = {
    nodeId: 5,
    storageId: "s5 anew",
    endpoint: "n5:1",
    storage: "lmdb",
    program: PROGRAM,
  } as const;
  leader.joining.asked(request, (answer) => void late.push(answer));
  t.ok(world.run(() => late.length > 0));
  t.match(late[0], { status: "retry" });
  t.end();
});

t.test("P-083 P-098 random joins, leaves and crashes end in the member list's wish", (t) => {
  let commits = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const random = new Prng(seed);
    const world = founded(3, 2);
    let lives = 10;
    for (let act = 0; act < 12; act++) {
      const ids = [...world.nodes.keys()];
      const id = ids[random.below(ids.length)] as number;
      const dice = random.below(4);
      const gone = world.removedIds();
      if (dice === 0 && (ids.length < 7 || gone.length > 0)) {
        // An id of a former member is used again, with an empty disk.
        const fresh = gone[0] ?? Math.max(...ids) + 1;
        const via = ids.find((node) => node !== fresh && world.isUp(node)) as number;
        const storageId = `life ${lives++}`;
        const request = {
          nodeId: fresh,
          storageId,
          endpoint: "x:1",
          storage: "lmdb",
          program: PROGRAM,
        } as const;
        world.node(via).joining.asked(request, () => undefined);
        world.add(fresh, request.storageId, "x:1");
      } else if (dice === 1) {
        world.node(id).leaving.leave(world.nowMs + 40_000, 20_000, () => undefined);
      } else {
        world.node(id).isUp = !world.isUp(id);
        const isSafe = world.groups.every((group) => group.hasQuorum(world.isUp));
        if (!isSafe) world.node(id).isUp = true;
      }
      for (let step = random.below(60); step > 0; step--) world.step();
    }
    for (const node of world.nodes.values()) node.isUp = true;
    const settled = (): boolean => {
      const members = world.node(1).machine.meta.members();
      const wish = [...naiveWish(members)].sort((a, b) => a - b).join();
      return (
        members.every((one) => one.role === "voter") &&
        world.groups.every(({ membership }) => {
          return membership.voters.join() === wish && membership.learners.length === 0;
        })
      );
    };
    t.ok(world.run(settled, 5000), `seed ${seed}: ${world.memberRoles()}`);
    const { meta } = world.node(1).machine;
    const isPlain = meta.partitions().every(({ mode, generation, replicas, configIndex }) => {
      return mode === "full" && generation === 1 && replicas.length === 0 && configIndex === 0;
    });
    t.ok(isPlain && meta.cluster()?.topologyVersion === 1, "nobody asked for placement");
    commits += world.log.length;
  }
  t.ok(commits > 300, `${commits} commands`);
  t.end();
});

t.test("fuzz: frames of meta proposals are strict, and never throw (P-128)", (t) => {
  const random = new Prng(11);
  const world = founded(2);
  const { metaProposer } = world.node(1);
  const before = world.log.length;
  for (let round = 0; round < 30_000; round++) {
    const bytes = new Uint8Array(random.below(60));
    for (let at = 0; at < bytes.length; at++) bytes[at] = random.below(256);
    if (bytes.length > 1) bytes[0] = 0xe1;
    if (bytes.length > 2) bytes[1] = 1 + random.below(2);
    metaProposer.frame(2, bytes);
  }
  t.ok(metaProposer.badFrames > 25_000);
  world.step();
  t.equal(world.log.length, before, "nothing of it was proposed");
  t.end();
});

t.test("the identity row: whole or refused", (t) => {
  const founders = [1, 2, 3].map((nodeId) => {
    return { nodeId, endpoint: `n${nodeId}:1`, storageId: `s${nodeId}` };
  });
  const boots = { bootNumber: 4_000_000_000, bootNonces: [7, 4_294_967_295] };
  const identity = { nodeId: 4, founders, isJoiner: true, ...boots };
  const bytes = encodeIdentity(identity);
  t.strictSame(decodeIdentity(bytes), identity);
  for (let size = 0; size < bytes.length; size++) {
    t.equal(decodeIdentity(bytes.slice(0, size)), null, `cut at ${size}`);
  }
  bytes[0] = 99;
  t.equal(decodeIdentity(bytes), null, "of another version");
  t.end();
});
