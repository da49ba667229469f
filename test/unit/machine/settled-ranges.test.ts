/**
 * Ranges of a cluster of which one node is left, each partition known up to another entry: all of them
 * together, at every step of a move.
 */
import t, { type Test } from "tap";
import { partitionId } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import type { Command, RangeMove } from "../../../src/machine/commands/command.js";
import { decodeEntry } from "../../../src/machine/commands/codec.js";
import { Machine } from "../../../src/machine/machine.js";
import type { OwnershipRow } from "../../../src/machine/ownership/ownership-row.js";
import { settleRanges } from "../../../src/machine/restoring/settled-ranges.js";
import { textToByteKey } from "../../../src/machine/store/keys.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import type { LogEntry } from "../../../src/ports.js";
import { spacesIn } from "../../doubles/backup/settled-spaces.js";
import { RangingCluster } from "../../doubles/host/ranging.js";
import { FakeStore } from "../../doubles/machine/fake-store.js";
import { ForcedMap } from "../../judge/checkers/backups/forced-map.js";

t.setTimeout(120_000);

const POOL = 2;
/** Of more than these about so many are looked at. */
const STATES_MAX = 1200;
const KEYS = Array.from({ length: 12 }, (_each, at) => `room/${String(at).padStart(2, "0")}`);

type Logs = ReadonlyMap<number, readonly LogEntry[]>;

/** What each group of one node wrote to its log while `run` went on, and before. */
function logsOf(run: (cluster: RangingCluster, pass: () => void) => void): Logs {
  const cluster = new RangingCluster(3);
  cluster.ready();
  cluster.register("room");
  cluster.fill(KEYS, (key) => key);
  const logs = new Map<number, readonly LogEntry[]>();
  const look = (): void => {
    for (const [group, { floor, entries }] of cluster.worlds.get(1)?.log.durable ?? []) {
      const known = logs.get(group) ?? [];
      // Those of a group that goes are kept; and what the log gave up was seen before.
      const fresh = entries.filter(({ index }) => index > known.length);
      if (floor.index <= known.length) logs.set(group, [...known, ...fresh]);
    }
  };
  look();
  run(cluster, () => {
    for (let step = 0; step < 300 && (step < 5 || !cluster.isAtRest); step++) {
      cluster.pass(10);
      look();
    }
  });
  look();
  return logs;
}

/** The group right behind its first `count` entries; null before the first one. */
function machineAt(logs: Logs, group: number, count: number): Machine | null {
  const entries = logs.get(group)?.slice(0, count) ?? [];
  if (entries.length === 0) return null;
  const memtable = new Memtable({ store: new FakeStore(), cacheBytes: 4096 });
  const machine = new Machine(memtable, partitionId(group), 0, group <= POOL);
  for (const { index, term, payload, kind } of entries) {
    const decoded = kind === 0 && payload.length > 0 ? decodeEntry(payload) : null;
    if (decoded?.ok === true) {
      const { leaseMs, stamp } = decoded.value.stamp;
      machine.apply({ index, term, leaseMs, stamp }, decoded.value.commands, []);
    } else machine.applyEmpty({ index, term });
  }
  return machine;
}

/** Where a group's log is about ranges, and writes behind them: behind each entry, and before it. */
function stepsOf(logs: Logs, group: number): readonly number[] {
  const steps = new Set<number>();
  for (const [at, { payload, kind }] of (logs.get(group) ?? []).entries()) {
    const decoded = kind === 0 && payload.length > 0 ? decodeEntry(payload) : null;
    const commands = decoded?.ok === true ? decoded.value.commands : [];
    const isAbout = ({ kind: each }: Command): boolean => {
      return /range|move/.test(each) || (each === "kv-set" && steps.size > 0);
    };
    if (!commands.some(isAbout)) continue;
    steps.add(at).add(at + 1);
  }
  // The beginning of the cluster is known: who knows no founding has nothing to be forced.
  return [...steps].filter((step) => group !== 0 || step > 2).sort((a, b) => a - b);
}

const HOLDS: ReadonlySet<OwnershipRow["state"]> = new Set(["here", "leaving", "closed"]);

/** Who had the whole of the key's interval, and the key. */
function holdersOf(
  key: string,
  groups: readonly Machine[],
  home: number,
  move: RangeMove | null,
): readonly Machine[] {
  return groups.filter((group) => {
    const one = { keySpace: "room", startKey: key, endKey: `${key}\0` };
    const row = group.ownership.overlapping(one)[0] ?? null;
    // Its rows are to be purged, and are all there as yet.
    const isLeft = row?.state === "left" && !row.isPurged && row.purgedTo === null;
    const isSource = isLeft && move?.source === group.group && move.moveId === row.moveId;
    const holds = row === null ? group.group === home : HOLDS.has(row.state) || isSource;
    return holds && revisionOf(group, key) >= 0;
  });
}

function revisionOf({ reads }: Machine, key: string): number {
  const { value, revision } = reads.kvGet(key, -1n, 0);
  return value === null ? -1 : Number(revision);
}

function fingerprint(meta: Machine, groups: readonly Machine[]): string {
  const cluster = meta.meta.cluster();
  const partitions = meta.meta.partitions();
  const rows = groups.map(({ ownership }) => ownership.all());
  return JSON.stringify([cluster, partitions, meta.meta.keySpaces(), rows]);
}

