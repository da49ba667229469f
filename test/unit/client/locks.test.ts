/** Locks of the client: leases on the holder's clock, losses, waits, late grants; against a real node with faults. */
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t from "tap";
import {
  LockLostError,
  LockNotAcquiredError,
  SvcClient,
  SvcError,
  TimeoutError,
  type MonotonicClock,
} from "../../../src/client/mod.js";
import { leaseMarginMs, LeaseWatch } from "../../../src/client/locks/lease.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";
import { root } from "../../tidy/sources.js";
import { failure } from "../../doubles/client/failure.js";
import { StandIn, type Asked, type Behaviour, type Reply } from "../../doubles/server/stand-in.js";
import { Proxy } from "../../doubles/server/proxy.js";
import { VirtualTime } from "../../doubles/client/virtual-time.js";

const LOCKED = 0;
const BUSY = 1;
const EXTENDED = 2;
const UNLOCKED = 3;
const MUST_RETRY = 101;

const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path));
const { grpc, http } = await server.ready();
const direct = new SvcClient({ endpoints: grpc });

/** Of the tests whose servers are stand-ins. */
const time = new VirtualTime();

t.setTimeout(300_000);
t.teardown(async () => {
  time.stop();
  await direct.close();
  await endAll();
  directory.remove();
});

/** A clock that a test moves. */
function movedClock() {
  const clock = { offsetMs: 0, nowMs: (): number => time.nowMs() + clock.offsetMs };
  return clock;
}

/** A stand-in that answers locks by a script, and a client in virtual time. */
async function scripted(behave: Behaviour, clock?: MonotonicClock) {
  const node = await StandIn.open(behave);
  const client = new SvcClient({ endpoints: node.address, deadlineMs: 5000, clock }, time);
  return { node, client };
}

/** Grants and extends whatever is asked. */
function granting({ method }: Asked): Reply {
  if (method === "unlock") return { type: UNLOCKED };
  return { type: method === "lock" ? LOCKED : EXTENDED, value: 1 };
}

t.test("handle: acquire, renew, extend, info, release; both transports", async (t) => {
  const holds = async (transport: "grpc" | "rest"): Promise<void> => {
    const client = new SvcClient({ endpoints: transport === "grpc" ? grpc : http, transport });
    const resource = `handle-${transport}`;
    // What is loaded and connected by the first call does not count against a lease.
    t.equal(await client.locks.info(resource), null);
    const lock = await client.locks.acquire(resource, { leaseMs: 1500 });
    t.equal(lock.acquired, true);
    t.match(lock.ownerText, /^[0-9a-f]{32}$/);
    t.equal(lock.fencingTokenNumber, Number(lock.fencingToken));
    await sleep(3300);
    t.equal(lock.held, true, "renewed for more than two leases");
    t.equal((await direct.locks.info(resource))?.ownerText, lock.ownerText);
    const busy = await direct.locks.acquire(resource, { leaseMs: 400 });
    t.same(
      [busy.acquired, busy.held, busy.fencingToken, busy.signal.aborted],
      [false, false, 0n, true],
    );
    t.equal((busy.signal.reason as LockLostError).code, "lock-not-held");
    t.equal(await busy.release(), false);
    t.equal(await lock.extend(5000), true);
    t.ok(lock.remainingMs > 4000 && lock.remainingMs <= 5000);
    t.equal((await lock.info())?.fencingToken, lock.fencingToken);
    t.equal((await lock.info())?.note, null);
    t.equal(await lock.extend(5000, { note: "doing it" }), true, "Q17");
    t.equal((await direct.locks.info(resource))?.noteText, "doing it");
    t.equal(await lock.release(), true);
    t.same([lock.held, lock.signal.aborted], [false, true]);
    t.equal((lock.signal.reason as LockLostError).code, "lock-released");
    t.equal(await lock.extend(5000), false, "a released handle extends nothing");
    const note = new Uint8Array([255]);
    const again = await client.locks.acquire(resource, { leaseMs: 400, renew: false, note });
    t.match(await client.locks.info(resource), { note: Buffer.from(note), noteText: null });
    t.ok(again.fencingToken > lock.fencingToken);
    await sleep(450);
    t.same([again.held, (again.signal.reason as LockLostError).code], [false, "lock-lost"]);
    await client.close();
  };
  // Beside each other: these leases are the service's, and pass in real time.
  await Promise.all([holds("grpc"), holds("rest")]);
});

