/**
 * The administrative operations over the real host: health, membership, placement, routing, ranges, leave; and
 * the pure planners behind them.
 */
import t from "tap";
import { VERSION } from "../../../src/base/generated/version.js";
import { decideLeave } from "../../../src/control/membership.js";
import type { Member } from "../../../src/machine/commands/command.js";
import {
  DURATION_BOUNDS_MS,
  KIND_NUMBERS,
  RequestTally,
} from "../../../src/operations/admission/tally.js";
import { World } from "../../doubles/host/world.js";
import { member as line } from "../../doubles/machine/members.js";
import { Bench, get, set } from "../../doubles/operations/fixture.js";
import { administer, view } from "../../doubles/operations/administration.js";

const context = { deadlineMs: 1e9, forwardHops: 0, requestId: "t" };

/** Runs one administrative call to its end; it must not end in its own turn, and only once. */
function call<Answer>(bench: Bench, start: (done: (answer: Answer) => void) => void): Answer {
  const answers: Answer[] = [];
  start((answer) => void answers.push(answer));
  if (answers.length > 0) throw new Error("answered in the turn of the call");
  bench.world.settle();
  const [answer] = answers;
  if (answer === undefined || answers.length > 1) throw new Error("answered once");
  return answer;
}

t.test("5.1: health before and after initialisation, shutting down, fatal fault", async (t) => {
  const early = new Bench({}, new World(), false);
  t.match(early.operations.health(), {
    ready: false,
    initialized: false,
    reason: "not-initialized",
    localRole: "not-member",
    version: VERSION,
  });
  t.same(view(early.operations, "cluster.membership", {}), {
    membershipVersion: 0,
    members: [],
    localRole: "not-member",
    initialized: false,
  });
  t.match(view(early.operations, "cluster.routing", { keySpace: "" }), {
    initialized: false,
    keySpaces: [],
    leaders: [],
  });
  t.match(view(early.operations, "cluster.placement", {}), { initialized: false, partitions: [] });
  const bench = new Bench();
  bench.world.pass(70);
  t.same(bench.operations.health(), {
    ready: true,
    initialized: true,
    reason: null,
    localRole: "voter",
    hostedPartitions: 4,
    partitionsWithoutLeader: 0,
    version: VERSION,
    uptimeMs: 70,
  });
  const names = ["initialized", "membership", "leaders", "applied", "storage", "shutdown"];
  t.same(
    bench.operations.healthChecks(),
    names.map((name) => ({ name, failure: null })),
  );
  t.equal(bench.operations.fatalFault(), null);
  bench.operations.setFatalFault("the disk is gone");
  t.match(bench.operations.health(), { ready: false, reason: "fatal-fault: the disk is gone" });
  t.equal(bench.operations.fatalFault(), "the disk is gone");
  t.same(
    bench.operations.healthChecks().filter((check) => check.failure !== null),
    [{ name: "storage", failure: "the disk is gone" }],
  );
  const stopping = new Bench();
  stopping.node.stop(stopping.nowMs + 1000, () => undefined);
  t.match(stopping.operations.health(), { ready: false, reason: "shutting-down" });
  const failed = stopping.operations.healthChecks().filter((check) => check.failure !== null);
  t.same(
    failed.map((check) => check.name),
    ["shutdown"],
  );
});

t.test("P-120 a full store or log is told, and the node stays ready", async (t) => {
  const bench = new Bench();
  const storage = (): unknown => {
    return bench.operations.healthChecks().find(({ name }) => name === "storage");
  };
  bench.world.log.spaceState = "full";
  t.same(storage(), {
    name: "storage",
    failure: null,
    detail: "log-space: full: writes are refused",
  });
  t.equal(bench.operations.health().ready, true);
  bench.world.log.spaceState = "available";
  t.same(storage(), { name: "storage", failure: null });
});

