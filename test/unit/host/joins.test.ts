/**
 * Joins and leaves of whole nodes over a false network: snapshots, promotions, transfer, removal.
 */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import type { LeaveOutcome } from "../../../src/host/cluster/leaving.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import type { JoinAnswer } from "../../../src/ports.js";
import { Cluster, farFounder, joinRequest, withoutGroups } from "../../doubles/host/peerworld.js";
import { propose } from "../../doubles/host/world.js";

function write(cluster: Cluster, text: string, results: ProposalResult[]): void {
  for (const node of cluster.nodes.values()) {
    const group = node.route(text);
    if (group?.isServing() === true) return propose(group, text, results, cluster.nowMs + 10_000);
  }
}

/** Whether all running nodes hold the same in every group. */
function isCaughtUp(cluster: Cluster): boolean {
  const [first, ...rest] = [...cluster.nodes.values()];
  return (first?.groups() ?? []).every(({ partition, machine }) => {
    return rest.every((node) => {
      const other = node.group(partition)?.machine;
      return other?.chainDigest === machine.chainDigest;
    });
  });
}

function join(
  cluster: Cluster,
  via: number,
  nodeId: number,
  storageId = `s${nodeId}`,
): JoinAnswer | null {
  let answer: JoinAnswer | null = null;
  const request = joinRequest(nodeId, { storageId });
  cluster.world(via).peers?.events?.joinAsked(request, (end) => {
    answer = end;
  });
  cluster.passUntil(() => answer !== null);
  return answer;
}

function memberRoles(cluster: Cluster, via: number): string {
  const members = cluster.node(via).metaGroup().machine.meta.members();
  return members.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
}

function leave(cluster: Cluster, id: number): LeaveOutcome | null {
  let outcome: LeaveOutcome | null = null;
  cluster.node(id).leave(cluster.nowMs + 60_000, 30_000, (end) => {
    outcome = end;
  });
  cluster.passUntil(() => outcome !== null, 70_000);
  return outcome;
}

void t.test("a node joins by snapshots while writes go on, rises to voter, and one leaves", (t) => {
  const settings = {
    compactKeepEntries: 5,
    compactEveryEntries: 20,
    flushAgeMs: 100,
  };
  const cluster = new Cluster(3, settings).ready();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 200; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(10);
  }
  t.match(join(cluster, 2, 4), {
    status: "accepted",
    clusterId: "c",
    founders: [1, 2, 3],
  });
  // Followers hear of a commit with the next entries or heartbeat.
  cluster.pass(200);
  t.equal(memberRoles(cluster, 1), "1 voter, 2 voter, 3 voter, 4 learner");
  cluster.start(4);
  for (let at = 0; at < 100; at++) {
    write(cluster, `late${at}`, results);
    cluster.pass(20);
  }
  cluster.passUntil(() => memberRoles(cluster, 4) === "1 voter, 2 voter, 3 voter, 4 voter", 30_000);
  cluster.ready();
  t.ok(cluster.node(4).facts().snapshotsInstalled >= 3, "it came by snapshots");
  cluster.passUntil(() => isCaughtUp(cluster));
  const members = cluster.node(4).metaGroup().machine.meta.members();
  t.same(
    members.map((member) => member.storageId),
    ["s1", "s2", "s3", "s4"],
  );

  cluster.kill(4);
  cluster.start(4);
  cluster.ready();
  const leaver = cluster.serverOf(0) ?? 0;
  t.equal(leave(cluster, leaver), "Committed");
  t.equal(
    cluster
      .node(leaver)
      .groups()
      .filter((group) => group.isLeader()).length,
    0,
  );
  cluster.kill(leaver);
  cluster.passUntil(() => [0, 1, 2, 3].every((id) => cluster.serverOf(id) !== null));
  for (let at = 0; at < 50; at++) {
    write(cluster, `after${at}`, results);
    cluster.pass(10);
  }
  cluster.passUntil(() => isCaughtUp(cluster));
  cluster.pass(500);
  t.equal(results.length, 350);
  t.ok(
    results.every((result) => result.status === "applied"),
    "nothing was lost on the way",
  );
  t.end();
});

void t.test("three nodes become one by two leaves; the last one stays", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(5000);
  for (const id of [1, 2]) {
    t.equal(leave(cluster, id), "Committed");
    cluster.kill(id);
    cluster.passUntil(() => [0, 1, 2, 3].every((group) => cluster.serverOf(group) !== null));
  }
  t.equal(memberRoles(cluster, 3), "3 voter");
  t.equal(leave(cluster, 3), "RefusedInsufficientVoters");
  const results: ProposalResult[] = [];
  write(cluster, "alone", results);
  cluster.passUntil(() => results.length > 0);
  t.equal(results[0]?.status, "applied");
  t.match(join(cluster, 3, 1), { status: "refused" }, "its old data does not come back");
  t.end();
});

