/** Backups of three real nodes with replicas on two of them, under load, verified from the disk. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { idOfUuid } from "../../../src/backup/names.js";
import { type VerifiedChain, validateChain } from "../../../src/backup/validate.js";
import { RealArchive, signatures } from "../../../src/disk/archive.js";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { GrpcCaller } from "../contract/wire.js";

const UNAVAILABLE = 14;
const ASK_NODE = /Ask node [123] \(127\.0\.0\.1:\d+/;

const directory = temporaryDirectory();
const backups = join(directory.path, "backups");
t.setTimeout(400_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function post(node: ServerProcess, path: string, body?: object): Promise<Answer> {
  const { http } = await node.addresses();
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers: Record<string, string> =
    body === undefined ? {} : { "content-type": "application/json" };
  const answer = await fetch(`http://${http}${path}`, { method: "POST", headers, ...content });
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
}

function verified(uuid: unknown): Promise<VerifiedChain> {
  const id = idOfUuid(String(uuid)) ?? "";
  return new Promise((resolve, reject) => {
    validateChain(new RealArchive(backups), signatures(null), id, {}, (result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(`${result.code}: ${result.message}`));
    });
  });
}

/** Writers until `end` is called; how many writes were answered, and how many failed. */
function load(nodes: readonly ServerProcess[]): { end(): Promise<number> } {
  let goesOn = true;
  let written = 0;
  const walk = async (from: number): Promise<void> => {
    for (let at = from; goesOn; at += 4) {
      const node = nodes[at % nodes.length] as ServerProcess;
      const set = { key: `key ${at}`, value: "eA==", durability: 1 };
      const { status } = await post(node, "/v1/kv/try-set", set);
      if (status === 200) written++;
    }
  };
  const walks = [0, 1, 2, 3].map((at) => walk(at));
  return {
    end: async () => {
      goesOn = false;
      await Promise.all(walks);
      return written;
    },
  };
}

async function full(t: Test, node: ServerProcess): Promise<Answer["body"]> {
  const answer = await post(node, "/v1/backups/full");
  t.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

/** A node that does not lead meta says who does, on both wires. */
async function elsewhere(t: Test, node: ServerProcess, { status, body }: Answer): Promise<void> {
  t.equal(status, 503);
  t.equal(body["outcome"], "NotBackupCoordinator", JSON.stringify(body));
  t.match(body["detail"], ASK_NODE);
  const caller = new GrpcCaller((await node.addresses()).grpc);
  const reply = await caller.call("Backups", "TakeCoordinatedBackup", {});
  caller.close();
  t.equal(reply.code, UNAVAILABLE, reply.details);
  t.same(reply.trailers.get("svc-backup-outcome"), ["NotBackupCoordinator"]);
  t.match(reply.details, ASK_NODE);
}

t.test(
  "P-132 P-133 P-134 P-135 three nodes give a Full, a cut under load, and what follows",
  async (t) => {
    mkdirSync(backups, { mode: 0o700 });
    const ports = await freePorts(3);
    const nodes = [1, 2, 3].map((id) => {
      const path = join(directory.path, `node-${id}`);
      return new ServerProcess([
        ...["--grpc-port=0", "--https-port=off", "--http-port=0", `--raft-nodeid=${id}`],
        ...[`--peer-port=${ports[id - 1] ?? 0}`, `--storage-path=${path}`],
        ...[`--initial-cluster=${foundersOf(ports)}`, "--initial-cluster-partitions=4"],
        ...["--raft-replication-factor=2", `--pitr-backup-dir=${backups}`],
        "--pitr-backup-cluster-id=test",
      ]);
    });
    for (const node of nodes) {
      const { http } = await node.addresses();
      while (!(await fetch(`http://${http}/readyz`)).ok) await sleep(100);
    }
    const writers = load(nodes);
    await sleep(1000);
    const [first, second] = nodes as [ServerProcess, ServerProcess];
    const root = await full(t, first);
    t.equal((await verified(root["backupId"])).partitions.size, 5);

    let cut: Answer | null = null;
    for (const node of nodes) {
      const answer = await post(node, "/v1/backups/coordinated");
      if (answer.status === 200) cut = answer;
      else await elsewhere(t, node, answer);
    }
    t.ok(cut !== null, "one node leads meta");
    const snapshot = await verified(cut?.body["backupId"]);
    const [manifest] = snapshot.chain;
    for (const { toStamp } of manifest?.partitionRanges ?? []) {
      t.same(toStamp, manifest?.clusterSnapshot, "every partition ends at the cut");
    }

    const parentBackupId = root["backupId"];
    const next = await post(second, "/v1/backups/incremental", { parentBackupId });
    t.equal(next.status, 200, JSON.stringify(next.body));
    t.equal(next.body["actualKind"], "Incremental");
    const chain = await verified(next.body["backupId"]);
    t.equal(chain.chain.length, 2);
    t.ok((await writers.end()) > 0, "which went on meanwhile");
    // After a backup its keeper collects what has had its time, under a lease of its own.
    const left = (): string[] =>
      readdirSync(backups).filter((name) => /lease|staging|tmp_/.test(name));
    for (let look = 0; look < 300 && left().length > 0; look++) await sleep(20);
    t.same(left(), [], "nothing else is left");
  },
);
