/** What the nodes of a cluster report of themselves: the frames, when they go, how long they count. */
import t from "tap";
import { configIndex, partitionId, placementGeneration } from "../../../src/base/ids.js";
import {
  MEMBERS_MAX,
  NODE_ID_MAX,
  NODE_REPORT_EVERY_MS,
  NODE_REPORT_VALID_MS,
  NODE_REPORT_MAX_BYTES,
  PARTITIONS_MAX,
  PLACEMENT_ITEMS_MAX,
} from "../../../src/base/limits.js";
import { PROGRAM } from "../../../src/base/levels.js";
import { Prng } from "../../../src/base/prng.js";
import { ControlMark } from "../../../src/host/replication/control-marks.js";
import {
  ARRIVALS_MAX,
  type NodeReport,
  WAITS_MAX,
  decodeNodeReport,
  encodeNodeReport,
  isNodeReport,
} from "../../../src/host/reports/node-report.js";
import { META_PROPOSALS } from "../../../src/host/cluster/meta-proposals.js";
import { NodeReports } from "../../../src/host/reports/node-reports.js";
import { OwnReport } from "../../../src/host/reports/own-report.js";
import { type LedGroup, ReplicaReports } from "../../../src/host/reports/replica-reports.js";
import { commandSizeBytes } from "../../../src/machine/commands/codec.js";
import type {
  PartitionRecord,
  ReportReplicasCommand,
} from "../../../src/machine/commands/command.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import { emptyMembership } from "../../../src/raft/state/membership.js";
import type { CoreStatus, Membership, PeerProgress } from "../../../src/raft/state/types.js";
import { PlacedCluster, replicaOf } from "../../doubles/host/placing.js";
import { Cluster } from "../../doubles/host/peerworld.js";

const NOBODY = emptyMembership;

const REPORT_GAP_MS = 1000;

const PLAIN: NodeReport = {
  bootNumber: 3,
  isReady: false,
  reason: "catching-up",
  uptimeMs: 90_000,
  requestsPerSecond: 700,
  failedPerSecond: 3,
  metaIndex: 77,
  replicas: 9,
  learners: 1,
  leading: [0, 1, 2, 300],
  arrivals: [{ partition: 2, nodeId: 5, matchIndex: 12, snapshotChunks: 4, hasSnapshot: false }],
  waits: [{ partition: 7, why: "learner 3 has not caught up" }],
  snapshotsIn: 1,
  snapshotsOut: 2,
  logBytes: 64 << 20,
  storeBytes: 2 ** 40,
  storeMaxBytes: 2 ** 41,
  isFull: true,
  writesPerSecond: 1200,
  loopLagP99Ms: 1.5,
  logSyncP99Ms: 0.125,
  unlinked: [
    { nodeId: 4, forMs: 1000 },
    { nodeId: 9, forMs: 0 },
  ],
  wallMs: 1_700_000_000_000,
  placement: { rebalances: true, leadingBytes: [0, 1, 4096, 2 ** 40] },
};

/** Every list as long as it may be, every number as large. */
function largest(): NodeReport {
  const huge = Number.MAX_SAFE_INTEGER;
  const firstNode = NODE_ID_MAX - MEMBERS_MAX;
  return {
    bootNumber: huge,
    isReady: false,
    reason: "\u20ac".repeat(100),
    uptimeMs: huge,
    requestsPerSecond: 2 ** 32 - 1,
    failedPerSecond: 2 ** 32 - 1,
    metaIndex: huge,
    replicas: PARTITIONS_MAX,
    learners: PARTITIONS_MAX,
    leading: Array.from({ length: PARTITIONS_MAX }, (_, at) => 2 ** 32 - 1 - PARTITIONS_MAX + at),
    arrivals: Array.from({ length: ARRIVALS_MAX }, () => {
      const partition = 2 ** 32 - 1;
      const chunks = { snapshotChunks: 2 ** 32 - 1, hasSnapshot: true };
      return { partition, nodeId: NODE_ID_MAX, matchIndex: huge, ...chunks };
    }),
    waits: Array.from({ length: WAITS_MAX }, () => {
      return { partition: 2 ** 32 - 1, why: "\u20ac".repeat(100) };
    }),
    snapshotsIn: PARTITIONS_MAX,
    snapshotsOut: PARTITIONS_MAX,
    logBytes: huge,
    storeBytes: huge,
    storeMaxBytes: huge,
    isFull: true,
    writesPerSecond: 2 ** 32 - 1,
    loopLagP99Ms: (2 ** 32 - 1) / 1000,
    logSyncP99Ms: (2 ** 32 - 1) / 1000,
    unlinked: Array.from({ length: MEMBERS_MAX }, (_, at) => {
      return { nodeId: firstNode + at, forMs: 2 ** 32 - 1 };
    }),
    wallMs: huge,
    placement: {
      rebalances: false,
      leadingBytes: Array.from({ length: PARTITIONS_MAX }, () => 2 ** 52),
    },
  };
}

