/**
 * The host as a whole, over the real core and the real machine and a false world.
 */
import t from "tap";
import { assert } from "../../../src/base/assert.js";
import { COUNTER_MAX, compareHlc } from "../../../src/base/hlc.js";
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import type { Group, ProposalResult, ReadResult } from "../../../src/host/group/group.js";
import { Node } from "../../../src/host/node.js";
import { World, propose, read, setCommand, single } from "../../doubles/host/world.js";

function statuses(results: readonly (ProposalResult | ReadResult)[]): string {
  return results
    .map((result) => (result.status === "refused" ? result.reason : result.status))
    .join(" ");
}

function lastIndexes(node: Node): number[] {
  return node.groups().map((group) => group.facts().lastIndex);
}

t.test("first boot founds a cluster and serves", async (t) => {
  const world = new World();
  const node = world.open();
  t.equal(node.initialized, false);
  t.equal(node.route("a"), null);
  t.equal(node.health().reason, "not-initialized");
  t.equal(world.log.writes, 0, "nothing is logged before the identity is durable");
  world.settle();
  world.pass(200);
  t.same(node.health(), {
    ready: true,
    initialized: true,
    reason: null,
    localRole: "Voter",
    hostedPartitions: 4,
    partitionsWithoutLeader: 0,
  });
  t.ok(node.checks().every((check) => check.ok));
  const cluster = node.metaGroup().machine.meta.cluster();
  t.match(cluster?.clusterId, /^[0-9a-f]{32}$/);
  t.equal(cluster?.dataPartitions, 3);
  const seen: number[] = [];
  node.onGroup((group) => void seen.push(group.partition));
  t.same(seen, [0, 1, 2, 3], "meta first, then by id");
});

t.test("callbacks come in a later turn, and each once", async (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  const reads: ReadResult[] = [];
  const advances: ProposalResult[] = [];
  propose(group, "k", results);
  read(group, reads);
  group.advanceClock(group.leaseNowMs(), 1e9, (result) => void advances.push(result));
  t.equal(results.length + reads.length + advances.length, 0);
  world.settle();
  t.equal(statuses(results), "applied");
  t.equal(statuses(reads), "confirmed");
  t.equal(statuses(advances), "applied");
  const applied = results[0];
  assert(applied?.status === "applied", "applied");
  t.equal(applied.outcome.kind, "kv");
  world.pass(20_000);
  t.equal(results.length + reads.length + advances.length, 3);
});

t.test("P-071 an idle group cuts at once, a busy one fills the next batch", async (t) => {
  const { world, group } = single();
  world.log.automatic = false;
  world.batches = [];
  const results: ProposalResult[] = [];
  propose(group, "first", results);
  world.settle();
  for (let at = 0; at < 100; at++) propose(group, `k${at}`, results);
  world.settle();
  t.same(world.batches, [1], "the second batch waits for the first one's sync");
  for (let at = 0; at < 300; at++) propose(group, `m${at}`, results);
  world.settle();
  t.same(world.batches, [1, 256], "a full batch goes out behind it");
  t.equal(results.length, 0);
  world.log.sync(1);
  world.settle();
  t.equal(results.length, 1);
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.same(world.batches, [1, 256, 144]);
  t.equal(results.length, 401);
  t.ok(results.every((result) => result.status === "applied"));
  const revisions = results.map((result) => (result.status === "applied" ? result.index : 0));
  t.same(
    revisions,
    [...revisions].sort((a, b) => a - b),
    "first in, first out",
  );
});

t.test("a turn hands the writes of all groups over together", async (t) => {
  const world = new World({ initialPartitions: 8 });
  const node = world.ready();
  const results: ProposalResult[] = [];
  const before = world.log.syncs;
  for (const group of node.groups()) if (group.partition > 0) propose(group, "k", results);
  world.settle();
  t.equal(results.length, 8);
  t.equal(world.log.syncs, before + 1, "one sync for eight groups");
});

