/** A cluster that lost its majority is made one of a single node out of one directory, by real processes. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  serverMain,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const directory = temporaryDirectory();
t.setTimeout(400_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const LISTENERS = ["--grpc-port=off", "--https-port=off", "--http-port=0"];

class Nodes {
  private constructor(
    private readonly name: string,
    readonly ports: readonly number[],
  ) {}

  static async of(name: string): Promise<Nodes> {
    return new Nodes(name, await freePorts(4));
  }

  path(id: number): string {
    return join(directory.path, `${this.name}-${id}`);
  }

  flags(id: number): string[] {
    const port = this.ports[id - 1] ?? 0;
    return [`--raft-nodeid=${id}`, `--peer-port=${port}`, `--storage-path=${this.path(id)}`];
  }

  start(id: number, ...more: string[]): ServerProcess {
    return new ServerProcess([...LISTENERS, ...this.flags(id), ...more]);
  }

  found(): ServerProcess[] {
    const list = `--initial-cluster=${foundersOf(this.ports.slice(0, 3))}`;
    return [1, 2, 3].map((id) => this.start(id, list, "--initial-cluster-partitions=2"));
  }

  identity(id: number): { clusterId: string; storageId: string } {
    const file = join(this.path(id), "v1", "identity.json");
    return JSON.parse(readFileSync(file, "utf8")) as { clusterId: string; storageId: string };
  }

  force(id: number, ...more: string[]): { status: number | null; output: string } {
    const flags = [...LISTENERS, ...this.flags(id), ...more];
    const ended = spawnSync(process.execPath, [serverMain, ...flags], { encoding: "utf8" });
    return { status: ended.status, output: `${ended.stdout}${ended.stderr}` };
  }
}

async function post(
  node: ServerProcess,
  path: string,
  body: object,
): Promise<Record<string, unknown>> {
  const { http } = await node.addresses();
  const answer = await fetch(`http://${http}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as Record<string, unknown>;
}

async function token(node: ServerProcess, resource: string, owner: string): Promise<bigint> {
  const body = { resource, owner, expiresMs: 60_000, durability: 1 };
  const answer = await post(node, "/v1/locks/try-lock", body);
  return BigInt((answer["fencingToken"] as number | null) ?? -1);
}

/** A cluster of three with some data, two of whose disks are gone. */
async function bereft(
  name: string,
  lost: readonly number[],
): Promise<{ nodes: Nodes; max: bigint }> {
  const nodes = await Nodes.of(name);
  const running = nodes.found();
  const [first] = await Promise.all(running.map(async (node) => (await node.ready(), node)));
  if (first === undefined) throw new Error("no node");
  let max = 0n;
  for (let at = 0; at < 20; at++) {
    await post(first, "/v1/kv/try-set", { key: `k${at}`, value: "dg==", durability: 1 });
    const granted = await token(first, `lock ${at}`, "o");
    if (granted > max) max = granted;
  }
  await post(first, "/v1/sequences/create", { name: "s", durability: 1 });
  // What is applied on the others is known a heartbeat later; a stop makes it durable.
  await sleep(1500);
  await Promise.all(running.slice(1).map((node) => node.kill()));
  await first.stop();
  for (const id of lost) rmSync(nodes.path(id), { recursive: true, force: true });
  return { nodes, max };
}

