/** Very many waits of one client beside its other calls, over what connections it may have. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { LOCK_STREAM_WAITS_MAX } from "../../../src/base/limits.js";
import { SvcClient } from "../../../src/client/mod.js";
import { StandIn } from "../../doubles/server/stand-in.js";
import { sleep } from "../../process/cluster/server-process.js";

t.setTimeout(60_000);

const LOCKED = { type: 0, token: 7n };
const UNLOCKED = { type: 3 };

async function until(done: () => boolean, what: string): Promise<void> {
  const beginMs = performance.now();
  while (!done()) {
    if (performance.now() - beginMs > 20_000) throw new Error(`never: ${what}`);
    await sleep(5);
  }
}

t.test("P-181 more waits than a stream takes hold up no release", async (t) => {
  const over = 3;
  const node = await StandIn.open(
    ({ method, name }) => {
      if (method === "unlock") return UNLOCKED;
      return name === "held" ? LOCKED : "silence";
    },
    { waits: true },
  );
  const client = new SvcClient({ endpoints: node.address, channels: 1 });
  const held = await client.locks.acquire("held", { leaseMs: 60_000, renew: false });
  const abort = new AbortController();
  const wish = { leaseMs: 1000, waitMs: 60_000, renew: false, signal: abort.signal };
  const waits = Array.from({ length: LOCK_STREAM_WAITS_MAX + over }, () =>
    client.locks.acquire("hot", wish).catch(() => undefined),
  );
  await until(() => node.count("lock") === 1 + LOCK_STREAM_WAITS_MAX, "all that fit wait");
  t.equal(await held.release(), true, "the release is sent, and answered");
  t.equal(node.count("lock"), 1 + LOCK_STREAM_WAITS_MAX, "the others wait for room");
  abort.abort();
  await Promise.all(waits);
  await client.close({ releaseMs: 0 });
  node.stop();
});

t.test("P-181 over REST neither: waits and other calls have connections apart", async (t) => {
  let waiting = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      const isTry = request.url?.endsWith("try-lock") === true;
      if (isTry && body.includes('"waitMs"')) return void (waiting += 1);
      const answer = { type: isTry ? LOCKED.type : UNLOCKED.type, fencingToken: 7 };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...answer, servedFrom: null, route: null }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new SvcClient({ endpoints: `http://127.0.0.1:${port}`, transport: "rest" });
  const held = await client.locks.acquire("held", { leaseMs: 60_000, renew: false });
  const abort = new AbortController();
  const wish = { leaseMs: 1000, waitMs: 60_000, renew: false, signal: abort.signal };
  const waits = Array.from({ length: 200 }, () =>
    client.locks.acquire("hot", wish).catch(() => undefined),
  );
  await until(() => waiting >= 64, "many wait");
  t.equal(await held.release({ deadlineMs: 15_000 }), true, "the release is sent, and answered");
  abort.abort();
  await Promise.all(waits);
  await client.close({ releaseMs: 0 });
  server.closeAllConnections();
  server.close();
});