t.test("bounds refuse at once, and the books balance afterwards (P-034)", async (t) => {
  const { world, node, group } = single({ queuedCommandsMax: 300, queuedBytesMax: 100_000 });
  world.log.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 301; at++) propose(group, `k${at}`, results);
  world.settle();
  t.equal(statuses(results), "overloaded");
  for (let round = 0; round < 5; round++) {
    for (let at = 0; at < 300; at++) propose(group, `m${at}`, results);
    world.settle();
  }
  t.ok(results.length > 300, "entries in flight are limited too");
  t.ok(results.every((result) => result.status === "refused"));
  t.ok(group.facts().inFlightEntries <= world.settings.inFlightEntriesMax);
  const big: ProposalResult[] = [];
  group.propose(setCommand("big"), 200_000, 1e9, (result) => void big.push(result));
  world.settle();
  t.equal(statuses(big), "overloaded", "bytes are bounded");
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(results.length, 1801);
  const facts = group.facts();
  t.same([facts.queuedCommands, facts.queuedBytes, facts.pendingProposals], [0, 0, 0]);
  t.equal(node.facts().queuedBytes, 0);
});

t.test("the byte budget of the node spans its groups", async (t) => {
  const world = new World({ nodeQueuedBytesMax: 10_000 });
  const node = world.ready();
  world.log.automatic = false;
  const results: ProposalResult[] = [];
  const [, one, two] = node.groups();
  one?.propose(setCommand("x"), 9000, 1e9, (result) => void results.push(result));
  two?.propose(setCommand("y"), 2000, 1e9, (result) => void results.push(result));
  world.settle();
  t.equal(statuses(results), "overloaded");
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(statuses(results), "overloaded applied");
  t.equal(node.facts().queuedBytes, 0);
});

t.test("P-033 C9 a deadline ends queued as aborted and proposed as unknown, once", async (t) => {
  const { world, node, group } = single();
  world.log.automatic = false;
  const results: ProposalResult[] = [];
  const now = node.nowMs();
  propose(group, "a", results, now + 100);
  world.settle();
  propose(group, "b", results, now + 50);
  world.pass(60);
  t.equal(statuses(results), "aborted");
  world.pass(60);
  t.equal(statuses(results), "aborted unknown");
  world.log.automatic = true;
  world.log.sync();
  world.pass(1000);
  t.equal(results.length, 2);
  t.equal(node.facts().queuedBytes, 0);
  t.equal(group.facts().pendingProposals, 0);
  const reading = group.machine.reads;
  t.equal(reading.kvGet("a", -1n, group.committedLeaseMs()).revision, 0, "it took effect");
  t.equal(reading.kvGet("b", -1n, group.committedLeaseMs()).type, 103, "no effect at all");
});

t.test("P-156 deadlines hold over a blocked loop", async (t) => {
  const { world, node, group } = single();
  world.log.automatic = false;
  const results: ProposalResult[] = [];
  const now = node.nowMs();
  propose(group, "a", results, now + 1000);
  propose(group, "b", results, now + 60_000);
  world.settle();
  world.timer.nowMs += 5000;
  world.settle();
  t.equal(statuses(results), "unknown");
  t.equal(node.facts().lateTicks, 1, "P-010 the gap is reported");
});

t.test("P-014 P-047 after a restart with an old commit nothing is served early", async (t) => {
  const world = new World();
  const first = world.ready();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 50; at++) {
    propose(world.group(first), `k${at}`, results);
    world.settle();
  }
  t.equal(results.length, 50);
  world.crash();
  const snapshot = world.log.recovered().get(world.group(first).partition);
  assert(snapshot !== undefined, "the group has a log");
  t.ok(snapshot.hardState.commit < snapshot.lastIndex, "the persisted commit is stale");
  const node = world.open();
  const group = node.group(world.group(first).partition);
  assert(group !== null, "recovered groups are there at once");
  const early: ProposalResult[] = [];
  const reads: ReadResult[] = [];
  propose(group, "k0", early);
  read(group, reads);
  t.equal(group.ephemeral, null);
  world.log.automatic = false;
  while (world.timer.step());
  t.equal(statuses(reads), "retry", "no leader yet");
  t.equal(statuses(early), "not-leader");
  world.log.sync();
  while (world.timer.step());
  t.equal(group.isLeader(), true);
  t.equal(group.isServing(), false, "leads, but its own-term entry is not durable");
  read(group, reads);
  propose(group, "k0", early);
  while (world.timer.step());
  t.equal(reads.length + early.length, 2, "both wait");
  const at = reads.length;
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(reads[at]?.status, "confirmed");
  t.equal(early[at]?.status, "applied");
  t.equal(group.machine.reads.kvGet("k0", -1n, 0).revision, 1, "on top of what was there");
  t.not(group.ephemeral, null);
});

