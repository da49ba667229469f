/**
 * What a client counts of a wait for a lock, against a service that says what it is told to: the
 * lease, and its tries.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { leaseMarginMs } from "../../../src/client/locks/lease.js";

const LEASE_MS = 60_000;

/**
 * What is left of a lease at a client (ms) whose own clock counted `countedMs` from its try to the
 * answer, of which the service says that it waited for `waitedMs`.
 */
async function leftOf(waitedMs: number, countedMs: number): Promise<number> {
  const clock = { offsetMs: 0, nowMs: (): number => performance.now() + clock.offsetMs };
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      const isTry = request.url?.endsWith("try-lock") === true;
      if (isTry) clock.offsetMs += countedMs;
      const told = { leaseLeftMs: LEASE_MS, waitedMs, position: 0, waiters: 0 };
      const type = isTry ? 0 : 3;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ type, fencingToken: 5, ...told, servedFrom: null, route: null }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new SvcClient({
    endpoints: `http://127.0.0.1:${port}`,
    transport: "rest",
    clock,
  });
  const wish = { leaseMs: LEASE_MS, waitMs: 120_000, renew: false };
  const lock = await client.locks.acquire("r", wish);
  const { remainingMs } = lock;
  await lock.release();
  await client.close();
  server.close();
  return remainingMs;
}

const TRUSTED_MS = LEASE_MS - leaseMarginMs(LEASE_MS);

t.test("P-184 Q6 a waited lease counts from the grant, not from the answer", async (t) => {
  const leftMs = await leftOf(4000, 10_000);
  t.ok(leftMs <= TRUSTED_MS - 6000 + 5, `${leftMs} ms`);
  t.ok(leftMs > 0, "it is held");
});

t.test(
  "T4 a clock that counted less of the wait than the service makes no lease longer",
  async (t) => {
    const leftMs = await leftOf(100_000, 99_950);
    t.ok(leftMs <= TRUSTED_MS, `${leftMs} ms`);
    t.ok(leftMs > 0, "it is held");
  },
);

t.test(
  "Q14 each try of an acquire has a higher number, also behind one that was refused",
  async (t) => {
    const tries: bigint[] = [];
    const ids = new Set<string>();
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => void parts.push(part));
      request.on("end", () => {
        const asked = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
        if (request.url?.endsWith("try-lock") === true) {
          tries.push(BigInt(asked["try"] as string));
          ids.add(String(asked["waitId"]));
        }
        // Refused with nothing done, then busy, then locked; each a few times.
        const at = tries.length;
        const type = at % 3 === 0 ? 1 : 101;
        const isLast = at >= 9;
        const told = { leaseLeftMs: LEASE_MS, waitedMs: 0, position: 0, waiters: 0 };
        response.writeHead(200, { "content-type": "application/json" });
        const answer = { type: isLast ? 0 : type, fencingToken: 5, ...told };
        response.end(JSON.stringify({ ...answer, servedFrom: null, route: null }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = new SvcClient({ endpoints: `http://127.0.0.1:${port}`, transport: "rest" });
    const wish = { leaseMs: LEASE_MS, waitMs: 120_000, retryMs: 1, renew: false };
    await client.locks.acquire("r", wish);
    await client.close({ releaseMs: 0 });
    server.close();
    t.equal(ids.size, 1, "one acquire");
    t.ok(tries.length >= 9);
    for (const [at, number] of tries.entries()) {
      if (at > 0) t.ok(number - (tries[at - 1] as bigint) >= 65_536n, `try ${at}`);
    }
  },
);
