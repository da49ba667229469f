/** Rolling upgrades on the host: levels rise by order, group by group, and there is no way back. */
import t from "tap";
import { PERMITS, PROGRAM, type Program, permitsOf } from "../../../../src/base/levels.js";
import type { FinalizeResult } from "../../../../src/host/cluster/finalizing.js";
import { Node } from "../../../../src/host/node.js";
import type { ProposalResult } from "../../../../src/host/group/group.js";
import type { HostSettings } from "../../../../src/host/settings.js";
import { Cluster, address, joinRequest } from "../../../doubles/host/peerworld.js";

const OLD: Program = { ...PROGRAM, levels: { min: 1, max: 1 }, version: "1.0" };
const NEW: Program = { ...PROGRAM, levels: { min: 1, max: 2 }, version: "2.0" };

/** As it would be if level 2 had brought the extension of keys. */
const permits = permitsOf({ ...PERMITS.commands, "kv-extend": 2 }, PERMITS.operations);

function clusterOf(size: number, program: Program, extra: Partial<HostSettings> = {}): Cluster {
  return new Cluster(size, { program, permits, entryLevel: 1, ...extra }).ready();
}

/** Stops a node and starts it with another program. */
function roll(cluster: Cluster, id: number, program: Program): void {
  cluster.kill(id);
  cluster.pass(300);
  cluster.start(id, { program });
  cluster.passUntil(() => cluster.node(id).health().ready);
  cluster.passUntil(() => lineOf(cluster, id) === program.version);
}

/** Version of a node as the member list has it at the first node that runs. */
function lineOf(cluster: Cluster, id: number): string | undefined {
  const [node] = cluster.nodes.values();
  return node?.metaGroup().machine.meta.member(id)?.version;
}

function metaLeader(cluster: Cluster): Node {
  cluster.passUntil(() => cluster.serverOf(0) !== null);
  return cluster.node(cluster.serverOf(0) as number);
}

function finalize(cluster: Cluster, level = 0): FinalizeResult | "moved" {
  let end: FinalizeResult | "moved" | null = null;
  metaLeader(cluster).finalize(level, cluster.nowMs + 10_000, (result) => (end = result));
  t.equal(end, null, "in no turn");
  cluster.passUntil(() => end !== null);
  return end as unknown as FinalizeResult | "moved";
}

function levels(cluster: Cluster): number[] {
  const found = new Set<number>();
  for (const node of cluster.nodes.values()) {
    for (const { machine } of node.groups()) found.add(machine.level);
  }
  return [...found].sort();
}

function extend(cluster: Cluster): string {
  const results: ProposalResult[] = [];
  const command = { kind: "kv-extend", key: "a", expiresMs: 1000 } as const;
  const server = cluster.node(cluster.serverOf(1) as number);
  const group = server.groups()[1];
  group?.propose(command, 64, cluster.nowMs + 5000, (result) => void results.push(result));
  cluster.passUntil(() => results.length === 1);
  const [result] = results;
  return result?.status === "refused" ? result.reason : String(result?.status);
}

function sameDigests(cluster: Cluster): boolean {
  const [first, ...rest] = [...cluster.nodes.values()];
  return (first?.groups() ?? []).every(({ partition, machine }) => {
    return rest.every((node) => {
      const other = node.group(partition)?.machine;
      return (
        other?.chainDigest === machine.chainDigest && other.appliedIndex === machine.appliedIndex
      );
    });
  });
}

