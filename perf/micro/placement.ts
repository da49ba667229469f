/**
 * One pass of the planner of placement over 25 nodes and 2,000 partitions, in processor time: with nothing to do, and
 * with more to do than may be begun at once.
 *
 * Run: node dist/perf/micro/placement.js [--tiny]
 */
import { pathToFileURL } from "node:url";
import { PARTITIONS_MAX } from "../../src/base/limits.js";
import { configIndex, incarnation, placementGeneration } from "../../src/base/ids.js";
import { planPlacement } from "../../src/control/placement-plan.js";
import type { MemberView, PlacementPlan, PlacementView } from "../../src/control/placement-view.js";
import type { PartitionRecord } from "../../src/machine/commands/command.js";

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
    ...{ nowMs: NOW_MS, isEnabled: true, replicationFactor: FACTOR, rests: new Map() },
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

const started = process.argv[1];
if (started !== undefined && pathToFileURL(started).href === import.meta.url) {
  if (process.argv.includes("--tiny")) print("Placement, 5 x 20", measured(5, 20, 1, 1));
  else {
    print("Placement, 25 nodes x 2,000 partitions", measured(25, 2000, 15, 10));
    print(
      `Placement, 25 nodes x ${PARTITIONS_MAX} partitions`,
      measured(25, PARTITIONS_MAX, 15, 10),
    );
  }
}
