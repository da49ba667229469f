/**
 * Real server processes: a disk that is lost for good, and a node that left and goes on running
 * (contract 5.3).
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import {
  type ServerProcess,
  endAll,
  temporaryDirectory,
  foundersOf,
  freePorts,
} from "../cluster/server-process.js";
import { call, callUntil, rolesUntil, startNode } from "./processes.js";
import { sleep } from "../../doubles/net/world.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

interface Left {
  readonly left: boolean;
  readonly outcome: string;
}

async function removeUntil(node: ServerProcess, nodeId: number, outcome: string): Promise<Left> {
  const endMs = performance.now() + 90_000;
  for (;;) {
    const answer = (await call(node, "/v1/cluster/leave", { nodeId })) as Left;
    if (answer.outcome === outcome || performance.now() > endMs) return answer;
    await sleep(500);
  }
}

/** What `node` says of itself, as soon as its reason is `wanted`, or in the end. */
async function healthUntil(node: ServerProcess, wanted: string): Promise<object> {
  const endMs = performance.now() + 20_000;
  for (;;) {
    const health = (await call(node, "/v1/cluster/health")) as { reason: string | null };
    if (health.reason === wanted || performance.now() > endMs) return health;
    await sleep(100);
  }
}

t.test("P-095 a cluster that lost a disk is whole again; who left goes on serving", async (t) => {
  const ports = await freePorts(4);
  const list = foundersOf(ports.slice(0, 3));
  const start = (id: number, ...more: string[]): ServerProcess => {
    return startNode(directory.path, id, `--peer-port=${ports[id - 1] ?? 0}`, ...more);
  };
  const nodes = [1, 2, 3].map((id) => start(id, `--initial-cluster=${list}`));
  const [first, second, third] = nodes as [ServerProcess, ServerProcess, ServerProcess];
  for (const node of nodes) await node.ready();
  const grant = { resource: "r", owner: "o", expiresMs: 3_600_000 };
  t.equal((await callUntil(first, "/v1/locks/try-lock", grant, 0)).type, 0);
  for (let at = 0; at < 8; at++) {
    const entry = { key: `key/${at}`, value: "AQ==" };
    t.equal((await callUntil(second, "/v1/kv/try-set", entry, 0)).type, 0);
  }
  const alive = await call(first, "/v1/cluster/leave", { nodeId: 3 });
  t.match(alive, { left: false, outcome: "RefusedStillAlive", status: 409, retryable: false });
  t.match(await call(first, "/v1/cluster/leave", { nodeId: 77 }), { outcome: "NotAMember" });

  await t.test("its process and its disk are gone: it is removed, another joins", async (t) => {
    await third.kill();
    rmSync(join(directory.path, "node3"), { recursive: true });
    // Either node passes the call on to the one that leads the meta partition.
    const removed = await removeUntil(second, 3, "Committed");
    t.match(removed, { left: true, outcome: "Committed" });
    for (const node of [first, second]) {
      t.equal(await rolesUntil(node, "1 Voter, 2 Voter"), "1 Voter, 2 Voter");
    }
    const fourth = start(4, `--join=127.0.0.1:${ports[0] ?? 0}`);
    await fourth.ready();
    const whole = "1 Voter, 2 Voter, 4 Voter";
    t.equal(await rolesUntil(first, whole), whole);
    await first.kill();
    for (let at = 0; at < 8; at++) {
      const got = await callUntil(fourth, "/v1/kv/try-get", { key: `key/${at}` }, 3);
      t.equal(got.value, "AQ==", "and again any one node may be lost");
    }
    const other = await callUntil(fourth, "/v1/locks/try-lock", { ...grant, owner: "x" }, 1);
    t.equal(other.type, 1, "the lock is still held");
    nodes[2] = fourth;
  });

  await t.test("5.3: a node that left knows it, and serves until it is stopped", async (t) => {
    const again = start(1, `--initial-cluster=${list}`);
    await again.ready();
    t.equal(await rolesUntil(second, "1 Voter, 2 Voter, 4 Voter"), "1 Voter, 2 Voter, 4 Voter");
    const left = (await call(again, "/v1/cluster/leave", {})) as Left;
    t.match(left, { left: true, outcome: "Committed" });
    const health = await healthUntil(again, "not-a-member");
    t.match(health, { ready: false, reason: "not-a-member", localRole: "NotMember" });
    t.equal(
      await rolesUntil(again, "2 Voter, 4 Voter"),
      "2 Voter, 4 Voter",
      "it knows the member list",
    );
    for (let at = 0; at < 8; at++) {
      const key = `key/${at}`;
      const set = (await call(again, "/v1/kv/try-set", { key, value: "Ag==" })) as { type: number };
      t.equal(set.type, 0, `${key} is set through it`);
      const got = (await call(again, "/v1/kv/try-get", { key })) as { value: string };
      t.equal(got.value, "Ag==");
    }
    t.match(await call(again, "/v1/cluster/leave", {}), { outcome: "NotAMember" });
    t.same(await again.stop(), { code: 0, signal: null });
    const errors = again.log.split("\n").filter((line) => line.includes("refuses this one"));
    t.ok(errors.length <= 4, `a refusal is logged once a node: ${errors.length} lines`);
  });
});
