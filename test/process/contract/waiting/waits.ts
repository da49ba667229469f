/**
 * Contract 4.8: requests that wait for locks, over REST, gRPC and the batch stream. Contract 4.10: lists of locks, forced release
 * and who did it.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Test } from "tap";
import { sleep } from "../../cluster/server-process.js";
import type { Node } from "../node.js";
import { GrpcCaller, type Json, post } from "../wire.js";

const LEASE_MS = 60_000;

/** Passes connections on to the port until it cuts all of them. */
async function cuttingProxy(t: Test, port: number) {
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect({ host: "127.0.0.1", port });
    for (const socket of [near, far]) socket.on("error", () => undefined);
    sockets.push(near, far);
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  t.teardown(() => {
    cut();
    server.close();
  });
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { address, base: `http://${address}`, cut };
}

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

  await t.test(
    "Q8, Q9 a wait that a proxy cuts leaves the queue, and a repeat waits again",
    async (t) => {
      await lock("w/6", "a");
      const proxy = await cuttingProxy(t, Number(new URL(node.http).port));
      const body = { resource: "w/6", owner: "b", expiresMs: LEASE_MS, waitMs: 60_000, waitId: 7 };
      const ask = (base: string, tries: number) =>
        post(base, "/v1/locks/try-lock", { ...body, try: tries });
      const cut = ask(proxy.base, 1).catch(() => null);
      await queued("w/6", 1);
      proxy.cut();
      t.equal(await cut, null);
      await queued("w/6", 0);
      const again = ask(node.http, 65_537);
      await queued("w/6", 1);
      await unlock("w/6", "a");
      t.match((await again).body, { type: 0, fencingToken: 1 });
      await unlock("w/6", "b");
      t.match(
        await call("get-info", { resource: "w/6" }),
        { type: 102 },
        "nothing is left of the cut",
      );
    },
  );

  await t.test("2.3, Q1 over gRPC: a shorter deadline counts", async (t) => {
    const request = { Resource: "w/4", Owner: Buffer.from("b"), ExpiresMs: 1000, Durability: 1 };
    await lock("w/4", "a");
    const waited = grpc.call("Locker", "TryLock", { ...request, WaitMs: 30_000 });
    await queued("w/4", 1);
    await unlock("w/4", "a");
    t.match((await waited).fields, { Type: 0, FencingToken: "1" });
  });

  await t.test("Q8 whose gRPC connection broke finds its place again; Q18 repeats", async (t) => {
    const token = (await lock("w/7", "a"))["fencingToken"];
    const proxy = await cuttingProxy(t, Number(new URL(node.grpcUrl).port));
    const near = new GrpcCaller(proxy.address);
    t.teardown(() => near.close());
    const request = {
      Resource: "w/7",
      Owner: Buffer.from("b"),
      ExpiresMs: LEASE_MS,
      Durability: 1,
    };
    const waiting = { ...request, WaitMs: 60_000, WaitId: "7" };
    const lost = near.call("Locker", "TryLock", { ...waiting, Try: "1" });
    await queued("w/7", 1);
    const behind = lock("w/7", "c", { waitMs: 60_000 });
    await queued("w/7", 2);
    proxy.cut();
    t.not((await lost).code, 0);
    await queued("w/7", 1);
    const again = grpc.call("Locker", "TryLock", { ...waiting, Try: "65537" });
    await queued("w/7", 2);
    t.match(await call("get-info", { resource: "w/7", owner: "c" }), { position: 2 }, "its place");
    const extend = { resource: "w/7", owner: "a", expiresMs: LEASE_MS, fencingToken: token };
    t.match(await call("try-extend", extend), { type: 2, waiters: 2 });
    t.match(await call("try-extend", extend), { type: 2, fencingToken: token }, "Q18");
    const release = { resource: "w/7", owner: "a", fencingToken: token };
    t.match(await call("try-unlock", release), { type: 3 });
    t.match((await again).fields, { Type: 0, FencingToken: "1" }, "before who came later");
    t.match(await call("try-unlock", release), { type: 103 }, "a repeat releases no later grant");
    const third = await grpc.call("Locker", "TryLock", { ...waiting, Try: "131073" });
    t.match(third.fields, { Type: 0, FencingToken: "1" }, "Q18 the same grant again");
    const left = BigInt(third.fields["LeaseLeftMs"] as string);
    t.ok(left > 0n && left <= BigInt(LEASE_MS), "L2 what is left of it");
    await unlock("w/7", "b");
    t.match(await behind, { type: 0, fencingToken: 2 });
    await unlock("w/7", "c");
  });

  await t.test("Q8 a place to which nobody comes back delays nobody", async (t) => {
    await lock("w/8", "a");
    const proxy = await cuttingProxy(t, Number(new URL(node.grpcUrl).port));
    const near = new GrpcCaller(proxy.address);
    t.teardown(() => near.close());
    const request = {
      Resource: "w/8",
      Owner: Buffer.from("b"),
      ExpiresMs: LEASE_MS,
      Durability: 1,
    };
    const lost = near.call("Locker", "TryLock", { ...request, WaitMs: 60_000 });
    await queued("w/8", 1);
    const behind = lock("w/8", "c", { waitMs: 60_000 });
    await queued("w/8", 2);
    proxy.cut();
    await lost;
    await unlock("w/8", "a");
    t.match(await behind, { type: 0, fencingToken: 1 });
    await unlock("w/8", "c");
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

export async function lockAdmin(t: Test, node: Node): Promise<void> {
  const { grpc } = node;
  const call = async (name: string, body: object): Promise<Json> => {
    const answer = await post(node.http, `/v1/locks/${name}`, body);
    t.equal(answer.status, 200, `${name} ${JSON.stringify(body).slice(0, 80)}`);
    return answer.body as Json;
  };
  const lock = (resource: string, owner: string, more = {}) =>
    call("try-lock", { resource, owner, expiresMs: LEASE_MS, ...more });
  const names = (page: Json): unknown[] => (page["items"] as Json[]).map((one) => one["resource"]);

  await t.test("F2 over REST and gRPC", async (t) => {
    const all = Array.from({ length: 20 }, (_, at) => `list/${String(at).padStart(2, "0")}`);
    for (const resource of all) await lock(resource, "a");
    await lock("list/00", "a");
    await call("try-unlock", { resource: "list/03", owner: "a" });
    await lock("list/é", "base64:/w==", { note: "n" });
    await lock("list/e", "a", { durability: 0 });
    const page = await call("list", { prefix: "list/" });
    t.same(Object.keys(page).sort(), ["hasMore", "items", "nextCursor", "type"]);
    t.match(page, { type: 4, hasMore: false, nextCursor: null });
    t.same(names(page), [...all, "list/é"]);
    const items = page["items"] as Json[];
    t.same(items[3], {
      resource: "list/03",
      owner: null,
      fencingToken: 0,
      held: false,
      expires: { n: 0, l: 0, c: 0 },
      expiresInMs: 0,
      waiters: 0,
      note: null,
    });
    t.match(items[20], { owner: "base64:/w==", held: true, waiters: 0, note: "n" });
    t.ok((items[20]?.["expiresInMs"] as number) > LEASE_MS - 5000);
    const held = await call("list", { prefix: "list/", heldOnly: true });
    t.same(names(held), [...all.filter((name) => name !== "list/03"), "list/é"]);
    t.same(names(await call("list", { prefix: "list/", durability: "Ephemeral" })), ["list/e"]);
    const paged: unknown[] = [];
    for (let cursor: unknown = null; ;) {
      const part = await call("list", { prefix: "list/", limit: 7, cursor });
      t.ok(names(part).length <= 7 && names(part).length > 0);
      paged.push(...names(part));
      cursor = part["nextCursor"];
      if (cursor === null) break;
      t.equal(part["hasMore"], true);
      t.match(await call("list", { prefix: "list", limit: 7, cursor }), { type: 100 }, "K18");
    }
    t.same(paged, [...all, "list/é"]);
    for (const wrong of [
      { limit: -1 },
      { limit: 10_001 },
      { cursor: "x" },
      { prefix: "é".repeat(513) },
      { durability: 2 },
    ]) {
      const refused = { type: 100, items: [], nextCursor: null, hasMore: false };
      t.same(await call("list", wrong), refused, JSON.stringify(wrong).slice(0, 40));
    }
    const asked = { Prefix: "list/", Durability: 1, HeldOnly: true, Limit: 3 };
    const { fields } = await grpc.call("Locker", "ListLocks", asked);
    t.match(fields, { Type: 4, HasMore: true, Items: [{ Resource: "list/00", Held: true }] });
    t.match(fields["Items"], [{ Owner: Buffer.from("a"), FencingToken: "0", Waiters: 0 }]);
    const next = { ...asked, Cursor: fields["NextCursor"] };
    const second = (await grpc.call("Locker", "ListLocks", next)).fields;
    t.match(second["Items"], [{ Resource: "list/04" }], "strictly behind");
  });

  await t.test("F3 to F6 over REST and gRPC", async (t) => {
    await lock("force/1", "a");
    const force = (more: object) => call("force-unlock", { resource: "force/1", ...more });
    const reason = "it hangs, é";
    t.match(await force({ fencingToken: 1, reason }), { type: 103, auditId: 0, owner: null }, "F3");
    t.match(await force({ fencingToken: 0, reason: "" }), { type: 100, servedFrom: null });
    t.match(await force({ fencingToken: 0, reason: "é".repeat(513) }), { type: 100 });
    t.match(await force({ reason }), { type: 103 }, "a token is never left out");
    const waiting = lock("force/1", "b", { waitMs: 30_000 });
    const dropped = lock("force/1", "c", { waitMs: 30_000 });
    for (let tries = 0; tries < 500; tries++) {
      if ((await call("get-info", { resource: "force/1" }))["waiters"] === 2) break;
    }
    const released = await force({ fencingToken: "0", reason });
    t.same(Object.keys(released).sort(), [
      "auditId",
      "fencingToken",
      "owner",
      "route",
      "servedFrom",
      "type",
    ]);
    t.match(released, { type: 3, fencingToken: 0, owner: "a", auditId: Number });
    const winner = await Promise.race([waiting, dropped]);
    t.match(winner, { type: 0, fencingToken: 1 }, "F4");
    t.match(await force({ fencingToken: 0, reason }), { type: 103 }, "F6");
    t.match(await call("try-extend", { resource: "force/1", owner: "a", expiresMs: 1 }), {
      type: 103,
    });
    t.match(await force({ fencingToken: 1, reason: "all", dropWaiters: true }), { type: 3 });
    const types = (await Promise.all([waiting, dropped])).map((one) => one["type"]);
    t.same(types.sort(), [0, 104], "F4 DropWaiters");
    t.match(await call("get-info", { resource: "force/1" }), { type: 102, waiters: 0 });
    t.match(await force({ fencingToken: 1, reason }), { type: 102 }, "F3 not held");
    await lock("force/2", "e", { durability: 0 });
    const token = (await call("get-info", { resource: "force/2", durability: 0 }))["fencingToken"];
    const asked = { Resource: "force/2", FencingToken: token, Reason: "gone" };
    const over = (await grpc.call("Locker", "ForceUnlock", asked)).fields;
    t.match(over, { Type: 3, Owner: Buffer.from("e"), FencingToken: String(token) });
    t.match(await call("get-info", { resource: "force/2", durability: 0 }), { type: 102 });
    const audit = await call("audit", { prefix: "force/" });
    t.match(audit, { type: 4, hasMore: false, nextCursor: null });
    const rows = audit["items"] as Json[];
    t.same(
      rows.map((one) => [one["resource"], one["owner"], one["fencingToken"], one["reason"]]),
      [
        ["force/2", "e", token, "gone"],
        ["force/1", winner === (await waiting) ? "b" : "c", 1, "all"],
        ["force/1", "a", 0, reason],
      ],
      "F5 the newest first",
    );
    t.match(rows[1], { actor: "anonymous", nodeId: 1, waitersDropped: 1, durability: 1 });
    t.match(rows[0], { durability: 0, stamp: { n: 1, l: Number, c: Number }, requestId: /./ });
    const first = await call("audit", { prefix: "force/", limit: 1 });
    t.match(first, { hasMore: true, items: [{ resource: "force/2" }] });
    const cursor = first["nextCursor"];
    const rest = await call("audit", { prefix: "force/", limit: 2, cursor });
    t.same(names(rest), ["force/1", "force/1"]);
    t.match(await call("audit", { prefix: "other", cursor }), { type: 100 });
    const listed = (await grpc.call("Locker", "ListLockAudit", { Prefix: "force/1" })).fields;
    t.match(listed, { Type: 4, Items: [{ Reason: "all" }, { Reason: reason }] });
  });
}
