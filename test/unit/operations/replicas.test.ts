/**
 * Placement as the nodes answer it (contract 5.4): from the committed map, on every node, and what
 * operators are told of partitions that are not as they should be.
 */
import t from "tap";
import type { Command } from "../../../src/machine/commands/command.js";
import { World } from "../../doubles/host/world.js";
import { newMember } from "../../doubles/machine/members.js";
import { orders, place, report } from "../../doubles/machine/placement.js";
import { administer, view } from "../../doubles/operations/administration.js";
import { Bench } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";

/** A hand on the records: decides commands on the meta partition. */
function decide(trio: Trio, command: Command): void {
  trio.host.metaGroup().propose(command, 200, 1e9, () => undefined);
  trio.world.settle();
}

/** Four members; partition 1 is on all of them but the fourth. */
function placedTrio(): Trio {
  const trio = new Trio();
  for (const nodeId of [2, 3, 4]) {
    decide(trio, { kind: "add-member", ...newMember(nodeId, `n${nodeId}:8084`, `d${nodeId}`) });
    decide(trio, { kind: "set-member-role", nodeId, role: "voter" });
  }
  decide(trio, { kind: "set-replication-factor", partitionId: 1, replicationFactor: 3 });
  decide(trio, place(2, 5, [1, 2, 3]));
  return trio;
}

function partition(trio: Trio, node: number, id = 1) {
  const { partitions } = view(trio.node(node), "cluster.placement", {});
  const found = partitions.find(({ partitionId }) => partitionId === id);
  if (found === undefined) throw new Error(`partition ${id} is listed`);
  return found;
}

function replicasOf(trio: Trio, node: number): string {
  const { replicas } = partition(trio, node);
  return replicas.map(({ endpoint, role }) => `${endpoint} ${role}`).join(", ");
}

function detail(node: Trio["nodes"][number]): string | undefined {
  const check = node.healthChecks().find(({ name }) => name === "membership");
  t.equal(check?.failure, null, "the node is ready");
  return check?.detail;
}

t.test(
  "5.4: every node gives the same list, from the record, with roles while replicas move",
  async (t) => {
    const trio = placedTrio();
    trio.unhosted.add("3/1");
    const own = "127.0.0.1:8084";
    for (const node of [1, 2, 3]) {
      t.equal(replicasOf(trio, node), `${own} Voter, n2:8084 Voter, n3:8084 Voter`);
      t.match(partition(trio, node), {
        state: "Active",
        generation: 3,
        effectiveReplicationFactor: 3,
        hostedLocally: node !== 3,
      });
      const placement = view(trio.node(node), "cluster.placement", {});
      t.equal(placement.replicationFactor, 0, "that of the founding");
      t.equal(placement.hostedPartitionCount, node === 3 ? 2 : 3);
      t.same(
        placement.partitions.map(({ partitionId }) => partitionId),
        [1, 2, 3],
      );
      t.same(partition(trio, node, 2).replicas, [], "full replication has no list");
    }
    decide(trio, orders(3, { kind: "add", nodeId: 4, replaces: 2 }));
    t.match(replicasOf(trio, 2), /n3:8084 Voter, n4:8084 Learner$/);
    decide(trio, orders(4, { kind: "cancel", nodeId: 4 }));
    t.match(replicasOf(trio, 1), /n4:8084 Removing$/);
    decide(trio, report(9, [1, 2, 3], [7]));
    t.match(replicasOf(trio, 1), /n3:8084 Voter, {2}Learner$/, "who is no member has no address");
  },
);

t.test(
  "5.4: a factor above the cluster is accepted; 0 clears; the present one is a success",
  async (t) => {
    const bench = new Bench();
    const context = { deadlineMs: 1e9, forwardHops: 0, requestId: "t" };
    const change = (replicationFactor: number) => {
      const request = { partitionId: 2, replicationFactor };
      const answers: object[] = [];
      const { operations } = bench;
      administer(operations, "cluster.setReplicationFactor", request, context, (answer) => {
        answers.push(answer);
      });
      bench.world.settle();
      return answers[0];
    };
    const effective = (): number | undefined => {
      const { partitions } = view(bench.operations, "cluster.placement", {});
      return partitions[1]?.effectiveReplicationFactor;
    };
    t.match(change(9), { success: true, status: "Success", generation: 2, reason: "" });
    t.equal(effective(), 1, "the cluster has one voter");
    t.match(
      change(9),
      { success: true, generation: 2 },
      "the present value, the present generation",
    );
    t.match(change(0), { success: true, generation: 3 });
    t.equal(effective(), 0);
  },
);

t.test(
  "P-093 operators are told what is below its factor, what moves, and what it waits for",
  async (t) => {
    const trio = placedTrio();
    t.equal(detail(trio.node(1)), undefined, "all in order");
    trio.dead.add(3);
    t.equal(detail(trio.node(1)), "under-replicated: 1 partition (1)");
    trio.waits.push({ partition: 1, why: "no eligible node" }, { partition: 2, why: "not asked" });
    t.equal(
      detail(trio.node(2)),
      "under-replicated: 1 partition (1); 1 waits: no eligible node",
      "by any node; of partitions that are in order nothing is said",
    );
    decide(trio, orders(3, { kind: "add", nodeId: 4, replaces: 3 }));
    t.match(detail(trio.node(1)), /^under-replicated: .*; on the move: 1 partition \(1\); 1 waits/);
    for (let at = 0; at < 20; at++) trio.waits.push({ partition: 1, why: `reason ${at}` });
    t.ok((detail(trio.node(1)) ?? "").length < 400, "bounded");
    t.match(detail(trio.node(1)), /and more$/);
  },
);

t.test("5.4: another factor than the cluster's is told", async (t) => {
  const same = new Bench({ givenReplicationFactor: 0 });
  const membership = (bench: Bench) => {
    return bench.operations.healthChecks().find(({ name }) => name === "membership");
  };
  t.same(membership(same), { name: "membership", failure: null });
  const other = new Bench({ givenReplicationFactor: 3 });
  t.match(membership(other), {
    failure: null,
    detail: "--raft-replication-factor is 3, that of the cluster is 0",
  });
  const world = new World({ givenReplicationFactor: 3 });
  world.ready();
  world.pass(60_000);
  const lines = world.logLines.filter((line) => line.includes("replication factor"));
  t.equal(lines.length, 1, "once");
  t.match(lines[0], /^warn .*"given":3,"committed":0/);
});
