/** Figures of a node: how busy it was lately, and which partitions lack replicas. */
import t from "tap";
import {
  placementLines,
  replicationLines,
  travelLines,
} from "../../../src/server/metrics/metric-lines.js";
import { rangeLines } from "../../../src/server/metrics/range-lines.js";
import { RangeTally } from "../../../src/host/requests/range-tally.js";
import { TransferTally } from "../../../src/host/requests/transfer-tally.js";
import { SnapshotTally } from "../../../src/host/snapshots/snapshot-tally.js";
import { emptyMembership } from "../../../src/raft/state/membership.js";
import { ProcessFigures } from "../../../src/server/metrics/process-figures.js";
import { RecentLoad } from "../../../src/server/metrics/recent-load.js";

t.test("the loop is looked at less often while it has nothing to do", async (t) => {
  let looks = 0;
  const figures = new ProcessFigures(() => void looks++);
  t.teardown(() => figures.close());
  const lookedAt = async (during: () => void): Promise<number> => {
    const before = looks;
    const endMs = performance.now() + 1200;
    while (performance.now() < endMs) {
      during();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return looks - before;
  };
  const works = (): void => {
    const endMs = performance.now() + 15;
    while (performance.now() < endMs);
  };
  const atRest = await lookedAt(() => undefined);
  const atWork = await lookedAt(works);
  t.ok(atRest > 0 && atWork > atRest, `${atRest} looks at rest, ${atWork} at work`);
});

t.test("the load of the last seconds: the worse of two windows, then forgotten", (t) => {
  let nowMs = 0;
  let counted = { requests: 0, failed: 0 };
  const load = new RecentLoad(
    () => nowMs,
    () => counted,
  );
  t.equal(load.logSyncP99Ms(), 0, "nothing was written");
  for (let at = 1; at <= 100; at++) load.logSynced(at);
  t.equal(load.logSyncP99Ms(), 99);
  counted = { requests: 5000, failed: 20 };
  nowMs = 10_000;
  t.equal(load.logSyncP99Ms(), 99, "the window before counts");
  t.equal(load.requestsPerSecond(), 500);
  t.equal(load.failedPerSecond(), 2);
  for (let at = 0; at < 3000; at++) load.logSynced(at % 2);
  t.equal(load.logSyncP99Ms(), 99);
  nowMs = 20_000;
  t.equal(load.logSyncP99Ms(), 1);
  nowMs = 30_000;
  t.equal(load.logSyncP99Ms(), 0);
  t.equal(load.requestsPerSecond(), 0);
  t.equal(load.loopLagP99Ms(), 0, "the loop was not looked at");
  for (let at = 1; at <= 200; at++) load.loopCame(at);
  t.equal(load.loopLagP99Ms(), 198);
  nowMs = 40_000;
  t.equal(load.loopLagP99Ms(), 198, "the window before counts");
  load.loopCame(7);
  nowMs = 50_000;
  load.loopCame(3);
  t.equal(load.loopLagP99Ms(), 7);
  t.equal(load.loopLagMaxMs, 200, "since the start");
  t.end();
});

t.test("P-093 what lacks replicas is counted, each with its meaning", (t) => {
  const lines: string[] = [];
  const facts = { under: [1, 2], over: [3], withoutMajority: [2], moving: [], leavingReplicas: 7 };
  replicationLines(lines, facts);
  t.match(lines.join("\n"), /# HELP svc_partitions_under_replicated .*\n# TYPE .* gauge\n.* 2\n/);
  const samples = lines.filter((line) => !line.startsWith("#"));
  t.same(samples, [
    "svc_partitions_under_replicated 2",
    "svc_partitions_over_replicated 1",
    "svc_partitions_without_majority 1",
    "svc_partitions_moving 0",
    "svc_drain_replicas_left 7",
  ]);
  t.end();
});

t.test("P-093 what the allocator does is counted, and what waits has its reason", (t) => {
  const lines: string[] = [];
  placementLines(lines, {
    passes: { ordered: 1, waiting: 2, settled: 3 },
    moves: [{ class: "repair", result: "accepted", count: 4 }],
    inFlight: new Map([
      ["repair", 2],
      ["balance", 0],
    ]),
    oldestTransitionMs: 12_500,
    waiting: new Map([["no-node", 5]]),
    isIdle: true,
  });
  t.same(
    lines.filter((line) => !line.startsWith("#")),
    [
      'svc_placement_moves_total{class="repair",result="accepted"} 4',
      'svc_placement_passes_total{result="ordered"} 1',
      'svc_placement_passes_total{result="waiting"} 2',
      'svc_placement_passes_total{result="settled"} 3',
      'svc_placement_in_flight{class="repair"} 2',
      'svc_placement_in_flight{class="balance"} 0',
      "svc_placement_oldest_transition_seconds 12.5",
      'svc_placement_waiting{reason="no-node"} 5',
      "svc_placement_idle_alarm 1",
    ],
  );
  t.end();
});

t.test("moves of key ranges are counted, and how long keys were frozen is a histogram", (t) => {
  const tally = new RangeTally();
  tally.moveEnded("split", "cut");
  tally.moveEnded("home", "aborted");
  tally.attemptEnded("no-target");
  tally.moved(3, 400);
  for (const forMs of [0, 10, 45, 2500]) tally.frozen(forMs);
  tally.phaseTook("copy", 1500);
  tally.phaseTook("copy", 70_000);
  tally.phaseTook("claim", 4);
  tally.verifyFailures++;
  tally.refusedSplits += 2;
  const lines: string[] = [];
  const keys = new Map(Array.from({ length: 70 }, (_, at) => [at + 1, 1000 + at]));
  rangeLines(lines, tally.facts({ keys, purges: 3 }), { Hash: 0, KeyRange: 7 });
  const samples = lines.filter((line) => !line.startsWith("#"));
  t.same(
    samples.filter((line) => !/ 0$|_bucket|svc_range_keys/.test(line)),
    [
      'svc_ranges{key_space_mode="KeyRange"} 7',
      'svc_range_moves_total{kind="split",result="cut"} 1',
      'svc_range_moves_total{kind="home",result="aborted"} 1',
      'svc_range_attempts_total{reason="no-target"} 1',
      "svc_range_frozen_seconds_sum 2.555",
      "svc_range_frozen_seconds_count 4",
      'svc_range_move_phase_seconds_sum{phase="copy"} 71.5',
      'svc_range_move_phase_seconds_count{phase="copy"} 2',
      'svc_range_move_phase_seconds_sum{phase="claim"} 0.004',
      'svc_range_move_phase_seconds_count{phase="claim"} 1',
      "svc_range_purges_left 3",
      "svc_range_moved_keys_total 3",
      "svc_range_moved_bytes_total 400",
      "svc_range_verify_failures_total 1",
      'svc_range_splits_refused_total{reason="partitions"} 2',
    ],
  );
  const told = samples.filter((line) => line.startsWith("svc_range_keys{"));
  t.same([told.length, told[0]], [64, 'svc_range_keys{partition="70"} 1069'], "the largest");
  t.ok(samples.includes('svc_range_move_phase_seconds_bucket{phase="copy",le="2"} 1'));
  t.ok(samples.includes('svc_range_move_phase_seconds_bucket{phase="copy",le="+Inf"} 2'));
  const buckets = samples
    .filter((line) => line.startsWith("svc_range_frozen_seconds_bucket"))
    .map((line) => line.slice(24));
  t.match(buckets[0], '_bucket{le="0.01"} 2', "a bound belongs to its bucket");
  t.same(
    [buckets[3], buckets[4], buckets.at(-2), buckets.at(-1)],
    ['_bucket{le="0.05"} 3', '_bucket{le="0.1"} 3', '_bucket{le="2"} 3', '_bucket{le="+Inf"} 4'],
  );
  t.equal(lines.filter((line) => line.startsWith("# HELP")).length, 11);
  t.equal(
    samples.filter((line) => line.startsWith("svc_range_moves_total")).length,
    6,
    "zeros too",
  );
  t.end();
});

t.test("moves of leaderships and bytes of snapshots are counted by what they are for", (t) => {
  const lines: string[] = [];
  const tally = new TransferTally();
  tally.count("balance", "moved");
  tally.count("balance", "moved");
  tally.count("stop", "refused");
  const snapshots = new SnapshotTally();
  const membership = { ...emptyMembership, voters: [1, 2], learners: [3] };
  snapshots.count("out", membership, 3, 100);
  snapshots.count("out", membership, 2, 20);
  snapshots.count("in", emptyMembership, 1, 7);
  travelLines(lines, {
    leaderTransfers: tally.all(),
    snapshotBytes: snapshots.all(),
    plannedRates: [
      { purpose: "drain", bytesPerSecond: 2097152 },
      { purpose: "balance", bytesPerSecond: 4194304 },
    ],
  });
  t.equal(lines.filter((line) => line.startsWith("# HELP")).length, 3);
  t.same(
    lines.filter((line) => !line.startsWith("#") && !line.endsWith(" 0")),
    [
      'svc_leader_transfers_total{reason="balance",result="moved"} 2',
      'svc_leader_transfers_total{reason="stop",result="refused"} 1',
      'svc_image_bytes_total{direction="out",class="learner"} 100',
      'svc_image_bytes_total{direction="out",class="voter"} 20',
      'svc_image_bytes_total{direction="in",class="learner"} 7',
      'svc_image_planned_bytes_per_second{class="drain"} 2097152',
      'svc_image_planned_bytes_per_second{class="balance"} 4194304',
    ],
  );
  t.equal(lines.length, 4 + 15 + 4 + 4, "what did not happen is a zero");
  t.end();
});
