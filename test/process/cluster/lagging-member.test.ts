/**
 * Three real servers, a member that is behind by many large values, and leaders that were restarted
 * meanwhile: the log is fed in messages that the links take.
 */
import { join } from "node:path";
import t from "tap";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "./server-process.js";

t.setTimeout(120_000);

const LARGE_VALUES = 12;
const SMALL_VALUES = 130;
const VALUE_BYTES = 1024 * 1024 - 100;

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** Sets a key at `node`, again until it is set: leaders change meanwhile. */
async function set(node: ServerProcess, key: string, value: Buffer): Promise<void> {
  const { http } = await node.addresses();
  const body = JSON.stringify({ key, value: value.toString("base64") });
  const headers = { "content-type": "application/json" };
  for (let attempt = 0; attempt < 400; attempt++) {
    const url = `http://${http}/v1/kv/try-set`;
    const answer = await fetch(url, { method: "POST", headers, body });
    const { type } = (await answer.json()) as { readonly type: number };
    if (type === 0) return;
    await sleep(50);
  }
  throw new Error(`${key} is not set:\n${node.log}`);
}

/** The values of a metric, one for each of its series. */
async function metric(node: ServerProcess, name: string): Promise<number[]> {
  const { http } = await node.addresses();
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith(name));
  return lines.map((line) => Number(line.slice(line.lastIndexOf(" ") + 1)));
}

t.test("P-189 a member behind large values is fed by leaders that were restarted", async (t) => {
  const ports = await freePorts(3);
  const list = foundersOf(ports);
  const start = (id: number): ServerProcess => {
    const path = join(directory.path, `node${id}`);
    const own = [`--raft-nodeid=${id}`, `--peer-port=${ports[id - 1] ?? 0}`];
    const cluster = [`--initial-cluster=${list}`, "--initial-cluster-partitions=1"];
    return new ServerProcess(
      nodeFlags(path, "--raft-enable-leader-balancer=false", ...own, ...cluster),
    );
  };
  let [one, two, three] = [start(1), start(2), start(3)];
  for (const node of [one, two, three]) await node.ready();
  await three.kill();
  const large = Buffer.alloc(VALUE_BYTES, 1);
  for (let at = 0; at < LARGE_VALUES; at++) await set(one, `large/${at}`, large);
  for (let at = 0; at < SMALL_VALUES; at++) await set(one, `small/${at}`, Buffer.of(at));
  // All at once, as after a power cut: sizes are known from the log only.
  await Promise.all([one.kill(), two.kill()]);
  [one, two] = [start(1), start(2)];
  for (const node of [one, two]) await node.ready();
  three = start(3);
  await three.ready();
  await set(one, "last", Buffer.of(1));
  const applied = async (node: ServerProcess): Promise<number[]> => {
    return metric(node, "svc_raft_applied_index{");
  };
  const endMs = performance.now() + 60_000;
  let lag = Infinity;
  while (lag > 0 && performance.now() < endMs) {
    const [leading, following] = [await applied(one), await applied(three)];
    lag = leading.reduce((sum, index, at) => sum + Math.abs(index - (following[at] ?? 0)), 0);
    if (lag > 0) await sleep(50);
  }
  t.equal(lag, 0, `node 3 has everything:\n${three.log}`);
  for (const node of [one, two, three]) {
    t.equal(node.child.exitCode, null, `the node lives:\n${node.log}`);
    t.same(await metric(node, "svc_peer_oversized_messages_total "), [0]);
    const sent = await metric(node, 'svc_snapshots_total{direction="sent"');
    t.ok(
      sent.length > 0 && sent.every((count) => count === 0),
      "fed from the log, however it ends",
    );
  }
  for (const node of [one, two, three]) t.same(await node.stop(), { code: 0, signal: null });
});
