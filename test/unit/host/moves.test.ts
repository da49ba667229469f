/**
 * Changes of leader, planned and not: what callers, leases and the data in the leader's memory see
 * of them.
 */
import t from "tap";
import type { Replica } from "../../../src/host/group/replica.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import {
  FrameRoom,
  RaftFrameWriter,
  readRaftFrame,
} from "../../../src/host/replication/raft-frames.js";
import type { EphemeralOutcome } from "../../../src/machine/apply.js";
import type { HostSettings } from "../../../src/host/settings.js";
import {
  type KvCommand,
  type KvOutcome,
  type LockCommand,
  type LockOutcome,
  LockType,
} from "../../../src/machine/commands/command.js";
import { encodeText } from "../../../src/base/bytes.js";
import { partitionId } from "../../../src/base/ids.js";
import { Cluster } from "../../doubles/host/peerworld.js";

const PARTITION = partitionId(1);
const LEASE_MS = 60_000;

function groupOf(cluster: Cluster, node: number) {
  const group = cluster.node(node).group(PARTITION);
  if (group === null) throw new Error("the partition is hosted");
  return group;
}

function serverOf(cluster: Cluster): number {
  const server = cluster.serverOf(PARTITION);
  if (server === null) throw new Error("somebody leads");
  return server;
}

/** Planned moves that ended on any node, by reason and result. */
function transfers(cluster: Cluster, name: string): number {
  const counts = [...cluster.nodes.values()].flatMap((node) => node.facts().leaderTransfers);
  const its = counts.filter(({ reason, result }) => `${reason} ${result}` === name);
  return its.reduce((sum, { count }) => sum + count, 0);
}

function lock(cluster: Cluster, owner: string): LockOutcome {
  let result: ProposalResult | null = null;
  groupOf(cluster, serverOf(cluster)).propose(
    { kind: "try-lock", resource: "r", owner: encodeText(owner), expiresMs: LEASE_MS },
    100,
    cluster.nowMs + 10_000,
    (ended) => (result = ended),
  );
  cluster.passUntil(() => result !== null);
  const { outcome } = result as unknown as Extract<ProposalResult, { status: "applied" }>;
  return outcome as LockOutcome;
}

for (const awake of [false, true]) {
  void t.test(
    `P-196 T1 T3 a lease runs on over changes of leader, ${awake ? "awake" : "asleep"}`,
    (t) => {
      const quiesceAfterMs = awake ? 0 : 1500;
      const cluster = new Cluster(3, {
        initialPartitions: 1,
        leaderBalanceEveryMs: 0,
        quiesceAfterMs,
      });
      cluster.ready();
      t.equal(lock(cluster, "dead").type, LockType.locked);
      const grantedMs = cluster.nowMs;
      let leaderlessMs = 0;
      while (cluster.nowMs - grantedMs < LEASE_MS - 20_000) {
        cluster.pass(20_000, 50);
        const old = serverOf(cluster);
        const clockMs = groupOf(cluster, old).leaseNowMs();
        cluster.kill(old);
        leaderlessMs += cluster.passUntil(() => cluster.serverOf(PARTITION) !== null);
        t.ok(
          groupOf(cluster, serverOf(cluster)).leaseNowMs() <= clockMs,
          "never ahead of the old one",
        );
        cluster.start(old);
        cluster.ready();
      }
      while (cluster.nowMs < grantedMs + LEASE_MS - 100) cluster.pass(50, 50);
      t.equal(lock(cluster, "next").type, LockType.busy, "never too early");
      const latestMs = grantedMs + LEASE_MS + leaderlessMs + 1000;
      while (cluster.nowMs < latestMs) cluster.pass(50, 50);
      t.equal(lock(cluster, "next").type, LockType.locked, "and not much too late");
      t.end();
    },
  );
}

