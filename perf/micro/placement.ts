/**
 * One pass of the allocator over 25 nodes and 2,000 partitions, in processor time: of the planner alone, with nothing to
 * do and with more to do than may be begun at once; and of the node that leads meta, with reports, records and view.
 *
 * Run: node dist/perf/micro/placement.js [--tiny]
 */
import { pathToFileURL } from "node:url";
import { PARTITIONS_MAX } from "../../src/base/limits.js";
import {
  META_PARTITION,
  configIndex,
  NOT_BORN,
  incarnation,
  level as clusterLevel,
  placementGeneration,
} from "../../src/base/ids.js";
import { planPlacement } from "../../src/control/placement-plan.js";
import type { MemberView, PlacementPlan, PlacementView } from "../../src/control/placement-view.js";
import { Placer } from "../../src/host/cluster/placer.js";
import { type NodeReport, encodeNodeReport } from "../../src/host/reports/node-report.js";
import { NodeReports } from "../../src/host/reports/node-reports.js";
import type { PartitionRecord } from "../../src/machine/commands/command.js";
import type { MetaReads } from "../../src/machine/meta/meta-reads.js";
import type { CoreStatus } from "../../src/raft/state/types.js";

const NOW_MS = 10_000_000;
const FACTOR = 3;

function memberOf(nodeId: number, role: "voter" | "leaving", isDead: boolean): MemberView {
  const load = { storeBytes: nodeId, storeMaxBytes: 0, isFull: false, loopLagP99Ms: 1 };
  const report = { receivedMs: NOW_MS, snapshotsIn: 0, snapshotsOut: 0, ...load };
  const liveSinceMs = isDead ? Infinity : 0;
  return { nodeId, role, evicted: false, isCaughtUp: true, liveSinceMs, isDead, report };
}

function recordOf(partitionId: number, nodes: readonly number[]): PartitionRecord {
  const life = { incarnation: incarnation(0), since: placementGeneration(0) };
  const kept = { role: "voter", ...life, replaces: 0 } as const;
  return {
    ...{ partitionId, state: "Active", mode: "placed", replicationOverride: 0, founders: [] },
    generation: placementGeneration(7),
    configIndex: configIndex(7),
    bornVersion: NOT_BORN,
    replicas: nodes.map((nodeId) => ({ nodeId, ...kept })),
  };
}

interface Scene {
  readonly name: string;
  readonly leaving?: number;
  readonly dead?: number;
  /** Nodes that have no replica yet. */
  readonly empty?: number;
  /** Replicas of each partition. */
  readonly replicas?: number;
}

const SCENES: readonly Scene[] = [
  { name: "nothing to do" },
  { name: "one node leaves", leaving: 25 },
  { name: "one node is dead", dead: 25 },
  { name: "a node has come: balance", empty: 1 },
  { name: "every partition has two too many", replicas: 5 },
  { name: "every partition has one", replicas: 1 },
];

function viewOf(scene: Scene, nodes: number, partitions: number): PlacementView {
  const { leaving = 0, dead = 0, empty = 0, replicas = FACTOR } = scene;
  const ids = Array.from({ length: nodes }, (_, at) => at + 1);
  const holders = nodes - empty;
  const records = Array.from({ length: partitions }, (_, at) => {
    const listed = Array.from({ length: replicas }, (_, k) => ((at + k) % holders) + 1);
    return recordOf(at + 1, listed);
  });
  const led = { sizeBytes: 1000, hasSnapshot: true, advancedMs: NOW_MS };
  const leaderOf = ({ replicas: listed }: PartitionRecord): number => {
    return listed.find(({ nodeId }) => nodeId !== dead)?.nodeId ?? 0;
  };
  return {
    ...{
      nowMs: NOW_MS,
      isEnabled: true,
      isHeld: false,
      replicationFactor: FACTOR,
      rests: new Map(),
    },
    members: ids.map((id) => memberOf(id, id === leaving ? "leaving" : "voter", id === dead)),
    partitions: records,
    groups: new Map(
      records.map((record) => [record.partitionId, { ...led, leader: leaderOf(record) }]),
    ),
  };
}

interface Measured {
  readonly name: string;
  readonly plan: PlacementPlan;
  /** Processor time of one pass: median and longest of the rounds (ms). */
  readonly medianMs: number;
  readonly longestMs: number;
}

/** Each scene so many rounds of `passes`; one pass alone is too short for the clock of the process. */
export function measured(
  nodes: number,
  partitions: number,
  rounds: number,
  passes: number,
): readonly Measured[] {
  return SCENES.map((scene) => {
    const view = viewOf(scene, nodes, partitions);
    const plan = planPlacement(view);
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const before = process.cpuUsage();
      for (let pass = 0; pass < passes; pass++) planPlacement(view);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000 / passes);
    }
    times.sort((a, b) => a - b);
    const medianMs = times[times.length >> 1] ?? 0;
    return { name: scene.name, plan, medianMs, longestMs: times.at(-1) ?? 0 };
  });
}

/** A node that leads meta and hosts no placed partition: 24 others report. */
class Leading {
  nowMs = 1_000_000;
  commits = 0;
  readonly reports: NodeReports;
  readonly placer: Placer;
  private readonly frames: readonly (readonly [number, Uint8Array])[];

