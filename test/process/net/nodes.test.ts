/** Real server processes that are one cluster: first members, a lost node, joining, leaving. */
import { createServer } from "node:net";
import t from "tap";
import {
  ServerProcess,
  endAll,
  temporaryDirectory,
  foundersOf,
  freePorts,
  sleep,
} from "../cluster/server-process.js";
import { callUntil, rolesUntil, startNode } from "./processes.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const THREE = "1 Voter, 2 Voter, 3 Voter";

t.test("three nodes, one is lost, a fourth joins and leaves", async (t) => {
  const ports = await freePorts(4);
  const list = foundersOf(ports.slice(0, 3));
  const member = (id: number): ServerProcess => {
    const flags = [`--peer-port=${ports[id - 1] ?? 0}`, `--initial-cluster=${list}`];
    return startNode(directory.path, id, ...flags);
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
    const fourth = startNode(directory.path, 4, ...flags, "--graceful-leave-on-shutdown");
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
  const listen = (): Promise<boolean> =>
    new Promise((resolve) => {
      const refused = (): void => resolve(false);
      taken.once("error", refused).listen(8084, "127.0.0.1", () => {
        taken.off("error", refused);
        resolve(true);
      });
    });
  // Somebody else may have the default port for a while, and must not give it back meanwhile.
  for (let tries = 0; tries < 600 && !(await listen()); tries++) await sleep(100);
  t.ok(taken.listening, "the default port is taken");
  t.teardown(() => taken.close());
  const node = startNode(directory.path, 9);
  await node.ready();
  t.match(node.output, /peer=127\.0\.0\.1:\d+ node=9/);
  t.notMatch(node.output, /peer=127\.0\.0\.1:8084 /);
  t.same(await node.stop(), { code: 0, signal: null });
  const chosen = startNode(directory.path, 9, "--peer-port=8084");
  t.match(await chosen.ended, { code: 2 });
  t.match(chosen.log, /--peer-port: cannot listen on 127\.0\.0\.1.*EADDRINUSE/);
});
