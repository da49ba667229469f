/**
 * W14 against five real nodes, of which three have a partition: a watch that is asked for at a node
 * without a replica, or whose node loses its replica, goes on where there is one.
 */
import t from "tap";
import { SvcClient, type Watch } from "../../../src/client/mod.js";
import { PlacedNodes, eventually } from "../placement/placed-nodes.js";

const KEY = "routed/k";

t.setTimeout(240_000);

/** The values that a watch tells, until it is left. */
function values(watch: Watch): string[] {
  const all: string[] = [];
  const read = async (): Promise<void> => {
    for await (const { events } of watch) {
      for (const { text } of events) if (text !== null) all.push(text);
    }
  };
  read().catch((error: unknown) => all.push(String(error)));
  return all;
}

t.test("W14 every node tells of a key, wherever its replicas are and go", async (t) => {
  const size = "--initial-cluster-partitions=2";
  const nodes = await PlacedNodes.start(5, 0, ["--raft-replication-factor=3", size]);
  t.teardown(() => nodes.end());
  const clients: SvcClient[] = [];
  for (const id of nodes.running) {
    const { grpc } = await nodes.addresses(id);
    clients.push(new SvcClient({ endpoints: `http://${grpc}` }));
  }
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  const [writer] = clients as [SvcClient, ...SvcClient[]];
  await writer.kv.set(KEY, "0");
  const got = (await nodes.call(1, "/v1/kv/try-get", { key: KEY })) as {
    readonly route: { readonly partitionId: number };
  };
  const { partitionId } = got.route;
  const hosts = async (): Promise<number> => {
    let count = 0;
    for (const id of nodes.running) {
      const { partitions } = await nodes.placement(id);
      const placed = partitions.find((each) => each.partitionId === partitionId);
      if (placed?.hostedLocally === true) count++;
    }
    return count;
  };
  const watchAll = async (): Promise<string[][]> => {
    const watches = clients.map((client) => client.watch.key(KEY));
    t.teardown(() => Promise.all(watches.map((watch) => watch.return())));
    await Promise.all(watches.map((watch) => watch.started()));
    return watches.map(values);
  };
  const toldAll = async (all: readonly string[][], value: string): Promise<void> => {
    await writer.kv.set(KEY, value);
    const isTold = (): boolean => all.every((each) => each.at(-1) === value);
    await eventually(`all are told ${value}`, isTold, () => JSON.stringify(all));
  };

  t.equal(await hosts(), 3, "two nodes have no replica");
  const told = await watchAll();
  await toldAll(told, "1");
  t.same(told, [["1"], ["1"], ["1"], ["1"], ["1"]], "each is told it once");

  let isSet = false;
  // The node that leads the meta partition takes it.
  for (const { cluster } of clients) {
    isSet ||= (await cluster.setReplicationFactor(partitionId, 1)).success;
  }
  t.ok(isSet, "two replicas are too many from now on");
  await eventually("one node has a replica", async () => (await hosts()) === 1);
  await toldAll(told, "2");
  const isInOrder = (all: readonly string[]): boolean =>
    [...all].sort().join() === all.join() && new Set(all).size === all.length;
  t.ok(told.every(isInOrder), "in order, and each once");
});
