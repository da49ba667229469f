/**
 * What a node holds that its state store does not have yet: bounded for what it follows as for what
 * it leads, without anything waiting for ever: installs, stops, elections, changes of membership.
 */
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import type { GroupRegistry } from "../../../src/host/cluster/group-registry.js";
import type { Node } from "../../../src/host/node.js";
import { Cluster, joinRequest } from "../../doubles/host/peerworld.js";
import { World, propose } from "../../doubles/host/world.js";

const ROWS_MAX = 60;
const BYTES_MAX = 40_000;
/** Rows that one entry, and the records of a freeze, add at most in these tests. */
const SLACK_ROWS = 20;
const SETTINGS = {
  initialPartitions: 1,
  flushRows: 20,
  flushBytes: 20_000,
  unflushedRowsMax: ROWS_MAX,
  unflushedBytesMax: BYTES_MAX,
  batchEntriesMax: 4,
  leaderBalanceEveryMs: 0,
};

/** Proposes `count` commands to whoever serves, ten in each step of 10 ms. */
function load(cluster: Cluster, count: number, results: ProposalResult[], name = "key"): void {
  for (let at = 0; at < count; at++) {
    const id = cluster.serverOf(1);
    const group = id === null ? undefined : cluster.node(id).groups()[1];
    if (group !== undefined) propose(group, `${name}-${at}`, results, cluster.nowMs + 10_000);
    if (at % 10 === 9) cluster.pass(10);
  }
}

function applied(results: readonly ProposalResult[]): number {
  return results.filter(({ status }) => status === "applied").length;
}

/** A node that does not lead partition 1. */
function followerOf(cluster: Cluster): number {
  const leader = cluster.serverOf(1);
  const others = [...cluster.nodes.keys()].filter((id) => id !== leader);
  return others.find((id) => id !== cluster.serverOf(0)) ?? others[0] ?? 0;
}

function isCaughtUp(cluster: Cluster): boolean {
  const [first, ...rest] = [...cluster.nodes.values()].map((node) => node.groups());
  return (first ?? []).every(({ machine }, at) => {
    return rest.every((groups) => groups[at]?.machine.chainDigest === machine.chainDigest);
  });
}

/** The parts of a node that only tests reach for. */
interface Parts {
  readonly flusher: { flushSoon(done: () => void): void };
  readonly scheduler: { request(): void };
  readonly registry: GroupRegistry;
}

function partsOf(node: Node): Parts {
  return (node as unknown as { parts: Parts }).parts;
}

/** Hands the leadership of a partition over. */
function move(cluster: Cluster, partition: number, from: number, to: number): void {
  const { registry, scheduler } = partsOf(cluster.node(from));
  const replica = registry.find(partitionId(partition))?.replica;
  const leads = (): boolean => cluster.node(to).group(partitionId(partition))?.isLeader() === true;
  replica?.core.transferLeadership(to);
  if (replica !== undefined) replica.peers.unquiesce();
  scheduler.request();
  cluster.passUntil(leads);
}

function check(cluster: Cluster, id: number, name: string): boolean | undefined {
  return cluster
    .node(id)
    .checks()
    .find((each) => each.name === name)?.ok;
}

void t.test("P-192 a follower whose store is full holds no more than the bound", (t) => {
  const cluster = new Cluster(3, SETTINGS).ready();
  const follower = followerOf(cluster);
  cluster.world(follower).store.full = true;
  const results: ProposalResult[] = [];
  let largest = 0;
  for (let round = 0; round < 20; round++) {
    load(cluster, 100, results, `round-${round}`);
    largest = Math.max(largest, cluster.node(follower).facts().unflushedBytes);
  }
  cluster.pass(500);
  t.equal(applied(results), 2000, "the others go on");
  t.ok(largest > 0 && largest <= BYTES_MAX, `unflushed: ${largest} bytes`);
  const facts = cluster.node(follower).groups()[1]?.facts();
  t.ok((facts?.commitIndex ?? 0) > (facts?.appliedIndex ?? 0) + 100, "what is committed waits");
  t.equal(cluster.node(follower).facts().heldGroups, 1);
  t.ok(cluster.node(follower).health().ready, "the node stays ready");
  t.same(
    [check(cluster, follower, "store-space"), check(cluster, follower, "apply-room")],
    [false, false],
  );
  cluster.world(follower).store.full = false;
  cluster.passUntil(() => isCaughtUp(cluster));
  t.equal(cluster.node(follower).facts().heldGroups, 0);
  t.same(
    [check(cluster, follower, "store-space"), check(cluster, follower, "apply-room")],
    [true, true],
  );
  t.end();
});