/** A frame without requests for (pre-)votes. */
function withoutCampaigns(bytes: Uint8Array): Uint8Array | null {
  const writer = new RaftFrameWriter(new FrameRoom());
  const bad = readRaftFrame(bytes, 1, 2, ({ group, message, entries, sign }) => {
    const isAsking = message.kind === "vote" || message.kind === "preVote";
    if (!isAsking) writer.add(group, message, entries, sign);
  });
  return bad === 0 ? writer.take() : bytes;
}

for (const awake of [false, true]) {
  const how = awake ? "awake" : "asleep";
  void t.test(
    `P-196 T1 T3 who votes for an heir that was cut off tells it the lease clock, ${how}`,
    (t) => {
      const cluster = quiet({ quiesceAfterMs: awake ? 0 : 1500 });
      t.equal(lock(cluster, "dead").type, LockType.locked);
      const [old, heir] = [serverOf(cluster), heirOf(cluster)];
      cluster.pass(1000);
      const voter = 6 - old - heir;
      cluster.network.filter = (from, bytes) => (from === voter ? withoutCampaigns(bytes) : bytes);
      cluster.network.cut(old, heir);
      cluster.network.cut(heir, old);
      cluster.pass(20_000, 50);
      const clockMs = groupOf(cluster, old).leaseNowMs();
      cluster.kill(old);
      const leaderlessMs = cluster.passUntil(() => cluster.serverOf(PARTITION) === heir);
      const heirMs = groupOf(cluster, heir).leaseNowMs();
      t.ok(heirMs <= clockMs + leaderlessMs, "never ahead");
      t.ok(heirMs > clockMs - 2000, `${heirMs} goes on at about ${clockMs}`);
      t.end();
    },
  );
}

function replicaOf(cluster: Cluster, node: number): Replica {
  return groupOf(cluster, node)["replica"];
}

/** Another node than the one that serves. */
function heirOf(cluster: Cluster): number {
  return (serverOf(cluster) % 3) + 1;
}

function quiet(settings: Partial<HostSettings> = {}): Cluster {
  return new Cluster(3, { initialPartitions: 1, leaderBalanceEveryMs: 0, ...settings }).ready();
}

/** Decides a command in the memory of the node that serves. */
function ephemeral(cluster: Cluster, command: LockCommand | KvCommand): EphemeralOutcome {
  const group = groupOf(cluster, serverOf(cluster));
  const outcome = group.ephemeral?.apply(command, group.nextStamp());
  if (outcome === undefined || outcome === "full") throw new Error("the table takes it");
  return outcome;
}

const tryLock = (resource: string, owner: string, expiresMs = LEASE_MS): LockCommand => ({
  kind: "try-lock",
  resource,
  owner: encodeText(owner),
  expiresMs,
});

void t.test("P-197 C12 what is under way when leadership moves is applied, not unknown", (t) => {
  const cluster = quiet();
  const results: ProposalResult[] = [];
  let asked = 0;
  const ask = (): void => {
    const server = cluster.serverOf(PARTITION);
    if (server === null) return;
    asked++;
    const command = tryLock(`r${asked}`, "a");
    const deadlineMs = cluster.nowMs + 10_000;
    groupOf(cluster, server).propose(command, 100, deadlineMs, (end) => results.push(end));
  };
  for (let move = 0; move < 20; move++) {
    const from = serverOf(cluster);
    const to = heirOf(cluster);
    for (let each = 0; each < 5; each++) ask();
    cluster.world(from).timer.step();
    t.ok(replicaOf(cluster, from).moveTo({ to, mustCarry: true, reason: "balance" }));
    cluster.passUntil(() => {
      ask();
      return cluster.serverOf(PARTITION) === to;
    });
  }
  cluster.passUntil(() => results.length === asked);
  const ends = new Set<string>(
    results.map((end) => (end.status === "refused" ? end.reason : end.status)),
  );
  for (const end of ["applied", "not-leader"]) ends.delete(end);
  t.equal(transfers(cluster, "balance moved"), 20, "each move is counted");
  t.same([...ends], [], "what was not begun goes to the next leader");
  t.end();
});