t.test("U1 U2 U8 P-030 nodes roll forward, the level rises, every group follows", (t) => {
  const cluster = clusterOf(3, OLD);
  t.match(finalize(cluster), { status: "AlreadyFinalized", level: 1 }, "nobody supports more");
  const nobody = finalize(cluster, 2);
  t.match(nobody, {
    status: "RefusedMembers",
    level: 1,
    reason: "3 of 3 members do not support level 2.",
  });
  t.match(nobody, {
    blockers: [1, 2, 3].map((nodeId) => ({ nodeId, version: "1.0", levelMax: 1 })),
  });
  t.match(finalize(cluster, 3), { status: "InvalidInput", level: 1 });
  t.match(finalize(cluster, -1), { status: "InvalidInput", level: 1 });
  t.match(finalize(cluster, 1), { status: "AlreadyFinalized", level: 1 });
  for (const id of [1, 2]) roll(cluster, id, NEW);
  const held = finalize(cluster);
  t.match(held, {
    status: "RefusedMembers",
    level: 1,
    reason: "1 of 3 members do not support level 2.",
  });
  const blocker = {
    nodeId: 3,
    endpoint: address(3).endpoint,
    version: "1.0",
    levelMin: 1,
    levelMax: 1,
  };
  t.strictSame(held === "moved" ? held : held.blockers, [blocker]);
  t.strictSame(levels(cluster), [1]);
  t.equal(extend(cluster), "not-available-at-level", "nothing is proposed above the level");
  roll(cluster, 3, NEW);
  t.equal(cluster.world(1).level.level, 1, "nothing was written on the way");
  const fromMs = cluster.nowMs;
  t.match(finalize(cluster), { status: "Finalized", level: 2, blockers: [] });
  cluster.passUntil(() => levels(cluster).join() === "2", 30_000);
  t.ok(cluster.nowMs - fromMs <= 30_000, `${cluster.nowMs - fromMs} ms`);
  for (const id of [1, 2, 3]) t.equal(cluster.world(id).level.level, 2, `directory of node ${id}`);
  t.equal(extend(cluster), "applied");
  t.match(finalize(cluster), { status: "AlreadyFinalized", level: 2 });
  t.match(finalize(cluster, 2), { status: "AlreadyFinalized", level: 2 });
  cluster.pass(1000);
  t.ok(sameDigests(cluster));
  t.strictSame(
    [1, 2, 3].flatMap((id) => cluster.world(id).fatals),
    [],
  );
  t.end();
});

t.test("U1 only the leader of the meta partition decides", (t) => {
  const cluster = clusterOf(3, NEW);
  const leader = cluster.serverOf(0);
  const ends: (FinalizeResult | "moved")[] = [];
  for (const [id, node] of cluster.nodes) {
    if (id !== leader) node.finalize(0, cluster.nowMs + 1000, (end) => void ends.push(end));
  }
  cluster.passUntil(() => ends.length === 2);
  t.strictSame(ends, ["moved", "moved"]);
  cluster.network.cutOff(leader as number);
  cluster.node(leader as number).finalize(0, cluster.nowMs + 2000, (end) => void ends.push(end));
  cluster.passUntil(() => ends.length === 3);
  t.equal(ends[2], "moved", "a leader that is cut off decides nothing");
  t.end();
});

t.test("U5 U4 back to the version before works before, and never after", (t) => {
  const cluster = clusterOf(3, OLD);
  for (const id of [1, 2, 3]) roll(cluster, id, NEW);
  roll(cluster, 2, OLD);
  t.match(finalize(cluster), { status: "RefusedMembers", blockers: [{ nodeId: 2 }] });
  roll(cluster, 2, NEW);
  t.match(finalize(cluster), { status: "Finalized", level: 2 });
  cluster.passUntil(() => levels(cluster).join() === "2", 30_000);
  cluster.kill(3);
  const world = cluster.world(3);
  const opened = Node.open({ ...world.settings, program: OLD }, world.ports());
  t.match(opened, {
    ok: false,
    code: "unsupported-level",
    message: /data is of level 2, this program supports 1: use version/,
  });
  cluster.start(3, { program: NEW });
  cluster.passUntil(() => cluster.node(3).health().ready);
  cluster.pass(1000);
  t.ok(sameDigests(cluster));
  t.end();
});