t.test("a report goes and comes whole, the largest in one bounded frame", (t) => {
  for (const report of [PLAIN, largest()]) {
    const bytes = encodeNodeReport(report);
    t.ok(isNodeReport(bytes) && bytes.length <= NODE_REPORT_MAX_BYTES, `${bytes.length} bytes`);
    t.strictSame(decodeNodeReport(bytes), report);
  }
  const spread = Array.from({ length: PARTITIONS_MAX }, (_, at) => (at + 1) * 2 ** 19);
  const leading = { ...largest(), leading: spread };
  t.ok(encodeNodeReport(leading).length <= NODE_REPORT_MAX_BYTES, "far apart, too");
  for (const bytes of [1, 5, 999, 1 << 20, 123_456_789, Number.MAX_SAFE_INTEGER]) {
    const placement = { rebalances: true, leadingBytes: [bytes] };
    const frame = encodeNodeReport({ ...PLAIN, leading: [3], placement });
    const told = decodeNodeReport(frame)?.placement?.leadingBytes[0] ?? 0;
    t.ok(Math.abs(told - bytes) <= Math.max(1, 0.1 * bytes), `${bytes} bytes are told as ${told}`);
  }
  const busy = decodeNodeReport(encodeNodeReport({ ...PLAIN, loopLagP99Ms: 2 ** 40 }));
  const long = { partition: 1, why: "x".repeat(1000) };
  const cut = decodeNodeReport(encodeNodeReport({ ...PLAIN, waits: [long] }));
  t.equal(cut?.waits[0]?.why.length, 100, "what is too long is cut");
  t.ok((busy?.loopLagP99Ms ?? 0) > 4e6, "times beyond what a frame holds count as its largest");
  t.end();
});

t.test("P-128 fuzz: reading reports is strict, bounded, and never throws", (t) => {
  const random = new Prng(5);
  const whole = encodeNodeReport(PLAIN);
  for (let cut = 0; cut < whole.length; cut++) {
    t.equal(decodeNodeReport(whole.subarray(0, cut)), null, `cut at ${cut}`);
  }
  t.equal(decodeNodeReport(Uint8Array.from([...whole, 0])), null, "a byte too many");
  t.equal(decodeNodeReport(new Uint8Array(NODE_REPORT_MAX_BYTES + 1)), null, "too large");
  let taken = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = whole.slice();
    for (let times = 1 + random.below(3); times > 0; times--) {
      bytes[2 + random.below(bytes.length - 2)] = random.below(256);
    }
    const report = decodeNodeReport(bytes);
    if (report === null) continue;
    taken++;
    const { leading, unlinked, arrivals } = report;
    const ascend = (ids: readonly number[]): boolean =>
      ids.every((id, at) => id > (ids[at - 1] ?? -1));
    if (ascend(leading) && ascend(unlinked.map(({ nodeId }) => nodeId))) {
      if (leading.length + unlinked.length + arrivals.length <= bytes.length) continue;
    }
    t.fail(`round ${round}`);
  }
  t.ok(taken > 0, "numbers alone are not what makes a report");
  t.end();
});

