/**
 * Replicas that come to a node, go from it, and come again while it runs, and while it dies at any
 * moment of that.
 */
import t from "tap";
import { type PartitionId, configIndex, partitionId } from "../../../../src/base/ids.js";
import { Prng } from "../../../../src/base/prng.js";
import {
  FrameRoom,
  NO_BEAT_SIGN,
  type RaftItem,
  RaftFrameWriter,
  readRaftFrame,
} from "../../../../src/host/replication/raft-frames.js";
import { type ProposalResult } from "../../../../src/host/group/group.js";
import type { JoinAnswer } from "../../../../src/ports.js";
import type { Membership } from "../../../../src/raft/state/types.js";
import { setCommand } from "../../../doubles/host/world.js";
import {
  type FalseNetwork,
  joinRequest,
  farFounder,
  withoutGroups,
} from "../../../doubles/host/peerworld.js";
import { PlacedCluster, replicaOf, rowOf } from "../../../doubles/host/placing.js";

const P: PartitionId = partitionId(1);
/** A replica comes, goes and has come again within so many steps. */
const STEPS = 1400;
/** Moments at which a node dies. */
const DEATHS = Number(process.env["SVC_HOSTING_DEATHS"] ?? 100);

/** Writes a key to partition 1, wherever it is led; whether it was acknowledged. */
function write(cluster: PlacedCluster, key: string): boolean {
  const id = cluster.serverOf(P);
  const group = id === null ? null : cluster.node(id).group(P);
  let end: ProposalResult["status"] | null = null;
  group?.propose(setCommand(key), 80, cluster.nowMs + 2000, ({ status }) => {
    end = status;
  });
  if (group === null) return false;
  cluster.passUntil(() => end !== null);
  return end === "applied";
}

function has(cluster: PlacedCluster, id: number, key: string): boolean {
  const machine = replicaOf(cluster.node(id), P)?.machine;
  return machine?.reads.kvGet(key, -1n, machine.leaseMs).type === 3;
}

void t.test("a cluster with a factor is hosted by the records of its founding", (t) => {
  const cluster = new PlacedCluster(4, 2, { initialPartitions: 4 }).ready();
  cluster.pass(500);
  t.same(
    [1, 2, 3, 4].map((each) => cluster.hosts(each)),
    [
      [1, 2],
      [2, 3],
      [3, 4],
      [1, 4],
    ],
  );
  t.same(cluster.hosts(0), [1, 2, 3, 4], "meta is everywhere");
  for (const node of cluster.nodes.values()) {
    t.ok(node.initialized);
    t.ok(node.partitionOf("a"), "who hosts nothing of it knows where it is");
  }
  cluster.kill(2);
  cluster.start(2);
  cluster.ready();
  cluster.passUntil(() => cluster.hosts(1).join() === "1,2");
  t.same(cluster.hosts(2), [2, 3]);
  t.end();
});

void t.test(
  "P-148 5.1 a node is not ready before the replicas that the map places on it are there",
  (t) => {
    const cluster = new PlacedCluster(4, 3, { initialPartitions: 4 });
    const node = cluster.node(2);
    const { store } = cluster.world(2);
    store.automatic = false;
    // A replica is made when its row is durable: nothing is, once the map is known.
    cluster.passUntil(() => {
      if (!node.initialized) store.finish();
      return node.initialized;
    });
    cluster.pass(3000);
    t.match(node.health(), { ready: false, reason: "catching-up", hostedPartitions: 1 });
    const check = node.checks().find(({ name }) => name === "caught-up");
    t.match(check, { ok: false, detail: "3 of 4 behind" });
    store.automatic = true;
    store.finish();
    cluster.passUntil(() => node.health().ready);
    t.match(node.health(), { hostedPartitions: 4 });
    t.end();
  },
);