t.test("U1 a member that runs an earlier program than its line says holds it up", (t) => {
  const cluster = clusterOf(3, NEW);
  const leader = cluster.serverOf(0) as number;
  const [other] = [1, 2, 3].filter((id) => id !== leader) as [number];
  // Its line is still that of the program before: it links, and cannot change it.
  cluster.kill(other);
  cluster.pass(300);
  cluster.start(other, { program: { ...OLD, version: "1.1" } });
  cluster.passUntil(() =>
    cluster
      .node(leader)
      .links.facts()
      .some(({ node, linked, program }) => {
        return node === other && linked && program.version === "1.1";
      }),
  );
  const end = finalize(cluster);
  t.match(end, {
    status: "RefusedMembers",
    blockers: [{ nodeId: other, version: "1.1", levelMax: 1 }],
  });
  t.end();
});

t.test("U3 a joiner that lacks the level of the cluster is not let in", (t) => {
  const cluster = clusterOf(1, NEW);
  t.match(finalize(cluster), { status: "Finalized", level: 2 });
  const told: string[] = [];
  cluster.node(1).links.joinAsked(joinRequest(4, { program: OLD }), (answer) => {
    told.push(answer.status === "refused" ? answer.reason : answer.status);
  });
  cluster.node(1).links.joinAsked(joinRequest(4, { program: NEW }), (answer) => {
    told.push(answer.status === "accepted" ? `level ${answer.level}` : answer.status);
  });
  cluster.passUntil(() => told.length === 2);
  t.strictSame(told, ["The cluster is at level 2; version 1.0 supports level 1.", "level 2"]);
  t.end();
});

t.test("U6 finalization by itself, after the time without a break", (t) => {
  const cluster = clusterOf(3, OLD, { autoFinalizeMs: 20_000 });
  for (const id of [1, 2]) roll(cluster, id, NEW);
  cluster.pass(25_000);
  t.strictSame(levels(cluster), [1], "not while a member does not support it");
  roll(cluster, 3, NEW);
  const facts = (): { pendingMs: number } => metaLeader(cluster).facts().levels;
  cluster.pass(10_000);
  t.match(metaLeader(cluster).facts().levels, { level: 1, levelMax: 2 });
  t.ok(facts().pendingMs >= 9000, `${facts().pendingMs} ms`);
  // A break: the leader is another one, and begins to count.
  const leader = cluster.serverOf(0) as number;
  roll(cluster, leader, NEW);
  cluster.pass(15_000);
  t.strictSame(levels(cluster), [1], "not after a break");
  cluster.pass(15_000);
  cluster.passUntil(() => levels(cluster).join() === "2", 30_000);
  t.match(metaLeader(cluster).facts().levels, { level: 2, levelMax: 2, pendingMs: 0 });
  t.end();
});

t.test("U6 an operator is told when it is due for two days", (t) => {
  const cluster = clusterOf(1, NEW);
  const told = (): number => {
    return cluster.world(1).logLines.filter((line) => line.includes("finalize the upgrade")).length;
  };
  cluster.pass(47 * 3_600_000, 60_000);
  t.equal(told(), 0);
  cluster.pass(2 * 3_600_000, 60_000);
  t.equal(told(), 1, "once");
  t.ok(metaLeader(cluster).facts().levels.pendingMs >= 48 * 3_600_000);
  t.end();
});

t.test("U4 nothing of a higher level is taken before the directory says so", (t) => {
  const cluster = clusterOf(3, NEW);
  const leader = cluster.serverOf(0) as number;
  const [slow] = [1, 2, 3].filter((id) => id !== leader) as [number];
  const world = cluster.world(slow);
  world.level.failures = Array<"no-space">(5).fill("no-space");
  t.match(finalize(cluster), { status: "Finalized", level: 2 }, "the others go on");
  cluster.pass(1000);
  const machineOf = (partition: number) => cluster.node(slow).groups()[partition]?.machine;
  t.equal(machineOf(0)?.meta.cluster()?.level, 1, "it has not taken the entry");
  t.equal(world.level.level, 1);
  cluster.passUntil(() => world.level.level === 2);
  cluster.passUntil(() => levels(cluster).join() === "2", 30_000);
  cluster.pass(500);
  t.ok(sameDigests(cluster));
  // What does not pass ends the process.
  const alone = clusterOf(1, NEW);
  alone.world(1).level.failures = ["failed"];
  alone.node(1).finalize(0, alone.nowMs + 1000, () => undefined);
  alone.pass(500);
  t.strictSame(alone.world(1).fatals, ["The level of the data directory cannot be raised."]);
  t.end();
});