/** One node with two others that are linked. */
class Bench {
  nowMs = 100_000;
  linked = [2, 3];
  readonly sent: { readonly to: number; readonly atMs: number }[] = [];
  made = 0;
  /** The last frame to each. */
  readonly last = new Map<number, Uint8Array>();
  readonly reports = new NodeReports({
    nodeId: 1,
    nowMs: () => this.nowMs,
    linked: () => this.linked,
    protocolWith: (node) => (node === 3 ? PROGRAM.protocols.min : PROGRAM.protocols.max),
    isSole: () => this.linked.length === 0,
    own: () => {
      this.made++;
      return PLAIN;
    },
    ownWaits: () => PLAIN.waits,
    send: (to, bytes) => {
      this.sent.push({ to, atMs: this.nowMs });
      this.last.set(to, bytes);
    },
  });

  pass(ms: number): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.nowMs += 100;
      this.reports.tick(this.nowMs);
    }
  }

  heard(from: number, report: Partial<NodeReport>): boolean {
    return this.reports.frame(from, encodeNodeReport({ ...PLAIN, ...report }));
  }
}

t.test("U7 whoever speaks an earlier protocol hears nothing of placement", (t) => {
  const bench = new Bench();
  bench.pass(100);
  const of = (node: number) => decodeNodeReport(bench.last.get(node) ?? new Uint8Array());
  t.strictSame(of(2), PLAIN);
  t.strictSame(of(3), { ...PLAIN, wallMs: null, placement: null });
  t.equal(bench.made, 1, "one report, twice written");
  t.end();
});

t.test("P-063 the common wall clock is the median of those told, and nobody's when alone", (t) => {
  const bench = new Bench();
  const common = (ownMs: number): number | null => bench.reports.commonWallMs(ownMs, bench.nowMs);
  t.equal(common(5000), null, "nobody told");
  bench.heard(2, { wallMs: 7000 });
  t.equal(common(5000), 5000, "of two the earlier one");
  t.equal(common(9000), 7000);
  bench.nowMs += 500;
  t.equal(common(9000), 7500, "it goes on by itself");
  bench.heard(3, { wallMs: 1_000_000 });
  t.equal(common(9000), 9000, "a wild one counts for nothing");
  t.equal(common(2_000_000), 1_000_000);
  t.equal(common(100), 7500);
  bench.reports.frame(3, encodeNodeReport({ ...PLAIN, wallMs: null, placement: null }));
  t.equal(common(9000), 7500, "who speaks an earlier protocol tells none");
  bench.nowMs += NODE_REPORT_VALID_MS;
  t.equal(common(9000), null, "what was told is too old");
  bench.linked = [];
  t.equal(common(9000), Infinity, "alone");
  t.end();
});

t.test("a node tells all others at a pace, sooner when something changed", (t) => {
  const bench = new Bench();
  bench.pass(100);
  t.strictSame(
    bench.sent.map(({ to }) => to),
    [2, 3],
    "at once",
  );
  bench.pass(4 * NODE_REPORT_EVERY_MS);
  t.equal(bench.sent.length, 2 + 4 * 2);
  t.equal(bench.made, 5, "made once for all");
  bench.sent.length = 0;
  bench.pass(REPORT_GAP_MS);
  bench.reports.changed();
  bench.pass(100);
  t.equal(bench.sent.length, 2, "a change is told with the next tick");
  bench.sent.length = 0;
  for (let times = 0; times < 40; times++) {
    bench.reports.changed();
    bench.pass(100);
  }
  t.ok(bench.sent.length <= (2 * 4000) / REPORT_GAP_MS, "however much changes");
  bench.linked = [];
  const { made } = bench;
  bench.pass(2 * NODE_REPORT_EVERY_MS);
  t.equal(bench.made, made, "alone it makes none");
  t.end();
});