t.test("P-048 a read sees the write answered before it, and rounds are shared", async (t) => {
  const { world, group } = single();
  let confirmed = 0;
  group.propose(setCommand("w"), 64, 1e9, () => {
    for (let at = 0; at < 1000; at++) {
      group.read(1e9, (result) => {
        t.equal(result.status, "confirmed");
        if (group.machine.reads.kvGet("w", -1n, 0).revision === 0) confirmed++;
      });
    }
  });
  world.settle();
  t.equal(confirmed, 1000);
});

t.test("P-049 reads end when a deadline passes", async (t) => {
  const world = new World({ waitingReadsMax: 2 });
  const first = world.ready();
  world.crash();
  void first;
  const node = world.open();
  world.log.automatic = false;
  const group = node.metaGroup();
  while (world.timer.step());
  world.log.sync();
  while (world.timer.step());
  const reads: ReadResult[] = [];
  const now = node.nowMs();
  for (let at = 0; at < 3; at++) read(group, reads, now + 100 * (at + 1));
  world.settle();
  t.equal(statuses(reads), "retry", "at most two wait");
  world.pass(150);
  t.equal(statuses(reads), "retry retry");
  world.pass(150);
  t.equal(statuses(reads), "retry retry retry");
  t.equal(group.facts().waitingReads, 0);
});

t.test("a full log refuses, reads go on, and all resumes (P-120)", async (t) => {
  const { world, node, group } = single();
  world.log.spaceState = "full";
  const results: ProposalResult[] = [];
  const reads: ReadResult[] = [];
  propose(group, "a", results);
  read(group, reads);
  world.settle();
  t.equal(statuses(results), "overloaded");
  t.equal(statuses(reads), "confirmed");
  t.equal(node.health().ready, true);
  t.equal(node.checks().find((check) => check.name === "log-space")?.ok, false);
  world.log.spaceState = "available";
  propose(group, "b", results);
  world.log.spaceState = "full";
  world.pass(300);
  t.equal(results.length, 1, "what was accepted waits");
  world.log.spaceState = "available";
  world.pass(300);
  t.equal(statuses(results), "overloaded applied");
});

t.test(
  "P-120 a volume with too little room refuses, reads go on, the node stays ready",
  async (t) => {
    let isShort = false;
    const { world, node, group } = single({}, { freeBytes: () => 1, isShort: () => isShort });
    const results: ProposalResult[] = [];
    const reads: ReadResult[] = [];
    propose(group, "a", results);
    isShort = true;
    propose(group, "b", results);
    read(group, reads);
    world.settle();
    t.equal(statuses(results), "overloaded");
    t.equal(statuses(reads), "confirmed");
    t.equal(node.health().ready, true);
    t.equal(node.checks().find((check) => check.name === "volume-space")?.ok, false);
    world.pass(300);
    isShort = false;
    world.pass(300);
    t.equal(statuses(results), "overloaded applied", "what was accepted waited");
  },
);

t.test("a full store refuses, keeps the immutable table, tries again (P-120)", async (t) => {
  const { world, node, group } = single({ flushAgeMs: 100 });
  const results: ProposalResult[] = [];
  const reads: ReadResult[] = [];
  world.pass(500);
  propose(group, "a", results);
  world.store.full = true;
  world.pass(500);
  propose(group, "b", results);
  read(group, reads);
  world.settle();
  t.equal(statuses(results), "applied overloaded");
  t.equal(statuses(reads), "confirmed");
  t.equal(group.machine.reads.kvGet("a", -1n, 0).revision, 0, "served from the immutable table");
  world.store.full = false;
  world.pass(2000);
  propose(group, "b", results);
  world.settle();
  t.equal(statuses(results), "applied overloaded applied");
  t.equal(node.facts().storeFull, false);
});

t.test("P-119 unflushed bytes are capped by slowing intake", async (t) => {
  const { world, node, group } = single({ flushBytes: 10_000, unflushedBytesMax: 20_000 });
  world.pass(200);
  world.store.automatic = false;
  const results: ProposalResult[] = [];
  let highest = 0;
  for (let at = 0; at < 400; at++) {
    propose(group, `key-${at}`, results);
    world.settle();
    highest = Math.max(highest, node.facts().unflushedBytes);
  }
  t.ok(highest < 25_000, `unflushed bytes stay bounded: ${highest}`);
  t.ok(results.length < 400, "the rest waits");
  world.store.automatic = true;
  world.store.finish();
  world.pass(1000);
  t.equal(results.length, 400);
  t.ok(results.every((result) => result.status === "applied"));
});

