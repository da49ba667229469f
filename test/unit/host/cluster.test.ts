/** Several nodes over a false network: elections, replication, failover, catch-up, reads. */
import t, { type Test } from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import { membershipVersion, partitionId } from "../../../src/base/ids.js";
import type { ProposalResult, ReadResult } from "../../../src/host/group/group.js";
import type { Replica } from "../../../src/host/group/replica.js";
import type { PeerAdmissionDeps } from "../../../src/host/cluster/peer-admission.js";
import type { JoinAnswer, PeerAddress } from "../../../src/ports.js";
import { KeySpace } from "../../../src/machine/store/keys.js";
import type { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import {
  Cluster,
  address,
  joinRequest,
  farFounder,
  helloOf,
  withoutGroups,
} from "../../doubles/host/peerworld.js";
import { propose, setCommand } from "../../doubles/host/world.js";

/** Every partition has applied the same to the same state on all nodes. */
function assertConverged(t: Test, cluster: Cluster): void {
  const [node] = cluster.nodes.values();
  for (const { partition } of node?.groups() ?? []) {
    const states = [...cluster.nodes.values()].map((each) => {
      const machine = each.group(partition)?.machine;
      return `${machine?.appliedIndex}/${machine?.stateDigest}/${machine?.chainDigest}`;
    });
    t.equal(new Set(states).size, 1, `partition ${partition}: ${states.join(" ")}`);
  }
}

/** Starts a node that was away; all is the same again. */
function assertComesBack(t: Test, cluster: Cluster, id: number, withinMs = 3000): void {
  cluster.start(id);
  cluster.ready();
  cluster.pass(withinMs);
  assertConverged(t, cluster);
}

function applied(results: readonly ProposalResult[]): number {
  return results.filter((result) => result.status === "applied").length;
}

/** Node 1 to 3 agree on who leads the data partitions. */
function isLed(cluster: Cluster): boolean {
  return [1, 2, 3].every((partition) => cluster.serverOf(partition) !== null);
}

function write(cluster: Cluster, text: string, results: ProposalResult[]): void {
  for (const node of cluster.nodes.values()) {
    const group = node.route(text);
    if (group?.isServing() === true) return propose(group, text, results, cluster.nowMs + 10_000);
  }
}

void t.test("three nodes elect, found the cluster and become ready", (t) => {
  const cluster = new Cluster(3).ready();
  // Followers hear of a commit with the next entries or heartbeat.
  cluster.pass(500);
  const { meta } = cluster.node(2).metaGroup().machine;
  t.equal(meta.cluster()?.clusterId, "c");
  t.same(
    meta.members().map((member) => member.nodeId),
    [1, 2, 3],
  );
  assertConverged(t, cluster);
  t.end();
});

void t.test("writes are applied on every node; a follower refuses", (t) => {
  const cluster = new Cluster(3).ready();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 100; at++) write(cluster, `key${at}`, results);
  cluster.pass(500);
  t.equal(applied(results), 100);
  assertConverged(t, cluster);
  const refused: ProposalResult[] = [];
  for (const node of cluster.nodes.values()) {
    const group = node.route("key1");
    if (group !== null && !group.isLeader()) propose(group, "key1", refused);
  }
  cluster.settle();
  t.same(refused, [
    { status: "refused", reason: "not-leader" },
    { status: "refused", reason: "not-leader" },
  ]);
  t.end();
});

void t.test(
  "W1 W15 followers hear of a commit at once if somebody wants to know, and as long",
  (t) => {
    const cluster = new Cluster(3).ready();
    cluster.pass(1000);
    const leader = cluster.nodes.get(cluster.serverOf(1) ?? 0)?.group(partitionId(1));
    if (leader === undefined || leader === null) throw new Error("partition 1 is led");
    const isTold = (key: string): boolean => {
      const results: ProposalResult[] = [];
      propose(leader, key, results, cluster.nowMs + 10_000);
      cluster.pass(15);
      t.equal(applied(results), 1);
      const levels = [...cluster.nodes.values()].map((node) => {
        return node.group(partitionId(1))?.machine.appliedIndex;
      });
      cluster.pass(300);
      return new Set(levels).size === 1;
    };
    t.equal(isTold("a"), false, "with the next heartbeat");
    leader.announceCommits(1000);
    t.equal(isTold("b"), true);
    t.equal(isTold("c"), true);
    cluster.pass(1000);
    t.equal(isTold("d"), false, "nobody wants to know any more");
    t.end();
  },
);

