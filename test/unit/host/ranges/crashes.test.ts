/**
 * The node that leads the source, the target or meta dies at each step of a move, and comes back:
 * every key is where its range is, and nothing is left of the move.
 */
import t from "tap";
import { partitionId } from "../../../../src/base/ids.js";
import type { OwnershipRow } from "../../../../src/machine/ownership/ownership-row.js";
import { RangingCluster } from "../../../doubles/host/ranging.js";

const KEYS = Array.from({ length: 200 }, (_each, at) => `room/${String(at).padStart(4, "0")}`);
const MOMENTS = Number(process.env["SVC_RANGE_DEATHS"] ?? 15);
const SPLIT = "room/0080";
const TARGET = 3;
/** So that the upper part takes several imports. */
const PAD = "x".repeat(6000);

function valueOf(key: string): string {
  return `${key} ${PAD}`;
}

const ROLES = ["source", "target", "meta"] as const;
type Role = (typeof ROLES)[number];

function leaderOf(cluster: RangingCluster, role: Role): number | null {
  const partition = { source: cluster.home("room"), target: TARGET, meta: 0 }[role];
  return cluster.serverOf(partition);
}

/** The row of the interval in the group that a node leads. */
function rowAt(cluster: RangingCluster, role: "source" | "target"): OwnershipRow | null {
  const leader = leaderOf(cluster, role);
  const partition = partitionId(role === "source" ? cluster.home("room") : TARGET);
  const group = leader === null ? null : cluster.node(leader).group(partition);
  return group?.machine.ownership.at("room", SPLIT) ?? null;
}

function isMade(cluster: RangingCluster): boolean {
  return [...cluster.nodes.values()].some((node) => node.group(partitionId(TARGET)) !== null);
}

type Seen = (cluster: RangingCluster, events: number) => boolean;

/** The steps of a move as they are seen from outside, in order. */
const STEPS: Readonly<Record<string, Seen>> = {
  begun: (cluster) => cluster.move("room") !== null,
  made: (cluster) => isMade(cluster) && leaderOf(cluster, "target") === null,
  led: (cluster) => leaderOf(cluster, "target") !== null,
  open: (cluster) => rowAt(cluster, "target")?.nextImport === 1,
  filling: (cluster) => (rowAt(cluster, "target")?.nextImport ?? 0) > 2,
  frozen: (cluster) => rowAt(cluster, "source")?.state === "leaving",
  closed: (cluster) => rowAt(cluster, "target")?.state === "closed",
  cut: (cluster) => cluster.move("room")?.phase === "cut",
  adopted: (cluster) => rowAt(cluster, "target")?.state === "here",
  released: (cluster) => rowAt(cluster, "source")?.state === "left",
  "one side done": (cluster) => {
    const move = cluster.move("room");
    return move?.sourceDone === true || move?.targetDone === true;
  },
};

function filled(): RangingCluster {
  const cluster = new RangingCluster(3, { leaderBalanceEveryMs: 0 });
  cluster.ready();
  cluster.register("room");
  cluster.fill(KEYS, valueOf);
  return cluster;
}

/** What the run came to: "split", "aborted", or what was wrong. */
function run(seen: Seen, role: Role): { readonly end: string; readonly wasSeen: boolean } {
  const cluster = filled();
  cluster.split(SPLIT);
  let events = 0;
  const isSeen = cluster.creepUntil(() => seen(cluster, events++));
  const victim = isSeen ? leaderOf(cluster, role) : null;
  if (victim !== null) {
    cluster.kill(victim);
    cluster.pass(2500);
    cluster.start(victim);
  }
  if (!cluster.comeToRest(120_000)) return { end: "it does not come to rest", wasSeen: true };
  const lost = KEYS.filter((key) => cluster.read(key) !== valueOf(key));
  if (lost.length > 0) return { end: `lost: ${lost.join()}`, wasSeen: true };
  const left = cluster.leftOver();
  if (left.length > 0) return { end: `left over: ${left.join()}`, wasSeen: true };
  const ranges = cluster.records.ranges("room").map(({ partitionId: id }) => id);
  const end = ranges.length === 2 && ranges[1] === TARGET ? "split" : `ranges ${ranges.join()}`;
  return { end: ranges.length === 1 ? "aborted" : end, wasSeen: victim !== null };
}

void t.test("a node dies at each step of a split", (t) => {
  let cells = 0;
  let splits = 0;
  for (const [step, seen] of Object.entries(STEPS)) {
    for (const role of ROLES) {
      const { end, wasSeen } = run(seen, role);
      if (wasSeen) cells++;
      if (end === "split") splits++;
      t.match(end, /^(split|aborted)$/, `${step}: the leader of ${role} dies`);
      if (!wasSeen) t.comment(`${step}: no leader of ${role} at that time`);
    }
  }
  t.ok(cells >= 28, `${cells} of the cells were run`);
  t.ok(splits >= 25, `${splits} came to an end as they were meant`);
  t.end();
});

/** Catching up, counting and the question to meta take a moment each: no look finds them. */
void t.test("a node dies at any moment of a split", (t) => {
  const cluster = filled();
  cluster.split(SPLIT);
  let events = 0;
  cluster.creepUntil(() => ++events % 50 === 0 && cluster.isAtRest);
  t.comment(`a split takes ${events} events`);
  for (let moment = 0; moment < MOMENTS; moment++) {
    const at = Math.floor((events * (moment + 0.5)) / MOMENTS);
    const role = ROLES[moment % ROLES.length] as Role;
    const { end } = run((_cluster, event) => event >= at, role);
    t.match(end, /^(split|aborted)$/, `the leader of ${role} dies after ${at} events`);
  }
  t.end();
});
