/**
 * A real node dies with its disk: its replicas are made anew elsewhere, it is not let back as it was, and the command that
 * it names makes room for it.
 */
import t from "tap";
import { endAll } from "../cluster/server-process.js";
import { rolesUntil } from "../net/processes.js";
import { Load } from "./load.js";
import { PlacedNodes, eventually } from "./placed-nodes.js";

t.setTimeout(240_000);
t.teardown(endAll);

const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=10",
  "--raft-placement-pass-interval=1s",
  "--raft-dead-member-timeout=10s",
];

t.test(
  "5.4 P-095 a dead node is replaced, removed by force, and comes back with nothing",
  async (t) => {
    const nodes = await PlacedNodes.start(5, 0, FLAGS);
    t.teardown(() => nodes.end());
    const load = await Load.start(nodes, 6, 53);
    const remove = async (by: number): Promise<{ readonly outcome: string }> => {
      return (await nodes.call(by, "/v1/cluster/leave", { nodeId: 5 })) as { outcome: string };
    };
    t.match(await remove(1), { left: false, outcome: "RefusedStillAlive", status: 409 });
    await load.goesOn(50);
    load.leave(5);
    await nodes.lose(5);

    await t.test("its replicas are made anew elsewhere; it stays a member", async (t) => {
      await nodes.settled(1, 3, [1, 2, 3, 4]);
      const roles = "1 Voter, 2 Voter, 3 Voter, 4 Voter, 5 Voter";
      t.equal(await rolesUntil(nodes.node(3), roles), roles);
      await load.goesOn(50);
    });

    await t.test("it is refused without its data, and says which command helps", async (t) => {
      const empty = nodes.launch(5);
      const words = /belongs to no cluster yet.*--cluster-leave --member 5/;
      await eventually(
        "it says so",
        () => words.test(empty.log),
        () => empty.log,
      );
      t.equal(empty.output, "", "it serves nobody");
      let outcome = "";
      const removed = async (): Promise<boolean> => {
        ({ outcome } = await remove(2));
        return outcome === "Committed";
      };
      await eventually("it is removed", removed, () => outcome);
      await empty.ready();
      const roles = "1 Voter, 2 Voter, 3 Voter, 4 Voter, 5 Voter";
      t.equal(await rolesUntil(nodes.node(4), roles), roles);
      await load.open(nodes, 5);
      await load.goesOn(50);
    });

    t.same(await load.judge(), [], "nothing acknowledged is lost");
    t.comment(JSON.stringify(load.findings.compared), `unknown ${load.findings.unknowns}`);
  },
);