  constructor(nodes: number, partitions: number) {
    const { partitions: records, members } = viewOf({ name: "" }, nodes, partitions);
    const level = clusterLevel(2);
    const cluster = { replicationFactor: FACTOR, level, mapVersion: 1, membershipVersion: 1 };
    const rows = { cluster: () => cluster, members: () => members, partitions: () => records };
    const reads = { ...rows, isPlannerHeld: () => false };
    this.frames = members.slice(1).map(({ nodeId }) => {
      const led = records.filter(({ partitionId }) => 2 + (partitionId % (nodes - 1)) === nodeId);
      const leading = led.map(({ partitionId }) => partitionId);
      return [nodeId, encodeNodeReport(reportOf(leading))];
    });
    this.reports = new NodeReports({
      nodeId: 1,
      nowMs: () => this.nowMs,
      linked: () => [],
      protocolWith: () => 0,
      own: () => reportOf([]),
      isSole: () => false,
      ownWaits: () => [],
      send: () => undefined,
    });
    const progress = members.map(({ nodeId }) => ({ id: nodeId, state: "replicate", match: 9 }));
    const meta = {
      leadership: { isServing: true, leaseNowMs: () => 0 },
      machine: { dataBytes: 0 },
      core: { term: 1, status: () => ({ lastIndex: 9, progress }) as unknown as CoreStatus },
    };
    this.placer = new Placer({
      ...{
        nodeId: 1,
        startedMs: 0,
        isEnabled: true,
        everyMs: 5000,
        deadAfterMs: 300_000,
        fromLevel: 2,
      },
      logger: { log: () => undefined },
      metaReads: () => reads as unknown as MetaReads,
      find: (partition) => (partition === META_PARTITION ? meta : null),
      isLinked: () => true,
      unlinkedMs: () => 0,
      reports: () => this.reports,
      proposeOnMeta: () => void this.commits++,
    });
  }

  /** The others report, one in each tick; every tick makes a pass. */
  run(ticks: number): void {
    for (let tick = 0; tick < ticks; tick++) {
      const [from, frame] = this.frames[tick % this.frames.length] ?? [0, new Uint8Array()];
      this.nowMs += 100;
      this.reports.frame(from, frame);
      this.placer.tick(this.nowMs);
    }
  }

  get passes(): number {
    return Object.values(this.placer.facts(this.nowMs).passes).reduce((sum, count) => sum + count);
  }
}

function reportOf(leading: readonly number[]): NodeReport {
  return {
    ...{ bootNumber: 1, isReady: true, reason: "", uptimeMs: 1, requestsPerSecond: 0 },
    ...{ failedPerSecond: 0, metaIndex: 9, replicas: 240, learners: 0, leading, arrivals: [] },
    ...{ waits: [], snapshotsIn: 0, snapshotsOut: 0, logBytes: 1, storeBytes: 1 },
    ...{ storeMaxBytes: 0, isFull: false, writesPerSecond: 0, loopLagP99Ms: 0, logSyncP99Ms: 0 },
    ...{
      unlinked: [],
      wallMs: 0,
      placement: { rebalances: true, leadingBytes: leading.map(() => 1000) },
    },
  };
}

export interface NodePasses {
  readonly passes: number;
  readonly commits: number;
  /** Processor time of one tick with a report and a pass: median and longest of the rounds (ms). */
  readonly medianMs: number;
  readonly longestMs: number;
}

/** What passes cost the leader of meta while nothing is to do. */
export function measuredNode(nodes: number, partitions: number, rounds: number): NodePasses {
  const leading = new Leading(nodes, partitions);
  // Until everybody has reported, and has been live for long enough.
  leading.run(20 * nodes);
  const before = leading.passes;
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const used = process.cpuUsage();
    leading.run(nodes);
    const { user, system } = process.cpuUsage(used);
    times.push((user + system) / 1000 / nodes);
  }
  times.sort((a, b) => a - b);
  const figures = { medianMs: times[times.length >> 1] ?? 0, longestMs: times.at(-1) ?? 0 };
  return { passes: leading.passes - before, commits: leading.commits, ...figures };
}

function print(title: string, rows: readonly Measured[]): void {
  process.stdout.write(`\n### ${title}\n\n`);
  process.stdout.write(
    "| pass | steps | waits | processor time, median | longest of the rounds |\n",
  );
  process.stdout.write("|---|---:|---:|---:|---:|\n");
  for (const { name, plan, medianMs, longestMs } of rows) {
    const counts = `${plan.steps.length} | ${plan.waits.length}`;
    const times = `${medianMs.toFixed(2)} ms | ${longestMs.toFixed(2)} ms`;
    process.stdout.write(`| ${name} | ${counts} | ${times} |\n`);
  }
}

function printNode(title: string, { passes, commits, medianMs, longestMs }: NodePasses): void {
  const times = `${medianMs.toFixed(2)} ms of processor time (longest ${longestMs.toFixed(2)} ms)`;
  process.stdout.write(
    `\nOn the leader of meta, ${title}, nothing to do: a report and a pass take ${times};\n`,
  );
  process.stdout.write(`${passes} passes, ${commits} commits.\n`);
}

const started = process.argv[1];
if (started !== undefined && pathToFileURL(started).href === import.meta.url) {
  if (process.argv.includes("--tiny")) {
    print("Placement, 5 x 20", measured(5, 20, 1, 1));
    printNode("5 x 20", measuredNode(5, 20, 1));
  } else {
    print("Placement, 25 nodes x 2,000 partitions", measured(25, 2000, 15, 10));
    printNode("25 nodes x 2,000 partitions", measuredNode(25, 2000, 15));
    print(`25 nodes x ${PARTITIONS_MAX} partitions`, measured(25, PARTITIONS_MAX, 15, 10));
  }
}
