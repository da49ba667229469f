/** Very many waits of one client beside its other calls, over one connection. */
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
