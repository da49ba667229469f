/**
 * The node that leads the source, the target or meta dies at each step of a move, and comes back:
 * every key is where its range is, and nothing is left of the move. A table for each kind of move,
 * and one for a move that is given up while its keys are frozen.
 */
import t, { type Test } from "tap";
import { partitionId } from "../../../../src/base/ids.js";
import type { OwnershipRow } from "../../../../src/machine/ownership/ownership-row.js";
import { RangingCluster } from "../../../doubles/host/ranging.js";

t.setTimeout(300_000);

const KEYS = Array.from({ length: 200 }, (_each, at) => `room/${String(at).padStart(4, "0")}`);
const MOMENTS = Number(process.env["SVC_RANGE_DEATHS"] ?? 15);
const SPLIT = "room/0080";
/** The partition that the split makes. */
const MADE = 3;
/** So that the upper part takes several imports. */
const PAD = "x".repeat(6000);

function valueOf(key: string): string {
  return `${key} ${PAD}`;
}

const ROLES = ["source", "target", "meta"] as const;
type Role = (typeof ROLES)[number];

/** Where the keys from the split on lie when all is over: in the range that was there, or in one of their own. */
type End = "whole" | "split" | "unregistered";

/** A kind of move, and what comes of it. */
interface Table {
  readonly steps: readonly string[];
  readonly meant: End;
  /** When it is given up. */
  readonly undone: End;
  source(cluster: RangingCluster): number;
  target(cluster: RangingCluster): number;
  /** From one filled range to the begin of the move. */
  begin(cluster: RangingCluster): void;
  /** Before the steps, if the move is to be given up then. */
  readonly giveUpAt?: string;
}

function leaderOf(cluster: RangingCluster, table: Table, role: Role): number | null {
  return cluster.serverOf(role === "meta" ? 0 : table[role](cluster));
}

/** The row of the move in the group that a node leads. */
function rowAt(
  cluster: RangingCluster,
  table: Table,
  role: "source" | "target",
): OwnershipRow | null {
  const leader = leaderOf(cluster, table, role);
  if (leader === null) return null;
  const group = cluster.node(leader).group(partitionId(table[role](cluster)));
  return group?.machine.ownership.at("room", SPLIT) ?? null;
}

function isMade(cluster: RangingCluster): boolean {
  return [...cluster.nodes.values()].some((node) => node.group(partitionId(MADE)) !== null);
}

type Seen = (cluster: RangingCluster, table: Table) => boolean;

function isAt(role: "source" | "target", state: OwnershipRow["state"]): Seen {
  return (cluster, table) => {
    const row = rowAt(cluster, table, role);
    return row?.state === state && row.moveId === cluster.move("room")?.moveId;
  };
}

/** The steps of a move as they are seen from outside. */
const STEPS: Readonly<Record<string, Seen>> = {
  begun: (cluster) => cluster.move("room") !== null,
  made: (cluster, table) => isMade(cluster) && leaderOf(cluster, table, "target") === null,
  led: (cluster, table) => leaderOf(cluster, table, "target") !== null,
  open: (cluster, table) => rowAt(cluster, table, "target")?.nextImport === 1,
  filling: (cluster, table) => (rowAt(cluster, table, "target")?.nextImport ?? 0) > 2,
  frozen: isAt("source", "leaving"),
  closed: isAt("target", "closed"),
  cut: (cluster) => cluster.move("room")?.phase === "cut",
  adopted: (cluster, table) => {
    const leader = leaderOf(cluster, table, "target");
    if (leader === null || cluster.move("room")?.phase !== "cut") return false;
    const group = cluster.node(leader).group(partitionId(table.target(cluster)));
    return group?.machine.owns(SPLIT) === true;
  },
  released: isAt("source", "left"),
  "one side done": (cluster) => {
    const move = cluster.move("room");
    return move?.sourceDone === true || move?.targetDone === true;
  },
  aborting: (cluster) => cluster.move("room")?.phase === "aborting",
  unfrozen: (cluster, table) => {
    return cluster.move("room")?.phase === "aborting" && !isAt("source", "leaving")(cluster, table);
  },
  dropped: (cluster, table) => {
    return cluster.move("room")?.phase === "aborting" && isAt("target", "left")(cluster, table);
  },
  ended: (cluster) => cluster.move("room") === null,
};

const WHOLE_MOVE = [
  ...["begun", "open", "filling", "frozen", "closed", "cut", "adopted", "released"],
  "one side done",
];

const SPLITTING: Table = {
  steps: ["made", "led", ...WHOLE_MOVE],
  meant: "split",
  undone: "whole",
  source: (cluster) => cluster.home("room"),
  target: () => MADE,
  begin: (cluster) => void cluster.split(SPLIT),
};

function splitBefore(cluster: RangingCluster): void {
  cluster.split(SPLIT);
  if (!cluster.comeToRest()) throw new Error("the split before the move ends");
}

const MERGING: Table = {
  steps: [...WHOLE_MOVE, "ended"],
  meant: "whole",
  undone: "split",
  source: () => MADE,
  target: (cluster) => cluster.home("room"),
  begin: (cluster) => {
    splitBefore(cluster);
    cluster.merge("room", MADE, cluster.home("room"));
  },
};

/** What goes home is tried until it is there. */
const LEAVING: Table = {
  ...MERGING,
  meant: "unregistered",
  undone: "unregistered",
  begin: (cluster) => {
    splitBefore(cluster);
    cluster.decide({ kind: "unregister-range", keySpace: "room" });
  },
};

const GIVEN_UP = ["aborting", "unfrozen", "dropped", "one side done", "ended"];