t.test("P-155 rows that gather behind a slow flush are bounded, and intake goes on", async (t) => {
  const world = new World({ flushRows: 20, unflushedRowsMax: 50, heartbeatMs: 20_000 });
  const node = world.ready({ electionMs: 100_000 });
  const group = world.group(node);
  world.store.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 200; at++) {
    propose(group, `key-${at}`, results);
    world.settle();
  }
  const answered = results.length;
  t.ok(answered >= 50 && answered < 100, `the rest waits: ${answered}`);
  const rows = (): number => world.store.pending?.changes.length ?? 0;
  let largest = 0;
  for (let flush = 0; flush < 20 && rows() > 0; flush++) {
    largest = Math.max(largest, rows());
    world.store.finish();
    world.settle();
  }
  t.equal(results.length, 200, "each flush that begins lets the waiting in, time standing still");
  t.ok(largest <= 400, `a flush is bounded: ${largest} rows`);
});

t.test("P-117 floors follow durable flushes only, and keep entries behind", async (t) => {
  const { world, group } = single({ compactEveryEntries: 50, compactKeepEntries: 10 });
  world.store.automatic = false;
  const results: ProposalResult[] = [];
  const many = (count: number): void => {
    for (let at = 0; at < count; at++) {
      propose(group, `k${at}`, results);
      world.settle();
    }
  };
  many(120);
  world.pass(300);
  const { partition } = group;
  t.equal(world.log.durable.get(partition)?.floor.index, 0, "a flush under way frees nothing");
  world.store.automatic = true;
  world.store.finish();
  world.settle();
  const floor = world.log.durable.get(partition)?.floor.index ?? 0;
  t.ok(floor > 100 && floor <= group.facts().flushedIndex - 10, `floor ${floor}`);
  world.crash();
  const again = world.ready();
  t.equal(again.group(partition)?.machine.reads.kvGet("k119", -1n, 0).revision, 0);
});

t.test("P-116 a pinning group lets go of everything that is flushed", async (t) => {
  const { world, group } = single({ compactKeepEntries: 1000 });
  const results: ProposalResult[] = [];
  for (let at = 0; at < 20; at++) propose(group, `k${at}`, results);
  world.pass(200);
  const { partition } = group;
  world.log.pinning = [partition];
  world.pass(2500);
  t.equal(world.log.durable.get(partition)?.floor.index, group.facts().appliedIndex);
});

t.test("P-028 P-155 apply is cut into slices and re-arms", async (t) => {
  const world = new World({ applySliceCommands: 10 });
  const first = world.ready();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 200; at++) {
    propose(world.group(first), `k${at}`, results);
    world.settle();
  }
  const digest = world.group(first).machine.stateDigest;
  const { partition } = world.group(first);
  const length = world.group(first).facts().lastIndex;
  world.crash();
  const node = world.open();
  const group = node.group(partition);
  assert(group !== null, "the group is there");
  let turns = 0;
  while (group.facts().appliedIndex < length && turns < 10_000) {
    const before = group.facts().appliedIndex;
    world.timer.step();
    t.ok(group.facts().appliedIndex - before <= 10, "a slice is small");
    turns++;
  }
  t.ok(group.machine.appliedIndex >= length);
  t.equal(group.machine.stateDigest, digest, "the replay is equal");
});

t.test("P-031 an undecodable committed entry ends the process with it unapplied", async (t) => {
  for (const damage of ["version", "kind"] as const) {
    const world = new World();
    const first = world.ready();
    const results: ProposalResult[] = [];
    propose(world.group(first), "k", results);
    world.settle();
    const { partition } = world.group(first);
    world.crash();
    const disk = world.log.durable.get(partition);
    const last = disk?.entries[disk.entries.length - 1];
    assert(disk !== undefined && last !== undefined, "there is an entry");
    const payload = last.payload.slice();
    if (damage === "version") payload[0] = 99;
    const bad = { ...last, payload, kind: damage === "kind" ? 1 : 0 };
    disk.entries = [...disk.entries.slice(0, -1), bad];
    const node = world.open();
    world.pass(500);
    t.equal(world.fatals.length, 1, damage);
    t.equal(node.group(partition)?.machine.appliedIndex, last.index - 1);
    t.match(node.health().reason, /^fatal-fault: A committed entry cannot be applied/);
  }
});

