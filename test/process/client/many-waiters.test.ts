/**
 * Hundreds wait for one lock over four connections, and the node that leads it is killed: each wait ends, whoever is
 * granted the lock has it alone, and no token comes twice. Without heirs of locks and with them; and a few who work under
 * a lock, each of whom has its turn.
 *
 * `SVC_WAITERS` says how many. The long form takes 7 s on a quiet machine, and 22 s at a load of 20:
 * `SVC_WAITERS=4096 npm test -- many-waiters`
 */
import { join } from "node:path";
import t, { type Test } from "tap";
import { Prng } from "../../../src/base/prng.js";
import { SvcClient, SvcError } from "../../../src/client/mod.js";
import { HeldTimes } from "../../judge/checkers/waits/held-times.js";
import { HANDED_TO_HEIRS, leaderAmong, metricsOf } from "../cluster/metrics.js";
import {
  endAll,
  foundersOf,
  freePorts,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const NODES = 3;
const CONNECTIONS = 4;
const WAITERS = Number(process.env["SVC_WAITERS"] ?? 400);
const RESOURCE = "hot";
const WAIT_MS = 30_000;
const DEADLINE_MS = 8000;
/** A wait ends within its time, the deadline, and slack for a busy machine. */
const BOUND_MS = WAIT_MS + DEADLINE_MS + 15_000;
const LEASE_MS = 3000;
/** So many were granted it when its leader is killed. */
const BEFORE_KILL = 30;
/** So many more are enough: whoever still waits then is cancelled. */
const AFTER_KILL = 100;

t.setTimeout(240_000);

/** One partition of data: it is known who leads the lock. */
function start(
  at: number,
  ports: readonly number[],
  path: string,
  flags: readonly string[],
): ServerProcess {
  return new ServerProcess([
    ...flags,
    ...[`--grpc-port=${ports[at]}`, "--http-port=0", "--https-port=off"],
    ...[`--peer-port=${ports[NODES + at]}`, `--raft-nodeid=${at + 1}`],
    ...[`--initial-cluster=${foundersOf(ports.slice(NODES))}`, "--initial-cluster-partitions=1"],
    ...[`--storage-path=${join(path, `node-${at + 1}`)}`, "--log-level=warn"],
  ]);
}

/** Three nodes; `kill` kills the one that leads the locks. */
async function makeCluster(t: Test, flags: readonly string[]) {
  const directory = temporaryDirectory();
  t.teardown(async () => {
    await endAll();
    directory.remove();
  });
  const ports = await freePorts(2 * NODES);
  const nodes = Array.from({ length: NODES }, (_, at) => start(at, ports, directory.path, flags));
  const addresses = await Promise.all(nodes.map((node) => node.ready()));
  const endpoints = ports.slice(0, NODES).map((port) => `127.0.0.1:${port}`);
  const shown = addresses.map(({ http }) => http);
  const leader = async (): Promise<number> => {
    const at = await leaderAmong(shown, 1);
    t.ok(at !== undefined, "somebody leads");
    return at ?? 0;
  };
  const kill = async (at: number): Promise<void> => void (await nodes[at]?.kill());
  return { endpoints, shown, leader, kill };
}

async function manyWait(t: Test, flags: readonly string[]): Promise<void> {
  const { endpoints, shown, leader, kill } = await makeCluster(t, flags);
  const clients = Array.from({ length: CONNECTIONS }, () => {
    return new SvcClient({ endpoints, channels: 1, deadlineMs: DEADLINE_MS, keepAliveMs: 1000 });
  });
  const least = {
    grants: BEFORE_KILL + 1,
    "handed over": BEFORE_KILL,
    "waits that ended": WAITERS,
  };
  const times = new HeldTimes(least);
  const prng = new Prng(1);
  const abort = new AbortController();
  let granted = 0;
  let isOver = false;
  const failures = new Map<string, number>();

  const wait = async (at: number): Promise<void> => {
    const client = clients[at % CONNECTIONS] as SvcClient;
    const askedMs = performance.now();
    const id = times.asked(`waiter ${at}`);
    const took = (): number => performance.now() - askedMs;
    const asked = { leaseMs: LEASE_MS, waitMs: WAIT_MS, renew: false, signal: abort.signal };
    try {
      const handle = await client.locks.acquire(RESOURCE, asked);
      times.ended(id, handle.acquired ? "granted" : "busy", took(), BOUND_MS);
      if (!handle.acquired) return;
      granted++;
      const fromMs = performance.now();
      const sureMs = fromMs + handle.remainingMs;
      if (prng.chance(1, 20)) await sleep(2);
      const untilMs = handle.held ? performance.now() : Math.min(sureMs, performance.now());
      const { fencingToken: token } = handle;
      times.held({ resource: RESOURCE, owner: `${at}`, token, askedMs, fromMs, untilMs });
      await handle.release().catch(() => undefined);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      times.ended(id, abort.signal.aborted ? "cancelled" : "gave up", took(), BOUND_MS);
      failures.set(error.code, (failures.get(error.code) ?? 0) + 1);
    }
  };
  const all = Promise.all(Array.from({ length: WAITERS }, (_, at) => wait(at)));
  void all.then(() => (isOver = true));
  while (granted < BEFORE_KILL && !isOver) await sleep(5);
  t.notOk(isOver, "the leader is killed while they wait");
  const at = await leader();
  const counted = await metricsOf(shown[at] as string);
  const toHeirs = counted.get(HANDED_TO_HEIRS) ?? 0;
  t.equal(toHeirs > 0, flags.length > 0, `${toHeirs} hand-overs along lists of heirs`);
  const atKill = granted;
  await kill(at);
  while (granted < atKill + AFTER_KILL && !isOver) await sleep(5);
  abort.abort();
  await all;

  const verdict = times.verdict();
  t.equal(verdict.kind, "pass", verdict.violations.join("\n"));
  t.ok(granted > atKill, `after the kill ${granted - atKill} were granted it, before ${atKill}`);
  t.comment(JSON.stringify(verdict.seen), JSON.stringify([...failures]));
  await Promise.all(clients.map((client) => client.close({ releaseMs: 0 })));
}

t.test("Q2 Q5 Q11 many wait over 4 connections, and the leader is killed", (t) => {
  return manyWait(t, []);
});

t.test("Q15 the same of a lock with heirs: nobody hangs, no token comes twice", (t) => {
  return manyWait(t, ["--lock-succession"]);
});

/** Of each transport: one who works when the leader is killed, those who wait then, and who comes later. */
const WAIT_AT_KILL = 4;
const COME_LATER = 2;

t.test("Q11 L12 withLock over the kill of the leader: each works once, alone", async (t) => {
  const { endpoints, shown, leader, kill } = await makeCluster(t, []);
  const workers = 2 * (1 + WAIT_AT_KILL + COME_LATER);
  const times = new HeldTimes({
    grants: workers,
    "handed over": 2 * WAIT_AT_KILL,
    "waits that ended": workers,
  });
  let isServed: () => void = () => undefined;
  const served = new Promise<void>((resolve) => (isServed = resolve));

  const work = async (client: SvcClient, resource: string, owner: string): Promise<bigint> => {
    const askedMs = performance.now();
    const id = times.asked(`${owner} of ${resource}`);
    // No lease ends here, nor does a wait: whoever leads keeps the promises of the one that was killed.
    const asked = { leaseMs: 60_000, waitMs: 90_000, owner };
    return client.locks.withLock(resource, asked, async (signal, token) => {
      const fromMs = performance.now();
      times.ended(id, "granted", fromMs - askedMs, BOUND_MS);
      await served;
      await sleep(5);
      t.equal(signal.aborted, false, `${owner} still holds ${resource}`);
      times.held({ resource, owner, token, askedMs, fromMs, untilMs: performance.now() });
      return token;
    });
  };
  const clients = {
    grpc: new SvcClient({ endpoints, keepAliveMs: 1000 }),
    rest: new SvcClient({ endpoints: shown.map((one) => `http://${one}`), transport: "rest" }),
  };
  const several = (client: SvcClient, name: string, count: number, who: string) =>
    Promise.all(Array.from({ length: count }, (_, at) => work(client, name, `${who} ${at}`)));
  const teams = await Promise.all(
    Object.entries(clients).map(async ([name, client]) => {
      const first = several(client, name, 1, "at work");
      while ((await client.locks.info(name)) === null) await sleep(5);
      const waiting = several(client, name, WAIT_AT_KILL, "waiting");
      while ((await client.locks.info(name))?.waiters !== WAIT_AT_KILL) await sleep(5);
      return { name, client, first, waiting };
    }),
  );
  await kill(await leader());
  await Promise.all(
    teams.map(async ({ name, client, first, waiting }) => {
      const later = several(client, name, COME_LATER, "later");
      await client.kv.set(`${name} served`, "by the next leader");
      isServed();
      const [token] = (await first) as [bigint];
      const others = [...(await waiting), ...(await later)];
      t.ok(
        others.every((other) => other > token),
        `${name}: tokens above ${token}: ${others.join()}`,
      );
    }),
  );
  const verdict = times.verdict();
  t.equal(verdict.kind, "pass", verdict.violations.join("\n"));
  await Promise.all(Object.values(clients).map((client) => client.close()));
});