t.test("membership, placement, routing metadata of a cluster of one", async (t) => {
  const bench = new Bench({ clientEndpoint: "http://n1" });
  t.match(view(bench.operations, "cluster.membership", {}), {
    members: [{ endpoint: "127.0.0.1:8084", nodeId: 1, role: "voter" }],
    localRole: "voter",
    initialized: true,
  });
  t.ok(view(bench.operations, "cluster.membership", {}).membershipVersion >= 1);
  const placement = view(bench.operations, "cluster.placement", {});
  t.match(placement, { replicationFactor: 0, rebalancerEnabled: false, initialized: true });
  t.equal(placement.hostedPartitionCount, placement.partitions.length);
  for (const partition of placement.partitions) {
    t.match(partition, { state: "Active", effectiveReplicationFactor: 0, hostedLocally: true });
    t.same(partition.replicas, [], "full replication lists nobody");
  }
  const routing = view(bench.operations, "cluster.routing", { keySpace: "" });
  t.match(routing, {
    schemaVersion: 1,
    hashAlgorithm: "svc.bucket-jump-xxh32-v1",
    prefixSeparator: "/",
    groupSeparator: "|",
    hashPoolSize: 3,
    hashPartitionOffset: 1,
    sequenceStorageKeyFormat: "__svc:sequences:{0}",
    reservedKeyPrefix: "__svc:",
    localEndpoint: "http://n1",
    coherent: true,
  });
  t.same(
    routing.leaders,
    [0, 1, 2, 3].map((partitionId) => ({ partitionId, endpoint: "http://n1" })),
  );
  t.same(view(bench.operations, "ranges.list", { keySpace: "none" }).keySpaces, [
    { keySpace: "none", routingMode: "Hash", descriptors: [], moves: [], leaving: false },
  ]);
  t.same(view(bench.operations, "ranges.list", { keySpace: "" }).keySpaces, []);
});

t.test("5.4: the replication factor is committed, or refused with a reason", async (t) => {
  const bench = new Bench();
  const change = (partitionId: number, replicationFactor: number) =>
    call(bench, (done: (answer: { status: string; generation: number; reason: string }) => void) =>
      administer(
        bench.operations,
        "cluster.setReplicationFactor",
        { partitionId, replicationFactor },
        context,
        done,
      ),
    );
  for (const [partition, factor] of [
    [0, 1],
    [-1, 1],
    [1, -1],
    [1, 10],
    [99, 1],
  ] as const) {
    const answer = change(partition, factor);
    t.match(answer, { success: false, status: "InvalidInput", generation: 0 });
    t.ok(answer.reason.length > 10);
  }
  const before = view(bench.operations, "cluster.placement", {}).partitions.find(
    (one) => one.partitionId === 2,
  );
  const done = change(2, 3);
  t.match(done, { success: true, status: "Success" });
  t.ok(done.generation > (before?.generation ?? 0));
  const after = view(bench.operations, "cluster.placement", {}).partitions.find(
    (one) => one.partitionId === 2,
  );
  t.match(after, { generation: done.generation, effectiveReplicationFactor: 1 });
  t.same(after?.replicas, [{ endpoint: "127.0.0.1:8084", role: "Voter" }]);
  t.match(change(2, 0), { success: true });
  bench.faults.propose = () => ({ status: "refused", reason: "not-leader" });
  t.match(change(2, 1), { status: "Refused", reason: /its leader is 127\.0\.0\.1:8084/ });
  bench.faults.propose = () => ({ status: "unknown" });
  t.match(change(2, 1), { status: "Refused", reason: /not confirmed/ });
});

t.test("5.3: who may leave", async (t) => {
  const bench = new Bench();
  const leave = (): object => {
    const answers: object[] = [];
    administer(
      bench.operations,
      "cluster.leave",
      { nodeId: 0 },
      context,
      (answer) => void answers.push(answer),
    );
    bench.world.pass(1000);
    const [answer] = answers;
    if (answer === undefined || answers.length > 1) throw new Error("answered once");
    return answer;
  };
  const refused = leave();
  t.match(refused, {
    outcome: "RefusedInsufficientVoters",
    left: false,
    drained: false,
    retryable: false,
  });
  t.same(leave(), refused, "repeating is safe");
  const early = new Bench({}, new World(), false);
  const answers: object[] = [];
  administer(
    early.operations,
    "cluster.leave",
    { nodeId: 0 },
    context,
    (answer) => void answers.push(answer),
  );
  while (answers.length === 0 && early.world.timer.nowMs < 20_000) {
    early.world.timer.nowMs += 50;
    early.world.timer.step();
  }
  const member = (nodeId: number, role: Member["role"]): Member => line(nodeId, { role });
  const facts = (members: Member[] | null, metaLed = true, otherVoters = [1]) =>
    decideLeave({ members, nodeId: 1, metaLed, otherVoters });
  t.equal(facts(null), "NotInitialized");
  t.equal(facts([member(2, "voter")]), "NotAMember");
  t.equal(facts([member(1, "voter"), member(2, "voter")], false), "NoLeader");
  t.equal(facts([member(1, "voter"), member(2, "leaving")]), "RefusedDrainInProgress");
  t.equal(facts([member(1, "voter"), member(2, "learner")]), "RefusedInsufficientVoters");
  t.equal(
    facts([member(1, "voter"), member(2, "voter")], true, [1, 0]),
    "RefusedInsufficientVoters",
  );
  t.equal(facts([member(1, "voter"), member(2, "voter")]), "remove");
  t.equal(facts([member(1, "leaving"), member(2, "voter")]), "remove", "a repeat goes on");
});