void t.test(
  "P-097 a replica comes with a snapshot, goes durably, and comes again as another",
  (t) => {
    const cluster = new PlacedCluster(4, 2).ready();
    cluster.passUntil(() => cluster.serverOf(P) !== null);
    for (let at = 0; at < 20; at++) t.ok(write(cluster, `before${at}`));
    const first = replicaOf(cluster.node(2), P)?.machine.record().lastGeneration;
    cluster.move(P, 2, 3);
    t.equal(cluster.told(P), "1 voter, 3 voter@2");
    t.same(cluster.hosts(P), [1, 3]);
    t.ok(has(cluster, 3, "before7"));
    t.ok((replicaOf(cluster.node(3), P)?.machine.installed.index ?? 0) > 0, "from a snapshot");
    cluster.passUntil(() => rowOf(cluster.node(2), P)?.state === "gone");
    const gone = rowOf(cluster.node(2), P);
    t.ok((gone?.term ?? 0) > 0, "term and vote are kept");
    t.equal(gone?.lastGeneration, first, "and the generations of its rows");
    cluster.pass(500);
    t.equal(cluster.rowsOf(2, P), 0, "nothing is left in the store");
    t.equal(cluster.world(2).log.durable.has(P), false, "nor in the log");
    t.ok(write(cluster, "between"));
    cluster.move(P, 1, 2);
    t.match(cluster.told(P), /^2 voter@\d+, 3 voter@2$/);
    t.ok(has(cluster, 2, "before7"));
    t.ok(has(cluster, 2, "between"));
    const again = replicaOf(cluster.node(2), P);
    t.ok(
      (again?.machine.record().generation ?? 0) > (gone?.lastGeneration ?? 0),
      "new generations",
    );
    t.ok((again?.core.term ?? 0) >= (gone?.term ?? 0), "the term did not go back");
    cluster.kill(2);
    cluster.start(2);
    cluster.passUntil(() => cluster.hosts(P).join() === "2,3" && cluster.serverOf(P) !== null);
    t.ok(write(cluster, "after"));
    t.end();
  },
);

void t.test("a partition that was on every node goes and comes once it is placed", (t) => {
  const cluster = new PlacedCluster(4, 0).ready();
  cluster.passUntil(() => cluster.serverOf(P) !== null);
  t.ok(write(cluster, "first"));
  t.equal(rowOf(cluster.node(4), P), null, "full replication keeps no rows of replicas");
  const { generation } = cluster.record(P);
  const rest = { configIndex: configIndex(0), voters: [1, 2, 3, 4], learners: [] };
  const item = { partitionId: P, generation, ...rest };
  t.equal(cluster.decide({ kind: "place-partition", items: [item] }), "done");
  t.equal(cluster.order(P, { kind: "remove", nodeId: 4 }), "done");
  cluster.carryThrough(P);
  t.same(cluster.hosts(P), [1, 2, 3]);
  t.same(cluster.hosts(2), [1, 2, 3, 4], "the other one is where it was");
  cluster.passUntil(() => rowOf(cluster.node(4), P)?.state === "gone");
  cluster.move(P, 1, 4);
  t.same(cluster.hosts(P), [2, 3, 4]);
  t.ok(has(cluster, 4, "first"));
  for (const id of [1, 2, 3, 4]) {
    cluster.kill(id);
    cluster.start(id);
  }
  cluster.passUntil(() => cluster.hosts(P).join() === "2,3,4" && cluster.serverOf(P) !== null);
  t.ok(write(cluster, "again"));
  t.end();
});

void t.test("P-097 a joiner hears of a partition only when it has been listed", (t) => {
  const cluster = new PlacedCluster(3, 0).ready();
  cluster.passUntil(() => cluster.serverOf(P) !== null);
  for (let at = 0; at < 5; at++) t.ok(write(cluster, `before${at}`));
  const answers: JoinAnswer[] = [];
  cluster.world(1).peers?.events?.joinAsked(joinRequest(4), (answer) => void answers.push(answer));
  const config = (): Membership | undefined => {
    const id = cluster.serverOf(P);
    return id === null ? undefined : replicaOf(cluster.node(id), P)?.members.membership;
  };
  cluster.passUntil(() => config()?.learners.includes(4) === true);
  const { generation } = cluster.record(P);
  const rest = { configIndex: configIndex(0), voters: [1, 2, 3], learners: [4] };
  const items = [{ partitionId: P, generation, ...rest }];
  t.equal(cluster.decide({ kind: "place-partition", items }), "done");
  t.equal(cluster.told(P), "1 voter, 2 voter, 3 voter, 4 learner");
  cluster.start(4, { founders: [1, 2, 3].map(farFounder) });
  cluster.passUntil(() => replicaOf(cluster.node(4), P) !== null);
  t.equal(replicaOf(cluster.node(4), P)?.core.status().membership.voters.length, 3);
  cluster.passUntil(() => cluster.told(P) === "1 voter, 2 voter, 3 voter");
  cluster.passUntil(() => cluster.hosts(P).join() === "1,2,3");
  t.ok(write(cluster, "after"), "nobody needs it, and it goes");
  t.end();
});