t.test("P-162 U6 who waits for a directory that is full is told in time, at a stop too", (t) => {
  const ends: unknown[] = [];
  const begin = (count: number, deadlineMs: number): Cluster => {
    const cluster = clusterOf(count, NEW);
    const leader = cluster.serverOf(0) as number;
    cluster.world(leader).level.failures = Array<"no-space">(100).fill("no-space");
    const endMs = cluster.nowMs + deadlineMs;
    cluster.node(leader).finalize(0, endMs, (result) => ends.push(result));
    cluster.pass(500);
    t.strictSame(ends, [], "it waits");
    return cluster;
  };
  begin(1, 3000).pass(3000);
  const reason = "The data directory does not take the level.";
  t.strictSame(ends.splice(0), [{ status: "Refused", level: 1, blockers: [], reason }]);
  for (const count of [1, 3]) {
    const cluster = begin(count, 60_000);
    metaLeader(cluster).stop(cluster.nowMs + 2000, () => undefined);
    cluster.pass(3000);
    t.strictSame(ends.splice(0), ["moved"], `a stop, ${count} nodes`);
  }
  const cut = begin(3, 60_000);
  cut.network.cutOff(cut.serverOf(0) as number);
  cut.pass(10_000);
  t.strictSame(ends.splice(0), ["moved"], "another leads");
  const free = begin(3, 60_000);
  free.world(free.serverOf(0) as number).level.failures = [];
  free.passUntil(() => ends.length > 0);
  t.match(ends, [{ status: "Finalized", level: 2 }], "when there is space");
  t.end();
});

t.test("U3 U7 a node that comes back with a program below the level is not fed", (t) => {
  const cluster = clusterOf(3, NEW);
  const leader = cluster.serverOf(0) as number;
  const [old] = [1, 2, 3].filter((id) => id !== leader) as [number];
  cluster.kill(old);
  cluster.pass(300);
  t.match(finalize(cluster), { status: "Finalized", level: 2 });
  cluster.pass(1000);
  cluster.start(old, { program: OLD });
  cluster.pass(5000);
  const world = cluster.world(old);
  t.ok(world.logLines.some((line) => /refuses this one.*"refusal":"level"/.test(line)));
  t.equal(world.level.level, 1, "its directory is as it was");
  t.equal(cluster.node(old).metaGroup().machine.meta.cluster()?.level, 1);
  t.strictSame(world.fatals, [], "it waits for its operator");
  cluster.kill(old);
  cluster.start(old, { program: NEW });
  cluster.passUntil(() => levels(cluster).join() === "2", 30_000);
  t.end();
});

t.test("U4 U9 a node stops before it writes what its program cannot hold", (t) => {
  const cluster = clusterOf(3, NEW);
  const frames: Uint8Array[] = [];
  cluster.network.filter = (_from, bytes) => {
    frames.push(bytes);
    return bytes;
  };
  t.match(finalize(cluster), { status: "Finalized", level: 2 });
  const other = clusterOf(3, OLD);
  other.network.cutOff(1);
  other.pass(2000);
  const { log, fatals } = other.world(1);
  const last = (): unknown[] => [...log.recovered().values()].map(({ lastIndex }) => lastIndex);
  const before = last();
  for (const bytes of frames) other.node(1).links.frame(2, "log", bytes);
  other.pass(100);
  t.match(fatals[0], /at a level that this program does not support/);
  t.strictSame(last(), before);
  t.end();
});