function filled(): RangingCluster {
  const cluster = new RangingCluster(3, { leaderBalanceEveryMs: 0 });
  cluster.ready();
  cluster.register("room");
  cluster.fill(KEYS, valueOf);
  return cluster;
}

/** Where the keys lie when all is over. */
function endOf(cluster: RangingCluster): string {
  const ranges = cluster.records.ranges("room").map(({ partitionId: id }) => id);
  const home = cluster.home("room");
  if (ranges.length === 0) return "unregistered";
  if (ranges.length === 1 && ranges[0] === home) return "whole";
  const isSplit = ranges.length === 2 && ranges[0] === home && ranges[1] === MADE;
  return isSplit ? "split" : `ranges ${ranges.join()}`;
}

/** Has the meta partition give the move up; its answer is nobody's. */
function giveUp(cluster: RangingCluster): void {
  const move = cluster.move("room");
  const leader = cluster.serverOf(0);
  if (move === null || leader === null) throw new Error("a move is under way, and meta is led");
  const { moveId } = move;
  const command = { kind: "abort-move", keySpace: "room", moveId, reason: "deadline" } as const;
  const deadlineMs = cluster.nowMs + 5000;
  cluster
    .node(leader)
    .metaGroup()
    .proposeFinal(command, 200, deadlineMs, () => undefined);
}

/** What the run came to, or what was wrong. */
function run(
  table: Table,
  seen: (cluster: RangingCluster, events: number) => boolean,
  role: Role,
): { readonly end: string; readonly wasSeen: boolean } {
  const cluster = filled();
  table.begin(cluster);
  let events = 0;
  if (table.giveUpAt !== undefined) {
    const isDue = STEPS[table.giveUpAt] as Seen;
    cluster.creepUntil(() => isDue(cluster, table));
    giveUp(cluster);
  }
  const isSeen = cluster.creepUntil(() => seen(cluster, events++));
  const victim = isSeen ? leaderOf(cluster, table, role) : null;
  if (victim !== null) {
    cluster.kill(victim);
    cluster.pass(2500);
    cluster.start(victim);
  }
  const isUnregistered = (): boolean => cluster.records.ranges("room").length === 0;
  if (table.meant === "unregistered") cluster.passUntil(isUnregistered, 120_000);
  if (!cluster.comeToRest(120_000)) return { end: "it does not come to rest", wasSeen: true };
  const lost = KEYS.filter((key) => cluster.read(key) !== valueOf(key));
  if (lost.length > 0) return { end: `lost: ${lost.join()}`, wasSeen: true };
  const left = cluster.leftOver();
  if (left.length > 0) return { end: `left over: ${left.join()}`, wasSeen: true };
  return { end: endOf(cluster), wasSeen: victim !== null };
}

/** How many cells there were in which somebody died, and how many moves came to what was meant. */
function runAll(t: Test, table: Table): { readonly cells: number; readonly meant: number } {
  let cells = 0;
  let meant = 0;
  for (const step of table.steps) {
    const seen = STEPS[step] as Seen;
    for (const role of ROLES) {
      const { end, wasSeen } = run(table, (cluster) => seen(cluster, table), role);
      if (wasSeen) cells++;
      if (end === table.meant) meant++;
      t.ok(
        [table.meant, table.undone].some((each) => each === end),
        `${step}: the leader of ${role} dies: ${end}`,
      );
      if (!wasSeen) t.comment(`${step}: no leader of ${role} at that time`);
    }
  }
  return { cells, meant };
}

void t.test("a node dies at each step of a split", (t) => {
  const { cells, meant } = runAll(t, SPLITTING);
  t.ok(cells >= 28, `${cells} of the cells were run`);
  t.ok(meant >= 25, `${meant} came to an end as they were meant`);
  t.end();
});

void t.test("a node dies at each step of a merge", (t) => {
  const { cells, meant } = runAll(t, MERGING);
  t.ok(cells >= 24, `${cells} of the cells were run`);
  t.ok(meant >= 20, `${meant} came to an end as they were meant`);
  t.end();
});

void t.test("a node dies at each step of the way home of a range that is unregistered", (t) => {
  const { cells, meant } = runAll(t, LEAVING);
  t.ok(cells >= 24, `${cells} of the cells were run`);
  t.equal(meant, cells);
  t.end();
});

void t.test("P-100 a node dies at each step after a split or merge was given up", (t) => {
  let died = 0;
  let undone = 0;
  for (const table of [SPLITTING, MERGING]) {
    for (const giveUpAt of ["filling", "frozen"]) {
      // What was meant is that nothing comes of it; a cut may have been faster.
      const ends = { meant: table.undone, undone: table.meant };
      const { cells, meant } = runAll(t, { ...table, ...ends, steps: GIVEN_UP, giveUpAt });
      died += cells;
      undone += meant;
    }
  }
  t.ok(died >= 50, `${died} of the cells were run`);
  t.ok(undone >= 50, `${undone} moves were undone`);
  t.end();
});

/** Catching up, counting and the question to meta take a moment each: no look finds them. */
void t.test("a node dies at any moment of a split or merge", (t) => {
  for (const table of [SPLITTING, MERGING]) {
    const cluster = filled();
    table.begin(cluster);
    let events = 0;
    cluster.creepUntil(() => ++events % 50 === 0 && cluster.isAtRest);
    t.comment(`it takes ${events} events`);
    for (let moment = 0; moment < MOMENTS; moment++) {
      const at = Math.floor((events * (moment + 0.5)) / MOMENTS);
      const role = ROLES[moment % ROLES.length] as Role;
      const { end } = run(table, (_cluster, event) => event >= at, role);
      t.match(end, /^(split|whole)$/, `the leader of ${role} dies after ${at} events`);
    }
  }
  t.end();
});