void t.test("a joining group that sleeps is woken (P-091)", (t) => {
  const cluster = new Cluster(1).ready();
  cluster.pass(60_000);
  t.match(join(cluster, 1, 2), { status: "accepted", founders: [1] });
  cluster.start(2);
  cluster.passUntil(() => memberRoles(cluster, 2) === "1 voter, 2 voter", 30_000);
  cluster.passUntil(() => isCaughtUp(cluster));
  const { frames } = cluster.network;
  cluster.pass(20_000);
  const first = cluster.network.frames - frames;
  t.ok(first < 400, `and goes to sleep again: ${first} frames`);
  t.end();
});

void t.test("5.2 the only founder comes back empty: it elects itself in no group", (t) => {
  const cluster = new Cluster(1).ready();
  const results: ProposalResult[] = [];
  t.match(join(cluster, 1, 2), { status: "accepted" });
  cluster.start(2, { founders: [farFounder(1)] });
  cluster.passUntil(() => memberRoles(cluster, 1) === "1 voter, 2 voter", 30_000);
  for (let at = 0; at < 20; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(20);
  }
  let outcome: LeaveOutcome | null = null;
  cluster.node(1).leave(cluster.nowMs + 60_000, 50_000, (end) => {
    outcome = end;
  });
  cluster.passUntil(() => outcome !== null, 60_000);
  t.equal(outcome, "Committed");
  cluster.kill(1);
  cluster.worlds.delete(1);
  cluster.passUntil(() => memberRoles(cluster, 2) === "2 voter", 30_000);
  const answers: JoinAnswer[] = [];
  const request = joinRequest(1, { storageId: "anew" });
  cluster.node(2).links.joinAsked(request, (end) => void answers.push(end));
  cluster.passUntil(() => answers.length > 0);
  t.match(answers, [{ status: "accepted", founders: [1] }]);
  // It hears nothing for a while: it is no majority of anything.
  const back = cluster.start(1, { storageId: "anew", founders: [farFounder(1)] });
  cluster.network.cutOff(1);
  cluster.pass(10_000);
  t.notOk(back.groups().some((group) => group.isLeader()));
  cluster.network.healAll();
  // Then it hears of the meta partition alone: that it is a member, not yet in which groups.
  cluster.network.filter = (_from, bytes) => withoutGroups(bytes, (group) => group !== 0);
  cluster.pass(10_000);
  t.match(memberRoles(cluster, 1), /1 learner/);
  t.equal(back.groups().length, 4);
  t.notOk(back.groups().some((group) => group.isLeader()));
  cluster.network.filter = (_from, bytes) => bytes;
  cluster.passUntil(() => memberRoles(cluster, 1) === "1 voter, 2 voter", 60_000);
  cluster.passUntil(() => isCaughtUp(cluster), 30_000);
  t.ok(results.every((result) => result.status === "applied"));
  t.end();
});

void t.test("P-097 an id comes back with an empty disk", (t) => {
  const cluster = new Cluster(4, { compactKeepEntries: 5, compactEveryEntries: 20 }).ready();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 60; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(20);
  }
  cluster.pass(3000);
  // The process ends with the removal, before the leaders of the groups have taken it in.
  cluster.node(4).leave(cluster.nowMs + 60_000, 50_000, () => undefined);
  const member = (id: number) => cluster.node(id).metaGroup().machine.meta.member(4);
  cluster.passUntil(() => [1, 2, 3].some((id) => member(id) === null), 60_000);
  cluster.kill(4);
  const listed = (): boolean => {
    return [1, 2, 3].some((id) => {
      const groups = cluster.node(id).groups();
      return groups.some((group) => group.facts().peers.some(({ node }) => node === 4));
    });
  };
  // Whoever asks at once, and again and again, is accepted when nobody lists it, not before.
  let answer: JoinAnswer | null = null;
  let refused = 0;
  while (answer === null) {
    const answers: JoinAnswer[] = [];
    const request = joinRequest(4, { storageId: "anew" });
    cluster.world(1).peers?.events?.joinAsked(request, (end) => void answers.push(end));
    cluster.passUntil(() => answers.length > 0);
    if (answers[0]?.status === "accepted") answer = answers[0];
    else refused++;
    if (refused > 1000) throw new Error("the join is accepted");
  }
  t.ok(refused > 0, "a group listed it when it asked first");
  t.notOk(listed(), "accepted when no group lists it");
  cluster.worlds.delete(4);
  cluster.start(4, { storageId: "anew" });
  const all = "1 voter, 2 voter, 3 voter, 4 voter";
  cluster.passUntil(() => memberRoles(cluster, 4) === all, 60_000);
  for (let at = 0; at < 40; at++) {
    write(cluster, `late${at}`, results);
    cluster.pass(20);
  }
  cluster.passUntil(() => isCaughtUp(cluster), 30_000);
  t.ok(results.every((result) => result.status === "applied"));
  t.end();
});