t.test("a report counts for a while, and not after one of a later start", (t) => {
  const bench = new Bench();
  t.notOk(bench.reports.frame(2, Uint8Array.of(ControlMark.hearing, 1)), "not a report");
  t.ok(bench.reports.frame(2, Uint8Array.of(ControlMark.report, 1)), "one that is cut off");
  t.equal(bench.reports.badFrames, 1);
  t.equal(bench.reports.of(2), null);
  bench.heard(2, { bootNumber: 7, metaIndex: 1 });
  bench.nowMs += 2000;
  t.match(bench.reports.of(2), { report: { metaIndex: 1 }, ageMs: 2000 });
  bench.heard(2, { bootNumber: 6, metaIndex: 2 });
  t.match(bench.reports.of(2), { report: { bootNumber: 7 } }, "of an earlier start");
  bench.heard(2, { bootNumber: 8, metaIndex: 3 });
  t.match(bench.reports.of(2), { report: { metaIndex: 3 }, ageMs: 0 });
  bench.nowMs += NODE_REPORT_VALID_MS;
  t.match(bench.reports.of(2), { ageMs: NODE_REPORT_VALID_MS });
  bench.nowMs += 1;
  t.equal(bench.reports.of(2), null, "too old");
  bench.heard(2, { bootNumber: 1 });
  t.match(bench.reports.of(2), { report: { bootNumber: 1 } }, "a new disk counts anew");
  t.match(bench.reports.of(1), { report: PLAIN, ageMs: 0 }, "its own");
  for (let node = 2; node < 2 * MEMBERS_MAX; node++) bench.heard(node, {});
  t.equal(bench.reports.of(2), null, "what is kept is bounded");
  t.not(bench.reports.of(2 * MEMBERS_MAX - 1), null);
  t.end();
});

t.test("a report is made of what the parts of a node say", (t) => {
  const group = (partition: number, isServing: boolean, learners: readonly number[]) => {
    const machine = { dataBytes: 1000 * partition };
    const progress = learners.map((id): PeerProgress => {
      const at = {
        match: 40 + id,
        next: 50,
        inflightCount: 0,
        inflightFull: false,
        pendingSnapshot: 0,
        paused: false,
      };
      return { id, learner: true, state: id === 5 ? "snapshot" : "replicate", active: true, ...at };
    });
    return {
      partition: partitionId(partition),
      leadership: { isServing },
      machine,
      members: { membership: { ...NOBODY, voters: [1, 2], learners } },
      core: { status: () => ({ progress }) as unknown as CoreStatus },
    };
  };
  const groups = [group(0, true, [9]), group(1, true, []), group(2, false, [1])];
  groups.push(group(3, true, [5, 6]));
  const moving = { index: 7, chunks: 3, heldBytes: 0 };
  let commands = 100;
  let isFull = false;
  let transferCount = 2;
  let active: typeof groups = [];
  const own = new OwnReport({
    nodeId: 1,
    rebalances: () => true,
    bootNumber: () => 2,
    metaIndex: () => 70,
    wallMs: () => 77,
    groups: () => groups,
    activeGroups: () => active,
    members: () => [1, 2, 3],
    isLinked: (node) => node === 2,
    unlinkedMs: () => 500,
    transfers: () => [
      { partition: partitionId(3), peer: 5, direction: "out", ...moving },
      { partition: partitionId(2), peer: 2, direction: "in", ...moving },
    ],
    transferCount: () => transferCount,
    waits: () => [{ partition: 3, why: "node 5 comes" }],
    isFull: () => isFull,
    health: () => ({ isReady: true, reason: "", uptimeMs: 8000 }),
    load: () => {
      const disk = { logBytes: 1, storeBytes: 2, storeMaxBytes: 3 };
      const requests = { requestsPerSecond: 9, failedPerSecond: 1 };
      return { ...disk, ...requests, loopLagP99Ms: 4, logSyncP99Ms: 5, commands };
    },
  });
  own.make(1000);
  commands = 700;
  t.strictSame(own.make(4000), {
    ...{ bootNumber: 2, metaIndex: 70, replicas: 3, learners: 1, leading: [0, 1, 3] },
    wallMs: 77,
    placement: { rebalances: true, leadingBytes: [0, 1000, 3000] },
    ...{ isReady: true, reason: "", uptimeMs: 8000, requestsPerSecond: 9, failedPerSecond: 1 },
    arrivals: [
      { partition: 0, nodeId: 9, matchIndex: 49, snapshotChunks: 0, hasSnapshot: true },
      { partition: 3, nodeId: 5, matchIndex: 45, snapshotChunks: 3, hasSnapshot: false },
      { partition: 3, nodeId: 6, matchIndex: 46, snapshotChunks: 0, hasSnapshot: true },
    ],
    waits: [{ partition: 3, why: "node 5 comes" }],
    ...{ snapshotsIn: 1, snapshotsOut: 1, logBytes: 1, storeBytes: 2, storeMaxBytes: 3 },
    ...{ isFull: false, writesPerSecond: 200, loopLagP99Ms: 4, logSyncP99Ms: 5 },
    unlinked: [{ nodeId: 3, forMs: 500 }],
  });
  t.equal(own.make(4100).writesPerSecond, 200, "reports of one second share a figure");
  active = groups;
  t.equal(own.hasNews(), true, "whoever asked for a report took no news away");
  t.equal(own.hasNews(), false);
  active = [group(2, true, [])];
  t.equal(own.hasNews(), true, "a leadership more");
  t.equal(own.hasNews(), false, "is told once");
  isFull = true;
  t.equal(own.hasNews(), true, "no room for writes any more");
  transferCount = 3;
  t.equal(own.hasNews(), false, "a snapshot more was ordered by who knows it");
  transferCount = 2;
  t.equal(own.hasNews(), true, "one less makes room");
  t.equal(own.hasNews(), false);
  t.end();
});

