/** From when a client counts the lease of a grant that it waited for, against a service that says what it is told to. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { leaseMarginMs } from "../../../src/client/locks/lease.js";

const LEASE_MS = 60_000;
const ON_ITS_WAY_MS = 6000;
const WAITED_MS = 4000;

t.test(
  "P-184 Q6 a waited lease counts from when it was granted, not from the answer",
  async (t) => {
    const clock = { offsetMs: 0, nowMs: (): number => performance.now() + clock.offsetMs };
    const server = createServer((request, response) => {
      request.resume();
      request.on("end", () => {
        const isTry = request.url?.endsWith("try-lock") === true;
        if (isTry) clock.offsetMs += WAITED_MS + ON_ITS_WAY_MS;
        const told = { leaseLeftMs: LEASE_MS, waitedMs: WAITED_MS, position: 0, waiters: 0 };
        const type = isTry ? 0 : 3;
        response.writeHead(200, { "content-type": "application/json" });
        response.end(
          JSON.stringify({ type, fencingToken: 5, ...told, servedFrom: null, route: null }),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const endpoints = `http://127.0.0.1:${port}`;
    const client = new SvcClient({ endpoints, transport: "rest", clock });
    const wish = { leaseMs: LEASE_MS, waitMs: 30_000, renew: false };
    const lock = await client.locks.acquire("r", wish);
    t.ok(lock.remainingMs <= LEASE_MS - ON_ITS_WAY_MS - leaseMarginMs(LEASE_MS) + 2);
    t.ok(lock.remainingMs > 0, "it is held");
    await lock.release();
    await client.close();
    server.close();
  },
);
