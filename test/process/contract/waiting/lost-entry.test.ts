/**
 * Contract 4.8 on three real nodes, when the node through which clients wait is lost, and it does not lead the lock: it is
 * stopped for a while, or killed, with the queue standing and while the lock changes hands.
 *
 * What it proves: those who came in there end with an error, or go on at another node as the same wait, with a higher try, and
 * find their place (Q8, Q14); the queue of the others goes on in its order (Q2); places to which nobody comes back delay nobody
 * (Q8, P-182); tokens grow, nobody holds twice, and each wait has one end (L12, Q5).
 */
import t, { type Test } from "tap";
import type { SvcClient } from "../../../../src/client/mod.js";
import { endAll, sleep } from "../../cluster/server-process.js";
import { GrpcCaller, type Json } from "../wire.js";
import { KEPT_MS, Line, Trio } from "./trio.js";

t.setTimeout(240_000);
t.teardown(endAll);

/** Longer than any test waits: nobody is granted a lock because it ended. */
const LONG_LEASE_MS = 120_000;
/** Of whom a stopped node may be told that it has the lock. */
const SHORT_LEASE_MS = 2000;
/** A busy machine takes its time. */
const SLACK_MS = 10_000;
const WAIT_MS = 60_000;
const GONE = 10;
const PAIRS = 3;
const HOT_WAITERS = 12;
const HOT_GRANTS = 60;

/** A caller at the entry node that knows only the wire, and repeats nothing. */
async function oneTry(
  caller: GrpcCaller,
  line: Line,
  owner: string,
  leaseMs: number,
): Promise<boolean> {
  const fields = {
    ...{ Resource: line.resource, Owner: Buffer.from(owner), ExpiresMs: leaseMs, Durability: 1 },
    ...{ WaitMs: WAIT_MS, WaitId: String(1 + Number(owner.slice(1))), Try: "65536" },
  };
  const askedMs = performance.now();
  const reply = await caller.call("Locker", "TryLock", fields, {}, 80_000);
  const { Type, FencingToken } = reply.fields as Json;
  const fromMs = performance.now();
  // It may be told when its lease is over: it has the token alone all the same.
  const times = { askedMs, fromMs, untilMs: fromMs };
  const isGranted = reply.code === 0 && Type === 0;
  if (isGranted) line.held(owner, BigInt(FencingToken as string), times);
  return isGranted;
}

interface Queue {
  readonly line: Line;
  /** Which of those who never come back were told that they have it. */
  readonly gone: Promise<readonly boolean[]>;
  readonly all: Promise<unknown>;
  release(): Promise<unknown>;
}

/** Somebody holds the lock; behind it those who never come back, then, by turns, those at the entry node and at the other. */
async function queueUp(
  trio: Trio,
  resource: string,
  gone: number,
  leaseMs: number,
): Promise<Queue> {
  const { leader, entry, other } = trio;
  const [asking, viaEntry, viaOther] = (await Promise.all([
    trio.client([leader]),
    trio.client([entry, other]),
    trio.client([other]),
  ])) as [SvcClient, SvcClient, SvcClient];
  const line = new Line(resource, asking, { grants: 2 * PAIRS, "handed over": 2 * PAIRS - 1 });
  const holder = await asking.locks.acquire(resource, { leaseMs: LONG_LEASE_MS, renew: false });
  const caller = new GrpcCaller((await trio.nodes.addresses(entry)).grpc);
  t.teardown(() => caller.close());
  const lost = [];
  for (let at = 0; at < gone; at++) {
    lost.push(oneTry(caller, line, `g${at}`, leaseMs));
    await line.counts(lost.length);
  }
  const waits = [];
  for (let at = 0; at < PAIRS; at++) {
    for (const [client, owner] of [
      [viaEntry, `e${at}`],
      [viaOther, `o${at}`],
    ] as const) {
      waits.push(line.waits(client, owner, leaseMs));
      await line.counts(lost.length + waits.length);
    }
  }
  return {
    line,
    gone: Promise.all(lost),
    all: Promise.all(waits),
    release: () => holder.release(),
  };
}

function judged(t: Test, { times, failures }: Line): void {
  const verdict = times.verdict();
  t.equal(verdict.kind, "pass", verdict.violations.join("\n"));
  t.same(failures, [], "Q5 each is granted it in the end");
  t.comment(JSON.stringify(verdict.seen));
}