void t.test("a dead leader is replaced well before the election timeout", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1);
  t.not(leader, null);
  cluster.kill(leader ?? 0);
  const tookMs = cluster.passUntil(() => isLed(cluster));
  t.ok(tookMs < 900, `${tookMs} ms`);
  const results: ProposalResult[] = [];
  for (let at = 0; at < 30; at++) write(cluster, `key${at}`, results);
  cluster.pass(300);
  t.equal(applied(results), 30);
  cluster.start(leader ?? 0);
  cluster.ready();
  cluster.pass(1000);
  assertConverged(t, cluster);
  t.end();
});

void t.test("P-008 P-050 an isolated leader confirms nothing and steps down", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  const old = cluster.node(leader).group(partitionId(1));
  cluster.network.cutOff(leader, false);
  const reads: ReadResult[] = [];
  const writes: ProposalResult[] = [];
  old?.read(cluster.nowMs + 5000, (result) => void reads.push(result));
  if (old !== null && old !== undefined) propose(old, "x", writes, cluster.nowMs + 5000);
  cluster.pass(4500);
  t.same(reads, [{ status: "retry" }]);
  t.same(writes, [{ status: "unknown" }]);
  t.notOk(old?.isLeader());
  const now = cluster.serverOf(1);
  t.ok(now !== null && now !== leader);
  cluster.network.healAll();
  cluster.pass(2000);
  assertConverged(t, cluster);
  t.end();
});

void t.test("W10 how level a node is it knows from what it hears, asleep too, at no cost", (t) => {
  const cluster = new Cluster(3).ready();
  const ids = [1, 2, 3];
  const leader = cluster.serverOf(1) ?? 0;
  const [cutOff = 0, other = 0] = ids.filter((id) => id !== leader);
  const staleMs = (id: number): number => {
    return cluster.nowMs - (cluster.node(id).group(partitionId(1))?.levelMs(cluster.nowMs) ?? 0);
  };
  cluster.pass(60_000);
  const { frames } = cluster.network;
  t.same(ids.map(staleMs), [0, 0, 0], "asleep, and linked");
  t.equal(cluster.network.frames, frames, "nobody was asked");
  write(cluster, "key1", []);
  for (let at = 0; at < 30; at++) {
    for (const node of cluster.nodes.values()) {
      const group = node.group(partitionId(1));
      if (group?.isServing() === true) propose(group, `key${at}`, [], cluster.nowMs + 10_000);
    }
    cluster.pass(100);
  }
  t.ok(Math.max(...ids.map(staleMs)) <= 1000, "awake");
  cluster.network.cutOff(cutOff, false);
  cluster.pass(10_000);
  t.ok(staleMs(cutOff) >= 10_000, `cut off: ${staleMs(cutOff)}`);
  t.ok(Math.max(staleMs(leader), staleMs(other)) <= 1000, "a majority is");
  cluster.network.healAll();
  cluster.pass(5000);
  t.ok(Math.max(...ids.map(staleMs)) <= 1000, "all are again");
  t.end();
});

void t.test("W10 P-008 a leader that nobody hears is level no more before it steps down", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  const group = cluster.node(leader).group(partitionId(1));
  group?.read(cluster.nowMs + 5000, () => undefined);
  cluster.pass(200);
  cluster.network.cutOff(leader, false);
  const atMs = cluster.nowMs;
  cluster.pass(700);
  t.ok(group?.isServing());
  t.ok((group?.levelMs(cluster.nowMs) ?? Infinity) <= atMs);
  t.end();
});

void t.test("a follower that was away catches up from the log on disk", (t) => {
  const cluster = new Cluster(3, { entryCacheBytesMax: 1000 }).ready();
  const away = [1, 2, 3].find((id) => id !== cluster.serverOf(1)) ?? 0;
  cluster.network.cutOff(away);
  cluster.passUntil(() => [1, 2, 3].every((p) => ![null, away].includes(cluster.serverOf(p))));
  const results: ProposalResult[] = [];
  for (let at = 0; at < 200; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(10);
  }
  cluster.network.healAll();
  cluster.pass(3000);
  t.ok(applied(results) > 190);
  assertConverged(t, cluster);
  t.end();
});