t.test("P-024 a start refuses a state that the log does not bear out", async (t) => {
  const setup = (): { world: World; group: Group } => {
    const { world, node, group } = single();
    const results: ProposalResult[] = [];
    for (let at = 0; at < 10; at++) {
      propose(group, `k${at}`, results);
      world.settle();
    }
    node.stop(node.nowMs() + 1000, () => undefined);
    world.pass(500);
    world.crash();
    return { world, group };
  };
  const code = (world: World, overrides = {}): string => {
    const opened = Node.open({ ...world.settings, ...overrides }, world.ports());
    if (!opened.ok) t.match(opened.message, /Restore|Start with/, "a remedy is named");
    return opened.ok ? "ok" : opened.code;
  };
  const whole = setup();
  t.equal(code(whole.world), "ok");
  const short = setup();
  const disk = short.world.log.durable.get(short.group.partition);
  assert(disk !== undefined, "the group has a log");
  disk.entries = disk.entries.slice(0, -3);
  disk.hardState = { ...disk.hardState, commit: 1 };
  t.equal(code(short.world), "state-ahead-of-log");
  const behind = setup();
  const other = behind.world.log.durable.get(behind.group.partition);
  assert(other !== undefined, "the group has a log");
  for (const name of [...behind.world.store.rows.keys()]) {
    if (name.charCodeAt(0) === 1) behind.world.store.rows.delete(name);
  }
  other.floor = { index: 3, term: other.entries[2]?.term ?? 0 };
  other.entries = other.entries.slice(3);
  t.equal(code(behind.world), "state-behind-log");
  const lost = setup();
  lost.world.log.durable.clear();
  t.equal(code(lost.world), "state-ahead-of-log", "a lost log");
  const wiped = setup();
  wiped.world.store.rows.clear();
  t.equal(code(wiped.world), "damaged-state", "a lost store");
  t.equal(code(setup().world, { nodeId: 2 }), "foreign-data", "another node's directory");
  const rewritten = setup();
  const log = rewritten.world.log.durable.get(rewritten.group.partition);
  assert(log !== undefined, "the group has a log");
  log.entries = log.entries.map((entry) => ({ ...entry, term: 9 }));
  log.hardState = { ...log.hardState, term: 9 };
  t.equal(code(rewritten.world), "state-ahead-of-log", "another history");
});

t.test("P-062 T3 the lease clock stands still without a leader, and never goes back", async (t) => {
  const world = new World();
  const first = world.ready();
  const results: ProposalResult[] = [];
  world.pass(5000);
  propose(world.group(first), "k", results);
  world.settle();
  const { partition } = world.group(first);
  const before = world.group(first).committedLeaseMs();
  t.ok(before >= 5000 && before < 6000, `lease time passed: ${before}`);
  world.crash();
  world.timer.nowMs += 3_600_000;
  const node = world.ready();
  const group = node.group(partition);
  assert(group !== null, "the group is there");
  t.equal(group.committedLeaseMs(), before);
  t.ok(group.leaseNowMs() - before <= 100, "an hour without a leader does not count");
  world.pass(1000);
  const advanced: ProposalResult[] = [];
  for (let at = 0; at < 10; at++) {
    group.advanceClock(before + 1000, 1e9, (result) => void advanced.push(result));
  }
  const length = group.facts().lastIndex;
  world.settle();
  t.equal(group.facts().lastIndex, length + 1, "all who ask at once share one entry");
  t.ok(advanced.every((result) => result.status === "applied" && result.leaseMs >= before + 1000));
  t.ok(group.committedLeaseMs() >= before + 1000);
});

t.test("P-063 wall clock steps move stamps forward only", async (t) => {
  const { world, node, group } = single();
  const stamps: { l: number; c: number }[] = [];
  for (const stepMs of [0, 3_600_000, -7_200_000, 0, 1e12, 10]) {
    world.wallMs += stepMs;
    const results: ProposalResult[] = [];
    propose(group, "k", results);
    world.settle();
    stamps.push(group.machine.lastStamp);
  }
  for (let at = 1; at < stamps.length; at++) {
    const [before, after] = [stamps[at - 1], stamps[at]];
    assert(before !== undefined && after !== undefined, "stamps");
    t.ok(after.l > before.l || (after.l === before.l && after.c > before.c), "strictly rising");
  }
  t.equal(
    stamps[4]?.l,
    1_700_000_000_000 - 3_600_000 + 1e12,
    "a node that is alone has no other clock",
  );
  const { partition } = group;
  const last = group.machine.lastStamp;
  node.stop(node.nowMs() + 1000, () => undefined);
  world.pass(2000);
  world.crash();
  world.wallMs -= 2e12;
  const again = world.ready().group(partition);
  assert(again !== null, "the group is there");
  const results: ProposalResult[] = [];
  propose(again, "k", results);
  world.settle();
  t.equal(results[0]?.status, "applied");
  const next = again.machine.lastStamp;
  t.ok(next.l > last.l || (next.l === last.l && next.c > last.c), "nor do they after a restart");
});

