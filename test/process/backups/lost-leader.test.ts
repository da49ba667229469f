/**
 * Outcomes that only a cluster in trouble gives, on both wires: the leader of meta is deposed while it takes a coordinated
 * backup, and a node that nobody answers any more is asked for one.
 */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { GrpcCaller, http1, post } from "../contract/wire.js";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
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

const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;
const CALL_MS = 120_000;
/** Each opening of a file of a backup takes so long: its steps can be seen from outside. */
const SLOW_MS = 150;

interface Cluster {
  readonly backups: string;
  readonly nodes: readonly ServerProcess[];
  readonly https: readonly string[];
}

async function start(name: string, size: number): Promise<Cluster> {
  const backups = join(directory.path, name, "backups");
  mkdirSync(backups, { recursive: true, mode: 0o700 });
  const slow = new URL("slow-archive.js", import.meta.url);
  slow.searchParams.set("ms", String(SLOW_MS));
  const ports = await freePorts(size);
  const nodes = ports.map((port, at) => {
    const flags = nodeFlags(
      ...([join(directory.path, name, String(at)), `--raft-nodeid=${at + 1}`] as const),
      ...[`--peer-port=${port}`, `--initial-cluster=${foundersOf(ports)}`],
      ...["--initial-cluster-partitions=4", `--pitr-backup-dir=${backups}`],
      "--pitr-backup-cluster-id=lost",
    );
    return new ServerProcess(flags, [process.execPath, "--import", slow.href, serverMain]);
  });
  const https = await Promise.all(nodes.map(async (node) => `http://${(await node.ready()).http}`));
  return { backups, nodes, https };
}

/** The node that leads the meta partition, as all say that answer. */
async function metaLeader({ https }: Cluster, but = -1): Promise<number> {
  for (let look = 0; look < 600; look++) {
    const at = (but + 1 + look) % https.length;
    const overview = at === but ? null : await http1(https[at] as string, "/v1/cluster/overview");
    const leader = Number(overview?.body["metaLeaderNodeId"] ?? 0) - 1;
    if (leader >= 0 && leader !== but) return leader;
    await sleep(50);
  }
  throw new Error("nobody leads the meta partition");
}

async function untilPhase(http: string, phase: string): Promise<void> {
  for (let look = 0; look < 5000; look++) {
    const running = (await http1(http, "/v1/backups/running")).body as unknown;
    const list = running as readonly { readonly phase: string }[];
    if (list.some((each) => each.phase === phase)) return;
    await sleep(5);
  }
  throw new Error(`no backup comes to ${phase}`);
}

async function grpcOf(cluster: Cluster, node: number): Promise<GrpcCaller> {
  return new GrpcCaller((await (cluster.nodes[node] as ServerProcess).addresses()).grpc);
}

t.test("7.6 a coordinated backup whose leader is deposed is not published", async (t) => {
  const cluster = await start("deposed", 3);
  for (const wire of ["rest", "grpc"]) {
    const keeper = await metaLeader(cluster);
    const http = cluster.https[keeper] as string;
    const node = cluster.nodes[keeper] as ServerProcess;
    const caller = await grpcOf(cluster, keeper);
    const rest = wire === "rest" ? post(http, "/v1/backups/coordinated", "") : null;
    const grpc =
      wire === "grpc" ? caller.call("Backups", "TakeCoordinatedBackup", {}, {}, CALL_MS) : null;
    // All marks are there: what is left it does by itself, until it asks who leads meta.
    await untilPhase(http, "logs");
    node.signal("SIGSTOP");
    await metaLeader(cluster, keeper);
    node.signal("SIGCONT");
    if (rest !== null) {
      const headers = { "x-svc-backup-outcome": "RetryableLeadershipLoss" };
      const answer = await rest;
      t.match(answer, { status: 503, headers }, answer.text);
      t.match(answer.body, { outcome: "RetryableLeadershipLoss" });
    } else if (grpc !== null) {
      const answer = await grpc;
      t.equal(answer.code, UNAVAILABLE, answer.details);
      t.same(answer.trailers.get("svc-backup-outcome"), ["RetryableLeadershipLoss"]);
    }
    caller.close();
    t.same(
      readdirSync(cluster.backups).filter((name) => name.endsWith(".manifest")),
      [],
      "nothing was published",
    );
  }
  const again = await metaLeader(cluster);
  const taken = await post(cluster.https[again] as string, "/v1/backups/coordinated", "");
  t.equal(taken.status, 200, "and it can be asked for again");
});

t.test("7.1 7.6 where nobody proves anything no backup comes about, by gRPC too", async (t) => {
  const cluster = await start("alone", 2);
  await (cluster.nodes[1] as ServerProcess).kill();
  const caller = await grpcOf(cluster, 0);
  const answer = await caller.call("Backups", "TakeFullBackup", {}, {}, CALL_MS);
  caller.close();
  t.equal(answer.code, FAILED_PRECONDITION, answer.details);
  t.same(answer.trailers.get("svc-backup-outcome"), ["ExactCheckpointUnavailable"]);
  t.match(answer.details, /\(operation [0-9a-f]{12}\)$/);
  t.same(
    readdirSync(cluster.backups).filter((name) => name.endsWith(".manifest")),
    [],
  );
});