void t.test("a graceful stop hands its leaderships over first", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  let stopped = false;
  cluster.node(leader).stop(cluster.nowMs + 10_000, () => (stopped = true));
  const tookMs = cluster.passUntil(() => stopped);
  t.ok(tookMs < 500, `${tookMs} ms`);
  cluster.kill(leader);
  cluster.settle();
  t.ok([0, 1, 2, 3].every((partition) => cluster.serverOf(partition) !== null));
  t.end();
});

void t.test("P-197 a node that withdraws is unready at once, gives all away and serves on", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  const node = cluster.node(leader);
  node.withdraw();
  t.equal(node.health().reason, "shutting-down");
  t.notOk(node.shuttingDown, "it takes requests");
  const led = (): number => [0, 1, 2, 3].filter((p) => cluster.serverOf(p) === leader).length;
  const tookMs = cluster.passUntil(() => led() === 0);
  t.ok(tookMs < 500, `${tookMs} ms`);
  const results: ProposalResult[] = [];
  for (let at = 0; at < 20; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(50);
  }
  t.equal(applied(results), 20);
  t.equal(led(), 0, "and takes none back");
  let stopped = false;
  node.stop(cluster.nowMs + 10_000, () => (stopped = true));
  cluster.passUntil(() => stopped);
  t.end();
});

void t.test("P-013 idle groups sleep, and wake for a write, a death and a return", (t) => {
  const cluster = new Cluster(3).ready();
  // Until after the retention pass that follows the founding.
  cluster.pass(13_000);
  const before = cluster.network.frames;
  cluster.pass(4000);
  const frames = cluster.network.frames - before;
  // A report of each node to each other, and the question whether all is well.
  t.ok(frames <= 6 + 12, `${frames} frames while all sleep`);
  const results: ProposalResult[] = [];
  for (let at = 0; at < 10; at++) write(cluster, `key${at}`, results);
  cluster.pass(100);
  t.equal(applied(results), 10);
  cluster.pass(5000);
  const leader = cluster.serverOf(1) ?? 0;
  cluster.kill(leader);
  const tookMs = cluster.passUntil(() => isLed(cluster));
  t.ok(tookMs < 900, `${tookMs} ms`);
  cluster.pass(5000);
  assertComesBack(t, cluster, leader);
  t.end();
});

void t.test("P-013 a question of a sleeping follower takes one answer, and none to that", (t) => {
  const cluster = new Cluster(3, { leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(20_000);
  const { frames } = cluster.network;
  cluster.pass(60_000);
  // Four times each of six pairs at most, beside twelve reports of each node to both others.
  const asked = cluster.network.frames - frames - 72;
  t.ok(asked > 0 && asked <= 2 * 4 * 6, `${asked} frames in a minute of sleep`);
  t.end();
});

void t.test("P-013 a member that is away for long does not keep the others awake", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.kill(3);
  cluster.passUntil(() => [0, 1, 2, 3].every((p) => cluster.serverOf(p) !== null));
  cluster.pass(12_000);
  const before = cluster.network.frames;
  cluster.pass(4000);
  t.ok(cluster.network.frames - before <= 8, `${cluster.network.frames - before} frames`);
  const results: ProposalResult[] = [];
  for (let at = 0; at < 10; at++) write(cluster, `key${at}`, results);
  cluster.pass(200);
  t.equal(applied(results), 10);
  cluster.pass(12_000);
  assertComesBack(t, cluster, 3);
  t.end();
});

void t.test("P-013 a leader without a majority does not sleep: it stops leading", (t) => {
  const cluster = new Cluster(2, { quiesceAfterMs: 50 }).ready();
  cluster.pass(5000);
  const leader = cluster.serverOf(1) ?? 0;
  cluster.kill(3 - leader);
  // The round in which the other one still answered, and the one in which nobody did.
  const tookMs = cluster.passUntil(() => cluster.serverOf(1) === null, 5000);
  t.ok(tookMs < 2500, `${tookMs} ms`);
  assertComesBack(t, cluster, 3 - leader);
  t.end();
});

void t.test("P-013 a whole cluster that restarts asleep elects again", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(5000);
  for (const id of [1, 2, 3]) cluster.kill(id);
  for (const id of [1, 2, 3]) cluster.start(id);
  cluster.ready();
  cluster.pass(5000);
  const leader = cluster.serverOf(1) ?? 0;
  cluster.kill(leader);
  cluster.start(leader);
  cluster.ready();
  t.end();
});

