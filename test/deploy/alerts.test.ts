/**
 * Three real nodes under a real Prometheus: alerts fire when two of them are killed and end when they are back, and every
 * query of the dashboard has an answer. Times of the rules are a sixtieth.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import {
  type Addresses,
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../process/cluster/server-process.js";
import { readText, root } from "../tidy/sources.js";
import { asked, panels, scaledRules } from "./monitoring.js";
import { Prometheus, isInstalled } from "./prometheus.js";

/** Far longer than a loaded machine takes. */
const WAIT_MS = 240_000;
/** Of what nothing happens in this test. */
const EMPTY_PANELS =
  /^(Since the last backup|Certificates end in|Snapshots|Requests without a result)$/;

async function eventually(
  t: Test,
  what: string,
  isSo: (firing: readonly string[]) => boolean,
  prometheus: Prometheus,
): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  let firing = await prometheus.firing();
  while (!isSo(firing) && performance.now() < deadlineMs) {
    await sleep(500);
    firing = await prometheus.firing();
  }
  t.ok(isSo(firing), `${what}; firing: ${firing.join(", ")}`);
}

/** A little of everything that is counted as it happens. */
async function traffic({ http, grpc }: Addresses): Promise<void> {
  const post = async (path: string, body: object): Promise<void> => {
    const answer = await fetch(`http://${http}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await answer.text();
  };
  for (let at = 0; at < 20; at++) {
    const lock = { resource: `lock ${at}`, owner: "o", expiresMs: 1000, durability: 0 };
    await post("/v1/locks/try-lock", lock);
    await post("/v1/locks/get-info", { resource: `lock ${at}`, durability: 0 });
  }
  const status = [join(root, "dist/bin/svc-cli.js"), "-c", `http://${grpc}`, "--cluster-status"];
  spawnSync(process.execPath, status);
}

t.test("alerts fire and end, and the dashboard has data", { timeout: 600_000 }, async (t) => {
  if (!isInstalled()) return void t.pass("skipped: prometheus is not installed");
  const directory = temporaryDirectory();
  const ports = await freePorts(7);
  const [peers, healths, own] = [ports.slice(0, 3), ports.slice(3, 6), ports[6] ?? 0];
  const flagsOf = (at: number): string[] => [
    ...nodeFlags(
      join(directory.path, `node-${at}`),
      `--peer-port=${peers[at]}`,
      `--raft-nodeid=${at + 1}`,
      `--initial-cluster=${foundersOf(peers)}`,
      `--health-port=${healths[at]}`,
    ),
  ];
  const start = (at: number): ServerProcess => new ServerProcess(flagsOf(at));
  const nodes = [start(0), start(1), start(2)];
  const targets = healths.map((port) => `127.0.0.1:${port}`);
  const folder = join(directory.path, "prometheus");
  mkdirSync(folder);
  const rules = scaledRules(readText("scripts/deploy/monitoring/rules.yaml"));
  const prometheus = await Prometheus.start(folder, own, targets, rules);
  t.teardown(async () => {
    await prometheus.end();
    await endAll();
    directory.remove();
  });
  const [first] = await Promise.all(nodes.map((node) => node.ready()));
  await eventually(
    t,
    "nothing is wrong with three nodes",
    (firing) => !firing.some((name) => /^Svc(NoQuorum|Member|Partition|NodeUnready)/.test(name)),
    prometheus,
  );
  for (let round = 0; round < 3; round++) {
    await traffic(first as Addresses);
    await sleep(1500);
  }
  for (const { title, targets: queries = [] } of panels()) {
    for (const { expr } of queries) {
      const samples = await prometheus.query(asked(expr));
      if (!EMPTY_PANELS.test(title)) t.ok(samples.length > 0, `${title}: ${expr}`);
    }
  }
  await Promise.all([nodes[1]?.kill(), nodes[2]?.kill()]);
  const expected = [
    `SvcMemberDown ${targets[1]}`,
    `SvcMemberDown ${targets[2]}`,
    "SvcNoQuorum",
    "SvcPartitionWithoutLeader",
    `SvcNodeUnready ${targets[0]}`,
  ];
  await eventually(
    t,
    "the loss of two of three is told",
    (firing) => expected.every((name) => firing.includes(name)),
    prometheus,
  );
  t.notOk((await prometheus.firing()).includes(`SvcMemberDown ${targets[0]}`), "one is up");
  await Promise.all([start(1), start(2)].map((node) => node.ready()));
  await eventually(
    t,
    "and so is their return",
    (firing) => expected.every((name) => !firing.includes(name)),
    prometheus,
  );
});