t.test("P-134 a mark is alone in its entry, with the last stamp of its millisecond", async (t) => {
  const { world, group } = single({ initialPartitions: 1 });
  const results: ProposalResult[] = [];
  const mark = (round: number): void => {
    const command = { kind: "mark", backupId: "a".repeat(32), round } as const;
    group.propose(command, 64, 1e9, (result) => void results.push(result));
  };
  propose(group, "before", results);
  mark(1);
  propose(group, "behind", results);
  propose(group, "behind too", results);
  world.settle();
  t.ok(results.every(({ status }) => status === "applied"));
  const [first] = group.machine.marks;
  assert(first !== undefined, "the mark is noted");
  t.equal(group.machine.appliedIndex, first.index + 1, "what came behind it shares an entry");
  t.equal(first.stamp.c, COUNTER_MAX);
  const behind = group.machine.lastStamp;
  t.ok(behind.l > first.stamp.l, "nothing above the mark is of its millisecond");
  mark(2);
  world.settle();
  t.equal(group.machine.marks[1]?.stamp.c, COUNTER_MAX);
});

t.test("P-134 a mark is stamped exactly as asked, or not at all", async (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  propose(group, "k", results);
  world.settle();
  const command = { kind: "mark", backupId: "b".repeat(32), round: 1 } as const;
  const done = (result: ProposalResult): void => void results.push(result);
  const last = group.lastStamp;
  t.equal(group.proposeMark(command, last, 1e9, done), "passed");
  const at = { n: 9, l: last.l + 500, c: COUNTER_MAX };
  t.equal(group.proposeMark(command, at, 1e9, done), "proposed");
  t.equal(group.proposeMark(command, at, 1e9, done), "passed", "before it is applied, too");
  propose(group, "k2", results);
  world.settle();
  t.same(group.machine.marks[0]?.stamp, at);
  t.ok(compareHlc(group.machine.lastStamp, at) > 0, "whatever the wall clock says");
  t.equal(results.length, 3, "each is answered once");
});

t.test("P-064 idle groups append nothing, and wake for one who waits", async (t) => {
  const world = new World({ flushAgeMs: 1000, collectEveryMs: 1000 });
  const node = world.ready();
  world.pass(10_000, 100);
  const before = lastIndexes(node);
  world.pass(3_600_000, 10_000);
  t.same(lastIndexes(node), before);
  const group = world.group(node);
  const target = group.leaseNowMs();
  const results: ProposalResult[] = [];
  group.advanceClock(target, 1e9, (result) => void results.push(result));
  world.settle();
  t.ok(group.committedLeaseMs() >= target);
});

t.test(
  "P-059 rows past their retention are collected after traffic, then it is quiet",
  async (t) => {
    const { world, node, group } = single({
      collectEveryMs: 1000,
      collectLimit: 2,
      tombstoneRetentionMs: 5000,
      lockRecordRetentionMs: 5000,
    });
    const done = (): void => undefined;
    for (const name of ["a", "b", "c", "d", "e"]) {
      group.propose(setCommand(name), 64, 1e9, done);
      const command = { kind: "kv-delete", key: name, revisionsRetained: 1 } as const;
      if (name !== "e") group.propose(command, 64, 1e9, done);
    }
    world.pass(8000);
    group.propose(setCommand("f"), 64, 1e9, done);
    world.pass(20_000);
    const state = (key: string): number =>
      group.machine.reads.kvGet(key, -1n, group.committedLeaseMs()).state;
    t.same(["a", "b", "c", "d"].map(state), [0, 0, 0, 0], "tombstones are gone");
    t.same(["e", "f"].map(state), [1, 1], "live values stay");
    const before = lastIndexes(node);
    world.pass(600_000, 1000);
    t.same(lastIndexes(node), before, "no traffic, no collect commands");
  },
);

