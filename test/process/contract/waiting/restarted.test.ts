/**
 * Three real nodes are restarted one after the other while programs of the library wait for locks and watch, all the time.
 *
 * What it proves, beside what `in-use.ts` holds them to: who waits for a lock whose leader stops goes on to the next leader, and
 * all stay in their order, whatever nodes they came by (Q11, C12); watches go on (W14).
 */
import t, { type Test } from "tap";
import type { SvcClient } from "../../../../src/client/mod.js";
import { Rolling } from "../../cluster/rolling.js";
import { endAll } from "../../cluster/server-process.js";
import { call } from "../../net/processes.js";
import { ALL, clientOf, LEASE_MS, usedWhile } from "./in-use.js";
import { Line } from "./trio.js";

t.setTimeout(240_000);
t.teardown(endAll);

const LONG_LEASE_MS = 120_000;
/** Who waits for a lock while its leader stops. */
const QUEUED = 8;
/** Among so many some are of each of four partitions. */
const NAMES = 24;

/** A lock that node `id` leads, taken by `client`; null: it leads none. */
async function ledBy(rolling: Rolling, client: SvcClient, id: number) {
  const endpoint = rolling.urls.grpc[id - 1];
  for (let at = 0; at < NAMES; at++) {
    const resource = `carried/${id}/${at}`;
    const asked = { leaseMs: LONG_LEASE_MS, renew: false };
    const holder = await client.locks.acquire(resource, asked);
    const info = (await call(rolling.node(id), "/v1/locks/get-info", { resource })) as {
      readonly route: { readonly endpoint: string };
    };
    if (info.route.endpoint === endpoint) return { resource, holder };
    await holder.release();
  }
  return null;
}

/** Node `id` stops and comes back while many wait for a lock that it leads, through both others. False: it leads none. */
async function carriedOver(t: Test, rolling: Rolling, id: number): Promise<boolean> {
  const [one, other] = ALL.filter((each) => each !== id) as [number, number];
  const asking = clientOf(rolling.urls.grpc, "grpc");
  const pinned = [one, other].map((at) => {
    return clientOf([rolling.urls.grpc[at - 1] as string], "grpc", true);
  }) as [SvcClient, SvcClient];
  const led = await ledBy(rolling, asking, id);
  if (led === null) return false;
  const { resource, holder } = led;
  const line = new Line(resource, asking, { grants: QUEUED, "handed over": QUEUED - 1 });
  const waits = [];
  for (let at = 0; at < QUEUED; at++) {
    waits.push(line.waits(pinned[at % 2] as SvcClient, `${at}`, LEASE_MS));
    await line.counts(waits.length);
  }
  await rolling.restart(id);
  await line.counts(waits.length);
  t.equal(await holder.release(), true, "T3 the lease outlives its leader");
  await Promise.all(waits);
  const verdict = line.times.verdict();
  t.equal(verdict.kind, "pass", verdict.violations.join("\n"));
  t.same(line.failures, [], "Q5 Q11 nobody is lost");
  const order = line.order.map(Number);
  t.same(
    order,
    [...order].sort((a, b) => a - b),
    "Q11 in their order",
  );
  await Promise.all([asking, ...pinned].map((client) => client.close()));
  return true;
}

t.test("Q11 C12 W14 a restart of all nodes carries who waits, and who watches", async (t) => {
  const rolling = new Rolling(["--initial-cluster-partitions=4"]);
  t.teardown(() => rolling.end());
  await rolling.start();
  let carried = 0;
  await usedWhile(t, rolling, { grants: 30, "handed over": 10 }, async () => {
    for (const id of ALL) {
      await t.test(`Q11 C12 node ${id} is restarted`, async (t) => {
        if (await carriedOver(t, rolling, id)) carried++;
        else await rolling.restart(id);
      });
    }
  });
  t.ok(carried > 0, `${carried} queues were carried over`);
});
