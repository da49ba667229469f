/**
 * W14 against five real nodes, each with a part of the replicas: a watch of what no node hosts all
 * of is told whole at every node, while a node is killed and replicas move.
 */
import t from "tap";
import { SvcClient, type Watch } from "../../../src/client/mod.js";
import { PlacedNodes, eventually } from "../placement/placed-nodes.js";

const SPACES = 12;

t.setTimeout(300_000);

interface Seen {
  readonly name: string;
  /** By name of what is watched, the newest. */
  readonly newest: Map<string, string>;
  readonly wrong: string[];
}

/** What a watch tells, until it is left. */
function seenBy(name: string, watch: Watch): Seen {
  const seen: Seen = { name, newest: new Map(), wrong: [] };
  const read = async (): Promise<void> => {
    for await (const { events, reset, merged } of watch) {
      if (reset) seen.newest.clear();
      for (const { name: of, text, owner } of events) {
        const told = text ?? (owner === null ? "" : Buffer.from(owner).toString());
        const last = seen.newest.get(of) ?? "";
        const isNew = merged ? told >= last : told > last;
        if (!isNew && text !== null) seen.wrong.push(`${of}: ${told} behind ${last}`);
        seen.newest.set(of, told);
      }
    }
  };
  read().catch((error: unknown) => seen.wrong.push(String(error)));
  return seen;
}

t.test("W14 a prefix, locks by prefix and keys at every node of five", async (t) => {
  const size = "--initial-cluster-partitions=8";
  const nodes = await PlacedNodes.start(5, 0, ["--raft-replication-factor=3", size]);
  t.teardown(() => nodes.end());
  await nodes.settled(1, 3, [1, 2, 3, 4, 5]);
  const endpoints: string[] = [];
  for (const id of nodes.running) endpoints.push(`http://${(await nodes.addresses(id)).grpc}`);
  const writer = new SvcClient({ endpoints });
  const readers = endpoints.map((each) => new SvcClient({ endpoints: each, followRoutes: false }));
  t.teardown(() => Promise.all([writer, ...readers].map((client) => client.close())));
  const written = new Map<string, string>();
  const owned = new Map<string, string>();
  let round = 0;
  const write = async (): Promise<void> => {
    round++;
    for (let at = 0; at < SPACES; at++) {
      const key = `joint${at}/k`;
      await writer.kv.set(key, `${round}`);
      written.set(key, `${round}`);
      const owner = `${round}`;
      const resource = `joint${at}/${round}`;
      await writer.locks.acquire(resource, { owner, leaseMs: 600_000, renew: false });
      owned.set(resource, owner);
    }
  };
  await write();
  const watching: Watch[] = [];
  const all: Seen[] = [];
  const begin = (name: string, watch: Watch): Seen => {
    watching.push(watch);
    const seen = seenBy(name, watch);
    all.push(seen);
    return seen;
  };
  t.teardown(() => Promise.all(watching.map((watch) => watch.return())));
  const keys: Seen[] = [];
  const locks: Seen[] = [];
  for (const [at, { watch }] of readers.entries()) {
    keys.push(begin(`prefix at ${at + 1}`, watch.prefix("joint", { initial: true })));
    keys.push(begin(`key at ${at + 1}`, watch.key("joint3/k", { initial: true })));
    locks.push(begin(`locks at ${at + 1}`, watch.lockPrefix("joint", { initial: true })));
  }
  await Promise.all(watching.map((watch) => watch.started()));
  const isTold = (seen: Seen): boolean => {
    if (seen.name.startsWith("key")) return seen.newest.get("joint3/k") === `${round}`;
    return [...written].every(([key, value]) => seen.newest.get(key) === value);
  };
  const knowsLocks = (seen: Seen): boolean =>
    [...owned].every(([name, owner]) => seen.newest.get(name) === owner);
  const told = async (what: string, but = ""): Promise<void> => {
    const living = ({ name }: Seen): boolean => but === "" || !name.endsWith(but);
    const isAll = (): boolean =>
      keys.filter(living).every(isTold) && locks.filter(living).every(knowsLocks);
    const tell = (): string =>
      JSON.stringify(all.map(({ name, newest, wrong }) => ({ name, wrong, newest: [...newest] })));
    await eventually(what, isAll, tell);
  };
  await write();
  await told("all are told");
  const poll = async (body: object): Promise<{ cursor: string; events: { name: string }[] }> =>
    (await nodes.call(2, "/v1/watch/poll", { kind: "prefix", name: "joint", ...body })) as never;
  const { cursor } = await poll({});
  await nodes.kill(5);
  await write();
  await told("all that live are told", "5");
  let polled = await poll({ cursor, waitMs: 2000 });
  const names = new Set<string>();
  for (let tries = 0; tries < 50 && names.size < SPACES; tries++) {
    for (const { name } of polled.events) names.add(name);
    polled = await poll({ cursor: polled.cursor, waitMs: 2000 });
  }
  t.equal(names.size, SPACES, "a poll is told all, too");
  nodes.launch(5);
  await nodes.node(5).ready();
  const { partitions } = await nodes.placement(1);
  const [moved] = partitions.filter(({ partitionId }) => partitionId > 0);
  let isSet = false;
  for (const { cluster } of readers) {
    if (moved === undefined || isSet) continue;
    isSet = (await cluster.setReplicationFactor(moved.partitionId, 1)).success;
  }
  t.ok(isSet, "two replicas go");
  const left = async (): Promise<boolean> => {
    const found = (await nodes.placement(1)).partitions;
    return found.find((each) => each.partitionId === moved?.partitionId)?.replicas.length === 1;
  };
  await eventually("one replica is left", left);
  await write();
  // The one that came again has other ports.
  await told("all are told again", "5");
  t.same(
    all.flatMap(({ name, wrong }) => wrong.map((each) => `${name}: ${each}`)),
    [],
    "in order",
  );
});