void t.test("C13 L15 K19 a planned move carries ephemeral locks and entries", (t) => {
  const cluster = quiet();
  const held = ephemeral(cluster, tryLock("held", "a", 5000));
  t.match(held, { type: LockType.locked, token: 0n });
  const set = (key: string, text: string): KvOutcome =>
    ephemeral(cluster, {
      kind: "kv-set",
      key,
      value: encodeText(text),
      compareValue: null,
      compareRevision: 0n,
      flags: 0,
      expiresMs: 0,
      revisionsRetained: 4,
    }) as KvOutcome;
  set("k", "one");
  t.equal(set("k", "two").revision, 1);
  for (let row = 0; row < 3000; row++) set(`many/${row}`, "x".repeat(500));
  const grantedMs = cluster.nowMs;
  for (let move = 0; move < 3; move++) {
    const to = heirOf(cluster);
    t.ok(replicaOf(cluster, serverOf(cluster)).moveTo({ to, mustCarry: true, reason: "balance" }));
    cluster.passUntil(() => cluster.serverOf(PARTITION) === to);
    t.match(ephemeral(cluster, tryLock("held", "b")), { type: LockType.busy });
    t.match(ephemeral(cluster, tryLock("held", "a")), { type: LockType.locked, token: 0n });
    t.equal(groupOf(cluster, to).ephemeral?.rows, 3003, "all of them, and the history");
  }
  cluster.passUntil(() => cluster.nowMs >= grantedMs + 4900);
  t.match(ephemeral(cluster, tryLock("held", "b")), { type: LockType.busy }, "not too early");
  cluster.pass(400);
  const next = ephemeral(cluster, tryLock("held", "b")) as LockOutcome;
  t.equal(next.type, LockType.locked, "the lease ran on");
  const { term } = replicaOf(cluster, serverOf(cluster)).core;
  t.equal(next.token, BigInt(term - 1) << 36n, "above all that was granted before");
  t.equal(set("k", "three").revision, 2);
  cluster.kill(serverOf(cluster));
  cluster.passUntil(() => cluster.serverOf(PARTITION) !== null);
  t.equal(groupOf(cluster, serverOf(cluster)).ephemeral?.rows, 0, "a crash loses them");
  t.end();
});

void t.test("C13 a late order of a move that was given up inherits nothing", (t) => {
  const cluster = quiet();
  const from = serverOf(cluster);
  const to = heirOf(cluster);
  ephemeral(cluster, tryLock("before", "a"));
  const late: Uint8Array[] = [];
  cluster.network.filter = (sender, bytes) => {
    if (sender !== from) return bytes;
    const writer = new RaftFrameWriter(new FrameRoom());
    let hasOrder = false;
    const bad = readRaftFrame(bytes, sender, to, ({ group, message, entries, sign }) => {
      if (message.kind === "timeoutNow") hasOrder = true;
      else writer.add(group, message, entries, sign);
    });
    if (bad !== 0 || !hasOrder) return bytes;
    late.push(bytes);
    return writer.take();
  };
  const { term } = replicaOf(cluster, from).core;
  t.ok(replicaOf(cluster, from).moveTo({ to, mustCarry: true, reason: "balance" }));
  cluster.passUntil(() => late.length > 0);
  t.equal(
    groupOf(cluster, from).ephemeral,
    null,
    "nobody is answered while the heir may take over",
  );
  cluster.passUntil(() => groupOf(cluster, from).ephemeral !== null);
  t.equal(replicaOf(cluster, from).core.term, term, "the move came to nothing");
  t.equal(transfers(cluster, "balance failed"), 1);
  t.match(ephemeral(cluster, tryLock("before", "b")), { type: LockType.busy }, "it goes on");
  t.match(ephemeral(cluster, tryLock("after", "a")), { type: LockType.locked });
  cluster.network.filter = (_from, bytes) => bytes;
  for (const bytes of late) cluster.world(to).peers?.events?.frame(from, "control", bytes);
  cluster.passUntil(() => cluster.serverOf(PARTITION) === to);
  t.equal(replicaOf(cluster, to).core.term, term + 1, "it leads by that order, in the next term");
  t.equal(groupOf(cluster, to).ephemeral?.rows, 0, "and takes nothing over");
  const { token } = ephemeral(cluster, tryLock("after", "b")) as LockOutcome;
  t.equal(token, BigInt(term) << 36n);
  t.end();
});