void t.test(
  "P-097 an id is given out by the records where a node does not host every group",
  (t) => {
    const cluster = new Cluster(4, { initialPartitions: 3, replicationFactor: 1 }).ready();
    cluster.pass(500);
    for (const [id, node] of cluster.nodes)
      t.equal(node.groups().length, id === 4 ? 1 : 2, "meta, and one of 3 on each of the first");
    t.equal(leave(cluster, 4), "Committed");
    cluster.kill(4);
    cluster.worlds.delete(4);
    let tries = 0;
    const ask = (): JoinAnswer | null => join(cluster, 1 + (tries % 3), 4, "anew");
    while (ask()?.status !== "accepted" && tries++ < 200) cluster.pass(100);
    t.ok(tries < 200, "whoever is asked");
    t.end();
  },
);

/** Kills and restarts a node between joins and leaves, as long as every group keeps a majority. */
function disturb(cluster: Cluster, random: Prng, away: Set<number>): void {
  for (const id of away) {
    if (random.chance(1, 2)) continue;
    away.delete(id);
    cluster.start(id);
  }
  if (away.size > 0) return;
  const ids = [...cluster.nodes.keys()];
  const id = ids[random.below(ids.length)] as number;
  const spares = [...cluster.nodes.values()].every((node) => {
    return node.groups().every((group) => group.facts().leaderNode !== 0);
  });
  if (!spares || ids.length < 3) return;
  cluster.kill(id);
  away.add(id);
}

void t.test("P-083 P-094 P-098 joins and leaves while nodes die and return", (t) => {
  const settings = {
    compactKeepEntries: 5,
    compactEveryEntries: 20,
    flushAgeMs: 100,
  };
  for (let seed = 1; seed <= 6; seed++) {
    const random = new Prng(seed);
    const cluster = new Cluster(3, settings).ready();
    const results: ProposalResult[] = [];
    const away = new Set<number>();
    let writes = 0;
    const busy = (steps: number): void => {
      for (let at = 0; at < steps; at++) {
        write(cluster, `key${writes++ % 40}`, results);
        cluster.pass(20);
      }
    };
    busy(60);
    for (const fresh of [4, 5]) {
      const via = [...cluster.nodes.keys()][0] as number;
      for (let tries = 0; join(cluster, via, fresh)?.status !== "accepted"; tries++) {
        if (tries > 20) throw new Error("the join is accepted");
        cluster.pass(1000);
      }
      cluster.start(fresh);
      for (let round = 0; round < 3; round++) {
        busy(10 + random.below(60));
        disturb(cluster, random, away);
      }
    }
    for (const id of away) cluster.start(id);
    away.clear();
    const all = "1 voter, 2 voter, 3 voter, 4 voter, 5 voter";
    cluster.passUntil(
      () => [...cluster.nodes.keys()].every((id) => memberRoles(cluster, id) === all),
      60_000,
    );
    let outcome: LeaveOutcome | null = null;
    cluster.node(2).leave(cluster.nowMs + 60_000, 50_000, (end) => {
      outcome = end;
    });
    const other = [1, 3, 4, 5][random.below(4)] as number;
    cluster.pass(random.below(300));
    cluster.kill(other);
    busy(20);
    cluster.start(other);
    cluster.passUntil(() => outcome !== null, 70_000);
    t.equal(outcome, "Committed", `seed ${seed}`);
    cluster.kill(2);
    busy(30);
    cluster.passUntil(() => isCaughtUp(cluster), 30_000);
    cluster.pass(12_000);
    const applied = results.filter((result) => result.status === "applied").length;
    t.ok(applied > results.length * 0.8, `${applied} of ${results.length} were applied`);
    for (const node of cluster.nodes.values()) {
      t.equal(memberRoles(cluster, node.nodeId), "1 voter, 3 voter, 4 voter, 5 voter");
    }
  }
  t.end();
});
