/** Partitions that a split makes while the nodes run: they come, begin with the founders of their record, and go. */
import t from "tap";
import { moveId, rangeGeneration } from "../../../../src/base/ids.js";
import { REMOVED_PARTITIONS_KEPT } from "../../../../src/base/limits.js";
import type { HostSettings } from "../../../../src/host/settings.js";
import type { MetaCommand, MetaOutcome } from "../../../../src/machine/commands/command.js";
import { PlacedCluster, replicaOf } from "../../../doubles/host/placing.js";

/** What a split of "e", whose home is partition 1 of 2, makes first. */
const BORN = 3;

const SPLIT: MetaCommand = {
  ...{ kind: "begin-move", move: "split", keySpace: "e", startKey: "e/m", endKey: null },
  ...{ source: 1, target: 0, generation: rangeGeneration(1) },
};

function endOf(id: number): readonly MetaCommand[] {
  const of = { keySpace: "e", moveId: moveId(id) };
  return [
    { kind: "abort-move", ...of, reason: "no-target" },
    { kind: "finish-move", ...of, side: "source" },
  ];
}

type GroupHandle = ReturnType<ReturnType<PlacedCluster["node"]>["metaGroup"]>;

class Splitting extends PlacedCluster {
  constructor(size: number, factor: number, settings: Partial<HostSettings> = {}) {
    super(size, factor, settings);
    this.ready();
    this.passUntil(() => this.serverOf(0) !== null);
    this.decideMeta({ kind: "register-range", keySpace: "e", partitionId: 1 });
  }

  split(): MetaOutcome | null {
    return this.decideMeta(SPLIT);
  }

  /** Gives the split up; its partition is removed. */
  end(id: number): void {
    for (const command of endOf(id)) this.decideMeta(command);
  }

  get meta(): GroupHandle {
    return this.node(this.serverOf(0) ?? 1).metaGroup();
  }

  /** Splits that are given up at once: nobody sees their partitions. */
  splitInVain(times: number): void {
    let version = this.meta.machine.meta.cluster()?.mapVersion ?? 0;
    let left = 0;
    for (let round = 0; round < times; round++) {
      // Each command is a version of the map, the first of them the id of the move.
      for (const command of [SPLIT, ...endOf(version + 1)]) {
        left++;
        version++;
        this.meta.proposeFinal(command, 200, this.nowMs + 9000, () => left--);
      }
    }
    this.passUntil(() => left === 0);
  }
}

for (const factor of [0, 2]) {
  const nodes = factor === 0 ? [1, 2, 3] : [1, 2];
  t.test(
    `P-088 P-103 a partition is born, led, started again and removed, factor ${factor}`,
    (t) => {
      const cluster = new Splitting(3, factor);
      const begun = cluster.split();
      t.match(begun, { status: "done" });
      cluster.passUntil(() => cluster.serverOf(BORN) !== null);
      t.same(cluster.hosts(BORN), nodes);
      t.match(cluster.record(BORN), { founders: nodes, state: "Splitting" });
      const server = cluster.serverOf(BORN) ?? 0;
      const { voters } = replicaOf(cluster.node(server), BORN)?.core.membership ?? { voters: [] };
      t.same(voters, nodes, "it began with them");
      for (const id of nodes) cluster.kill(id);
      for (const id of nodes) cluster.start(id);
      cluster.ready();
      cluster.passUntil(() => cluster.serverOf(BORN) !== null && cluster.serverOf(0) !== null);
      t.same(cluster.hosts(BORN), nodes, "after a start, too");
      cluster.end(begun?.generation ?? 0);
      t.equal(cluster.record(BORN).state, "Removed");
      cluster.passUntil(() => cluster.hosts(BORN).length === 0);
      for (const id of nodes) cluster.passUntil(() => cluster.rowsOf(id, BORN as never) === 0);
      t.match(cluster.split(), { status: "done" });
      cluster.passUntil(() => cluster.serverOf(BORN + 1) !== null);
      t.same(cluster.hosts(BORN), []);
      t.end();
    },
  );
}

t.test("P-103 what was removed long ago goes from a node that slept, without a record", (t) => {
  const cluster = new Splitting(3, 0);
  const begun = cluster.split();
  cluster.passUntil(() => cluster.hosts(BORN).length === 3 && cluster.serverOf(BORN) !== null);
  const sleeper = [1, 2, 3].find((id) => id !== cluster.serverOf(0)) ?? 3;
  cluster.kill(sleeper);
  cluster.end(begun?.generation ?? 0);
  cluster.splitInVain(REMOVED_PARTITIONS_KEPT);
  const { meta } = cluster.meta.machine;
  t.equal(meta.partition(BORN), null);
  t.equal(meta.isRemoved(BORN), true);
  cluster.start(sleeper);
  cluster.ready();
  cluster.passUntil(() => cluster.hosts(BORN).length === 0);
  cluster.passUntil(() => cluster.rowsOf(sleeper, BORN as never) === 0);
  t.equal(cluster.world(sleeper).log.durable.has(BORN as never), false, "nor in the log");
  t.end();
});

t.test("P-083 P-103 a removed partition keeps nobody from leaving", (t) => {
  const placing = { rebalancerEnabled: true, placementPassEveryMs: 1000 };
  const cluster = new Splitting(4, 2, placing);
  const begun = cluster.split();
  cluster.passUntil(() => cluster.serverOf(BORN) !== null);
  cluster.end(begun?.generation ?? 0);
  cluster.passUntil(() => cluster.hosts(BORN).length === 0);
  const { state, replicas } = cluster.record(BORN);
  t.equal(state, "Removed");
  const leaver = replicas.find(({ nodeId }) => nodeId !== cluster.serverOf(0))?.nodeId ?? 0;
  // Nodes get replicas when they have been live for some time.
  cluster.pass(40_000);
  const said: string[] = [];
  cluster.node(leaver).leave(cluster.nowMs + 70_000, 60_000, (outcome) => said.push(outcome));
  cluster.passUntil(() => said.length > 0, 90_000);
  t.same(said, ["Committed"]);
  t.end();
});