void t.test("P-084 who is left of two voters knows after a restart that it is alone", (t) => {
  const cluster = new PlacedCluster(3, 1, { flushAgeMs: 60_000 }).ready();
  cluster.passUntil(() => cluster.serverOf(P) === 1);
  t.ok(write(cluster, "first"));
  cluster.move(P, 1, 2);
  cluster.kill(2);
  cluster.start(2);
  cluster.passUntil(() => cluster.serverOf(P) === 2);
  t.ok(has(cluster, 2, "first"));
  t.end();
});

/** A filter of the network: what a node says of partition 1 is lost once it has committed more. */
function keepsQuiet(node: number, committed: number): FalseNetwork["filter"] {
  return (from, bytes) => {
    let tellsIt = false;
    const look = ({ group, message: { commit } }: RaftItem): void => {
      if (group === P && commit > committed) tellsIt = true;
    };
    if (from === node) readRaftFrame(bytes, 1, 2, look);
    return tellsIt ? withoutGroups(bytes, (group) => group === P) : bytes;
  };
}

void t.test("P-092 a replica that was removed already and is to stay comes back as it was", (t) => {
  const cluster = new PlacedCluster(4, 3).ready();
  cluster.passUntil(() => cluster.serverOf(P) !== null);
  t.ok(write(cluster, "first"));
  cluster.pass(500);
  const leader = cluster.serverOf(P) ?? 0;
  const goes = [1, 2, 3].find((id) => id !== leader) ?? 0;
  const votersOf = (id: number): string =>
    replicaOf(cluster.node(id), P)?.members.membership.voters.join() ?? "";
  const known = replicaOf(cluster.node(leader), P)?.core.lastIndex ?? 0;
  cluster.network.filter = keepsQuiet(leader, known);
  t.equal(cluster.order(P, { kind: "remove", nodeId: goes }), "done");
  cluster.passUntil(() => !votersOf(leader).includes(`${goes}`));
  t.equal(cluster.order(P, { kind: "keep", nodeId: goes }), "done");
  cluster.network.filter = (_from, bytes) => bytes;
  t.equal(cluster.told(P), "1 voter, 2 voter, 3 voter");
  cluster.passUntil(() => {
    const server = cluster.serverOf(P);
    return server !== null && votersOf(server) === "1,2,3";
  });
  t.ok(write(cluster, "again"));
  cluster.passUntil(() => has(cluster, goes, "again"));
  t.equal(replicaOf(cluster.node(goes), P)?.machine.installed.index, 0, "by the log");
  t.equal(cluster.told(P), "1 voter, 2 voter, 3 voter", "nothing was reported");
  t.end();
});

void t.test("P-084 a replica goes when a majority of the rest cannot forget its removal", (t) => {
  const cluster = new PlacedCluster(5, 4).ready();
  cluster.passUntil(() => cluster.serverOf(P) !== null);
  t.ok(write(cluster, "first"));
  cluster.pass(500);
  const leader = cluster.serverOf(P) ?? 0;
  const others = [1, 2, 3, 4].filter((id) => id !== leader);
  const [goes = 0] = others;
  const known = replicaOf(cluster.node(leader), P)?.core.lastIndex ?? 0;
  // Nobody hears from the leader that the removal is committed.
  cluster.network.filter = keepsQuiet(leader, known);
  t.equal(cluster.order(P, { kind: "remove", nodeId: goes }), "done");
  for (let at = 0; at < 100 && cluster.hosts(P).includes(goes); at++) cluster.pass(10);
  cluster.kill(leader);
  cluster.network.filter = (_from, bytes) => bytes;
  cluster.passUntil(() => others.includes(cluster.serverOf(P) ?? 0));
  t.ok(write(cluster, "again"), "one of three is dead");
  t.end();
});