t.test(
  "7.7 a node that is left goes on alone, above every token, and others join it",
  async (t) => {
    const { nodes, max } = await bereft("left", [2, 3]);
    const { clusterId } = nodes.identity(1);
    t.equal(nodes.force(1, "--force-new-cluster", "0".repeat(32), "--yes").status, 1, "another id");
    t.equal(nodes.force(1, "--force-new-cluster", clusterId).status, 1, "nobody confirmed");
    const joined = nodes.force(1, "--force-new-cluster", clusterId, "--yes", "--join=127.0.0.1:1");
    t.equal(joined.status, 2, joined.output);
    t.equal(nodes.force(1, "--yes").status, 2);
    t.notOk(existsSync(join(nodes.path(1), "v1", "forcing.json")));
    const before = nodes.start(1);
    await before.addresses();
    const used = nodes.force(1, "--force-new-cluster", clusterId, "--yes");
    t.equal(used.status, 1, used.output);
    t.match(used.output, /in use/);
    await before.kill();
    const forced = nodes.force(1, "--force-new-cluster", clusterId, "--yes");
    t.equal(forced.status, 0, forced.output);
    t.match(
      forced.output,
      /partition 0: applied index \d+, committed as far as known \d+ \(from node [123], \d+ s ago\)/,
    );
    t.match(forced.output, /partition 2: /);
    t.notOk(existsSync(join(nodes.path(1), "v1", "identity.json")));
    const again = nodes.force(1, "--force-new-cluster", clusterId, "--yes");
    t.equal(again.status, 1, "the id is another one now");
    const first = nodes.start(1);
    await first.ready();
    t.not(nodes.identity(1).clusterId, clusterId);
    for (let at = 0; at < 20; at++) {
      const found = await post(first, "/v1/kv/try-get", { key: `k${at}`, durability: 1 });
      t.match(found, { value: "dg==" }, `k${at}`);
    }
    const fresh = await token(first, "another lock", "o");
    t.ok(fresh > max && fresh >= 1n << 44n, `${fresh} > ${max}`);
    const sequence = await post(first, "/v1/sequences/get", { name: "s", durability: 1 });
    t.match(JSON.stringify(sequence), /"incarnation":1048576/);
    const second = nodes.start(2, `--join=127.0.0.1:${nodes.ports[0]}`);
    await second.ready();
    await Promise.all([first.stop(), second.stop()]);
  },
);

t.test("P-138 an old node of a cluster that was forced stays out", async (t) => {
  const { nodes } = await bereft("old", [3]);
  const { clusterId } = nodes.identity(1);
  t.equal(nodes.force(1, "--force-new-cluster", clusterId, "--yes").status, 0);
  const [first, old] = [nodes.start(1), nodes.start(2)];
  await first.ready();
  await old.addresses();
  await sleep(3000);
  const { http } = await old.addresses();
  t.equal((await fetch(`http://${http}/readyz`)).status, 503, "it has no majority");
  const overview = await fetch(`http://${(await first.addresses()).http}/v1/cluster/membership`);
  t.equal((await overview.text()).match(/"nodeId"/g)?.length, 1);
  await Promise.all([first.stop(), old.kill()]);
});

t.test("P-140 an act that was cut short is brought to its end by the same command", async (t) => {
  const { nodes } = await bereft("crash", [2, 3]);
  const { clusterId } = nodes.identity(1);
  const flags = [...LISTENERS, ...nodes.flags(1), "--force-new-cluster", clusterId, "--yes"];
  let began = 0;
  for (let round = 0; round < 12; round++) {
    const act = new ServerProcess(flags);
    setTimeout(() => act.signal("SIGKILL"), 500 + round * 60);
    const { code } = await act.ended;
    if (existsSync(join(nodes.path(1), "v1", "forcing.json"))) {
      began++;
      const refused = nodes.start(1);
      t.equal((await refused.ended).code, 1, "no node starts on it");
      t.match(refused.log, /force-new-cluster/);
    }
    if (code === 0 || !existsSync(join(nodes.path(1), "v1", "identity.json"))) break;
  }
  t.comment(`${began} times in the middle`);
  if (existsSync(join(nodes.path(1), "v1", "identity.json")) || began > 0) {
    const last = nodes.force(1, "--force-new-cluster", clusterId, "--yes");
    t.ok(last.status === 0 || last.status === 1, last.output);
  }
  const first = nodes.start(1);
  await first.ready();
  t.match(await post(first, "/v1/kv/try-get", { key: "k3", durability: 1 }), { value: "dg==" });
  await first.stop();
  writeFileSync(join(nodes.path(1), "v1", "forcing.json"), "{");
  const damaged = nodes.start(1);
  t.equal((await damaged.ended).code, 1);
});