/** A placed group and the records that its leader sees. */
class Reporting {
  placed = new Map<number, PartitionRecord>();
  readonly groups = new Map<number, MutableGroup>();
  readonly sent: ReportReplicasCommand[] = [];
  readonly woken: number[] = [];
  nowMs = 0;
  readonly reports = new ReplicaReports({
    placed: () => this.placed,
    activeGroups: () => this.groups.values(),
    find: (partition) => this.groups.get(partition) ?? null,
    wake: (partition) => void this.woken.push(partition),
    propose: (command) => void this.sent.push(command),
    maxBytes: META_PROPOSALS["report-replicas"].maxBytes,
  });

  group(partition: number, index: number, voters: readonly number[], restsOn = 1): MutableGroup {
    const group: MutableGroup = {
      partition: partitionId(partition),
      leadership: { isServing: true },
      machine: {
        membershipIndex: configIndex(index),
        placedGeneration: placementGeneration(restsOn),
      },
      members: {
        membership: { ...NOBODY, voters },
        isEstablished: true,
        entries: 0,
        establish() {
          this.entries++;
        },
      },
    };
    this.groups.set(partition, group);
    return group;
  }

  /** The map changes: this partition's record has this generation and configuration. */
  record(partition: number, generation: number, index: number): void {
    const founded = foundedPartition(partition, [1, 2, 3], 3);
    const known = { generation: placementGeneration(generation), configIndex: configIndex(index) };
    this.placed = new Map(this.placed).set(partition, { ...founded, ...known });
  }

  tick(ms = 100): readonly ReportReplicasCommand[] {
    this.sent.length = 0;
    this.nowMs += ms;
    this.reports.tick(this.nowMs);
    return this.sent.slice();
  }
}

interface MutableGroup extends LedGroup {
  readonly leadership: { isServing: boolean };
  readonly members: {
    membership: Membership;
    isEstablished: boolean;
    entries: number;
    establish(): void;
  };
}

t.test("P-084 what restarts and a death could make a group forget is not reported", (t) => {
  const world = new Reporting();
  const { members } = world.group(1, 20, [1, 2, 4]);
  members.isEstablished = false;
  world.record(1, 3, 10);
  for (let at = 0; at < 5; at++) t.strictSame(world.tick(), []);
  t.equal(members.entries, 5, "an entry is asked for");
  t.strictSame(world.woken, [1, 1, 1, 1, 1], "of a group that may sleep");
  members.isEstablished = true;
  t.equal(world.tick().length, 1, "as soon as it is established");
  world.record(1, 4, 20);
  members.isEstablished = false;
  world.tick(1000);
  t.equal(members.entries, 5, "nothing is asked for where nothing is to be reported");
  t.end();
});

t.test("P-094 the leader of a placed group reports until its map shows it", (t) => {
  const world = new Reporting();
  world.group(1, 20, [1, 2, 4]);
  t.strictSame(world.tick(), [], "a group that is on every node is never reported");
  world.record(1, 3, 10);
  const item = { partitionId: 1, configIndex: 20, voters: [1, 2, 4], learners: [], restsOn: 1 };
  t.strictSame(world.tick(), [{ kind: "report-replicas", items: [item] }]);
  t.ok(world.reports.hasWork);
  for (let at = 0; at < 9; at++) t.strictSame(world.tick(), [], "once a second");
  t.strictSame(world.tick(), [{ kind: "report-replicas", items: [item] }], "again and again");
  world.record(1, 4, 20);
  t.strictSame(world.tick(1000), [], "until a newer record is applied");
  t.notOk(world.reports.hasWork);
  t.end();
});

