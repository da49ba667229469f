/**
 * Contract 5.3 on real nodes: who is needed does not leave, and is not removed by force. REST, gRPC and the exit code of
 * the shell say the same.
 */
import t, { type Test } from "tap";
import { runCli } from "../cli/programs.js";
import { endAll } from "../cluster/server-process.js";
import { PlacedNodes, eventually } from "../placement/placed-nodes.js";
import { PlacedCallers } from "./placed-callers.js";
import type { Json } from "./wire.js";

t.setTimeout(240_000);
t.teardown(endAll);

const REASON = /majority.*\.$/;
const DEAD = 2;

async function opened(t: Test, count: number, flags: readonly string[]): Promise<PlacedCallers> {
  const nodes = await PlacedNodes.start(count, 0, [
    "--initial-cluster-partitions=5",
    "--raft-placement-pass-interval=1s",
    ...flags,
  ]);
  const callers = await new PlacedCallers(nodes).open();
  t.teardown(() => {
    callers.close();
    return nodes.end();
  });
  // The line of each founder is written once more, by itself.
  const isFounded = async (): Promise<boolean> => {
    const { body } = await callers.get(1, "/v1/cluster/membership");
    return body["membershipVersion"] === count;
  };
  await eventually("the founding is over", isFounded);
  return callers;
}

/** Every front end refuses, and nothing has changed by it. `member`: removed by force, with `by` as the one who is asked. */
async function refuses(t: Test, callers: PlacedCallers, by: number, member = 0): Promise<void> {
  const { nodes } = callers;
  const before = await callers.get(by, "/v1/cluster/membership");
  const version = Number(before.body["membershipVersion"]);
  const rest = await callers.leave(by, member === 0 ? {} : { nodeId: member });
  t.equal(rest.status, 409);
  t.match(rest.body, {
    ...{ left: false, drained: false, outcome: "RefusedInsufficientVoters", retryable: false },
    ...{ code: "refused", status: 409, membershipVersion: version, reason: REASON },
  });
  t.match(await callers.rpc(by, "Leave", { NodeId: member }), {
    ...{ Left: false, Drained: false, Outcome: 2, Retryable: false },
    ...{ MembershipVersion: String(version), Reason: rest.body["reason"] },
  });
  const endpoint = `http://${(await nodes.addresses(by)).grpc}`;
  const whom = member === 0 ? ["--node", endpoint] : ["-c", endpoint, "--member", String(member)];
  const ran = await runCli(["--cluster-leave", ...whom, "--yes"]);
  t.equal(ran.exit, 1, ran.stderr);
  t.match(ran.stdout, /Outcome RefusedInsufficientVoters/);
  const after = await callers.get(by, "/v1/cluster/membership");
  t.same(after.body, before.body, "nobody leaves");
  t.match(await callers.get(by, "/v1/cluster/placement"), { status: 200 });
}

t.test("a dead node, and partitions of two replicas", async (t) => {
  const callers = await opened(t, 5, ["--raft-replication-factor=2"]);
  const { nodes } = callers;
  const lists = (await nodes.placement(1)).partitions.map(({ replicas }) =>
    replicas.map(({ endpoint }) => nodes.idOf(endpoint)),
  );
  t.same(lists.slice(0, 2), [
    [1, DEAD],
    [DEAD, 3],
  ]);
  await nodes.kill(DEAD);
  for (const id of nodes.running) {
    const { http } = await nodes.addresses(id);
    const metrics = async (): Promise<string> => (await fetch(`http://${http}/metrics`)).text();
    const isSeen = async (): Promise<boolean> =>
      (await metrics()).includes("\nsvc_partitions_without_majority 2\n");
    await eventually(`node ${id} knows`, isSeen, metrics);
  }

  await t.test("5.3 a partition of the node has no live majority: it stays", async (t) => {
    await refuses(t, callers, 1);
    await refuses(t, callers, 3);
  });

  await t.test("5.3 rule 3: a partition decides nothing without the dead node", async (t) => {
    const early = await callers.leave(4, { nodeId: DEAD });
    t.match(early.body, { outcome: "RefusedStillAlive" }, "it was heard a moment ago");
    let said: Json = {};
    const isForgotten = async (): Promise<boolean> => {
      said = (await callers.leave(4, { nodeId: DEAD })).body;
      return said["outcome"] !== "RefusedStillAlive";
    };
    await eventually("nobody heard it lately", isForgotten, () => JSON.stringify(said));
    await refuses(t, callers, 4, DEAD);
    await refuses(t, callers, 5, DEAD);
  });

  await t.test("5.3 with the dead node back, the same node can go", async (t) => {
    await nodes.launch(DEAD).ready();
    let said: Json = {};
    const isOut = async (): Promise<boolean> => {
      said = (await callers.leave(1)).body;
      return said["left"] === true;
    };
    await eventually("it leaves", isOut, () => JSON.stringify(said));
    t.match(said, { outcome: "Committed", drained: true });
  });
});

t.test("5.3 rule 1: without the rebalancer the last replica goes nowhere", async (t) => {
  const flags = ["--raft-replication-factor=1", "--raft-enable-placement-rebalancer=false"];
  const callers = await opened(t, 3, flags);
  for (const id of callers.nodes.running) await refuses(t, callers, id);
});