t.test(
  "P-162 a stop answers all, hands back, flushes and closes; recovery is as ever",
  async (t) => {
    const { world, node, group } = single();
    const results: ProposalResult[] = [];
    const reads: ReadResult[] = [];
    const final: ProposalResult[] = [];
    const resets: string[] = [];
    group.addStopHook((proposeLast) => {
      proposeLast(setCommand("last"), 64, (result) => void final.push(result));
    });
    group.addReset((reason) => void resets.push(reason));
    for (let at = 0; at < 600; at++) propose(group, `k${at}`, results);
    read(group, reads);
    let closed = 0;
    node.stop(node.nowMs() + 5000, () => closed++);
    node.stop(node.nowMs() + 5000, () => closed++);
    propose(group, "late", results);
    read(group, reads);
    t.equal(node.health().reason, "shutting-down");
    t.equal(closed, 0);
    world.settle();
    t.equal(closed, 2);
    t.equal(results.filter((result) => result.status === "applied").length, 600);
    t.equal(statuses(results.filter((result) => result.status !== "applied")), "shutting-down");
    t.equal(statuses(final), "applied");
    t.same(reads.map((result) => result.status).sort(), ["aborted", "confirmed"]);
    t.ok(world.log.closed && world.store.closed);
    const digest = group.machine.stateDigest;
    const applied = group.machine.appliedIndex;
    world.pass(10_000);
    t.equal(world.timer.pendingTimers, 0, "no timer stays behind");
    propose(group, "later", final);
    read(group, reads);
    world.settle();
    t.equal(statuses(final), "applied shutting-down", "even now every call is answered");
    t.equal(reads[2]?.status, "aborted");
    world.crash();
    const again = world.open().group(group.partition);
    t.equal(again?.machine.appliedIndex, applied, "all of it was flushed");
    t.equal(again?.machine.stateDigest, digest);
  },
);

t.test("P-162 a stop with a hanging disk ends at its deadline", async (t) => {
  const { world, node, group } = single();
  world.log.automatic = false;
  const results: ProposalResult[] = [];
  propose(group, "a", results);
  world.settle();
  propose(group, "b", results);
  let closed = 0;
  node.stop(node.nowMs() + 1000, () => closed++);
  world.pass(900);
  t.equal(results.length, 0);
  world.log.automatic = true;
  world.pass(200);
  t.equal(statuses(results), "aborted unknown");
  t.equal(closed, 1);
});

t.test("a stop before the start is complete ends too", async (t) => {
  for (let steps = 0; steps < 30; steps++) {
    const world = new World();
    const node = world.open();
    for (let at = 0; at < steps; at++) world.timer.step();
    let closed = 0;
    node.stop(node.nowMs() + 1000, () => closed++);
    world.pass(2000);
    t.equal(closed, 1, `after ${steps} steps`);
    world.crash();
    t.ok(world.ready().health().ready);
  }
});

t.test("the member list follows this node's endpoint", async (t) => {
  const world = new World();
  const first = world.ready();
  t.equal(first.metaGroup().machine.meta.member(1)?.endpoint, "127.0.0.1:8084");
  world.crash();
  const node = world.ready({ endpoint: "other:1", initialPartitions: 9 });
  world.pass(500);
  t.equal(node.metaGroup().machine.meta.member(1)?.endpoint, "other:1");
  t.equal(node.groups().length, 4, "the stored map counts, not the flag");
});

t.test("P-017 a hanging disk shows in the checks", async (t) => {
  const world = new World();
  const node = world.ready();
  world.log.automatic = false;
  propose(world.group(node), "a", []);
  world.pass(5000);
  const check = node.checks().find((each) => each.name === "progress");
  t.equal(check?.ok, false);
  t.match(check?.detail, /\d+ ms/);
});

t.test("routing puts every hash text into a data partition", async (t) => {
  const world = new World({ initialPartitions: 16 });
  const node = world.ready();
  t.equal(node.route("orders")?.partition, 2);
  t.equal(node.route("__svc:sequences:orders")?.partition, 14);
  t.equal(node.group(partitionId(99)), null);
  t.equal(node.metaGroup().partition, META_PARTITION);
});

