/** The allocator at work in whole clusters: what the leader of meta orders, and that it gets there and rests. */
import t from "tap";
import { decodeSnapshotFrame } from "../../../../src/host/snapshots/snapshot-frames.js";
import type { HostSettings } from "../../../../src/host/settings.js";
import { partitionId } from "../../../../src/base/ids.js";
import { inShort } from "../../../doubles/machine/placement.js";
import { PlacedCluster, replicaOf } from "../../../doubles/host/placing.js";
import { setCommand } from "../../../doubles/host/world.js";

t.setTimeout(240_000);

const PLACING: Partial<HostSettings> = {
  rebalancerEnabled: true,
  placementPassEveryMs: 1000,
  deadMemberMs: 20_000,
};

function placers(cluster: PlacedCluster) {
  return [...cluster.nodes.values()].map((node) => node["parts"].changes.placer);
}

function facts(cluster: PlacedCluster) {
  return placers(cluster).map((placer) => placer.facts(cluster.nowMs));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function passes(cluster: PlacedCluster): number {
  return sum(facts(cluster).flatMap((each) => Object.values(each.passes)));
}

/** That were accepted. */
function orders(cluster: PlacedCluster): number {
  const moves = facts(cluster).flatMap((each) => each.moves);
  return sum(moves.map(({ result, count }) => (result === "accepted" ? count : 0)));
}

function passWhile(cluster: PlacedCluster, isOpen: () => boolean, limitMs: number): boolean {
  for (const endMs = cluster.nowMs + limitMs; isOpen(); cluster.pass(200)) {
    if (cluster.nowMs >= endMs) return false;
  }
  return true;
}

/** Every partition has just `factor` voters on `nodes`, and they have it. */
function isSettled(cluster: PlacedCluster, partitions: number, factor: number, gone = 0): boolean {
  for (let partition = 1; partition <= partitions; partition++) {
    const { mode, replicas } = cluster.record(partition);
    const isWhole = replicas.every(({ role, nodeId }) => role === "voter" && nodeId !== gone);
    if (mode !== "placed" || !isWhole || replicas.length !== factor) return false;
    const hosts = cluster.hosts(partition).filter((node) => node !== gone);
    if (hosts.join() !== replicas.map(({ nodeId }) => nodeId).join()) return false;
  }
  return true;
}

function setFactor(cluster: PlacedCluster, partitionId: number, replicationFactor: number): void {
  const id = cluster.serverOf(0) ?? 1;
  const command = { kind: "set-replication-factor", partitionId, replicationFactor } as const;
  let isDone = false;
  const deadlineMs = cluster.nowMs + 2000;
  cluster
    .node(id)
    .metaGroup()
    .proposeFinal(command, 64, deadlineMs, () => {
      isDone = true;
    });
  cluster.passUntil(() => isDone);
}

/** Writes a key to a partition wherever it is led; whether it was acknowledged. */
function write(cluster: PlacedCluster, partition: number, key: string): boolean {
  const id = cluster.serverOf(partition);
  const group =
    id === null
      ? null
      : cluster
          .node(id)
          .groups()
          .find((each) => {
            return each.partition === partition;
          });
  let status = "";
  group?.propose(setCommand(key), 80, cluster.nowMs + 2000, (result) => {
    status = result.status;
  });
  if (group === undefined || group === null) return false;
  cluster.passUntil(() => status !== "");
  return status === "applied";
}

function told(cluster: PlacedCluster, partitions: number): string {
  const lines: string[] = [];
  for (let partition = 1; partition <= partitions; partition++) {
    const { mode, replicas } = cluster.record(partition);
    lines.push(`${partition} ${mode} ${replicas.map(inShort).join(", ")}`);
  }
  return lines.join("; ");
}

void t.test("while keys of a group are frozen, its leader changes no members", (t) => {
  const cluster = new PlacedCluster(4, 0, PLACING).ready();
  setFactor(cluster, 1, 3);
  t.ok(passWhile(cluster, () => !isSettled(cluster, 1, 3), 60_000));
  let isFrozen = true;
  for (const node of cluster.nodes.values()) {
    const group = node.groups().find(({ partition }) => partition === 1);
    if (group === undefined) continue;
    Object.defineProperty(group.machine.ownership, "hasFrozen", { get: () => isFrozen });
  }
  setFactor(cluster, 1, 2);
  cluster.pass(10_000);
  t.equal(
    cluster.record(1).replicas.filter(({ role }) => role === "removing").length,
    1,
    told(cluster, 1),
  );
  t.equal(cluster.hosts(1).length, 3, "it was ordered, and waits");
  isFrozen = false;
  t.ok(
    passWhile(cluster, () => !isSettled(cluster, 1, 2), 60_000),
    told(cluster, 1),
  );
  t.end();
});

void t.test("P-132 while a backup holds the planners, only what is urgent moves", (t) => {
  const cluster = new PlacedCluster(4, 0, PLACING).ready();
  setFactor(cluster, 1, 3);
  t.ok(passWhile(cluster, () => !isSettled(cluster, 1, 3), 60_000));
  const hold = (forMs: number): string | undefined => {
    return cluster.decideMeta({ kind: "hold-planner", holder: "backup", forMs })?.status;
  };
  t.equal(hold(60_000), "done");
  setFactor(cluster, 1, 1);
  cluster.pass(10_000);
  t.equal(cluster.record(1).replicas.length, 3, "a trim waits");
  t.ok(
    facts(cluster).some(({ waiting }) => waiting.get("held") === 1),
    "and says why",
  );
  t.equal(hold(0), "done");
  t.ok(
    passWhile(cluster, () => !isSettled(cluster, 1, 1), 60_000),
    told(cluster, 1),
  );
  t.end();
});

void t.test(
  "P-094 a partition on every node that gets a factor is listed, and trimmed to it",
  (t) => {
    const cluster = new PlacedCluster(4, 0, PLACING).ready();
    t.ok(write(cluster, 1, "before"));
    cluster.pass(3000);
    t.equal(passes(cluster), 0, "a cluster without placement costs no pass");
    setFactor(cluster, 1, 2);
    const isDone = passWhile(
      cluster,
      () => cluster.record(1).replicas.length !== 2 || !isSettled(cluster, 1, 2),
      60_000,
    );
    t.ok(isDone, told(cluster, 2));
    t.equal(cluster.record(2).mode, "full", "nobody asked for the other one");
    t.same(cluster.hosts(2), [1, 2, 3, 4]);
    t.ok(write(cluster, 1, "after"));
    setFactor(cluster, 1, 3);
    t.ok(
      passWhile(cluster, () => !isSettled(cluster, 1, 3), 120_000),
      told(cluster, 2),
    );
    const before = orders(cluster);
    cluster.pass(20_000);
    t.equal(orders(cluster), before, "then nothing moves any more");
    t.end();
  },
);

void t.test("P-093 what a dead node held is made anew elsewhere, and it rests then", (t) => {
  const cluster = new PlacedCluster(5, 3, { ...PLACING, initialPartitions: 5 }).ready();
  for (let partition = 1; partition <= 5; partition++) t.ok(write(cluster, partition, "kept"));
  cluster.pass(5000);
  t.equal(orders(cluster), 0, "as founded nothing is to do");
  cluster.kill(2);
  let [most, oldestMs] = [0, 0];
  const isMoving = (): boolean => {
    for (const { inFlight, oldestTransitionMs } of facts(cluster)) {
      most = Math.max(most, inFlight.get("repair") ?? 0);
      oldestMs = Math.max(oldestMs, oldestTransitionMs);
    }
    return !isSettled(cluster, 5, 3, 2);
  };
  t.ok(passWhile(cluster, isMoving, 240_000), told(cluster, 5));
  t.ok(most >= 1 && most <= 3, `${most} repairs at a time`);
  t.ok(oldestMs > 0 && oldestMs < 60_000, `${oldestMs} ms`);
  for (let partition = 1; partition <= 5; partition++) t.ok(write(cluster, partition, "new"));
  const before = orders(cluster);
  t.ok(before >= 3, `${before} orders`);
  cluster.pass(20_000);
  t.equal(orders(cluster), before, "then nothing moves any more");
  for (const { inFlight, oldestTransitionMs } of facts(cluster)) {
    t.same([sum([...inFlight.values()]), oldestTransitionMs], [0, 0], "nothing is on its way");
  }
  t.end();
});

void t.test("a node whose rebalancer is off begins nothing for a dead one", (t) => {
  const off = { ...PLACING, rebalancerEnabled: false, initialPartitions: 4 };
  const cluster = new PlacedCluster(4, 3, off).ready();
  cluster.kill(2);
  cluster.pass(90_000);
  t.equal(orders(cluster), 0);
  const waits = facts(cluster).flatMap(({ waiting }) => [...waiting.keys()]);
  t.same(waits, ["disabled"], "and says why");
  const told = [...cluster.nodes.values()].map((node) => node.partitionWaits());
  for (const each of told) {
    t.ok(each.length > 0 && each.every(({ why }) => why.includes("rebalancer is off")));
  }
  t.ok(
    facts(cluster).every(({ isIdle }) => !isIdle),
    "what is switched off is no alarm",
  );
  t.end();
});

void t.test("5.4 a node that was told nothing of factors does as that of the cluster says", (t) => {
  const told = { ...PLACING, rebalancerEnabled: null };
  for (const [factor, isMoved] of [
    [2, true],
    [0, false],
  ] as const) {
    const cluster = new PlacedCluster(4, factor, { ...told, initialPartitions: 3 }).ready();
    cluster.pass(35_000);
    setFactor(cluster, 1, 3);
    cluster.pass(40_000);
    t.equal(orders(cluster) > 0, isMoved, `the cluster's is ${factor}`);
    const reports = [...cluster.nodes.values()].map((node) => node.lastReport(1)?.report);
    for (const report of reports) t.equal(report?.placement?.rebalances, isMoved, "and says so");
  }
  t.end();
});

interface Left {
  outcome: string;
  drained: boolean | undefined;
}

function leave(cluster: PlacedCluster, node: number, drainMs: number): Left {
  let left: Left | null = null;
  cluster.node(node).leave(cluster.nowMs + drainMs + 20_000, drainMs, (outcome, drained) => {
    left = { outcome, drained };
  });
  passWhile(cluster, () => left === null, drainMs + 30_000);
  return left ?? { outcome: "open", drained: undefined };
}

void t.test("P-093 why nothing is balanced is told beside what partitions wait for", (t) => {
  const cluster = new PlacedCluster(3, 2, PLACING).ready();
  cluster.pass(3000);
  const placer = placers(cluster).find(({ plan }) => plan !== null);
  const reign = placer?.["reign"] ?? null;
  if (placer === undefined || reign?.plan === null || reign === null) throw new Error("no pass");
  t.same([...placer.facts(cluster.nowMs).waiting], [], "all is even");
  reign.plan = { ...reign.plan, balance: "nodes-lagging" };
  t.same([...placer.facts(cluster.nowMs).waiting], [["nodes-lagging", 1]]);
  t.end();
});

void t.test("P-106 what snapshots are for, as the leader of the group knows", (t) => {
  const cluster = new PlacedCluster(5, 3, { ...PLACING, initialPartitions: 5 }).ready();
  const { replicas } = cluster.record(1);
  const [a = 0, b = 0] = replicas.map(({ nodeId }) => nodeId);
  const target = [1, 2, 3, 4, 5].find((id) => !replicas.some(({ nodeId }) => nodeId === id)) ?? 0;
  const says = (): string => cluster.node(a)["parts"].changes.purposeOf(partitionId(1), target);
  t.equal(says(), "repair", "it does not come");
  t.equal(cluster.order(1, { kind: "add", nodeId: target, replaces: b }), "done");
  t.ok(
    passWhile(cluster, () => says() !== "balance", 2000),
    `a sound one goes: ${cluster.told(1)}`,
  );
  let isOver = false;
  cluster.node(b).leave(cluster.nowMs + 60_000, 60_000, () => void (isOver = true));
  t.ok(
    passWhile(cluster, () => says() !== "drain", 2000),
    `it leaves the cluster: ${cluster.told(1)}`,
  );
  t.notOk(isOver);
  cluster.kill(b);
  cluster.pass(3000);
  t.equal(says(), "repair", "one that may be dead is replaced");
  t.end();
});

void t.test("P-094 a drain goes on at once when another node leads meta", (t) => {
  const cluster = new PlacedCluster(5, 4, { ...PLACING, initialPartitions: 5 }).ready();
  cluster.pass(40_000);
  for (let moves = 0; moves < 2; moves++) {
    const leader = cluster.serverOf(0) ?? 0;
    const to = (leader % 5) + 1;
    replicaOf(cluster.node(leader), 0)?.moveTo({ to, mustCarry: false, reason: "balance" });
    t.ok(passWhile(cluster, () => cluster.serverOf(0) !== to, 20_000));
  }
  const leaver = cluster.serverOf(0) ?? 0;
  t.same(leave(cluster, leaver, 15_000), { outcome: "Committed", drained: true });
  t.end();
});

for (const factor of [1, 3]) {
  void t.test(`P-083 a node that leaves hands all its replicas over, factor ${factor}`, (t) => {
    const settings = { ...PLACING, initialPartitions: 5 };
    const cluster = new PlacedCluster(5, factor, settings).ready();
    for (let partition = 1; partition <= 5; partition++) t.ok(write(cluster, partition, "kept"));
    t.same(leave(cluster, 2, 120_000), { outcome: "Committed", drained: true });
    t.ok(isSettled(cluster, 5, factor, 2), told(cluster, 5));
    // Nothing of it is needed any more, from the moment on that it heard so.
    cluster.kill(2);
    for (let partition = 1; partition <= 5; partition++) {
      t.ok(
        passWhile(cluster, () => cluster.serverOf(partition) === null, 20_000),
        `partition ${partition} is led`,
      );
      t.ok(write(cluster, partition, "new"));
    }
    t.end();
  });
}

for (const leads of [false, true]) {
  void t.test(
    `5.3 the leader of meta says whether it is a drain: rebalancer ${leads ? "on" : "off"}`,
    (t) => {
      const settings = { ...PLACING, rebalancerEnabled: !leads, initialPartitions: 5 };
      const cluster = new PlacedCluster(5, 3, settings).ready();
      for (const id of [1, 3, 4, 5]) {
        cluster.kill(id);
        cluster.start(id, { rebalancerEnabled: leads });
        cluster.ready();
      }
      cluster.pass(35_000);
      const leader = cluster.serverOf(0) ?? 0;
      if (leader === 2) {
        replicaOf(cluster.node(2), 0)?.moveTo({ to: 3, mustCarry: false, reason: "balance" });
        t.ok(passWhile(cluster, () => [2, null].includes(cluster.serverOf(0)), 20_000));
        cluster.pass(6000);
      }
      const { length } = [1, 2, 3, 4, 5].filter((partition) =>
        cluster.hosts(partition).includes(2),
      );
      t.equal(length, 3, "it has replicas");
      t.same(leave(cluster, 2, 120_000), { outcome: "Committed", drained: leads });
      t.end();
    },
  );
}

void t.test("P-096 a drain that takes too long gives the role back and calls nobody in", (t) => {
  // Nobody has been live for long enough to get a replica.
  const cluster = new PlacedCluster(4, 1, { ...PLACING, initialPartitions: 4 }).ready();
  t.same(leave(cluster, 2, 5000), { outcome: "DrainTimedOut", drained: false });
  cluster.pass(60_000);
  t.equal(cluster.node(2).metaGroup().machine.meta.member(2)?.role, "voter");
  t.ok(isSettled(cluster, 4, 1), told(cluster, 4));
  t.end();
});

void t.test(
  "P-096 whoever hears that its drain took too long has nobody coming in its place",
  (t) => {
    const cluster = new PlacedCluster(4, 1, { ...PLACING, initialPartitions: 4 }).ready();
    cluster.pass(40_000);
    const leaver = 2;
    // No snapshot gets anywhere.
    cluster.network.filter = (_from, bytes) => (decodeSnapshotFrame(bytes) === null ? bytes : null);
    const coming = (): string[] => {
      const records = [1, 2, 3, 4].map((partition) => cluster.record(partition));
      return records.flatMap(({ partitionId, replicas }) => {
        const learners = replicas.filter(({ role, replaces }) => {
          return role === "learner" && replaces === leaver;
        });
        return learners.map(({ nodeId }) => `${nodeId} comes to ${partitionId}`);
      });
    };
    const seen = new Set<string>();
    let end = "";
    const node = cluster.node(leaver);
    node.leave(cluster.nowMs + 30_000, 10_000, (outcome) => {
      end = outcome;
    });
    const isOpen = (): boolean => {
      for (const one of coming()) seen.add(one);
      return end === "";
    };
    t.ok(passWhile(cluster, isOpen, 60_000));
    t.equal(end, "DrainTimedOut");
    t.ok(seen.size > 0, "somebody was called in");
    t.same(coming(), [], "and is not on the way any more");
    t.end();
  },
);

void t.test("a node whose last replica nobody may take does not leave", (t) => {
  const off = { ...PLACING, rebalancerEnabled: false, initialPartitions: 4 };
  const cluster = new PlacedCluster(4, 1, off).ready();
  t.same(leave(cluster, 2, 60_000), { outcome: "RefusedInsufficientVoters", drained: false });
  t.end();
});

/** Has a member removed by whoever leads meta; how that ended. */
function remove(cluster: PlacedCluster, member: number, limitMs: number): string {
  let end = "open";
  const id = cluster.serverOf(0) ?? 1;
  cluster.node(id).removeMember(member, cluster.nowMs + limitMs, (outcome) => {
    end = outcome;
  });
  passWhile(cluster, () => end === "open", limitMs + 5000);
  return end;
}

void t.test("P-095 a member that is gone is removed, and its replicas are made elsewhere", (t) => {
  // Nobody is dead by itself: an operator says so.
  const settings = { ...PLACING, deadMemberMs: 0, initialPartitions: 5 };
  const cluster = new PlacedCluster(5, 3, settings).ready();
  cluster.pass(5000);
  cluster.kill(2);
  cluster.pass(60_000);
  t.equal(orders(cluster), 0);
  t.equal(remove(cluster, 2, 60_000), "Committed");
  t.ok(isSettled(cluster, 5, 3, 2), told(cluster, 5));
  const moves = facts(cluster).flatMap((each) => each.moves);
  const accepted = (kind: string): number =>
    sum(moves.map((each) => (each.class === kind && each.result === "accepted" ? each.count : 0)));
  t.equal(accepted("repair"), 3, "what a member that is gone had is made anew first");
  t.equal(accepted("drain"), 0);
  t.end();
});

void t.test("P-095 nobody is removed whose vote a placed partition needs", (t) => {
  const settings = { ...PLACING, deadMemberMs: 0, initialPartitions: 4 };
  const cluster = new PlacedCluster(4, 2, settings).ready();
  cluster.kill(2);
  cluster.pass(60_000);
  t.equal(remove(cluster, 2, 60_000), "RefusedInsufficientVoters");
  t.equal(cluster.node(1).metaGroup().machine.meta.member(2)?.role, "voter", "nothing was begun");
  t.end();
});