void t.test("P-097 a message makes no replica", (t) => {
  const cluster = new PlacedCluster(3, 1).ready();
  cluster.passUntil(() => cluster.serverOf(P) === 1);
  const writer = new RaftFrameWriter(new FrameRoom());
  const leader = replicaOf(cluster.node(1), P);
  const heartbeat = {
    ...({ kind: "heartbeat", from: 1, to: 3, term: leader?.core.term ?? 0, logTerm: 0 } as const),
    ...{ index: 0, commit: 0, reject: false, rejectHint: 0, context: 0 },
    ...{ entries: null, snapshot: null, proposal: null },
  };
  writer.add(P, heartbeat, [], NO_BEAT_SIGN);
  const frame = writer.take();
  if (frame !== null) cluster.world(3).peers?.events?.frame(1, "control", frame);
  cluster.pass(200);
  t.same(cluster.hosts(P), [1]);
  t.equal(cluster.node(3).facts().strays.unhosted, 1, "it is counted");
  t.end();
});

void t.test("a founder of a one-voter group that comes again elects nobody", (t) => {
  const cluster = new PlacedCluster(3, 1).ready();
  cluster.passUntil(() => cluster.serverOf(P) === 1);
  t.ok(write(cluster, "first"));
  cluster.move(P, 1, 2);
  t.same(cluster.hosts(P), [2]);
  cluster.passUntil(() => rowOf(cluster.node(1), P)?.state === "gone");
  t.equal(cluster.order(P, { kind: "add", nodeId: 1, replaces: 2 }), "done");
  cluster.network.cut(2, 1);
  cluster.network.cut(1, 2);
  cluster.passUntil(() => replicaOf(cluster.node(1), P) !== null);
  cluster.pass(5000);
  const isFollower = (): boolean => replicaOf(cluster.node(1), P)?.core.role === "follower";
  t.ok(isFollower(), "it awaits a snapshot of its group");
  cluster.kill(1);
  cluster.start(1);
  cluster.pass(5000);
  t.ok(isFollower(), "after a start, too");
  t.equal(cluster.serverOf(P), 2);
  cluster.network.healAll();
  cluster.carryThrough(P);
  t.ok(has(cluster, 1, "first"));
  t.end();
});

void t.test(
  "callers of a group that leaves hear so, and nothing reaches it any more (P-042)",
  (t) => {
    const cluster = new PlacedCluster(3, 1).ready();
    cluster.passUntil(() => cluster.serverOf(P) === 1);
    const node = cluster.node(1);
    const group = node.group(P);
    const replica = replicaOf(node, P);
    t.ok(write(cluster, "first"));
    cluster.move(P, 1, 2);
    t.equal(node.group(P), null);
    let ends = "";
    group?.propose(setCommand("late"), 80, cluster.nowMs + 2000, ({ status }) => (ends += status));
    group?.read(cluster.nowMs + 2000, ({ status }) => (ends += ` ${status}`));
    cluster.pass(100);
    t.equal(ends, "refused retry");
    cluster.pass(30_000);
    t.equal(holderOf(node, replica), null, "no part of the node holds it");
    t.not(holderOf(node, replicaOf(node, 0)), null, "as a part does that is here");
    t.end();
  },
);

/** A way from `root` to `wanted` over fields, elements and entries; null when there is none. */
function holderOf(root: object, wanted: unknown): string | null {
  const seen = new Set<unknown>([root]);
  const queue: { readonly value: unknown; readonly way: string }[] = [{ value: root, way: "node" }];
  for (const { value, way } of queue) {
    if (value === wanted) return way;
    const next: [string, unknown][] = [];
    if (value instanceof Map) for (const [key, held] of value) next.push(["key", key], ["", held]);
    else if (value instanceof Set) for (const held of value) next.push(["", held]);
    if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
      next.push(...Object.entries(value));
    }
    for (const [name, held] of next) {
      if (typeof held !== "object" || held === null || seen.has(held)) continue;
      seen.add(held);
      queue.push({ value: held, way: `${way}.${name}` });
    }
  }
  return null;
}

/** Whether node 2 was killed, and what its row said then. */
interface Death {
  state: string | null;
}