t.test("P-093 groups of many members are reported in commands that are taken", (t) => {
  // Forty nodes had every partition, and a factor was set on all of them.
  const world = new Reporting();
  const all = Array.from({ length: 40 }, (_, at) => at + 1);
  const partitions = Array.from({ length: PLACEMENT_ITEMS_MAX + 6 }, (_, at) => at + 1);
  for (const partition of partitions) {
    const { members } = world.group(partition, 20, [1, 2, 4]);
    members.membership = { ...members.membership, learners: all.slice(4) };
    world.record(partition, 3, 10);
  }
  const commands = world.tick();
  const told = commands.flatMap(({ items }) => items.map(({ partitionId: id }) => id));
  t.strictSame(told, partitions, "each is told of once");
  const { maxBytes } = META_PROPOSALS["report-replicas"];
  for (const command of commands) t.ok(commandSizeBytes(command) <= maxBytes);
  t.equal(commands.length, 2, "and they are filled");
  t.end();
});

t.test("P-205 what is not applied, or older than its record, is not reported", (t) => {
  const world = new Reporting();
  const group = world.group(1, 20, [1, 2, 4], 5);
  world.record(1, 4, 10);
  t.strictSame(world.tick(), [], "its record is older than the configuration");
  world.record(1, 5, 10);
  group.leadership.isServing = false;
  t.strictSame(world.tick(1000), [], "it does not lead");
  group.leadership.isServing = true;
  group.members.membership = { ...NOBODY, voters: [1, 2, 4], votersOutgoing: [1, 2, 3] };
  t.strictSame(world.tick(1000), [], "two configurations decide together");
  group.members.membership = { ...NOBODY, voters: [1, 2, 4], learners: [3] };
  t.match(world.tick(1000), [{ items: [{ voters: [1, 2, 4], learners: [3], restsOn: 5 }] }]);
  world.groups.clear();
  t.strictSame(world.tick(1000), [], "the group left this node");
  t.notOk(world.reports.hasWork);
  t.end();
});

t.test("one command reports many groups, up to what it may hold", (t) => {
  const world = new Reporting();
  for (let partition = 1; partition <= 150; partition++) {
    world.group(partition, 20, [1, 2, 4]);
    world.record(partition, 2, 0);
  }
  t.strictSame(
    world.tick().map(({ items }) => items.length),
    [PLACEMENT_ITEMS_MAX, PLACEMENT_ITEMS_MAX, 150 - 2 * PLACEMENT_ITEMS_MAX],
  );
  t.end();
});