void t.test("P-013 a group that is gone from a living leader is failed over", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(5000);
  const leader = cluster.serverOf(1) ?? 0;
  cluster.network.filter = (from, bytes) =>
    from === leader ? withoutGroups(bytes, (group) => group === 1) : bytes;
  const tookMs = cluster.passUntil(() => ![null, leader].includes(cluster.serverOf(1)), 40_000);
  t.ok(tookMs < 25_000, `${tookMs} ms`);
  t.end();
});

void t.test("P-036 P-037 a follower below the floor gets a snapshot while writes go on", (t) => {
  const settings = { compactKeepEntries: 5, compactEveryEntries: 20, flushAgeMs: 100 };
  const cluster = new Cluster(3, settings).ready();
  const away = [1, 2, 3].find((id) => id !== cluster.serverOf(1)) ?? 0;
  cluster.kill(away);
  cluster.passUntil(() => isLed(cluster));
  const results: ProposalResult[] = [];
  for (let at = 0; at < 300; at++) {
    write(cluster, `key${at}`, results);
    cluster.pass(10);
  }
  cluster.start(away);
  for (let at = 0; at < 100; at++) {
    write(cluster, `late${at}`, results);
    cluster.pass(20);
  }
  cluster.ready();
  cluster.pass(3000);
  t.ok(results.every((result) => result.status === "applied"));
  assertConverged(t, cluster);
  t.ok(
    cluster.node(away).facts().snapshotsInstalled >= 3,
    "every data partition came as a snapshot",
  );
  cluster.kill(away);
  assertComesBack(t, cluster, away, 1000);
  t.end();
});

void t.test("P-017 a leader whose disk hangs loses its groups", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  cluster.world(leader).log.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 20; at++) write(cluster, `key${at}`, results);
  const tookMs = cluster.passUntil(() => ![null, leader].includes(cluster.serverOf(1)), 20_000);
  t.ok(tookMs < 8000, `${tookMs} ms`);
  cluster.world(leader).log.automatic = true;
  cluster.world(leader).log.sync();
  cluster.pass(5000);
  t.ok(results.every((result) => result.status !== "refused"));
  assertConverged(t, cluster);
  t.end();
});

void t.test("leaderships are spread over the nodes, and then stay", (t) => {
  const cluster = new Cluster(3, { initialPartitions: 9, leaderBalanceEveryMs: 2000 }).ready();
  for (const id of [2, 3]) cluster.kill(id);
  for (const id of [2, 3]) cluster.start(id);
  cluster.ready();
  cluster.pass(15_000);
  const led = (): number[] =>
    [1, 2, 3].map(
      (id) =>
        cluster
          .node(id)
          .groups()
          .filter((group) => group.isServing()).length,
    );
  t.same(led().sort(), [3, 3, 4]);
  const before = led();
  cluster.pass(10_000);
  t.same(led(), before);
  t.end();
});

function membersOf(cluster: Cluster, id: number): string {
  const members = cluster.node(id).metaGroup().machine.meta.members();
  return members.map((member) => `${member.nodeId}${member.role}`).join(" ");
}

/** Has node `id` join through `through` and waits until it votes everywhere. */
function join(cluster: Cluster, id: number, through: number): void {
  let answer: JoinAnswer | null = null;
  const ask = (): void => {
    cluster.node(through).links.joinAsked(joinRequest(id), (got) => (answer = got));
  };
  const isIn = (): boolean => {
    if (answer?.status === "accepted") return true;
    if (answer !== null) {
      answer = null;
      ask();
    }
    return false;
  };
  ask();
  cluster.passUntil(isIn);
  const { founders } = answer as unknown as { founders: number[] };
  cluster.start(id, { founders: founders.map(farFounder) });
  cluster.passUntil(() => membersOf(cluster, through).includes(`${id}voter`), 60_000);
}

void t.test(
  "P-015 P-091 a node joins as a learner and becomes a voter, also of idle groups",
  (t) => {
    const cluster = new Cluster(1).ready();
    const results: ProposalResult[] = [];
    for (let at = 0; at < 30; at++) write(cluster, `key${at}`, results);
    cluster.pass(5000);
    join(cluster, 2, 1);
    join(cluster, 3, 2);
    cluster.ready();
    cluster.pass(3000);
    t.equal(membersOf(cluster, 3), "1voter 2voter 3voter");
    for (const { partition } of cluster.node(1).groups()) {
      const { membership } = (
        cluster.node(1) as unknown as {
          parts: { registry: { find(p: number): { replica: Replica } } };
        }
      ).parts.registry.find(partition).replica.members;
      t.same(membership.voters, [1, 2, 3]);
    }
    assertConverged(t, cluster);
    cluster.kill(1);
    cluster.passUntil(() => [0, 1, 2, 3].every((p) => cluster.serverOf(p) !== null));
    for (let at = 0; at < 30; at++) write(cluster, `more${at}`, results);
    cluster.pass(500);
    t.equal(applied(results), 60);
    t.end();
  },
);

