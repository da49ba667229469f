/**
 * The log behind a running transfer and behind a linked follower stays, up to a bound: otherwise
 * snapshots follow each other without end. And what the log cannot take is refused, not gathered.
 */
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import { type FlooredGroup, LogFloors } from "../../../src/host/storage/log-floors.js";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../src/host/snapshots/snapshot-limits.js";
import type { LogSpace } from "../../../src/ports.js";
import { Cluster } from "../../doubles/host/peerworld.js";
import { setCommand } from "../../doubles/host/world.js";

class FakeGroup implements FlooredGroup {
  floorIndex = 0;
  keepFrom = Infinity;
  followersFrom = Infinity;

  compact(index: number): void {
    this.floorIndex = index;
  }

  payloadBytes(first: number, last: number): number {
    return (last - first + 1) * 488;
  }
}

void t.test("P-194 P-037 floors respect transfers and followers, up to a bound", (t) => {
  let space: LogSpace = "available";
  const none = { limit: (_: FlooredGroup, floor: number) => floor, removed: () => undefined };
  const floors = new LogFloors({ space: () => space }, () => 100_000, none);
  const [one, two] = [new FakeGroup(), new FakeGroup()];
  floors.raise(one, 10);
  t.equal(one.floorIndex, 10, "nobody wants it");
  one.keepFrom = 12;
  floors.raise(one, 60);
  t.equal(one.floorIndex, 12);
  one.followersFrom = 11;
  floors.raise(one, 70);
  t.equal(one.floorIndex, 12, "a floor never falls");
  // An entry weighs 1000 bytes here; two groups share 100,000.
  two.followersFrom = 0;
  floors.raise(two, 40);
  floors.raise(one, 71);
  t.same([one.floorIndex, two.floorIndex], [12, 0], "99 are kept");
  floors.raise(two, 42);
  t.same([one.floorIndex, two.floorIndex], [12, 0], "too many, but not by its fault");
  floors.raise(one, 72);
  t.same([one.floorIndex, two.floorIndex], [72, 0], "who keeps most loses it");
  t.equal(floors.cutCount, 1);
  floors.raise(two, 60);
  t.equal(two.floorIndex, 0, "it has all the room now");
  two.followersFrom = 30;
  floors.raise(two, 61);
  t.equal(two.floorIndex, 30);
  space = "full";
  floors.raise(two, 62);
  t.equal(two.floorIndex, 62, "on a full disk nothing is kept for others");
  t.equal(floors.cutCount, 2);
  t.end();
});

const SMALL_SNAPSHOTS = {
  initialPartitions: 1,
  leaderBalanceEveryMs: 0,
  compactKeepEntries: 5,
  compactEveryEntries: 50,
  flushAgeMs: 100,
  snapshots: { ...DEFAULT_SNAPSHOT_SETTINGS, bytesPerSecond: 400_000 },
};

function put(cluster: Cluster, key: string, results: ProposalResult[]): void {
  const id = cluster.serverOf(1);
  const group = id === null ? null : cluster.node(id).group(partitionId(1));
  const command = setCommand(key, new Uint8Array(1000));
  group?.propose(command, 1100, cluster.nowMs + 10_000, (result) => results.push(result));
}

/** A cluster in which a follower was away until only a snapshot could bring it up. */
function withLaggard(settings: object): { cluster: Cluster; away: number } {
  const cluster = new Cluster(3, { ...SMALL_SNAPSHOTS, ...settings }).ready();
  const away = [1, 2, 3].find((id) => id !== cluster.serverOf(1)) ?? 0;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 1000; at++) {
    put(cluster, `base-${at}`, results);
    if (at % 20 === 19) cluster.pass(10);
  }
  cluster.kill(away);
  cluster.passUntil(() => cluster.serverOf(1) !== null);
  for (let at = 0; at < 200; at++) {
    put(cluster, `more-${at}`, results);
    cluster.pass(10);
  }
  cluster.pass(500);
  cluster.start(away);
  return { cluster, away };
}

/**
 * Writes for `seconds`, a hundred a second; how many snapshots went over. Stops when it caught up.
 */
function writeOn(cluster: Cluster, away: number, seconds: number): [number, boolean] {
  const snapshots = (): number => {
    return [...cluster.nodes.values()].reduce(
      (sum, node) => sum + node.facts().snapshotsDelivered,
      0,
    );
  };
  const results: ProposalResult[] = [];
  for (let step = 0; step < 100 * seconds; step++) {
    put(cluster, `hot-${step % 50}`, results);
    cluster.pass(10);
    const there = cluster.node(away).groups()[1]?.facts();
    const here = cluster
      .node(cluster.serverOf(1) ?? away)
      .groups()[1]
      ?.facts();
    const lag = (here?.appliedIndex ?? 0) - (there?.appliedIndex ?? 0);
    if (snapshots() > 0 && there?.leaderNode !== 0 && lag < 30) return [snapshots(), true];
  }
  return [snapshots(), false];
}

