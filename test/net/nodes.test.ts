/** Real server processes that are one cluster: first members, a lost node, joining, leaving. */
import { createServer } from "node:net";
import { join } from "node:path";
import t from "tap";
import { ServerProcess, endAll, temporaryDirectory } from "../cluster/server-process.js";
import { sleep } from "./world.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** Ports that were free a moment ago: a list of first members needs them before anybody starts. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address !== null && typeof address !== "string") ports.push(address.port);
  }
  for (const server of servers) await new Promise((resolve) => server.close(resolve));
  return ports;
}

function startNode(nodeId: number, ...flags: readonly string[]): ServerProcess {
  return new ServerProcess([
    "--grpc-port=off",
    "--https-port=off",
    "--http-port=0",
    "--initial-cluster-partitions=4",
    `--raft-nodeid=${nodeId}`,
    `--storage-path=${join(directory.path, `node${nodeId}`)}`,
    ...flags,
  ]);
}

async function call(node: ServerProcess, path: string, body?: object): Promise<unknown> {
  const { http } = await node.addresses();
  const init =
    body === undefined
      ? {}
      : {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        };
  const answer = await fetch(`http://${http}${path}`, init);
  return answer.json();
}

/** Asks until `type` is the outcome: a failover takes its time. */
async function callUntil(node: ServerProcess, path: string, body: object, type: number) {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const answer = (await call(node, path, body)) as { type: number; value?: string };
    if (answer.type === type || performance.now() > endMs) return answer;
    await sleep(50);
  }
}

interface Membership {
  readonly members: readonly { readonly nodeId: number; readonly role: string }[];
}

async function rolesUntil(node: ServerProcess, wanted: string): Promise<string> {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const { members } = (await call(node, "/v1/cluster/membership")) as Membership;
    const roles = members.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
    if (roles === wanted || performance.now() > endMs) return roles;
    await sleep(50);
  }
}

const THREE = "1 Voter, 2 Voter, 3 Voter";

t.test("three nodes, one is lost, a fourth joins and leaves", async (t) => {
  const ports = await freePorts(4);
  const list = [1, 2, 3].map((id) => `${id}=127.0.0.1:${ports[id - 1] ?? 0}`).join(",");
  const member = (id: number): ServerProcess => {
    return startNode(id, `--peer-port=${ports[id - 1] ?? 0}`, `--initial-cluster=${list}`);
  };
  const nodes = [1, 2, 3].map(member) as [ServerProcess, ServerProcess, ServerProcess];
  for (const node of nodes) await node.ready();
  t.match(nodes[0].output, new RegExp(`peer=127\\.0\\.0\\.1:${ports[0] ?? 0} node=1`));
  t.equal(await rolesUntil(nodes[2], THREE), THREE);

  await t.test("every node answers for every key", async (t) => {
    for (let at = 0; at < 12; at++) {
      const key = `key/${at}`;
      const [writer, reader] = [nodes[at % 3], nodes[(at + 1) % 3]];
      const set = await callUntil(
        writer as ServerProcess,
        "/v1/kv/try-set",
        { key, value: "AQ==" },
        0,
      );
      t.equal(set.type, 0, `${key} set`);
      const got = await callUntil(reader as ServerProcess, "/v1/kv/try-get", { key }, 3);
      t.equal(got.value, "AQ==", `${key} read at another node`);
    }
  });

  await t.test("a node is killed: the others go on, and it comes back", async (t) => {
    await nodes[0].kill();
    for (let at = 0; at < 12; at++) {
      const key = `key/${at}`;
      const got = await callUntil(nodes[1], "/v1/kv/try-get", { key }, 3);
      t.equal(got.value, "AQ==", `${key} is still there`);
    }
    const set = await callUntil(nodes[2], "/v1/kv/try-set", { key: "later", value: "Ag==" }, 0);
    t.equal(set.type, 0);
    nodes[0] = member(1);
    await nodes[0].ready();
    const got = await callUntil(nodes[0], "/v1/kv/try-get", { key: "later" }, 3);
    t.equal(got.value, "Ag==", "it learned what it had missed");
  });

  await t.test("a fourth joins, and leaves when it is stopped", async (t) => {
    const seeds = `127.0.0.1:1,127.0.0.1:${ports[1] ?? 0}`;
    const flags = [`--peer-port=${ports[3] ?? 0}`, `--join=${seeds}`];
    const fourth = startNode(4, ...flags, "--graceful-leave-on-shutdown");
    await fourth.ready();
    const four = `${THREE}, 4 Voter`;
    t.equal(await rolesUntil(nodes[0], four), four);
    const got = await callUntil(fourth, "/v1/kv/try-get", { key: "later" }, 3);
    t.equal(got.value, "Ag==");
    t.same(await fourth.stop(), { code: 0, signal: null });
    t.equal(await rolesUntil(nodes[0], THREE), THREE, fourth.log);
  });

  for (const node of nodes) t.same(await node.stop(), { code: 0, signal: null });
});

t.test("a lone node listens for peers, and moves away from a taken default port", async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) =>
    taken.once("error", () => resolve()).listen(8084, "127.0.0.1", resolve),
  );
  t.teardown(() => taken.close());
  const node = startNode(9);
  await node.ready();
  t.match(node.output, /peer=127\.0\.0\.1:\d+ node=9/);
  t.notMatch(node.output, /peer=127\.0\.0\.1:8084 /);
  t.same(await node.stop(), { code: 0, signal: null });
  const chosen = startNode(9, "--peer-port=8084");
  t.match(await chosen.ended, { code: 2 });
  t.match(chosen.log, /--peer-port: cannot listen on 127\.0\.0\.1.*EADDRINUSE/);
});