t.test("a linger fills batches of an idle group and ends by time", async (t) => {
  const { world, node, group } = single({ lingerMs: 20 });
  world.pass(500);
  world.batches = [];
  const results: ProposalResult[] = [];
  propose(group, "a", results);
  world.pass(10);
  propose(group, "b", results);
  world.settle();
  t.equal(results.length, 0);
  world.pass(10);
  t.equal(statuses(results), "applied applied");
  t.same(world.batches, [2]);
  world.log.automatic = false;
  propose(group, "c", results);
  world.pass(50);
  propose(group, "d", results);
  world.log.automatic = true;
  world.log.sync();
  world.pass(30);
  t.equal(results.length, 4, "the linger of what was queued behind ends too");
  world.log.spaceState = "full";
  propose(group, "e", results);
  const turns = node.facts().turns;
  world.pass(1000, 1);
  t.ok(node.facts().turns - turns < 200, "a closed intake does not spin");
});

t.test("bytes in the log make a flush due although the table stays small", async (t) => {
  const { world, node, group } = single({ compactEveryBytes: 20_000, flushAgeMs: 1_000_000 });
  const value = new Uint8Array(1000);
  const before = node.facts().flushes;
  for (let at = 0; at < 30; at++) {
    group.propose(setCommand("same", value), 1100, 1e9, () => undefined);
    world.pass(10);
  }
  world.pass(500);
  t.equal(node.facts().flushes, before + 1);
});

t.test("P-051 who comes too late for a clock entry shares the next one", async (t) => {
  const { world, node, group } = single();
  world.log.automatic = false;
  const ends: number[] = [];
  const ask = (deadlineMs = 1e9): void =>
    group.advanceClock(group.leaseNowMs(), deadlineMs, (result) => {
      ends.push(result.status === "applied" ? result.leaseMs : -1);
    });
  const length = group.facts().lastIndex;
  ask();
  world.pass(50);
  const second = group.leaseNowMs();
  ask();
  ask();
  ask(node.nowMs() + 10);
  world.pass(50);
  t.same(ends, [-1], "a deadline ends one who waits");
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(ends.length, 4);
  t.ok((ends[1] ?? 0) < second && (ends[2] ?? 0) >= second && (ends[3] ?? 0) >= second);
  t.equal(group.facts().lastIndex, length + 2);
});

t.test("an answer that asks again is served at once, clock standing or moving", async (t) => {
  for (const driftMs of [0, 0.001]) {
    const { world, group } = single({ initialPartitions: 1 });
    world.pass(500);
    world.driftMs = driftMs;
    const beginMs = world.timer.nowMs;
    let rounds = 0;
    const again = (): void => {
      rounds++;
      if (rounds >= 300) return;
      if (rounds % 3 === 0) group.propose(setCommand("k"), 64, 1e9, again);
      else if (rounds % 3 === 1) group.read(1e9, again);
      else group.advanceClock(group.leaseNowMs(), 1e9, again);
    };
    again();
    world.settle();
    t.equal(rounds, 300);
    t.ok(world.timer.nowMs - beginMs < 50, "nobody waited for a timer");
    const refused: ProposalResult[] = [];
    group.read(1e9, () => {
      world.log.spaceState = "full";
      propose(group, "k", refused);
    });
    world.settle();
    t.equal(statuses(refused), "overloaded", "a refusal inside an answer needs no timer either");
  }
});

t.test(
  "what the housekeeping proposes is cut in the same turn, also by a moving clock",
  async (t) => {
    const { world, group } = single({ initialPartitions: 1, collectEveryMs: 1000 });
    world.pass(500);
    propose(group, "k", []);
    world.settle();
    world.driftMs = 0.001;
    const length = group.facts().lastIndex;
    world.timer.nowMs += 1500;
    world.settle();
    t.equal(group.facts().appliedIndex, length + 1, "the collect command is applied");
  },
);

void t.test("P-162 a stop past its deadline does not spin while a flush hangs", (t) => {
  const world = new World();
  const node = world.ready();
  const results: ProposalResult[] = [];
  propose(world.group(node), "x", results);
  world.settle();
  world.store.automatic = false;
  let stopped = false;
  node.stop(world.timer.nowMs + 100, () => (stopped = true));
  world.pass(500);
  const { turns } = node.facts();
  world.pass(1000, 1);
  t.ok(node.facts().turns - turns < 20, `${node.facts().turns - turns} turns`);
  t.notOk(stopped);
  world.store.automatic = true;
  world.store.finish();
  world.settle();
  t.ok(stopped);
  t.end();
});