t.test("6.2, 6.3, P-107: register, unregister, list; keys stay reachable", async (t) => {
  const bench = new Bench();
  const register = (keySpace: string) =>
    call(bench, (done: (answer: object) => void) =>
      administer(bench.operations, "ranges.register", { keySpace }, context, done),
    );
  const unregister = (keySpace: string) =>
    call(bench, (done: (answer: object) => void) =>
      administer(bench.operations, "ranges.unregister", { keySpace }, context, done),
    );
  for (const bad of ["", "__svc:x", "a/meta", "x".repeat(1025)]) {
    for (const answer of [register(bad), unregister(bad)]) {
      t.match(answer, { success: false, status: "InvalidInput", seeded: false });
    }
  }
  bench.ask(set("orders/1", "one"));
  t.match(unregister("orders"), { success: true, status: "Removed", descriptorCount: 0 });
  t.match(register("orders"), {
    success: true,
    status: "Seeded",
    seeded: true,
    routingMode: "KeyRange",
    descriptorCount: 1,
  });
  t.match(register("orders"), { success: true, status: "AlreadySeeded", seeded: false });
  const partitionId = bench.partitionOf("orders");
  const space = {
    keySpace: "orders",
    routingMode: "KeyRange",
    descriptors: [{ startKey: null, endKey: null, partitionId, generation: 1, keys: null }],
    moves: [],
    leaving: false,
  };
  t.same(view(bench.operations, "ranges.list", { keySpace: "" }).keySpaces, [space]);
  const { descriptors, keySpace, routingMode } = space;
  const ranges = descriptors.map(({ keys: _unknown, ...range }) => range);
  const routed = view(bench.operations, "cluster.routing", { keySpace: "orders" }).keySpaces;
  t.same(routed, [{ keySpace, routingMode, ranges }]);
  t.match(bench.ask(get("orders/1")), { type: 3, route: { partitionId, generation: 1 } });
  t.match(bench.ask(get("other/1")), { route: { generation: 0 } });
  const read = bench.ask({
    kind: "kv-get-many",
    items: [get("orders/1"), get("orders/2")],
    plain: true,
  });
  t.match(read, { routes: [{ partitionId, generation: 1 }], items: [{ type: 3 }, { type: 103 }] });
  bench.world.crash();
  const again = new Bench({}, bench.world);
  t.same(
    view(again.operations, "ranges.list", { keySpace: "" }).keySpaces,
    [space],
    "the flag follows the descriptors",
  );
  again.faults.propose = () => ({ status: "unknown" });
  const open = call(again, (done: (answer: object) => void) =>
    administer(again.operations, "ranges.unregister", { keySpace: "orders" }, context, done),
  );
  t.match(open, { success: false, status: "Indeterminate", descriptorCount: 1 });
  const fresh = call(again, (done: (answer: object) => void) =>
    administer(again.operations, "ranges.register", { keySpace: "fresh" }, context, done),
  );
  t.match(fresh, { success: false, status: "Indeterminate", routingMode: "KeyRange" });
  t.same(
    view(again.operations, "ranges.list", { keySpace: "" }).keySpaces.map((one) => one.keySpace),
    ["fresh", "orders"],
  );
  again.faults.propose = null;
  const removed = call(again, (done: (answer: object) => void) =>
    administer(again.operations, "ranges.unregister", { keySpace: "orders" }, context, done),
  );
  t.match(removed, { success: true, status: "Removed", routingMode: "Hash", descriptorCount: 0 });
  t.match(again.ask(get("orders/1")), { type: 3, route: { generation: 0 } });
});

t.test("6.3: a node that stops answers without reading its rows", async (t) => {
  const bench = new Bench();
  bench.node.stop(bench.nowMs + 1000, () => undefined);
  bench.node.metaGroup().machine.meta.ranges = () => {
    throw new Error("the store is closed");
  };
  const end = { success: false, status: "Indeterminate", descriptorCount: 0 };
  for (const kind of ["ranges.register", "ranges.unregister"] as const) {
    const answer = call(bench, (done: (answer: object) => void) =>
      administer(bench.operations, kind, { keySpace: "orders" }, context, done),
    );
    t.match(answer, end, kind);
  }
});