/** Ends flushes of a node so long after they began. To be called in each step. */
function slowFlushes(cluster: Cluster, id: number, flushMs: number): () => number {
  const { store } = cluster.world(id);
  store.automatic = false;
  let startedMs: number | null = null;
  let largest = 0;
  return () => {
    const { nowMs } = cluster;
    if (store.pending !== null && startedMs === null) {
      startedMs = nowMs;
      largest = Math.max(largest, store.pending.changes.length);
    }
    if (startedMs !== null && nowMs >= startedMs + flushMs) {
      startedMs = null;
      store.finish();
    }
    return largest;
  };
}

void t.test("P-192 P-119 P-155 a slow store: no flush is larger than the bound", (t) => {
  const cluster = new Cluster(3, SETTINGS).ready();
  const follower = followerOf(cluster);
  const step = slowFlushes(cluster, follower, 300);
  const results: ProposalResult[] = [];
  let largest = 0;
  for (let round = 0; round < 100; round++) {
    load(cluster, 20, results, `round-${round}`);
    largest = step();
  }
  t.equal(applied(results), 2000);
  t.ok(largest > 20 && largest <= ROWS_MAX + SLACK_ROWS, `largest flush: ${largest} rows`);
  for (let round = 0; round < 3000 && !isCaughtUp(cluster); round++) {
    cluster.pass(10);
    largest = step();
  }
  t.ok(isCaughtUp(cluster), "it catches up, flush by flush");
  t.ok(largest <= ROWS_MAX + SLACK_ROWS, `largest flush: ${largest} rows`);
  t.end();
});

void t.test("P-192 what a node follows does not starve what it leads", (t) => {
  const cluster = new Cluster(3, { ...SETTINGS, initialPartitions: 2 }).ready();
  const one = cluster.serverOf(1) ?? 0;
  const other = [1, 2, 3].find((id) => id !== one) ?? 0;
  // Partition 1 is led here and partition 2 elsewhere.
  if (cluster.serverOf(2) === one) move(cluster, 2, one, other);
  t.not(cluster.serverOf(2), one);
  const step = slowFlushes(cluster, one, 100);
  const heavy: ProposalResult[] = [];
  const light: ProposalResult[] = [];
  let sent = 0;
  for (let round = 0; round < 400; round++) {
    const busy = cluster.node(cluster.serverOf(2) ?? 0).group(partitionId(2));
    for (let at = 0; at < 20; at++) {
      if (busy !== null) propose(busy, `h-${round}-${at}`, heavy, cluster.nowMs + 60_000);
    }
    if (round % 10 === 0) {
      const led = cluster.node(one).group(partitionId(1));
      if (led !== null) propose(led, `l-${round}`, light, cluster.nowMs + 1500);
      sent++;
    }
    cluster.pass(10);
    step();
  }
  t.equal(cluster.serverOf(1), one, "it keeps what it leads");
  t.ok(applied(light) >= sent - 1, `${applied(light)} of ${sent} were applied in time`);
  const held = cluster.node(one).group(partitionId(2))?.facts();
  t.ok((held?.commitIndex ?? 0) > (held?.appliedIndex ?? 0), "what it follows waits meanwhile");
  t.end();
});

void t.test("P-192 a held follower that is to lead gives the group to one that can serve", (t) => {
  const cluster = new Cluster(3, SETTINGS).ready();
  const follower = followerOf(cluster);
  const leader = cluster.serverOf(1) ?? 0;
  const third = [1, 2, 3].find((id) => id !== follower && id !== leader) ?? 0;
  cluster.world(follower).store.full = true;
  const results: ProposalResult[] = [];
  load(cluster, 500, results);
  move(cluster, 1, leader, follower);
  cluster.passUntil(() => {
    const id = cluster.serverOf(1);
    return id === leader || id === third;
  });
  const before = applied(results);
  load(cluster, 50, results, "after");
  cluster.pass(500);
  t.equal(applied(results), before + 50);
  t.end();
});

void t.test("P-192 a stop does not wait for what is held", (t) => {
  const cluster = new Cluster(3, SETTINGS).ready();
  const follower = followerOf(cluster);
  const { store } = cluster.world(follower);
  store.full = true;
  load(cluster, 500, []);
  t.equal(cluster.node(follower).facts().heldGroups, 1);
  const startMs = cluster.nowMs;
  let stopped = false;
  cluster.node(follower).stop(startMs + 10_000, () => (stopped = true));
  cluster.passUntil(() => stopped, 12_000);
  cluster.kill(follower);
  // What was held is in the log: the next life goes on there, and waits in the same way.
  cluster.start(follower);
  cluster.pass(2000);
  t.ok(cluster.node(follower).facts().unflushedBytes <= BYTES_MAX);
  store.full = false;
  cluster.passUntil(() => isCaughtUp(cluster));
  t.end();
});