async function stopped(t: Test, trio: Trio): Promise<void> {
  const queue = await queueUp(trio, "stopped", 2, SHORT_LEASE_MS);
  const { line } = queue;
  const entry = trio.nodes.node(trio.entry);
  entry.signal("SIGSTOP");
  const sinceMs = performance.now();
  try {
    await queue.release();
    await queue.all;
  } finally {
    entry.signal("SIGCONT");
  }
  const gapMs = line.longestGapMs(sinceMs);
  t.comment(
    `all granted after ${(performance.now() - sinceMs).toFixed(0)} ms, ${line.order.join()}`,
  );
  // Each that only the stopped node could tell had it for its lease.
  const boundMs = (2 + PAIRS) * (SHORT_LEASE_MS + KEPT_MS) + SLACK_MS;
  t.ok(gapMs < boundMs, `Q8 granted on within ${gapMs.toFixed(0)} ms`);
  const others = line.order.filter((owner) => owner.startsWith("o"));
  t.same(others, ["o0", "o1", "o2"], "Q2 in their order");
  // What the leader answered meanwhile is lost; the lock is free, and nobody waits for it at the leader.
  const isTold = await Promise.race([queue.gone.then(() => true), sleep(WAIT_MS / 2)]);
  t.equal(isTold, true, "P-049 who waits there is told, not only when its wait is over");
  judged(t, line);
}

async function killed(t: Test, trio: Trio): Promise<void> {
  const queue = await queueUp(trio, "killed", GONE, LONG_LEASE_MS);
  const { line } = queue;
  await trio.nodes.kill(trio.entry);
  const killedMs = performance.now();
  t.notOk((await queue.gone).includes(true), "who repeats nothing is told that its call is lost");
  await line.counts(2 * PAIRS);
  const backMs = performance.now() - killedMs;
  await queue.release();
  const releasedMs = performance.now();
  await queue.all;
  const tookMs = performance.now() - releasedMs;
  t.ok(tookMs < (GONE * KEPT_MS) / 2, `Q8 those gone delay nobody: ${tookMs.toFixed(0)} ms`);
  const order = line.order.join();
  t.comment(`back after ${backMs.toFixed(0)} ms, ${order}`);
  if (backMs < KEPT_MS / 2) t.equal(order, "e0,o0,e1,o1,e2,o2", "Q8 Q14 each has its place again");
  judged(t, line);
}

async function killedAtWork(t: Test, flags: readonly string[]): Promise<void> {
  const trio = await Trio.start(flags);
  t.teardown(() => trio.end());
  const { leader, entry, other } = trio;
  const asking = await trio.client([leader]);
  const line = new Line("hot", asking, { grants: 2 * HOT_GRANTS, "handed over": HOT_GRANTS });
  let isOver = false;
  const loops = Array.from({ length: HOT_WAITERS }, async (_, at) => {
    const client = await trio.client(at % 2 === 0 ? [entry, other] : [other]);
    for (let serial = 0; !isOver; serial++) {
      await line.waits(client, `h${at}-${serial}`, SHORT_LEASE_MS);
    }
  });
  const reached = async (grants: number): Promise<void> => {
    while (line.grants.length < grants) await sleep(5);
  };
  await reached(HOT_GRANTS);
  await trio.nodes.kill(entry);
  const killedMs = performance.now();
  await reached(line.grants.length + HOT_GRANTS);
  isOver = true;
  await Promise.all(loops);
  const gapMs = line.longestGapMs(killedMs);
  // Whoever was granted it at that very moment had it for its lease.
  const boundMs = SHORT_LEASE_MS + KEPT_MS + SLACK_MS;
  t.ok(gapMs < boundMs, `Q8 Q9 granted on within ${gapMs.toFixed(0)} ms`);
  judged(t, line);
}

t.test("an entry node is lost, and its clients wait on", async (t) => {
  const trio = await Trio.start();
  t.teardown(() => trio.end());
  await t.test("Q5 Q8 Q14 it is stopped for a while", (t) => stopped(t, trio));
  await t.test("Q2 Q8 Q14 it is killed", (t) => killed(t, trio));
});

t.test("Q8 Q9 it is killed while a lock changes hands", (t) => killedAtWork(t, []));
t.test("Q8 Q15 the same of a lock with heirs", (t) => killedAtWork(t, ["--lock-succession"]));
