/** Contract 4.8: requests that wait for locks, over REST, gRPC and the batch stream. */
import type { Test } from "tap";
import { sleep } from "../cluster/server-process.js";
import type { Node } from "./node.js";
import { type Json, post } from "./wire.js";

const LEASE_MS = 60_000;

export async function waits(t: Test, node: Node): Promise<void> {
  const { grpc } = node;
  const call = async (name: string, body: object) => {
    return (await post(node.http, `/v1/locks/${name}`, body)).body;
  };
  const lock = (resource: string, owner: string, more = {}) =>
    call("try-lock", { resource, owner, expiresMs: LEASE_MS, ...more });
  const unlock = (resource: string, owner: string) => call("try-unlock", { resource, owner });
  const queued = async (resource: string, waiters: number): Promise<void> => {
    for (let tries = 0; tries < 500; tries++) {
      if ((await call("get-info", { resource }))["waiters"] === waiters) return;
      await sleep(10);
    }
    t.fail(`${waiters} wait for ${resource}`);
  };

  await t.test("Q1 to Q5 over REST", async (t) => {
    await lock("w/1", "a");
    const b = lock("w/1", "b", { waitMs: 30_000, waitId: "18446744073709551615", try: 1 });
    await queued("w/1", 1);
    const c = lock("w/1", "c", { waitMs: 30_000 });
    await queued("w/1", 2);
    t.match(await lock("w/1", "d"), { type: 1, waitedMs: 0, waiters: 2 }, "Q3");
    t.match(await call("get-info", { resource: "w/1", owner: "c" }), { type: 4, position: 2 });
    t.match(await unlock("w/1", "a"), { type: 3 });
    const granted = await b;
    t.match(granted, { type: 0, fencingToken: 1, waiters: 1, position: 0 }, "Q2");
    t.ok((granted["leaseLeftMs"] as number) > LEASE_MS - 5000, "Q6");
    const extended = { resource: "w/1", owner: "b", expiresMs: LEASE_MS };
    t.match(await call("try-extend", extended), { type: 2, waiters: 1 }, "Q10");
    await unlock("w/1", "b");
    t.match(await c, { type: 0, fencingToken: 2 });
    const late = await lock("w/1", "d", { waitMs: 200 });
    t.match(late, { type: 1, position: 1 }, "Q5");
    t.ok((late["waitedMs"] as number) >= 200);
    await unlock("w/1", "c");
    t.match(await call("get-info", { resource: "w/1" }), { type: 102 }, "nobody is left behind");
  });

  await t.test("3.1, 11: what cannot be waited for", async (t) => {
    for (const waitMs of [-1, 120_001]) t.match(await lock("w/2", "a", { waitMs }), { type: 100 });
    for (const more of [{ waitId: -1 }, { try: "18446744073709551616" }]) {
      t.match(await lock("w/2", "a", more), { type: 100 }, "an uint64");
    }
    const wrong = await post(node.http, "/v1/locks/try-lock", { resource: "w", waitId: "x" });
    t.match([wrong.status, wrong.body["code"]], [400, "wrong-type"]);
    const request = { Resource: "w/2", Owner: Buffer.from("a"), ExpiresMs: 1, Durability: 1 };
    const tooLong = await grpc.call("Locker", "TryLock", { ...request, WaitMs: 3_600_001 });
    t.match(tooLong.fields, { Type: 100 });
  });

  await t.test("Q9 a closed REST connection leaves the queue at once", async (t) => {
    await lock("w/3", "a");
    const stop = new AbortController();
    const body = { resource: "w/3", owner: "b", expiresMs: LEASE_MS, waitMs: 60_000 };
    const gone = fetch(`${node.http}/v1/locks/try-lock`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: stop.signal,
    }).catch(() => null);
    await queued("w/3", 1);
    stop.abort();
    await gone;
    await queued("w/3", 0);
    await unlock("w/3", "a");
    t.match(await call("get-info", { resource: "w/3" }), { type: 102 }, "nobody was granted it");
  });

  await t.test("2.3, Q1 over gRPC: a shorter deadline counts", async (t) => {
    const request = { Resource: "w/4", Owner: Buffer.from("b"), ExpiresMs: 1000, Durability: 1 };
    await lock("w/4", "a");
    const waited = grpc.call("Locker", "TryLock", { ...request, WaitMs: 30_000 });
    await queued("w/4", 1);
    await unlock("w/4", "a");
    t.match((await waited).fields, { Type: 0, FencingToken: "1" });
  });

  await t.test("B5, B7, P-181: waiting items hold nothing up and are cancelled", async (t) => {
    const stream = grpc.stream("Locker", "BatchClientLockRequests");
    const item = (owner: string, waitMs: number) => {
      const Owner = Buffer.from(owner);
      return { Resource: "w/5", Owner, ExpiresMs: LEASE_MS, Durability: 1, WaitMs: waitMs };
    };
    const answers = (): Json[] =>
      stream.received.flatMap((one) => {
        const frame = one["Frame"] as { readonly Items?: Json[] } | undefined;
        return frame?.Items ?? [one];
      });
    const answerTo = (id: number): Json | undefined =>
      answers().find((one) => one["RequestId"] === id);
    const until = async (id: number): Promise<void> => {
      for (let tries = 0; tries < 1000 && answerTo(id) === undefined; tries++) await sleep(10);
    };
    stream.send({ Type: 1, RequestId: 1, TryLock: item("holder", 0) });
    t.same((await stream.headers).get("svc-lock-wait"), ["1"]);
    await until(1);
    // More than may be in flight.
    const ids = Array.from({ length: 1100 }, (_, at) => at + 2);
    for (let at = 0; at < ids.length; at += 256) {
      const Items = ids.slice(at, at + 256).map((id) => {
        return { Type: 1, RequestId: id, TryLock: item(`o${id}`, 600_000) };
      });
      stream.send({ Type: 15, Frame: { Items } });
    }
    stream.send({ Type: 5, RequestId: 9001, CancelWait: { RequestId: 3 } });
    await until(9001);
    await until(3);
    t.match(answerTo(9001), { Type: 5, CancelWait: { Cancelled: true } });
    t.match(answerTo(3), { TryLock: { Type: 104 } }, "Aborted");
    stream.send({ Type: 5, RequestId: 9002, CancelWait: { RequestId: 3 } });
    await until(9002);
    t.match(answerTo(9002), { Type: 5 });
    t.notMatch(answerTo(9002), { CancelWait: { Cancelled: true } });
    const release = { Resource: "w/5", Owner: Buffer.from("holder"), Durability: 1 };
    stream.send({ Type: 3, RequestId: 9003, Unlock: release });
    await until(9003);
    await until(2);
    t.match(answerTo(9003), { Unlock: { Type: 3 } }, "the holder is not held up");
    t.match(answerTo(2), { TryLock: { Type: 0 } });
    stream.cancel();
    await queued("w/5", 0);
  });
}
