/** What the nodes of a cluster report of themselves: the frames, when they go, how long they count. */
import t from "tap";
import { MEMBERS_MAX, NODE_ID_MAX, PARTITIONS_MAX } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import { ControlMark } from "../../../src/host/replication/control-marks.js";
import {
  ARRIVALS_MAX,
  type NodeReport,
  decodeNodeReport,
  encodeNodeReport,
  isNodeReport,
} from "../../../src/host/reports/node-report.js";
import { NodeReports } from "../../../src/host/reports/node-reports.js";
import { Cluster } from "../../doubles/host/peerworld.js";

const NODE_REPORT_MAX_BYTES = 64 << 10;
const REPORT_EVERY_MS = 5000;
const REPORT_GAP_MS = 1000;
const REPORT_VALID_MS = 15_000;

const PLAIN: NodeReport = {
  bootNumber: 3,
  metaIndex: 77,
  replicas: 9,
  learners: 1,
  leading: [1, 2, 300],
  arrivals: [{ partition: 2, nodeId: 5, matchIndex: 12, snapshotChunks: 4 }],
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
};

/** Every list as long as it may be, every number as large. */
function largest(): NodeReport {
  const huge = Number.MAX_SAFE_INTEGER;
  const firstNode = NODE_ID_MAX - MEMBERS_MAX;
  return {
    bootNumber: huge,
    metaIndex: huge,
    replicas: PARTITIONS_MAX,
    learners: PARTITIONS_MAX,
    leading: Array.from({ length: PARTITIONS_MAX }, (_, at) => 2 ** 32 - 1 - PARTITIONS_MAX + at),
    arrivals: Array.from({ length: ARRIVALS_MAX }, () => {
      const partition = 2 ** 32 - 1;
      return { partition, nodeId: NODE_ID_MAX, matchIndex: huge, snapshotChunks: 2 ** 32 - 1 };
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
  const busy = decodeNodeReport(encodeNodeReport({ ...PLAIN, loopLagP99Ms: 2 ** 40 }));
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
      ids.every((id, at) => id > (ids[at - 1] ?? 0));
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
  readonly reports = new NodeReports({
    nodeId: 1,
    nowMs: () => this.nowMs,
    linked: () => this.linked,
    own: () => {
      this.made++;
      return PLAIN;
    },
    send: (to) => this.sent.push({ to, atMs: this.nowMs }),
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

t.test("a node tells all others at a pace, sooner when something changed", (t) => {
  const bench = new Bench();
  bench.pass(100);
  t.strictSame(
    bench.sent.map(({ to }) => to),
    [2, 3],
    "at once",
  );
  bench.pass(4 * REPORT_EVERY_MS);
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
  bench.pass(2 * REPORT_EVERY_MS);
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
  bench.nowMs += REPORT_VALID_MS;
  t.match(bench.reports.of(2), { ageMs: REPORT_VALID_MS });
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

t.test("whole nodes know of each other who leads what, and whom nobody hears", (t) => {
  const cluster = new Cluster(3, { leaderBalanceEveryMs: 0 }).ready();
  cluster.pass(REPORT_EVERY_MS + REPORT_GAP_MS);
  const reportOf = (by: number, node: number): NodeReport | null => {
    return cluster.node(by).reports.of(node)?.report ?? null;
  };
  const led = [1, 2, 3].flatMap((node) => reportOf(1, node)?.leading ?? []);
  t.strictSame([...led].sort(), [1, 2, 3], "every partition is led once");
  for (const by of [1, 2]) {
    const report = reportOf(by, 3);
    t.match(report, { replicas: 3, learners: 0, unlinked: [], isFull: false });
    t.equal(report?.bootNumber, 1);
    t.ok((report?.metaIndex ?? 0) > 0);
  }
  cluster.kill(3);
  cluster.pass(4 * REPORT_EVERY_MS);
  t.equal(reportOf(1, 3), null, "the dead say nothing");
  const unlinked = reportOf(1, 2)?.unlinked ?? [];
  t.strictSame(
    unlinked.map(({ nodeId }) => nodeId),
    [3],
  );
  t.ok((unlinked[0]?.forMs ?? 0) >= 2 * REPORT_EVERY_MS, "and for how long");
  const still = [1, 2].flatMap((node) => reportOf(1, node)?.leading ?? []);
  t.strictSame([...still].sort(), [1, 2, 3], "others lead now");
  cluster.start(3);
  cluster.ready();
  cluster.pass(REPORT_GAP_MS * 2);
  t.equal(reportOf(1, 3)?.bootNumber, 2, "it is heard again, of its next start");
  t.strictSame(reportOf(1, 2)?.unlinked, []);
  t.end();
});
