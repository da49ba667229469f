/**
 * The drill of docs/backups.md: a cluster under load loses all of its disks and comes back from its last backup, its
 * clients with it.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { hashPartition } from "../../../src/base/routing.js";
import {
  type BackupInfo,
  type ForcedRelease,
  type LockAuditRecord,
  BackupError,
  SvcClient,
} from "../../../src/client/mod.js";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const NODES = 3;
const PARTITIONS = 4;
const WRITERS = 2;
const HELD = ["nightly", "payroll", "index", "mail"];
const LEASE_MS = 3_600_000;
/** What each writer does at least between two events. */
const STEPS = 5;

const directory = temporaryDirectory();
const backups = join(directory.path, "backups");
const restores = join(directory.path, "restores");
t.setTimeout(900_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const ports = await freePorts(2 * NODES);
const peers = ports.slice(NODES);
const endpoints = ports.slice(0, NODES).map((port) => `127.0.0.1:${port}`);
const CATALOGUE = [
  `--pitr-backup-dir=${backups}`,
  `--pitr-restore-root=${restores}`,
  "--pitr-backup-cluster-id=drill",
];

function disk(node: number): string {
  return join(directory.path, `node-${node}`);
}

function start(node: number, path: string, ...flags: string[]): ServerProcess {
  return new ServerProcess([
    ...["--https-port=off", "--http-port=0", `--grpc-port=${ports[node - 1]}`],
    ...[`--raft-nodeid=${node}`, `--peer-port=${peers[node - 1]}`, `--storage-path=${path}`],
    ...CATALOGUE,
    ...flags,
  ]);
}

function makeClient(endpoint = endpoints.join()): SvcClient {
  return new SvcClient({ endpoints: endpoint });
}

/** Asks one node after the other, as the job of the documentation does. */
async function coordinated(): Promise<BackupInfo> {
  for (let round = 0; round < 20; round++) {
    for (const endpoint of endpoints) {
      const client = makeClient(endpoint);
      try {
        return await client.backups.coordinated();
      } catch (error) {
        // Under load the lead of meta may change in the middle of one.
        t.comment(`${endpoint}: ${error instanceof BackupError ? error.backupOutcome : error}`);
      } finally {
        await client.close();
      }
    }
    await sleep(1000);
  }
  throw new Error("no node takes a coordinated backup");
}

const REASON = "its holder hangs";

/** Somebody is granted a lock, and an administrator ends that grant. */
async function releaseByForce(client: SvcClient, resource: string): Promise<ForcedRelease> {
  const { fencingToken } = await client.locks.tryLock(resource, {
    owner: "hung",
    leaseMs: LEASE_MS,
  });
  return client.locks.forceUnlock(resource, { fencingToken, reason: REASON });
}

async function auditOf(client: SvcClient): Promise<LockAuditRecord[]> {
  const rows: LockAuditRecord[] = [];
  for await (const row of client.locks.audit()) rows.push(row);
  return rows;
}

/** What one writer knows of what it wrote. */
class Writer {
  /** Of the last step that began, and of the last one that was answered whole. */
  asked = 0;
  answered = 0;
  highestToken = -1n;
  readonly first: string;
  /** In another partition than the first. */
  readonly second: string;
  readonly values: bigint[] = [];

  constructor(readonly number: number) {
    this.first = `first/${number}`;
    const of = (key: string): number => hashPartition(key, PARTITIONS);
    let at = 0;
    while (of(`second/${number}/${at}`) === of(this.first)) at++;
    this.second = `second/${number}/${at}`;
  }

  get sequence(): string {
    return `orders-${this.number}`;
  }

  async step(client: SvcClient): Promise<void> {
    const step = ++this.asked;
    await client.kv.set(this.first, String(step));
    // Whoever sees this one must see the one before.
    await client.kv.set(this.second, String(step));
    this.values.push(await client.sequences.next(this.sequence));
    const [resource, owner] = [`lock/${this.number}`, "writer"];
    const { acquired, fencingToken } = await client.locks.tryLock(resource, {
      owner,
      leaseMs: 60_000,
    });
    if (acquired && fencingToken > this.highestToken) this.highestToken = fencingToken;
    await client.locks.unlock(resource, { owner });
    this.answered = step;
  }
}

/** Writers until `end`, which tells what failed. */
class Load {
  private goesOn = true;
  private readonly failures: unknown[] = [];
  private readonly loops: readonly Promise<void>[];

  constructor(
    client: SvcClient,
    private readonly writers: readonly Writer[],
  ) {
    this.loops = writers.map(async (writer) => {
      while (this.goesOn) await writer.step(client).catch((error) => this.failures.push(error));
    });
  }

  /** Waits until every writer has come on. */
  async comesOn(): Promise<void> {
    const wanted = this.writers.map(({ answered }) => answered + STEPS);
    const deadlineMs = performance.now() + 240_000;
    while (this.writers.some(({ answered }, at) => answered < (wanted[at] ?? 0))) {
      if (performance.now() > deadlineMs) throw new Error("the writers do not come on");
      await sleep(20);
    }
  }

  async end(): Promise<readonly unknown[]> {
    this.goesOn = false;
    await Promise.all(this.loops);
    return this.failures;
  }
}

let sinceMs = performance.now();
function took(what: string): void {
  const nowMs = performance.now();
  t.comment(`${what}: ${Math.round(nowMs - sinceMs)} ms`);
  sinceMs = nowMs;
}

async function numberAt(client: SvcClient, key: string): Promise<number> {
  return Number((await client.kv.get(key))?.text ?? -1);
}

t.test("7.5 P-138 all disks are lost, and the cluster comes back from its backup", async (t) => {
  for (const path of [backups, restores]) mkdirSync(path, { mode: 0o700 });
  const founders = foundersOf(peers);
  const old = [1, 2, 3].map((node) =>
    start(
      ...([node, disk(node), `--initial-cluster=${founders}`] as const),
      `--initial-cluster-partitions=${PARTITIONS}`,
    ),
  );
  await Promise.all(old.map((node) => node.ready()));
  took("three nodes are founded");

  const client = makeClient();
  const writers = Array.from({ length: WRITERS }, (_, at) => new Writer(at));
  const incarnations = new Map<string, bigint>();
  for (const { sequence } of writers) {
    const { incarnation } = await client.sequences.ensure(sequence);
    incarnations.set(sequence, incarnation);
  }
  const tokens = new Map<string, bigint>();
  for (const resource of HELD) {
    const held = await client.locks.tryLock(resource, {
      owner: `of ${resource}`,
      leaseMs: LEASE_MS,
    });
    t.ok(held.acquired, resource);
    tokens.set(resource, held.fencingToken);
  }
  const forced = await releaseByForce(client, "hangs/before");
  t.ok(forced.unlocked, "F3 a grant is ended by force");
  const audit = await auditOf(client);
  t.match(audit, [{ resource: "hangs/before", reason: REASON, auditId: forced.auditId }]);
  const load = new Load(client, writers);
  await load.comesOn();

  const before = writers.map(({ answered }) => answered);
  sinceMs = performance.now();
  const { backupId } = await coordinated();
  took("a coordinated backup under load");
  const after = writers.map(({ asked }) => asked);
  // What is written now goes down with the disks; its tokens must not come again.
  await load.comesOn();
  t.same(await load.end(), [], "no call failed");
  let highest = [...tokens.values()].reduce((a, b) => (a > b ? a : b));
  for (const { highestToken } of writers) if (highestToken > highest) highest = highestToken;
  await client.close();
  await Promise.all(old.map((node) => node.kill()));
  for (const node of [1, 2, 3]) rmSync(disk(node), { recursive: true });

  // Steps 2 to 4: any node reads the catalogue, verifies and restores.
  sinceMs = performance.now();
  const reader = new ServerProcess([
    ...["--https-port=off", "--http-port=0", "--grpc-port=0", "--peer-port=0", "--storage=memory"],
    ...CATALOGUE,
  ]);
  const admin = makeClient((await reader.ready()).grpc);
  took("a node for the catalogue is up");
  t.match(await admin.backups.list(), [{ backupId, isInvalid: false }]);
  await admin.backups.validateChain(backupId);
  took("listed and verified");
  const targetDir = join(restores, "new");
  const restored = await admin.backups.restore(backupId, targetDir);
  t.equal(restored.partitionsRestored, PARTITIONS + 1);
  t.same(restored.sequencesAhead, [], "a coordinated backup ends where it is restored to");
  took("restored");
  await admin.close();
  await reader.stop();

  // Steps 5 and 6: one node on it.
  sinceMs = performance.now();
  const first = start(1, targetDir);
  await first.ready();
  took("node 1 is ready on it");
  const again = makeClient();
  for (const [at, { first: key, second }] of writers.entries()) {
    const [one, two] = [await numberAt(again, key), await numberAt(again, second)];
    t.ok(one >= (before[at] ?? 0), `${one}: what was answered before the backup began is there`);
    t.ok(one <= (after[at] ?? 0), `${one}: what was asked for after its end is not`);
    t.ok(
      two === one || two === one - 1,
      `${two} after ${one}: of two writes the first comes first`,
    );
  }
  for (const [resource, token] of tokens) {
    const owner = `of ${resource}`;
    const held = await again.locks.info(resource);
    t.match(held, { ownerText: owner, fencingToken: token }, resource);
    const taken = await again.locks.tryLock(resource, { owner: "other", leaseMs: 1000 });
    t.notOk(taken.acquired, "it is held");
  }
  t.same(await auditOf(again), audit, "F5 who ended what by force, when and why, is kept");
  const later = await releaseByForce(again, "hangs/before");
  t.ok(later.auditId > forced.auditId, "F5 numbers go on");
  t.match(await auditOf(again), [{ auditId: later.auditId }, ...audit], "the newest first");
  for (const [name, incarnation] of incarnations) {
    const now = await again.sequences.get(name);
    t.ok((now?.incarnation ?? -1n) > incarnation, `${now?.incarnation} > ${incarnation}`);
  }

  // Step 7: the others join with empty disks, one after the other.
  sinceMs = performance.now();
  for (const node of [2, 3]) {
    await start(node, disk(node), `--join=127.0.0.1:${peers[0]}`).ready();
    took(`node ${node} has joined`);
  }

  // Step 8: clients go on, and the new cluster has its own first backup.
  const next = writers.map((writer) => {
    const own = new Writer(writer.number);
    own.asked = own.answered = writer.asked;
    return own;
  });
  const loadAgain = new Load(again, next);
  await loadAgain.comesOn();
  sinceMs = performance.now();
  const own = await coordinated();
  took("a coordinated backup of the new cluster");
  // The log of the new cluster does not go on from a backup of the old one.
  const forked = await again.backups.incremental(backupId);
  t.match(forked, { actualKind: "Full", substitutionReason: "TopologyChangedSinceParent" });
  const goesOn = await again.backups.incremental(own.backupId);
  t.match(goesOn, { actualKind: "Incremental", parentBackupId: own.backupId });
  t.same(await loadAgain.end(), [], "no call failed");
  t.equal((await again.backups.list()).length, 4);
  t.not(own.backupId, backupId);
  for (const { highestToken, values, number } of next) {
    t.ok(highestToken > highest, `${number}: every token is above ${highest}`);
    t.equal(new Set(values).size, values.length, "no value twice in the new incarnation");
  }
  for (const resource of HELD) {
    const owner = `of ${resource}`;
    t.ok((await again.locks.unlock(resource, { owner })).unlocked, "its owner lets it go");
    const taken = await again.locks.tryLock(resource, { owner: "other", leaseMs: 1000 });
    t.ok(taken.acquired && taken.fencingToken > highest, `${taken.fencingToken} > ${highest}`);
  }
  await again.close();
});
