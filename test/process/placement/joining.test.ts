/** A sixth real node joins five with a factor of three: replicas come to it until the counts are even. */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { rolesUntil } from "../net/processes.js";
import { Load } from "./load.js";
import { PlacedNodes } from "./placed-nodes.js";

t.setTimeout(240_000);
t.teardown(endAll);

const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=10",
  "--raft-placement-pass-interval=1s",
];

t.test(
  "5.4 a node that joins gets its share while callers write, and nothing is lost",
  async (t) => {
    const nodes = await PlacedNodes.start(5, 1, FLAGS);
    t.teardown(() => nodes.end());
    const load = await Load.start(nodes, 6, 51);
    await load.goesOn(100);
    await nodes.launch(6).ready();
    const all = [1, 2, 3, 4, 5, 6];
    const roles = all.map((id) => `${id} Voter`).join(", ");
    t.equal(await rolesUntil(nodes.node(1), roles), roles);
    await load.open(nodes, 6);
    await nodes.settled(6, 3, all);
    // Another node hears of the last move a moment later.
    await nodes.settled(2, 3, all);
    t.same([...(await nodes.counts(2)).values()], [5, 5, 5, 5, 5, 5], "as many on each");
    const { partitions, hostedPartitionCount } = await nodes.placement(6);
    t.equal(hostedPartitionCount, 5);
    await load.goesOn(100);
    t.same(await load.judge(), []);
    t.comment(JSON.stringify(load.findings.compared), `unknown ${load.findings.unknowns}`);
    t.same(
      partitions.map(({ effectiveReplicationFactor }) => effectiveReplicationFactor),
      partitions.map(() => 3),
    );
    for (const id of all) {
      t.match(await nodes.call(id, "/v1/cluster/health"), { ready: true, hostedPartitions: 6 });
    }
  },
);