void t.test(
  "P-194 P-037 P-116 a log that is too large stays behind a transfer: one snapshot",
  (t) => {
    const { cluster, away } = withLaggard({});
    // More segments than there should be, all the time: each tick relieves the log.
    for (const { log } of cluster.worlds.values()) log.pinning = [partitionId(1)];
    const [snapshots, isCaughtUp] = writeOn(cluster, away, 60);
    t.ok(isCaughtUp, "it catches up");
    t.equal(snapshots, 1);
    t.end();
  },
);

void t.test("P-194 a bound that is too small is raised until a snapshot can be joined", (t) => {
  const { cluster, away } = withLaggard({ logKeepBytesMax: 10_000 });
  for (const { log } of cluster.worlds.values()) log.pinning = [partitionId(1)];
  const [snapshots, isCaughtUp] = writeOn(cluster, away, 120);
  t.ok(isCaughtUp, "it catches up");
  t.ok(snapshots <= 4, `${snapshots} snapshots`);
  t.end();
});

void t.test("P-194 P-035 a linked follower that lags is fed from the log", (t) => {
  const cluster = new Cluster(3, { ...SMALL_SNAPSHOTS, flushRows: 20 }).ready();
  const follower = [1, 2, 3].find((id) => id !== cluster.serverOf(1)) ?? 0;
  for (const { log } of cluster.worlds.values()) log.pinning = [partitionId(1)];
  const { log } = cluster.world(follower);
  log.automatic = false;
  const results: ProposalResult[] = [];
  for (let at = 0; at < 500; at++) {
    put(cluster, `key-${at}`, results);
    cluster.pass(10);
  }
  log.automatic = true;
  log.sync();
  cluster.pass(2000);
  const [here, there] = [cluster.serverOf(1) ?? 0, follower].map((id) => {
    return cluster.node(id).groups()[1]?.facts().appliedIndex;
  });
  t.equal(there, here);
  t.equal(cluster.node(follower).facts().snapshotsInstalled, 0);
  const leading = cluster.node(cluster.serverOf(1) ?? 0);
  t.equal(leading.facts().logCuts, 0);
  t.end();
});

void t.test("P-035 P-163 a log that hangs gathers no more than its share, of all groups", (t) => {
  const budget = 100_000;
  const groups = 12;
  const settings = {
    initialPartitions: groups,
    unwrittenBytesMax: budget,
    leaderBalanceEveryMs: 0,
    electionMs: 4000,
    electionEndMs: 6000,
  };
  const cluster = new Cluster(3, settings).ready();
  const leads = (id: number): number => {
    return cluster
      .node(id)
      .groups()
      .filter((group) => group.isLeader()).length;
  };
  // Who leads least is the one whose disk hangs.
  const [slow] = [1, 2, 3].sort((a, b) => leads(a) - leads(b));
  const { log } = cluster.world(slow ?? 0);
  log.automatic = false;
  const results: ProposalResult[] = [];
  const value = new Uint8Array(8000);
  let gathered = 0;
  let sent = 0;
  for (let round = 0; round < 40; round++) {
    for (let number = 1; number <= groups; number++) {
      const id = cluster.serverOf(number);
      if (id === null || id === slow) continue;
      const group = cluster.node(id).group(partitionId(number));
      const command = setCommand(`${number}-${round}`, value);
      group?.propose(command, 8100, cluster.nowMs + 10_000, (result) => results.push(result));
      sent++;
    }
    cluster.pass(20);
    let bytes = 0;
    for (const { entries } of log.pending) {
      for (const { payload } of entries) bytes += payload.length;
    }
    gathered = Math.max(gathered, bytes);
  }
  t.ok(sent * value.length > 10 * budget, `${sent} values were written`);
  t.equal(results.filter(({ status }) => status === "applied").length, sent, "the others go on");
  // What one turn brings comes on top: an entry of each group.
  t.ok(gathered <= budget + groups * 2 * 8200, `${gathered} bytes wait for the disk`);
  const node = cluster.node(slow ?? 0);
  t.ok(node.facts().refusedAppends > 0);
  t.ok(node.facts().unwrittenBytes <= gathered);
  log.automatic = true;
  log.sync();
  const applied = (id: number): number[] => {
    return cluster
      .node(id)
      .groups()
      .map((group) => group.facts().appliedIndex);
  };
  const other = [1, 2, 3].find((id) => id !== slow) ?? 0;
  cluster.passUntil(() => `${applied(slow ?? 0).join()}` === `${applied(other).join()}`);
  t.equal(node.facts().unwrittenBytes, 0, "all is given back");
  t.equal(node.facts().snapshotsInstalled, 0);
  t.end();
});
