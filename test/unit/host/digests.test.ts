/** Replicas compare what they are, and the one that differs from its leader ends (C14). */
import t, { type Test } from "tap";
import { assert } from "../../../src/base/assert.js";
import type { Group } from "../../../src/host/group/group.js";
import type { ReplicaDigest } from "../../../src/host/replication/replica-digests.js";
import { ReplicaDigests } from "../../../src/host/replication/replica-digests.js";
import { Machine } from "../../../src/machine/machine.js";
import { Cluster } from "../../doubles/host/peerworld.js";

const EVERY = 8;

/** Writes `count` keys, one entry each, through whoever leads. */
function write(cluster: Cluster, count: number, from = 0): void {
  for (let at = 0; at < count; at++) {
    const key = `key${from + at}`;
    for (const node of cluster.nodes.values()) {
      const group = node.route("key");
      if (group?.isServing() !== true) continue;
      const value = new Uint8Array(8).fill(at);
      const retained = { expiresMs: 0, flags: 0, revisionsRetained: 1 };
      const compare = { compareValue: null, compareRevision: -1n };
      const deadlineMs = cluster.nowMs + 10_000;
      group.propose({ kind: "kv-set", key, value, ...compare, ...retained }, 64, deadlineMs, () => {
        return undefined;
      });
      break;
    }
    cluster.pass(50);
  }
}

/** The group of the keys where it is led, and on the other nodes. */
function replicas(cluster: Cluster): { leader: number; followers: number[]; group: Group } {
  const ids = [...cluster.nodes.keys()];
  const leader = ids.find((id) => cluster.node(id).route("key")?.isServing() === true);
  assert(leader !== undefined, "somebody leads");
  const group = cluster.node(leader).route("key");
  assert(group !== null, "the group is hosted");
  return { leader, followers: ids.filter((id) => id !== leader), group };
}

/** The apply of one replica does what that of the others does not. */
function diverge(t: Test, machine: Machine): void {
  const { apply } = Machine.prototype;
  machine.apply = (entry, commands, outcomes) => {
    apply.call(machine, { ...entry, leaseMs: entry.leaseMs + 1 }, commands, outcomes);
  };
  t.teardown(() => Reflect.deleteProperty(machine, "apply"));
}

t.test("P-029, C14: an apply that differs on one replica ends that one", (t) => {
  const cluster = new Cluster(3, { digestEveryEntries: EVERY }).ready();
  write(cluster, 3 * EVERY);
  cluster.pass(500);
  for (const id of cluster.nodes.keys()) t.same(cluster.world(id).fatals, [], "all are equal");
  const { followers, leader, group } = replicas(cluster);
  const [odd = 0, even = 0] = followers;
  const machine = cluster.node(odd).group(group.partition)?.machine;
  assert(machine !== undefined, "the group is hosted");
  const from = machine.appliedIndex;
  diverge(t, machine);
  write(cluster, 2 * EVERY, 100);
  cluster.pass(500);
  const [fault = ""] = cluster.world(odd).fatals;
  const found = /^a replica differs from its leader's: partition (\d+) at index (\d+)$/.exec(fault);
  t.equal(Number(found?.[1]), group.partition, fault);
  const index = Number(found?.[2]);
  t.ok(index % EVERY === 0 && index > from && index <= from + EVERY, "at the next fixed index");
  t.same(cluster.world(leader).fatals, [], "the others go on");
  t.same(cluster.world(even).fatals, []);
  t.end();
});

t.test("C14: what a replica is lasts over restarts and snapshots", (t) => {
  const settings = { digestEveryEntries: EVERY, compactKeepEntries: 5, compactEveryEntries: 20 };
  const cluster = new Cluster(3, { ...settings, flushAgeMs: 100 }).ready();
  write(cluster, 2 * EVERY);
  cluster.pass(500);
  const { followers } = replicas(cluster);
  const [late = 0] = followers;
  cluster.network.cutOff(late);
  write(cluster, 100, 100);
  cluster.pass(2000);
  cluster.network.healAll();
  cluster.pass(3000);
  t.ok(cluster.node(late).health().ready, "it has caught up");
  write(cluster, 3 * EVERY, 300);
  cluster.pass(500);
  const { group } = replicas(cluster);
  t.ok(group.machine.appliedIndex > 100, "several fixed indexes were passed");
  const replica = cluster.node(late).group(group.partition)?.machine;
  t.equal(replica?.chainDigest, group.machine.chainDigest);
  t.ok((replica?.installed.index ?? 0) > 0, "one of them by a snapshot");
  for (const id of cluster.nodes.keys()) t.same(cluster.world(id).fatals, [], "all are equal");
  t.end();
});

t.test("C14: digests are compared at equal indexes only, in whichever order they come", (t) => {
  const digest = (index: number, low: number): ReplicaDigest => ({ index, low, high: 7 });
  const found: number[] = [];
  const digests = new ReplicaDigests((index) => void found.push(index));
  t.equal(digests.latest.index, 0);
  digests.told(digests.latest);
  digests.reached(digest(8, 1));
  digests.told(digest(8, 1));
  digests.told(digest(16, 2));
  digests.reached(digest(16, 2));
  t.same(found, [], "equal");
  digests.told(digest(24, 3));
  digests.reached(digest(24, 4));
  t.same(found, [24], "told first");
  digests.reached(digest(32, 5));
  digests.told(digest(32, 6));
  t.same(found, [24, 32], "reached first");
  for (let index = 40; index < 400; index += 8) digests.reached(digest(index, 1));
  digests.told(digest(40, 2));
  t.same(found, [24, 32], "what is long past is forgotten");
  t.equal(digests.latest.index, 392);
  digests.reset();
  digests.told(digest(392, 9));
  t.same(found, [24, 32], "a snapshot is the leader's own");
  t.end();
});