t.test(
  "Q13 a handle is of one grant: what its owner was granted later is not its own",
  async (t) => {
    const handOn = async (transport: "grpc" | "rest"): Promise<void> => {
      const client = new SvcClient({ endpoints: transport === "grpc" ? grpc : http, transport });
      const [resource, owner] = [`named-${transport}`, "the same"];
      const first = await client.locks.acquire(resource, { leaseMs: 60_000, owner, renew: false });
      const { fencingToken } = first;
      t.equal((await direct.locks.unlock(resource, { owner, fencingToken })).unlocked, true);
      const second = await client.locks.tryLock(resource, { owner, leaseMs: 60_000 });
      t.ok(second.fencingToken > fencingToken);
      const late = await direct.locks.unlock(resource, { owner, fencingToken });
      t.match(late, { unlocked: false, refusal: "other-owner" });
      const step = { owner, leaseMs: 1, fencingToken };
      t.match(await client.locks.tryExtend(resource, step), { extended: false });
      t.equal(await first.extend(), false);
      t.equal(first.signal.aborted, true);
      t.equal((await client.locks.info(resource))?.fencingToken, second.fencingToken);
      await client.close();
    };
    await Promise.all([handOn("grpc"), handOn("rest")]);
  },
);

t.test(
  "Q13 a service that says nothing of waiting is told no token, a node behind it twice",
  async (t) => {
    const bodies: string[] = [];
    let waitedMs: number | null = null;
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (part: Buffer) => (body += part.toString()));
      request.on("end", () => {
        const name = request.url?.split("/").at(-1) ?? "";
        bodies.push(`${name} ${body.includes("fencingToken")}`);
        const isBehind = body.includes("fencingToken");
        const json = { "content-type": isBehind ? "application/problem+json" : "application/json" };
        response.writeHead(isBehind ? 409 : 200, json);
        const type = name === "try-lock" ? 0 : name === "try-extend" ? 2 : 3;
        const told = { leaseLeftMs: waitedMs === null ? null : 60_000, waitedMs, position: 0 };
        const answer = {
          type,
          fencingToken: 5,
          ...told,
          waiters: 0,
          servedFrom: null,
          route: null,
        };
        const problem = { status: 409, code: "not-available-at-level" };
        response.end(JSON.stringify(isBehind ? problem : answer));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = new SvcClient({ endpoints: `http://127.0.0.1:${port}`, transport: "rest" });
    for (const told of [null, 0]) {
      waitedMs = told;
      const lock = await client.locks.acquire("r", { leaseMs: 60_000, renew: false });
      t.equal(await lock.extend(), true);
      t.equal(await lock.release(), true);
    }
    const plain = ["try-lock false", "try-extend false", "try-unlock false"];
    const [first, extend, release] = plain;
    const twice = [first, "try-extend true", extend, "try-unlock true", release];
    t.same(
      bodies.filter((line) => line.startsWith("try")),
      [...plain, ...twice],
    );
    await client.close();
    server.close();
  },
);

t.test("withLock: work under the lock, errors pass, a loss is told, release follows", async (t) => {
  const value = await direct.locks.withLock("with", { leaseMs: 5000 }, async (signal, token) => {
    t.equal(signal.aborted, false);
    t.type(
      await failure(direct.locks.withLock("with", { leaseMs: 100 }, async () => 1)),
      LockNotAcquiredError,
    );
    return token;
  });
  t.type(value, "bigint");
  t.equal(await direct.locks.info("with"), null, "released");
  const thrown = new SvcError("mine", "mine");
  const options = { leaseMs: 5000 };
  t.equal(
    await failure(direct.locks.withLock("with", options, () => Promise.reject(thrown))),
    thrown,
  );
  t.equal(await direct.locks.info("with"), null, "released");
  const { node, client } = await scripted(granting);
  const lost = await failure(
    client.locks.withLock("with", { leaseMs: 100, renew: false }, () => time.sleep(200)),
  );
  t.same([lost.name, lost.code], ["LockLostError", "lock-lost"]);
  await client.close();
  node.stop();
});

t.test("waiting: handed over in time, cancelled, and a wait's end is no grant", async (t) => {
  const holder = await direct.locks.acquire("wait", { leaseMs: 60_000 });
  const begin = performance.now();
  const none = await direct.locks.acquire("wait", { leaseMs: 1000, waitMs: 200, retryMs: 20 });
  t.equal(none.acquired, false);
  t.ok(performance.now() - begin >= 195);
  const stop = new AbortController();
  const cancelled = failure(
    direct.locks.acquire("wait", { leaseMs: 1000, waitMs: 60_000, signal: stop.signal }),
  );
  await sleep(50);
  stop.abort(new Error("enough"));
  t.equal((await cancelled).code, "cancelled");
  const waiting = direct.locks.acquire("wait", { leaseMs: 1000, waitMs: Infinity, retryMs: 20 });
  await sleep(50);
  await holder.release();
  const next = await waiting;
  t.equal(next.acquired, true);
  t.ok(next.fencingToken > holder.fencingToken);
  await next.release();
});

t.test("P-065 every injected loss is signalled before the lease ends at the service", async (t) => {
  const LOCKS = 30;
  const proxy = await Proxy.open(grpc);
  const client = new SvcClient({ endpoints: proxy.address });
  let early = 0;
  const leases = Array.from({ length: LOCKS }, (_, at) => 1000 + 50 * at);
  const locks = await Promise.all(
    leases.map((leaseMs, at) => client.locks.acquire(`loss-${at}`, { leaseMs })),
  );
  const abortedAt = new Map<number, number>();
  for (const [at, lock] of locks.entries()) {
    lock.signal.addEventListener("abort", () => abortedAt.set(at, performance.now()));
  }
  await sleep(900);
  t.ok(
    locks.every((lock) => lock.held),
    "renewed until the fault",
  );
  proxy.stall();
  await Promise.all(
    locks.map(async (_, at) => {
      const rival = await direct.locks.acquire(`loss-${at}`, {
        leaseMs: 60_000,
        waitMs: 10_000,
        retryMs: 2,
      });
      const grantedAt = performance.now();
      const told = abortedAt.get(at);
      if (rival.acquired && told !== undefined && told < grantedAt) early += 1;
    }),
  );
  t.equal(early, LOCKS, "all signalled before anybody else could be granted");
  for (const lock of locks) t.equal((lock.signal.reason as LockLostError).code, "lock-lost");
  await client.close({ releaseMs: 100 });
  await proxy.close();
});

t.test(
  "P-065 an event loop blocked for longer than the lease: nothing runs on believing",
  async (t) => {
    for (const leaseMs of [200, 600]) {
      const child = spawn(process.execPath, [
        join(root, "dist/test/unit/client/blocked-holder.js"),
        grpc,
        String(leaseMs),
        String(leaseMs * 2),
      ]);
      let output = "";
      child.stdout.on("data", (text: Buffer) => (output += text.toString()));
      child.stderr.pipe(process.stderr);
      const code = await new Promise((resolve) => child.on("close", resolve));
      t.equal(code, 0);
      const { before, seen, released } = JSON.parse(output) as {
        before: boolean[];
        seen: [string, boolean, boolean][];
        released: boolean;
      };
      t.same(before, [true, false, true]);
      t.ok(seen.length >= 8, output);
      for (const [who, aborted, listened] of seen) {
        t.equal(aborted, true, `${who} sees the loss`);
        t.equal(listened, true, `${who}: the listeners were told`);
      }
      t.equal(seen[1]?.[0], "lock-lost");
      t.equal(released, true, "nobody took it meanwhile: the release at the service still works");
    }
  },
);

t.test(
  "clock: jumps of the monotonic source end the lease at once, backward ones never lengthen it",
  async (t) => {
    const clock = movedClock();
    const { node, client } = await scripted(granting, clock);
    const lock = await client.locks.acquire("jump", { leaseMs: 30_000, renew: false });
    t.equal(lock.signal.aborted, false);
    clock.offsetMs = 29_000;
    t.equal(lock.signal.aborted, false, "within the lease");
    clock.offsetMs = 29_900;
    t.equal(lock.signal.aborted, true, "the margin is not relied on");
    clock.offsetMs = 0;
    t.same([lock.signal.aborted, lock.held, lock.remainingMs], [true, false, 0], "lost stays lost");
    const told = await client.locks.acquire("jump-2", { leaseMs: 4000, renew: false });
    const abort = new Promise((resolve) => told.signal.addEventListener("abort", resolve));
    clock.offsetMs = 5000;
    await abort;
    t.pass("listeners are told within a slice, without anybody looking");
    await client.close();
    node.stop();
  },
);

t.test("P-066 margins and long leases", (t) => {
  for (const leaseMs of [1, 2, 10, 40, 500, 60_000, 86_400_000, 2 ** 31 - 1]) {
    const fixed = { now: 1000, nowMs: (): number => fixed.now };
    let lost = 0;
    const watch = new LeaseWatch(time, fixed, "r", () => (lost += 1));
    watch.granted(1000, leaseMs);
    const margin = leaseMarginMs(leaseMs);
    t.ok(margin > 0 && margin <= leaseMs / 4);
    t.equal(watch.held, true);
    fixed.now = 1000 + leaseMs - margin - 0.01;
    t.equal(watch.held, true);
    fixed.now = 1000 + leaseMs - margin;
    t.equal(watch.held, false);
    t.equal(lost, 1);
    watch.granted(fixed.now, leaseMs);
    t.equal(watch.held, false, "a lost lease is not revived");
    watch.end("lock-lost", "over");
  }
  const clock = { now: 0, nowMs: (): number => clock.now };
  const watch = new LeaseWatch(time, clock, "r", () => undefined);
  watch.granted(0, 10_000);
  watch.mayShorten(0, 1000);
  clock.now = 985;
  t.equal(watch.held, false, "an extend under way that shortens counts from its sending");
  t.end();
});

t.test(
  "a grant after lost answers counts from the first try, or is confirmed by an extend",
  async (t) => {
    let extendedMs = 0;
    const { node, client } = await scripted((call, { asked: { length: number } }) => {
      if (call.method === "extend") {
        extendedMs = time.nowMs();
        return { type: EXTENDED, value: 7 };
      }
      if (call.method === "unlock") return { type: UNLOCKED };
      return number < 5 ? { type: MUST_RETRY } : { type: LOCKED, value: 7 };
    });
    const begin = time.nowMs();
    const lock = await client.locks.acquire("late", { leaseMs: 60_000, renew: false });
    const tookMs = time.nowMs() - begin;
    t.equal(extendedMs, 0, "well within a third of the lease nothing more is asked");
    t.ok(
      lock.remainingMs <= 60_000 - leaseMarginMs(60_000) - tookMs + 2,
      "counted from the first try",
    );
    await lock.release();
    node.asked.length = 0;
    const short = await client.locks.acquire("late", { leaseMs: 60, renew: false });
    t.ok(extendedMs > 0, "an old grant is confirmed");
    t.ok(short.remainingMs <= 60 - (time.nowMs() - extendedMs) + 2, "counted from the extend");
    t.equal((await client.locks.acquire("late", { leaseMs: 60_000, owner: "me" })).acquired, true);
    t.equal(
      node.asked.filter((call) => call.method === "extend").length,
      2,
      "a name of one's own is confirmed",
    );
    await client.close();
    node.stop();
  },
);

t.test(
  "P-069 a waiter whose tries got lost takes no timeout for a grant, and releases what may be his",
  async (t) => {
    const { node, client } = await scripted((call) =>
      call.method === "unlock" ? { type: UNLOCKED } : "silence",
    );
    const error = await failure(
      client.locks.acquire("lost", { leaseMs: 1000, waitMs: 50, deadlineMs: 200 }),
    );
    t.type(error, TimeoutError);
    t.equal(error.outcome, "unknown");
    await time.sleep(100);
    const owners = new Set(node.asked.map((call) => call.owner));
    t.equal(owners.size, 1);
    t.equal(node.asked.at(-1)?.method, "unlock", "released in the background");
    await client.close();
    node.stop();
    const busy = await scripted((call, { asked: { length: number } }) =>
      call.method === "unlock" ? { type: UNLOCKED } : { type: number === 1 ? MUST_RETRY : BUSY },
    );
    t.equal((await busy.client.locks.acquire("lost", { leaseMs: 1000 })).acquired, false);
    await time.sleep(50);
    t.equal(
      busy.node.asked.at(-1)?.method,
      "unlock",
      "a try that got lost before may still be granted",
    );
    await busy.client.close();
    busy.node.stop();
  },
);

t.test("P-069 a release is repeated until it is answered; renewal survives a storm", async (t) => {
  let storm = true;
  const { node, client } = await scripted((call, { asked: { length: number } }) => {
    if (call.method === "lock") return { type: LOCKED, value: 1 };
    if (call.method === "extend")
      return storm && number % 4 !== 0 ? { type: MUST_RETRY } : { type: EXTENDED, value: 1 };
    return number % 3 === 0 ? { type: UNLOCKED } : { type: MUST_RETRY };
  });
  const lock = await client.locks.acquire("storm", { leaseMs: 600 });
  await time.sleep(1500);
  t.equal(lock.held, true, "renewed through MustRetry");
  storm = false;
  t.equal(await lock.release(), true);
  const unlocks = node.asked.filter((call) => call.method === "unlock").length;
  t.ok(unlocks >= 1 && unlocks <= 3);
  const taken = await client.locks.acquire("storm", { leaseMs: 600 });
  t.equal(taken.acquired, true);
  await client.close();
  t.equal(node.asked.at(-1)?.method, "unlock", "close releases what is held");
  node.stop();
});

t.test(
  "an extend that is refused, or comes back with another token, ends the handle at once",
  async (t) => {
    for (const answer of [{ type: 102 }, { type: 103 }, { type: EXTENDED, value: 99 }]) {
      const { node, client } = await scripted((call) => {
        if (call.method === "lock") return { type: LOCKED, value: 1 };
        return call.method === "extend" ? answer : { type: UNLOCKED };
      });
      const lock = await client.locks.acquire("gone", { leaseMs: 3000 });
      const begin = time.nowMs();
      await new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
      t.equal((lock.signal.reason as LockLostError).code, "lock-lost");
      t.ok(time.nowMs() - begin < 2500, "at the renewal, not at the end of the lease");
      await client.close();
      node.stop();
    }
  },
);