/** Kills node 2 after `steps` of its own, once. */
function killAfter(cluster: PlacedCluster, steps: number): Death {
  const death: Death = { state: null };
  const { timer, log } = cluster.world(2);
  const step = timer.step.bind(timer);
  const alsoWrites = new Prng(steps).below(3);
  let left = steps;
  timer.step = () => {
    if (death.state !== null || left-- > 0) return step();
    const row = rowOf(cluster.node(2), P);
    const life = row === null || row.incarnation === 0 ? "" : " again";
    death.state = `${row?.state ?? "never here"}${life}`;
    log.crash(alsoWrites);
    cluster.kill(2);
    return false;
  };
  return death;
}

/** Node 2 goes and comes again, and is started whenever it is dead. Returns the rounds it took. */
function goAndComeAgain(cluster: PlacedCluster): number {
  let isBack = false;
  for (let rounds = 1; rounds < 600; rounds++) {
    if (!cluster.nodes.has(2)) cluster.start(2);
    const { replicas } = cluster.record(P);
    const isListed = replicas.some(({ nodeId }) => nodeId === 2);
    const isAtRest = replicas.every(({ role }) => role === "voter");
    const isGone = rowOf(cluster.node(2), P)?.state === "gone";
    const listed = replicas.map(({ nodeId }) => nodeId).join();
    if (isBack && isAtRest && cluster.hosts(P).join() === listed) return rounds;
    if (isAtRest && isListed && !isBack) cluster.order(P, { kind: "add", nodeId: 3, replaces: 2 });
    if (isAtRest && !isListed && isGone) {
      isBack = cluster.order(P, { kind: "add", nodeId: 2, replaces: 1 }) === "done";
    }
    isBack ||=
      isListed && replicas.some(({ nodeId, incarnation }) => nodeId === 2 && incarnation > 0);
    if (!isAtRest && cluster.nodes.has(2)) cluster.report(P);
    cluster.pass(50);
  }
  throw new Error(`it does not come to rest: ${cluster.told(P)}`);
}

function dieAfter(steps: number): string | null {
  const cluster = new PlacedCluster(4, 2, { flushAgeMs: 20 }).ready();
  cluster.passUntil(() => cluster.serverOf(P) !== null);
  for (let at = 0; at < 5; at++) write(cluster, `key${at}`);
  const death = killAfter(cluster, steps);
  goAndComeAgain(cluster);
  const keys = [0, 1, 2, 3, 4].map((at) => `key${at}`);
  cluster.passUntil(() => cluster.nodes.has(2) && keys.every((key) => has(cluster, 2, key)));
  cluster.pass(500);
  for (const id of [1, 2, 3, 4]) {
    const isHere = !cluster.nodes.has(id) || cluster.hosts(P).includes(id);
    const rows = cluster.rowsOf(id, P);
    if (!isHere && rows > 0) throw new Error(`node ${id} keeps ${rows} rows`);
  }
  return death.state;
}

void t.test("P-097 a node that dies at any moment of coming and going goes on there", (t) => {
  const seen = new Map<string, number>();
  /** Dies at `count` moments from `first` to `end`: the last ones before the replica went, and before it was back. */
  const dieBetween = (first: number, end: number, count: number) => {
    let [live, gone] = [first, first];
    for (let at = 0; at < count; at++) {
      const steps = first + Math.floor((at * (end - first)) / count);
      const state = dieAfter(steps) ?? "later";
      seen.set(state, (seen.get(state) ?? 0) + 1);
      if (state === "live") live = steps;
      if (state !== "live again" && state !== "later") gone = steps;
    }
    return { live, gone };
  };
  const { live, gone } = dieBetween(0, STEPS, DEATHS);
  // Going takes few steps of all: a closer look at how it begins and ends.
  const gapSteps = Math.ceil(STEPS / DEATHS);
  dieBetween(live, live + gapSteps, Math.ceil(gapSteps / 2));
  dieBetween(gone - gapSteps, gone + gapSteps, Math.ceil(DEATHS / 4));
  const states = ["live", "dropping", "gone", "live again"];
  t.ok(
    states.every((state) => (seen.get(state) ?? 0) > 0),
    JSON.stringify([...seen]),
  );
  t.end();
});