function checkAt(t: Test, logs: Logs, counts: readonly number[], home: number): boolean {
  const machines = counts.map((count, group) => machineAt(logs, group, count));
  const [meta = null] = machines;
  if (meta === null) return false;
  const groups = machines.slice(1).flatMap((machine) => (machine === null ? [] : [machine]));
  const name = `entries ${counts.join(", ")}`;
  const move = meta.meta.move("room");
  const held = new Map(KEYS.map((key) => [key, holdersOf(key, groups, home, move)]));
  settleRanges(meta, [meta, ...groups]);
  const checker = new ForcedMap();
  checker.settled(name, spacesIn(meta, groups));
  for (const violation of checker.verdict().violations) t.fail(violation);
  for (const key of KEYS) {
    const owner = groups.find(({ group, ownership }) => {
      const hasRows = ownership.rowsOf(textToByteKey("room")).length > 0;
      return ownership.owns(textToByteKey(key)) && (group === home || hasRows);
    });
    const holders = held.get(key) ?? [];
    if (holders.length === 0) continue;
    const isThere = owner !== undefined && holders.includes(owner);
    const isLatest = holders.every((holder) => {
      return owner !== undefined && revisionOf(holder, key) <= revisionOf(owner, key);
    });
    if (isThere && isLatest) continue;
    const others = holders.map((holder) => `${holder.group} at ${revisionOf(holder, key)}`);
    t.fail(`${name}: ${key} is with ${owner?.group}, it was with ${others.join(", ")}`);
  }
  const cluster = meta.meta.cluster();
  for (const { group, ownership } of groups) {
    if (group >= (cluster?.nextPartitionId ?? 0)) t.fail(`${name}: ${group} may be made again`);
    for (const { moveId } of ownership.all()) {
      if (moveId > (cluster?.mapVersion ?? 0)) t.fail(`${name}: move ${moveId} may begin again`);
    }
  }
  const once = fingerprint(meta, groups);
  settleRanges(meta, [meta, ...groups]);
  if (fingerprint(meta, groups) !== once) t.fail(`${name}: settling again changes something`);
  return true;
}

function checkAll(t: Test, logs: Logs, home: number): void {
  const groups = [0, 1, 2, 3, 4].filter((group) => logs.has(group));
  const steps = groups.map((group) => {
    const found = stepsOf(logs, group);
    return found.length > 0 ? found : [logs.get(group)?.length ?? 0];
  });
  const prng = new Prng(7);
  const all = steps.reduce((product, { length }) => product * length, 1);
  let count = 0;
  const go = (counts: readonly number[]): void => {
    const next = steps[counts.length];
    if (next === undefined) {
      if (prng.below(all) < STATES_MAX) count += checkAt(t, logs, counts, home) ? 1 : 0;
    } else for (const step of next) go([...counts, step]);
  };
  go([]);
  t.ok(count > 100, `${count} states`);
}

/** Every state that a node may know of what `run` has a cluster do. */
function whatever(
  known: string,
  run: (t: Test, cluster: RangingCluster, pass: () => void, home: number) => void,
): void {
  t.test(`7.7 every key has one owner that has it, whatever is known of ${known}`, (t) => {
    let home = 0;
    const logs = logsOf((cluster, pass) => {
      home = cluster.home("room");
      run(t, cluster, pass, home);
    });
    checkAll(t, logs, home);
    t.end();
  });
}

whatever("a split", (t, cluster, pass) => {
  t.equal(cluster.split("room/05"), "done");
  pass();
  t.equal(cluster.records.ranges("room").length, 2);
  t.equal(cluster.write("room/07", "again"), "applied");
});

whatever("a merge", (t, cluster, pass, home) => {
  t.equal(cluster.split("room/05"), "done");
  pass();
  t.equal(cluster.write("room/07", "again"), "applied");
  t.equal(cluster.merge("room", 3, home), "done");
  pass();
  t.equal(cluster.records.ranges("room").length, 1);
  t.equal(cluster.write("room/07", "once more"), "applied");
});

whatever("a move given up", (t, cluster, pass) => {
  t.equal(cluster.split("room/05"), "done");
  const isClosed = (): boolean => {
    const rows = cluster.node(1).group(partitionId(3))?.machine.ownership.all() ?? [];
    return rows.some(({ state }) => state === "closed");
  };
  t.ok(cluster.creepUntil(isClosed), "all of it is in two places");
  const moveId = cluster.move("room")?.moveId;
  if (moveId === undefined) return t.fail("it is under way");
  const of = { keySpace: "room", moveId, reason: "deadline" } as const;
  t.equal(cluster.decide({ kind: "abort-move", ...of }), "done");
  pass();
  t.equal(cluster.records.ranges("room").length, 1);
});

whatever("a way home", (t, cluster, pass) => {
  t.equal(cluster.split("room/05"), "done");
  pass();
  t.equal(cluster.decide({ kind: "unregister-range", keySpace: "room" }), "pending");
  for (let at = 0; at < 20 && cluster.records.ranges("room").length > 0; at++) pass();
  t.equal(cluster.records.ranges("room").length, 0);
});

whatever("two splits", (t, cluster, pass) => {
  for (const [splitKey, value] of [
    ["room/05", "again"],
    ["room/07", "once more"],
  ] as const) {
    t.equal(cluster.split(splitKey), "done");
    pass();
    t.equal(cluster.write("room/08", value), "applied");
  }
  t.equal(cluster.records.ranges("room").length, 3);
});

whatever("neighbours merged", (t, cluster, pass) => {
  t.equal(cluster.split("room/05"), "done");
  pass();
  t.equal(cluster.split("room/07"), "done");
  pass();
  t.equal(cluster.write("room/08", "again"), "applied");
  t.equal(cluster.merge("room", 4, 3), "done");
  pass();
  t.equal(cluster.records.ranges("room").length, 2);
  t.equal(cluster.write("room/08", "once more"), "applied");
});