void t.test("P-192 a lone node whose store is full serves reads, also after a restart", (t) => {
  const world = new World({ ...SETTINGS, inFlightEntriesMax: 16 });
  let node = world.ready();
  world.store.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 500; at++) {
    propose(world.group(node), `key-${at}`, results, world.timer.nowMs + 5000);
    world.settle();
  }
  world.store.automatic = true;
  world.store.full = true;
  world.store.finish();
  world.pass(100);
  t.ok(node.facts().storeFull);
  const taken = applied(results);
  t.ok(taken > ROWS_MAX && taken < 200, `${taken} were taken in before`);
  const isRead = (): boolean => {
    let read = false;
    world.group(node).read(world.timer.nowMs + 1000, ({ status }) => {
      read = status === "confirmed";
    });
    world.pass(50);
    return read;
  };
  t.ok(isRead());
  world.crash();
  node = world.ready();
  t.ok(isRead(), "what was in memory is there again");
  t.end();
});

void t.test("P-192 an install and a change of members go on while apply is held", (t) => {
  const cluster = new Cluster(3, {
    ...SETTINGS,
    compactKeepEntries: 5,
    compactEveryEntries: 20,
    flushAgeMs: 100,
    initialPartitions: 2,
  }).ready();
  const results: ProposalResult[] = [];
  load(cluster, 300, results);
  cluster.pass(500);
  // A joiner gets snapshots of all groups, and its store is slow from the begin.
  let answer: string | null = null;
  cluster.world(1).peers?.events?.joinAsked(joinRequest(4), ({ status }) => (answer = status));
  cluster.passUntil(() => answer !== null);
  t.equal(answer, "accepted");
  cluster.start(4);
  const step = slowFlushes(cluster, 4, 60);
  const role = (): string | undefined => cluster.node(1).metaGroup().machine.meta.member(4)?.role;
  let largest = 0;
  for (let round = 0; round < 3000 && role() !== "voter"; round++) {
    const id = cluster.serverOf(1);
    const group = id === null ? null : cluster.node(id).group(partitionId(1));
    for (let at = 0; at < 5 && group !== null; at++) {
      propose(group, `busy-${round}-${at}`, results, cluster.nowMs + 10_000);
    }
    cluster.pass(10);
    largest = step();
  }
  t.equal(role(), "voter", "it came by snapshots while others wrote");
  t.ok(cluster.node(4).facts().snapshotsInstalled > 0);
  // Snapshots may fill two flushes' worth beside what is applied.
  t.ok(largest <= ROWS_MAX + 700, `largest flush: ${largest} rows`);
  let left: string | null = null;
  cluster.node(4).leave(cluster.nowMs + 60_000, 30_000, (end) => (left = end));
  for (let round = 0; round < 7000 && left === null; round++) {
    cluster.pass(10);
    step();
  }
  t.equal(left, "Committed");
  t.end();
});

for (const flushMs of [40, 150, 300]) {
  void t.test(`P-195 who waits for a flush of ${flushMs} ms waits for two at the most`, (t) => {
    const world = new World({ initialPartitions: 1, flushRows: 20, unflushedRowsMax: 1000 });
    const node = world.ready();
    const group = world.group(node);
    world.store.automatic = false;
    // The log has too many segments while this group writes: each tick wants a flush.
    world.log.pinning = [partitionId(1)];
    const { flusher, scheduler } = partsOf(node);
    let asked = 0;
    let answeredMs = 0;
    let worstMs = 0;
    let askedMs = 0;
    let startedMs: number | null = null;
    for (let step = 0; step < 1000; step++) {
      world.timer.nowMs += 10;
      const { nowMs } = world.timer;
      propose(group, `key-${step % 500}`, [], nowMs + 10_000);
      if (asked === answeredMs) {
        asked++;
        askedMs = nowMs;
        flusher.flushSoon(() => {
          answeredMs++;
          worstMs = Math.max(worstMs, world.timer.nowMs - askedMs);
        });
        scheduler.request();
      }
      world.settle();
      if (world.store.pending !== null) startedMs ??= nowMs;
      if (startedMs === null || nowMs < startedMs + flushMs) continue;
      startedMs = null;
      world.store.finish();
      world.settle();
      if (world.store.pending !== null) startedMs = nowMs;
    }
    t.ok(answeredMs > 10, `${answeredMs} were answered`);
    t.ok(worstMs <= 2 * flushMs + 120, `within two flushes and a tick: ${worstMs} ms`);
    t.end();
  });
}
