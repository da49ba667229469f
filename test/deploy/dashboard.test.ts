/** Three real nodes under a real Prometheus: every query of the dashboard has an answer. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
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

/** Of what nothing happens in this test. */
const EMPTY_PANELS =
  /^(Since the last backup|Certificates end in|Snapshots|Requests without a result)$/;

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

t.test("the dashboard has data", { timeout: 600_000 }, async (t) => {
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
});