void t.test("C13 the balancer leaves a group whose ephemeral data does not fit", (t) => {
  const cluster = quiet();
  const from = serverOf(cluster);
  for (let row = 0; row < 20; row++) {
    ephemeral(cluster, {
      kind: "kv-set",
      key: `big/${row}`,
      value: new Uint8Array(500_000),
      compareValue: null,
      compareRevision: 0n,
      flags: 0,
      expiresMs: 0,
      revisionsRetained: 1,
    });
  }
  const to = heirOf(cluster);
  t.notOk(replicaOf(cluster, from).moveTo({ to, mustCarry: true, reason: "balance" }));
  cluster.pass(3000);
  t.equal(serverOf(cluster), from);
  t.ok(
    replicaOf(cluster, from).moveTo({ to, mustCarry: false, reason: "balance" }),
    "others lose it",
  );
  cluster.passUntil(() => cluster.serverOf(PARTITION) === to);
  t.equal(groupOf(cluster, to).ephemeral?.rows, 0);
  t.end();
});

void t.test("S9 a planned move hands the rest of blocks back, and logs the lease clock", (t) => {
  const cluster = quiet();
  const from = serverOf(cluster);
  let handedBack = 0;
  for (const node of [1, 2, 3]) {
    groupOf(cluster, node).addStopHook((propose) => {
      propose(tryLock("final", "a"), 100, (result) => {
        if (result.status === "applied") handedBack++;
      });
    });
  }
  cluster.pass(30_000, 50);
  const clockMs = groupOf(cluster, from).leaseNowMs();
  const to = heirOf(cluster);
  t.ok(replicaOf(cluster, from).moveTo({ to, mustCarry: false, reason: "balance" }));
  cluster.passUntil(() => cluster.serverOf(PARTITION) === to);
  t.equal(handedBack, 1);
  t.ok(groupOf(cluster, to).committedLeaseMs() >= clockMs);
  t.end();
});

/** One step of every node, so that all of them work at the same pace. False: nothing was due. */
function stepAll(cluster: Cluster): boolean {
  let stepped = false;
  for (const world of cluster.worlds.values()) stepped = world.timer.step() || stepped;
  return stepped;
}

void t.test("P-197 C12 who is made leader in the moment of its stop hands that on", (t) => {
  for (let steps = 0; steps < 40; steps++) {
    const cluster = quiet();
    const from = serverOf(cluster);
    const to = heirOf(cluster);
    replicaOf(cluster, from).moveTo({ to, mustCarry: true, reason: "balance" });
    // The signal comes at any point of the move.
    for (let step = 0; step < steps; step++) stepAll(cluster);
    const heir = cluster.node(to);
    const replica = replicaOf(cluster, to);
    const goOn = (until: () => boolean): void => {
      for (let turn = 0; !until() && turn < 10_000; turn++) {
        if (!stepAll(cluster)) cluster.pass(10);
      }
    };
    heir.withdraw();
    goOn(() => !heir.hasHeirs);
    let stoppedAs: string | null = null;
    heir.stop(cluster.nowMs + 10_000, () => (stoppedAs = replica.core.role));
    goOn(() => stoppedAs !== null);
    t.equal(stoppedAs, "follower", `a signal after ${steps} steps`);
  }
  t.end();
});
