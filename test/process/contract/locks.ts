/** Contract 2.3, 3.1 and 4.1: locks over REST and gRPC. */
import type { Test } from "tap";
import { sleep } from "../cluster/server-process.js";
import type { Node } from "./node.js";
import { post } from "./wire.js";

const NONE = { fencingToken: 0 };
const BYTES_1024 = "é".repeat(512);
/** So many names are sure to lie in every partition. */
const NAMES_EVERYWHERE = 128;

export async function locks(t: Test, node: Node): Promise<void> {
  const call = async (name: string, body: object | string) => {
    const answer = await post(node.http, `/v1/locks/${name}`, body);
    t.equal(answer.status, 200, `${name} ${JSON.stringify(body).slice(0, 80)}`);
    return answer.body;
  };
  const lock = (resource: string, owner: string, expiresMs: number, more = {}) =>
    call("try-lock", { resource, owner, expiresMs, ...more });

  // Each partition takes over the level of the cluster by an entry of its own: before, it does not
  // know how to wait.
  for (let at = 0, tries = 0; at < NAMES_EVERYWHERE && tries < 1000; tries++) {
    const { waitedMs } = await lock(`everywhere/${at}`, "a", 1);
    if (waitedMs === null) await sleep(20);
    else at++;
  }

  await t.test("L1 to L11 and L19 over REST", async (t) => {
    const first = await lock("l/1", "a", 60_000);
    t.same(Object.keys(first).sort(), [
      "fencingToken",
      "leaseLeftMs",
      "position",
      "route",
      "servedFrom",
      "type",
      "waitedMs",
      "waiters",
    ]);
    t.match(first, { waitedMs: 0, position: 0, waiters: 0 });
    t.ok((first["leaseLeftMs"] as number) > 50_000, "Q6");
    t.match(first, { type: 0, fencingToken: 0, servedFrom: node.grpcUrl }, "L1, L13");
    t.match(first["route"], {
      partitionId: Number,
      endpoint: node.grpcUrl,
      provenance: 1,
      generation: 0,
    });
    t.match(await lock("l/1", "a", 5), { type: 0, fencingToken: 0 }, "L2");
    await sleep(20);
    t.match(
      await lock("l/1", "b", 60_000),
      { type: 1, ...NONE },
      "L3; the lease of L2 is unchanged",
    );
    const info = await call("get-info", { resource: "l/1" });
    t.same(Object.keys(info).sort(), [
      "expires",
      "expiresInMs",
      "fencingToken",
      "note",
      "owner",
      "position",
      "route",
      "servedFrom",
      "type",
      "waiters",
    ]);
    t.match(info, {
      type: 4,
      owner: "a",
      fencingToken: 0,
      expires: { n: Number, l: Number, c: Number },
    });
    t.ok((info["expiresInMs"] as number) > 50_000, "L10");
    const end = (info["expires"] as { l: number }).l;
    t.ok(Math.abs(end - Date.now() - 60_000) < 5_000, "T6");
    t.match(
      await call("try-extend", { resource: "l/1", owner: "b", expiresMs: 10 }),
      { type: 103, ...NONE },
      "L5",
    );
    t.match(
      await call("try-unlock", { resource: "l/1", owner: "b" }),
      { type: 103, ...NONE },
      "L8",
    );
    t.match(
      await call("try-extend", { resource: "l/1", owner: "a", expiresMs: 1 }),
      { type: 2, ...NONE },
      "L4",
    );
    await sleep(20);
    t.match(
      await call("try-extend", { resource: "l/1", owner: "a", expiresMs: 10 }),
      { type: 102, ...NONE },
      "L6",
    );
    t.match(
      await call("try-unlock", { resource: "l/1", owner: "b" }),
      { type: 103, ...NONE },
      "L8 expired",
    );
    t.match(
      await call("try-unlock", { resource: "l/1", owner: "a" }),
      { type: 3, fencingToken: 0 },
      "L7",
    );
    t.match(
      await call("try-unlock", { resource: "l/1", owner: "a" }),
      { type: 102, ...NONE },
      "L9",
    );
    const gone = await call("get-info", { resource: "l/1" });
    t.match(gone, {
      type: 102,
      owner: null,
      fencingToken: 0,
      expires: { n: 0, l: 0, c: 0 },
      expiresInMs: 0,
    });
    t.match(await lock("l/1", "b", 60_000), { type: 0, fencingToken: 1 }, "L12");
    const released = await call("try-unlock", { resource: "l/1", owner: "b", expiresMs: 7 });
    t.match(released, { type: 3, fencingToken: 1 }, "expiresMs is accepted and ignored");
    t.match(
      await call("try-extend", { resource: "never", owner: "b", expiresMs: 9 }),
      { type: 102 },
      "L6",
    );
    t.match(await call("try-unlock", { resource: "never", owner: "b" }), { type: 102 }, "L9");
  });

  await t.test("L15 an ephemeral lock is another lock", async (t) => {
    t.match(
      await lock("l/2", "a", 60_000, { durability: 0 }),
      { type: 0, fencingToken: 0 },
      "the first term of a group grants from 0 on",
    );
    t.match(await lock("l/2", "b", 60_000, { durability: "Persistent" }), {
      type: 0,
      fencingToken: 0,
    });
    t.match(await lock("l/2", "b", 60_000, { durability: "Ephemeral" }), { type: 1 });
    t.match(await call("get-info", { resource: "l/2", durability: 0 }), { type: 4, owner: "a" });
    t.match(await call("try-unlock", { resource: "l/2", owner: "a", durability: 0 }), { type: 3 });
  });

  await t.test("L18 and 3.1 owners", async (t) => {
    const day = 24 * 3_600_000;
    const refused: object[] = [
      { owner: "a", expiresMs: 1 },
      { resource: "", owner: "a", expiresMs: 1 },
      { resource: BYTES_1024 + "x", owner: "a", expiresMs: 1 },
      { resource: "x", expiresMs: 1 },
      { resource: "x", owner: null, expiresMs: 1 },
      { resource: "x", owner: BYTES_1024 + "x", expiresMs: 1 },
      { resource: "x", owner: "a" },
      { resource: "x", owner: "a", expiresMs: 0 },
      { resource: "x", owner: "a", expiresMs: -1 },
      { resource: "x", owner: "a", expiresMs: day + 1 },
      { resource: "x", owner: "a", expiresMs: 1, durability: 2 },
      { resource: "x", owner: "a", expiresMs: 1, durability: "persistent" },
      { resource: "x", owner: "base64:", expiresMs: 1 },
    ];
    for (const body of refused) {
      const answer = await call("try-lock", body);
      t.match(
        answer,
        { type: 100, ...NONE, servedFrom: null, route: null },
        JSON.stringify(body).slice(0, 60),
      );
    }
    for (const text of ["1.5", "1e3", "2147483648", "99999999999999999999"])
      t.match(
        await call("try-lock", `{"resource":"x","owner":"a","expiresMs":${text}}`),
        { type: 100 },
        text,
      );
    t.match(
      await lock(BYTES_1024, BYTES_1024, day),
      { type: 0 },
      "names of 1024 bytes, a lease of 24 h",
    );
    t.match(await call("get-info", { resource: BYTES_1024 }), { type: 4, owner: BYTES_1024 });
    t.match(await call("get-info", { resource: BYTES_1024 + "x" }), { type: 100, owner: null });
    t.match(
      await lock("__svc:mine", "a", 60_000),
      { type: 0 },
      "1.3: lock resources may use the prefix",
    );
    for (const [sent, shown] of [
      ["base64:/w==", "base64:/w=="],
      ["base64:YQ==", "a"],
      [`base64:${Buffer.from("base64:x").toString("base64")}`, "base64:YmFzZTY0Ong="],
      ["\u0000 \u{1F600}", "\u0000 \u{1F600}"],
    ] as const) {
      t.match(await lock(`o/${sent}`, sent, 60_000), { type: 0 }, sent);
      t.equal((await call("get-info", { resource: `o/${sent}` }))["owner"], shown, sent);
    }
    const bad = await post(node.http, "/v1/locks/try-lock", {
      resource: "x",
      owner: "base64:!",
      expiresMs: 1,
    });
    t.match([bad.status, bad.body["code"]], [400, "invalid-base64"]);
  });

  await t.test("Q13, Q17 over REST and gRPC", async (t) => {
    const { grpc } = node;
    t.match(await lock("n/1", "a", 60_000, { note: "base64:/w==" }), { type: 0, fencingToken: 0 });
    t.match(await call("get-info", { resource: "n/1" }), { type: 4, note: "base64:/w==" });
    const extend = { resource: "n/1", owner: "a", expiresMs: 60_000 };
    t.match(await call("try-extend", { ...extend, fencingToken: 1 }), { type: 103, ...NONE });
    t.match(await call("try-extend", { ...extend, fencingToken: 0, note: "é" }), { type: 2 });
    t.match(await call("get-info", { resource: "n/1" }), { note: "é" });
    const release = { resource: "n/1", owner: "a" };
    t.match(await call("try-unlock", { ...release, fencingToken: "1" }), { type: 103, ...NONE });
    t.match(await call("try-unlock", { ...release, fencingToken: "0" }), { type: 3 });
    t.match(await call("get-info", { resource: "n/1" }), { type: 102, note: null });
    const long = { note: BYTES_1024 + "x" };
    t.match(await lock("n/1", "a", 60_000, long), { type: 100, ...NONE });
    t.match(await lock("n/1", "a", 60_000, { note: BYTES_1024 }), { type: 0, fencingToken: 1 });
    t.match(await call("try-extend", { ...extend, ...long }), { type: 100, ...NONE });
    const held = { Resource: "n/2", Owner: Buffer.from("a"), ExpiresMs: 60_000, Durability: 1 };
    const Note = Buffer.from([255, 0]);
    t.match((await grpc.call("Locker", "TryLock", { ...held, Note })).fields, { Type: 0 });
    const info = async () =>
      (await grpc.call("Locker", "GetLock", { Resource: "n/2", durability: 1 })).fields;
    t.match(await info(), { Type: 4, Note });
    const other = { ...held, FencingToken: 7 };
    t.match((await grpc.call("Locker", "TryExtendLock", other)).fields, { Type: 103 });
    t.match((await grpc.call("Locker", "Unlock", other)).fields, { Type: 103 });
    const ours = { ...held, FencingToken: 0 };
    const renewed = { ...ours, Note: Buffer.alloc(0) };
    t.match((await grpc.call("Locker", "TryExtendLock", renewed)).fields, { Type: 2 });
    t.match(await info(), { Type: 4, Note: Buffer.alloc(0) });
    t.match((await grpc.call("Locker", "Unlock", ours)).fields, { Type: 3, FencingToken: "0" });
  });

  await t.test("2.3 over gRPC", async (t) => {
    const { grpc } = node;
    const held = {
      Resource: "g/1",
      Owner: Buffer.from([255, 0]),
      ExpiresMs: 60_000,
      Durability: 1,
    };
    t.match(await grpc.call("Locker", "TryLock", held), {
      code: 0,
      fields: {
        Type: 0,
        FencingToken: "0",
        ServedFrom: node.grpcUrl,
        Route: { Provenance: 1, Generation: "0" },
      },
    });
    t.match((await grpc.call("Locker", "TryLock", { ...held, Owner: Buffer.from("x") })).fields, {
      Type: 1,
    });
    const got = (await grpc.call("Locker", "GetLock", { Resource: "g/1", durability: 1 })).fields;
    t.match(got, { Type: 4, FencingToken: "0", Owner: Buffer.from([255, 0]) });
    t.ok(Number(got["ExpiresPhysical"]) > Date.now());
    t.match(
      (await grpc.call("Locker", "GetLock", { Resource: "g/1" })).fields,
      { Type: 102 },
      "unset is Ephemeral",
    );
    t.match(await call("get-info", { resource: "g/1" }), { type: 4, owner: "base64:/wA=" });
    t.match((await grpc.call("Locker", "TryExtendLock", held)).fields, {
      Type: 2,
      FencingToken: "0",
    });
    const noOwner = { Resource: "g/1", ExpiresMs: 1, Durability: 1 };
    t.match((await grpc.call("Locker", "TryExtendLock", noOwner)).fields, { Type: 100 });
    t.match((await grpc.call("Locker", "Unlock", { Resource: "g/1", Durability: 1 })).fields, {
      Type: 100,
    });
    t.match((await grpc.call("Locker", "Unlock", held)).fields, { Type: 3 });
    t.match((await grpc.call("Locker", "TryLock", { ...held, Durability: 7 })).fields, {
      Type: 100,
    });
    const ephemeral = { Resource: "g/2", Owner: Buffer.from("a"), ExpiresMs: 60_000 };
    t.match(
      (await grpc.call("Locker", "TryLock", ephemeral)).fields,
      { Type: 0, FencingToken: "0" },
      "L15",
    );
    const refused = (await grpc.call("Locker", "TryLock", {})).fields;
    t.match(
      [refused["Type"], refused["ServedFrom"], refused["Route"]],
      [100, undefined, undefined],
    );
    const illFormed = Buffer.from([0x0a, 1, 0xff]);
    t.equal((await grpc.call("Locker", "TryLock", illFormed)).code, 3, "INVALID_ARGUMENT");
    const hops = { "svc-forwarded": "1" };
    t.match(
      (await grpc.call("Locker", "TryLock", held, hops)).fields,
      { Type: 0 },
      "the leader serves it",
    );
  });
}