void t.test("P-096 a leave commits the removal; the last needed voter is refused", (t) => {
  const cluster = new Cluster(3).ready();
  const outcomes: string[] = [];
  cluster.node(3).leave(cluster.nowMs + 60_000, 30_000, (outcome) => outcomes.push(outcome));
  cluster.passUntil(() => outcomes.length === 1, 60_000);
  t.same(outcomes, ["Committed"]);
  cluster.passUntil(() => membersOf(cluster, 1) === "1voter 2voter", 60_000);
  cluster.kill(3);
  cluster.pass(1000);
  const results: ProposalResult[] = [];
  for (let at = 0; at < 10; at++) write(cluster, `key${at}`, results);
  cluster.pass(500);
  t.equal(applied(results), 10);
  cluster.node(2).leave(cluster.nowMs + 60_000, 30_000, (outcome) => outcomes.push(outcome));
  cluster.passUntil(() => outcomes.length === 2, 60_000);
  const last = cluster.nodes.has(1) ? 1 : 2;
  cluster.kill(2);
  cluster.pass(3000);
  cluster.node(last).leave(cluster.nowMs + 60_000, 30_000, (outcome) => outcomes.push(outcome));
  cluster.passUntil(() => outcomes.length === 3, 60_000);
  t.equal(outcomes[2], "RefusedInsufficientVoters");
  t.end();
});

void t.test("P-162 a stop under the others' load hands over at once, and nobody waits", (t) => {
  const cluster = new Cluster(3, { initialPartitions: 9, leaderBalanceEveryMs: 1000 }).ready();
  cluster.pass(5000);
  const victim = 1;
  const results: ProposalResult[] = [];
  let stopped = false;
  const startMs = cluster.nowMs;
  for (let at = 0; at < 60; at++) {
    // The disk of the node that stops is never idle: its groups always have something open.
    for (let key = 0; key < 20; key++) write(cluster, `key${at}-${key}`, results);
    if (at === 5) cluster.node(victim).stop(cluster.nowMs + 10_000, () => (stopped = true));
    for (const world of cluster.worlds.values()) {
      world.timer.nowMs += 5;
      for (let step = 0; step < 40; step++) world.timer.step();
    }
  }
  cluster.passUntil(() => stopped);
  t.ok(cluster.nowMs - startMs < 3000, `${cluster.nowMs - startMs} ms`);
  cluster.kill(victim);
  cluster.settle();
  for (let partition = 0; partition <= 9; partition++) {
    t.ok([2, 3].includes(cluster.serverOf(partition) ?? 0), `partition ${partition} is led`);
  }
  t.end();
});

void t.test("P-162 a node that has closed its rows is called by others, and reads none", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  let ended = false;
  const node = cluster.node(1);
  const { links } = node;
  const calls: number[] = [];
  links.handleCalls((from) => calls.push(from));
  node.stop(cluster.nowMs + 1000, () => (ended = true));
  cluster.passUntil(() => ended);
  const hello = helloOf(2);
  t.equal(links.admit(hello), null);
  links.linkUp(hello);
  const stranger = { ...hello, nodeId: 9, endpoint: "n9:1", storageId: "s9" };
  links.admit(stranger);
  links.linkUp(stranger);
  links.refused(address(2), "storage-lost", PROGRAM);
  const answers: string[] = [];
  links.joinAsked(joinRequest(9, { endpoint: "n9:1" }), ({ status }) => answers.push(status));
  for (const lane of ["control", "log", "bulk", "calls"] as const) {
    for (let first = 0; first < 256; first++) links.frame(2, lane, new Uint8Array([first, 0, 1]));
  }
  links.linkDown(2);
  cluster.pass(100);
  t.same(answers, ["retry"]);
  t.equal(calls.length, 256, "calls are refused above");
  t.end();
});