t.test("whole nodes know of each other who leads what, and whom nobody hears", (t) => {
  const cluster = new Cluster(3, { leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(NODE_REPORT_EVERY_MS + REPORT_GAP_MS);
  const reportOf = (by: number, node: number): NodeReport | null => {
    return cluster.node(by).reports.of(node)?.report ?? null;
  };
  const led = [1, 2, 3].flatMap((node) => reportOf(1, node)?.leading ?? []);
  t.match(reportOf(1, 2), { isReady: true, reason: "" });
  t.ok((reportOf(1, 2)?.uptimeMs ?? 0) > 0);
  t.strictSame([...led].sort(), [0, 1, 2, 3], "every partition is led once");
  for (const by of [1, 2]) {
    const report = reportOf(by, 3);
    t.match(report, { replicas: 3, learners: 0, unlinked: [], isFull: false });
    t.equal(report?.bootNumber, 1);
    t.ok((report?.metaIndex ?? 0) > 0);
  }
  cluster.kill(3);
  cluster.pass(4 * NODE_REPORT_EVERY_MS);
  t.equal(reportOf(1, 3), null, "the dead say nothing");
  const unlinked = reportOf(1, 2)?.unlinked ?? [];
  t.strictSame(
    unlinked.map(({ nodeId }) => nodeId),
    [3],
  );
  t.ok((unlinked[0]?.forMs ?? 0) >= 2 * NODE_REPORT_EVERY_MS, "and for how long");
  const still = [1, 2].flatMap((node) => reportOf(1, node)?.leading ?? []);
  t.strictSame([...still].sort(), [0, 1, 2, 3], "others lead now");
  cluster.start(3);
  cluster.ready();
  cluster.pass(REPORT_GAP_MS * 2);
  t.equal(reportOf(1, 3)?.bootNumber, 2, "it is heard again, of its next start");
  t.strictSame(reportOf(1, 2)?.unlinked, []);
  t.end();
});

/** Whether the replicas of partition 1 are voters, at these nodes and no others. */
function isAt(cluster: PlacedCluster, nodes: readonly number[]): boolean {
  const { replicas } = cluster.record(1);
  const listed = replicas.map(({ nodeId }) => nodeId);
  return replicas.every(({ role }) => role === "voter") && listed.join() === nodes.join();
}

t.test("P-094 an order is carried through by reports alone, also when leaders die in it", (t) => {
  for (const dies of [false, true]) {
    const cluster = new PlacedCluster(5, 3).ready();
    cluster.passUntil(() => cluster.serverOf(1) !== null);
    t.ok(isAt(cluster, [1, 2, 3]));
    const leader = cluster.serverOf(1) ?? 0;
    const gone = [1, 2, 3].find((nodeId) => nodeId !== leader) ?? 0;
    t.equal(cluster.order(1, { kind: "add", nodeId: 4, replaces: gone }), "done");
    cluster.passUntil(() => replicaOf(cluster.node(4), 1) !== null);
    if (dies) cluster.kill(leader);
    const rest = [1, 2, 3, 4].filter((nodeId) => nodeId !== gone);
    cluster.passUntil(() => isAt(cluster, rest), 60_000);
    if (dies) cluster.start(leader);
    cluster.passUntil(() => cluster.hosts(1).join() === rest.join(), 60_000);
    const { generation } = cluster.record(1);
    cluster.pass(5000);
    t.equal(cluster.record(1).generation, generation, "nothing more is reported");
  }
  t.end();
});

t.test("P-093 nodes tell what a partition waits for", (t) => {
  const cluster = new PlacedCluster(4, 2).ready();
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  cluster.kill(4);
  const leader = cluster.serverOf(1) ?? 0;
  const stays = leader === 1 ? 2 : 1;
  t.equal(cluster.order(1, { kind: "add", nodeId: 4, replaces: stays }), "done");
  cluster.pass(10_000);
  const [wait] = cluster.node(3).partitionWaits();
  t.equal(wait?.partition, 1, "any node knows of it");
  t.ok((wait?.why.length ?? 0) > 10);
  cluster.start(4);
  cluster.passUntil(() => isAt(cluster, leader === 1 ? [1, 4] : [2, 4]), 60_000);
  cluster.pass(7000);
  t.strictSame(cluster.node(3).partitionWaits(), []);
  t.end();
});

t.test("P-106 leaderships of placed groups are spread by reports, and then stay", (t) => {
  // So many that no node sees by its own groups alone who leads few.
  const settings = { initialPartitions: 20, leaderBalanceEveryMs: 2000 };
  const cluster = new PlacedCluster(5, 3, settings).ready();
  cluster.pass(3000);
  for (const id of [4, 5]) cluster.kill(id);
  cluster.pass(5000);
  for (const id of [4, 5]) cluster.start(id);
  cluster.ready();
  const led = (): number[] => {
    return [1, 2, 3, 4, 5].map((id) => {
      return cluster
        .node(id)
        .groups()
        .filter((group) => group.isServing()).length;
    });
  };
  t.ok(Math.max(...led()) - Math.min(...led()) >= 2, `uneven at first: ${led().join()}`);
  cluster.pass(200_000, 50);
  const rest = led();
  t.equal(
    rest.reduce((sum, count) => sum + count, 0),
    21,
  );
  t.ok(Math.max(...rest) - Math.min(...rest) <= 1, `even: ${rest.join()}`);
  cluster.pass(60_000, 50);
  t.strictSame(led(), rest, "nothing moves any more");
  t.end();
});