t.test("P-162 a node that has closed its rows answers every view without them", async (t) => {
  const bench = new Bench();
  bench.node.stop(bench.nowMs + 1000, () => undefined);
  bench.world.settle();
  t.equal(bench.node.closing, true);
  const { meta } = bench.node.metaGroup().machine;
  const closed = (): never => {
    throw new Error("the store is closed");
  };
  const reads = ["cluster", "member", "members", "partitions", "ranges", "keySpaces"] as const;
  for (const read of reads) meta[read] = closed;
  const { operations } = bench;
  t.match(operations.health(), { ready: false, reason: /stopping|shutting/ });
  t.ok(operations.healthChecks().some(({ failure }) => failure !== null));
  t.match(view(operations, "cluster.membership", {}), {
    membershipVersion: 0,
    members: [],
    initialized: false,
  });
  t.match(view(operations, "cluster.placement", {}), { partitions: [], initialized: false });
  t.match(view(operations, "cluster.routing", { keySpace: "" }), {
    initialized: false,
    keySpaces: [],
    leaders: [],
  });
  t.match(view(operations, "ranges.list", { keySpace: "" }), { initialized: false, keySpaces: [] });
  const split = { keySpace: "orders", splitKey: "orders/1" };
  const ask = (begin: (done: (answer: object) => void) => void): object => call(bench, begin);
  t.match(
    ask((done) => administer(operations, "ranges.split", split, context, done)),
    { status: "NotLeader" },
  );
  t.match(
    ask((done) => administer(operations, "ranges.merge", {}, context, done)),
    { success: false },
  );
  t.match(
    ask((done) => administer(operations, "cluster.leave", { nodeId: 0 }, context, done)),
    { outcome: "Timeout", left: false, retryable: true },
  );
  const factor = { partitionId: 1, replicationFactor: 3 };
  t.match(
    ask((done) => administer(operations, "cluster.setReplicationFactor", factor, context, done)),
    { status: "Refused" },
  );
  t.match(bench.ask(get("k")), { refusal: "shutting-down" });
});

t.test("6.3: splits are checked in full, merges find nothing to fold", async (t) => {
  const bench = new Bench({ rangeSplitMinSize: 3 });
  bench.holdMoves();
  const split = (keySpace: string, splitKey: string) =>
    call(
      bench,
      (done: (answer: { status: string; determinate: boolean; reason: string }) => void) =>
        administer(bench.operations, "ranges.split", { keySpace, splitKey }, context, done),
    );
  const merge = () =>
    call(bench, (done: (answer: object) => void) =>
      administer(bench.operations, "ranges.merge", {}, context, done),
    );
  t.match(split("", "a"), { status: "InvalidInput", determinate: true });
  t.match(split("s", ""), { status: "InvalidInput" });
  t.match(split("s", "s/1"), { status: "NoRange", determinate: true });
  call(bench, (done: (answer: object) => void) =>
    administer(bench.operations, "ranges.register", { keySpace: "s" }, context, done),
  );
  t.match(split("s", "t/1"), { status: "InvalidSplitKey" });
  bench.ask(set("s/1", "v"));
  bench.ask(set("s/2", "v"));
  bench.ask(set("s/3/deeper", "v"));
  t.match(split("s", "s/2"), { status: "BelowMinRangeSize", reason: /holds 2 keys/ });
  bench.ask(set("s/3", "v"));
  t.match(merge(), { success: true, status: "Completed", determinate: true, merges: 0 });
  t.equal(
    view(bench.operations, "ranges.list", { keySpace: "s" }).keySpaces[0]?.descriptors.length,
    1,
    "nothing was changed",
  );
  bench.sizeOf = () => null;
  t.match(split("s", "s/2"), { status: "ProbeIndeterminate", determinate: true });
  bench.faults.read = () => ({ status: "retry" });
  t.match(split("s", "s/2"), { status: "NotLeader" });
  t.match(merge(), { success: false, status: "NotLeader", determinate: true });
});

t.test("what is counted", async (t) => {
  const tally = new RequestTally();
  const kind = KIND_NUMBERS["kv-get"];
  for (const durationMs of [0, 0.1, 0.11, 9999, 10_001]) tally.finished(kind, 3, false, durationMs);
  tally.finished(kind, 101, true, 0);
  t.equal(tally.count(kind, 3), 5);
  t.equal(tally.refused(kind), 1);
  const { buckets, sumMs } = tally.duration(kind);
  t.equal(buckets.length, DURATION_BOUNDS_MS.length + 1);
  t.same(
    [buckets[0], buckets[1], buckets[buckets.length - 2], buckets[buckets.length - 1]],
    [3, 1, 1, 1],
  );
  t.equal(Math.round(sumMs * 100), Math.round((0.21 + 9999 + 10_001) * 100));
  const seen: string[] = [];
  tally.visit(
    (label, type, count) => void seen.push(`${label.api} ${label.operation} ${type} ${count}`),
  );
  t.same(seen, ["kv try-get -1 1", "kv try-get 3 5"]);
});