void t.test("P-033 answers of a peer are heard before its start is durable (seed 9310302)", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const { links } = cluster.node(1);
  const calls: number[] = [];
  links.handleCalls((from) => calls.push(from));
  const hello = helloOf(2, { bootNumber: 9 });
  t.equal(links.admit(hello), null);
  links.linkUp(hello);
  const { badItems } = links;
  for (const lane of ["control", "log", "calls"] as const) {
    links.frame(2, lane, new Uint8Array([1, 2, 3]));
  }
  t.same(calls, [2], "what is lost without the link would be taken for never done");
  t.equal(links.badItems, badItems, "P-090 nothing else is listened to");
  t.end();
});

void t.test("P-162 whoever waits for a leave hears of the stop", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const outcomes: string[] = [];
  cluster.kill(2);
  cluster.kill(3);
  cluster.node(1).leave(cluster.nowMs + 60_000, 30_000, (outcome) => outcomes.push(outcome));
  cluster.pass(100);
  t.same(outcomes, []);
  let ended = false;
  cluster.node(1).stop(cluster.nowMs + 1000, () => (ended = true));
  cluster.passUntil(() => ended);
  t.same(outcomes, ["Timeout"]);
  cluster.node(1).leave(cluster.nowMs + 60_000, 30_000, (outcome) => outcomes.push(outcome));
  cluster.pass(10);
  t.same(outcomes, ["Timeout", "Timeout"]);
  t.end();
});

void t.test(
  "P-090 a founder that lost its disk is refused, also before the member list says so",
  (t) => {
    const cluster = new Cluster(3).ready();
    cluster.pass(500);
    cluster.kill(3);
    // The next start of what node 3 is, and so on.
    const hello = helloOf(3, { bootNumber: 2 });
    t.equal(cluster.node(1).links.admit(hello), null);
    t.equal(cluster.node(1).links.admit({ ...hello, storageId: "other" }), "storage-lost");
    cluster.kill(1);
    const world = cluster.world(1);
    world.log.durable.clear();
    for (const key of world.store.rows.keys()) {
      if (key.charCodeAt(0) !== KeySpace.node) world.store.rows.delete(key);
    }
    const node = cluster.start(1);
    t.equal(
      node.metaGroup().machine.meta.cluster(),
      null,
      "the member list is not known again yet",
    );
    t.equal(node.links.admit({ ...hello, storageId: "other" }), "storage-lost");
    t.equal(node.links.admit({ ...hello, bootNumber: 3 }), null);
    t.end();
  },
);

void t.test("P-090 no node ends for what another one believes of its data", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const by = address(1);
  const { links } = cluster.node(3);
  for (let times = 0; times < 3; times++) links.refused(by, "storage-lost", PROGRAM);
  t.strictSame(cluster.world(3).fatals, []);
  t.strictSame(links.takenForLost, [1]);
  const refused = cluster.world(3).logLines.filter((line) => /newer or other data/.test(line));
  t.equal(refused.length, 1, "and it says so once");
  links.linkUp(helloOf(1));
  t.strictSame(links.takenForLost, [], "who links with it thinks better of it");
  t.end();
});

/** The disk of a node as it is now, to be put back later. */
function copyOfDisk(cluster: Cluster, node: number): () => void {
  const world = cluster.world(node);
  const log = [...world.log.durable].map(([id, part]) => {
    return [id, { ...part, entries: [...part.entries] }] as const;
  });
  const rows = new Map(world.store.rows);
  return () => {
    world.log.durable.clear();
    for (const [id, part] of log)
      world.log.durable.set(id, { ...part, entries: [...part.entries] });
    world.store.rows = rows;
  };
}

void t.test("P-190 an older copy of a voter's disk is let in by nobody, and loses nothing", (t) => {
  const cluster = new Cluster(3, { initialPartitions: 1, leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(1000);
  const leader = cluster.serverOf(1) ?? 0;
  const [copied, other] = [1, 2, 3].filter((id) => id !== leader) as [number, number];
  cluster.kill(copied);
  const putBack = copyOfDisk(cluster, copied);
  cluster.start(copied);
  cluster.ready().pass(2000);
  cluster.kill(other);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  const serving = cluster.node(cluster.serverOf(1) ?? 0).group(partitionId(1));
  const results: string[] = [];
  serving?.propose(setCommand("acknowledged", new Uint8Array([1])), 100, Infinity, (result) => {
    results.push(result.status);
  });
  cluster.passUntil(() => results.length > 0);
  t.strictSame(results, ["applied"]);
  // The copy and the one that was away would be a majority without the write.
  cluster.kill(copied);
  cluster.kill(leader);
  putBack();
  cluster.start(copied);
  cluster.start(other);
  cluster.pass(20_000);
  t.equal(cluster.serverOf(1), null, "nobody elects with the copy");
  t.strictSame(cluster.node(copied).links.takenForLost, [other]);
  t.strictSame(cluster.world(copied).fatals, []);
  // Started again and again its number passes the one that was seen, without the nonce of that
  // start.
  for (let life = 0; life < 6; life++) {
    cluster.kill(copied);
    cluster.start(copied);
    cluster.pass(4000);
  }
  t.equal(cluster.serverOf(1), null, "nor with any later start of it");
  t.strictSame(cluster.node(copied).links.takenForLost, [other]);
  cluster.start(leader);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  const { reads } = cluster.node(cluster.serverOf(1) ?? 0).group(partitionId(1))?.machine ?? {};
  t.equal(reads?.kvGet("acknowledged", -1n, 0).type, 3, "the write is there");
  t.end();
});

void t.test("P-190 the limit: what only those saw who are away is known to nobody", (t) => {
  const cluster = new Cluster(3, { initialPartitions: 1, leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(1000);
  const leader = cluster.serverOf(1) ?? 0;
  const [copied, other] = [1, 2, 3].filter((id) => id !== leader) as [number, number];
  cluster.kill(other);
  cluster.kill(copied);
  const putBack = copyOfDisk(cluster, copied);
  cluster.start(copied);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  cluster.pass(2000);
  cluster.kill(copied);
  putBack();
  cluster.start(copied);
  cluster.pass(5000);
  t.strictSame(cluster.node(copied).links.takenForLost, [leader], "who saw the later start");
  // docs/operations.md: the copy is to be kept from the cluster until all others are up.
  cluster.kill(leader);
  cluster.start(other);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  t.strictSame(cluster.node(copied).links.takenForLost, [leader], "and nobody else");
  t.end();
});

void t.test("P-190 honest starts are let in, whatever was lost of counting them", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(1000);
  // Cut off, it starts again and again: nobody hears of it.
  for (let life = 0; life < 4; life++) {
    cluster.kill(2);
    cluster.network.cutOff(2);
    cluster.start(2);
    cluster.pass(life * 7);
  }
  cluster.network.healAll();
  cluster.ready();
  // A peer that lost what it knew of the starts lets in whoever the others let in.
  cluster.kill(1);
  const putBack = copyOfDisk(cluster, 1);
  for (let life = 0; life < 3; life++) {
    cluster.kill(3);
    cluster.start(3);
    cluster.pass(500);
  }
  putBack();
  cluster.start(1);
  cluster.ready();
  const { links } = cluster.node(1);
  t.equal(links.admit(helloOf(3, { bootNumber: 1 })), "storage-lost", "the first start is over");
  t.end();
});

void t.test("P-190 who was only judged taught nothing, and is not called back", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const set: (readonly PeerAddress[])[] = [];
  const { peers } = cluster.world(1);
  if (peers === null) throw new Error("there is a network");
  peers.setPeers = (list) => void set.push(list);
  const { links } = cluster.node(1);
  const [next, far] = [helloOf(3, { bootNumber: 2 }), helloOf(3, { bootNumber: 99 })];
  t.equal(links.judge(far), null);
  t.equal(links.judge(helloOf(9, { storageId: "stranger" })), null);
  cluster.pass(200);
  t.strictSame(set, []);
  t.equal(links.judge(next), null, "the start with that number was not let in");
  t.equal(links.admit(far), null);
  t.equal(links.judge(next), "storage-lost");
  t.equal(links.admit(next), "storage-lost", "whatever was said of its greeting");
  t.end();
});

void t.test(
  "P-090 who applies member lists of the past hears again whom the last one names",
  (t) => {
    const cluster = new Cluster(3).ready();
    cluster.pass(500);
    const { links } = cluster.node(1);
    const { deps: world } = links as unknown as { deps: PeerAdmissionDeps };
    const told: string[] = [];
    links.listen({
      linkUp: (node) => void told.push(`up ${node}`),
      linkDown: (node) => void told.push(`down ${node}`),
    });
    const today = world.metaReads();
    const { metaReads, metaIndex } = world;
    if (today === null) throw new Error("the cluster is founded");
    const past = Object.create(today) as MetaReads;
    past.member = (id) => {
      const member = today.member(id);
      return member === null || id !== 3 ? member : { ...member, storageId: "of before" };
    };
    past.cluster = () => {
      const known = today.cluster();
      return known === null ? null : { ...known, membershipVersion: membershipVersion(0) };
    };
    Object.assign(world, { metaReads: () => past, metaIndex: () => 0 });
    links.refresh();
    t.strictSame(told, ["down 3"], "node 3 has another directory than the member list says");
    Object.assign(world, { metaReads, metaIndex });
    links.refresh();
    t.strictSame(told, ["down 3", "up 3"], "the link itself stood all the while");
    t.same(links.facts().filter(({ linked }) => !linked).length, 0);
    t.end();
  },
);

void t.test("P-198 strangers fill no row: members are remembered, and nobody else", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const { links } = cluster.node(1);
  for (let id = 100; id < 6000; id++) {
    t.equal(links.admit(helloOf(id, { storageId: `stranger ${id}` })), null);
  }
  cluster.pass(500);
  join(cluster, 4, 1);
  t.equal(cluster.node(1).links.admit(helloOf(4, { bootNumber: 9 })), null);
  t.equal(cluster.node(1).links.admit(helloOf(4, { bootNumber: 8 })), "storage-lost");
  t.end();
});

void t.test("5.2 a node whose data is in memory does not belong to a cluster with disks", (t) => {
  const cluster = new Cluster(3).ready();
  const { links } = cluster.node(1);
  t.equal(links.admit(helloOf(2, { bootNumber: 9, storage: "memory" })), "other-storage");
  const answers: JoinAnswer[] = [];
  const request = {
    nodeId: 4,
    storageId: "s4",
    endpoint: "n4:1",
    storage: "memory",
    program: PROGRAM,
  } as const;
  links.joinAsked(request, (answer) => answers.push(answer));
  cluster.passUntil(() => answers.length > 0);
  t.match(answers, [{ status: "refused", reason: /--storage lmdb, this node with memory/ }]);
  t.end();
});

void t.test("P-098 a member that was away calls back a node that joined meanwhile", (t) => {
  const cluster = new Cluster(3).ready();
  cluster.pass(500);
  const set: (readonly PeerAddress[])[] = [];
  const { peers } = cluster.world(3);
  if (peers === null) throw new Error("there is a network");
  peers.setPeers = (list) => void set.push(list);
  const { endpoint } = address(4);
  const hello = helloOf(4);
  t.equal(cluster.node(3).links.admit(hello), null);
  cluster.pass(200);
  t.strictSame(set.at(-1), [address(1), address(2), { nodeId: 4, endpoint }]);
  t.equal(cluster.node(3).links.admit(hello), null);
  cluster.pass(200);
  t.equal(set.length, 1, "and that is all");
  t.end();
});

void t.test("P-017 a leader without room for writes gives its groups away", (t) => {
  const cluster = new Cluster(3).ready();
  const leader = cluster.serverOf(1) ?? 0;
  cluster.world(leader).log.spaceState = "full";
  const tookMs = cluster.passUntil(() => ![null, leader].includes(cluster.serverOf(1)), 20_000);
  t.ok(tookMs < 8000, `${tookMs} ms`);
  t.end();
});

void t.test("a node whose groups all sleep ticks less often, and at once again when woken", (t) => {
  const cluster = new Cluster(3, { leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(13_000);
  const leader = cluster.serverOf(1) ?? 0;
  const turns = (): number => cluster.node(leader).facts().turns;
  const before = turns();
  cluster.pass(3500);
  const atRest = turns() - before;
  t.ok(atRest <= 12, `${atRest} turns in 3.5 s of rest`);
  const results: ProposalResult[] = [];
  write(cluster, "woken", results);
  cluster.pass(1000);
  t.equal(results.length, 1);
  const awake = turns() - before - atRest;
  t.ok(awake >= 10, `${awake} turns in a second awake`);
  // Heartbeats go on until the group sleeps again: a follower that is cut off then stays in term.
  const { term } = cluster.node(leader).groups()[1]?.facts() ?? { term: -1 };
  cluster.pass(20_000);
  t.equal(
    cluster.node(leader).groups()[1]?.facts().term,
    term,
    "no election for lack of heartbeats",
  );
  t.equal(cluster.node(leader).facts().lateTicks, 0, "a rest is no standstill");
  t.end();
});
