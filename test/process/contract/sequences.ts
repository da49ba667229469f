/** Contract 2.2, 3.2, 3.3 and 4.2: sequences over REST and gRPC. */
import type { Test } from "tap";
import type { Node } from "./node.js";
import { post } from "./wire.js";

const MAX = "9223372036854775807";
const MIN = "-9223372036854775808";
const EMPTY_ALLOCATION = { name: null, start: 0, end: 0, count: 0, revision: 0 };

export async function sequences(t: Test, node: Node): Promise<void> {
  const raw = async (name: string, body: object | string) => {
    const answer = await post(node.http, `/v1/sequences/${name}`, body);
    t.equal(answer.status, 200, `${name} ${JSON.stringify(body).slice(0, 90)} ${answer.text}`);
    return answer;
  };
  const call = async (name: string, body: object | string) => (await raw(name, body)).body;

  await t.test("3.2 members, S2, S3, S4, S9, S14, S15", async (t) => {
    const created = await call("create", { name: " s/1\u3000" });
    t.same(Object.keys(created).sort(), [
      "allocation",
      "revision",
      "route",
      "sequence",
      "servedFrom",
      "type",
    ]);
    const { createdAt, updatedAt, ...sequence } = created["sequence"] as Record<string, unknown>;
    t.same(sequence, {
      name: "s/1",
      currentValue: 0,
      initialValue: 0,
      increment: 1,
      maxValue: null,
      blockSize: null,
      incarnation: 0,
      revision: 0,
      durability: "Persistent",
    });
    t.same(createdAt, updatedAt);
    t.same(Object.keys(createdAt as object), ["n", "l", "c"]);
    t.match(created, { type: "Success", revision: 0, allocation: EMPTY_ALLOCATION });
    const again = await call("create", { name: "s/1", increment: 5 });
    t.match(again, {
      type: "AlreadyExists",
      sequence: null,
      revision: -1,
      allocation: EMPTY_ALLOCATION,
    });
    t.match(await call("next", { name: "s/1" }), {
      type: "Success",
      sequence: null,
      revision: 1,
      allocation: { name: "s/1", start: 1, end: 1, count: 1, revision: 1 },
    });
    t.match(await call("reserve", { name: "s/1", count: 9 }), {
      allocation: { start: 2, end: 10, count: 9, revision: 1 },
      revision: 1,
    });
    t.match(
      await call("reserve", { name: "s/1", count: 1000 }),
      { revision: 2 },
      "S8 does not fit the block",
    );
    const got = await call("get", { name: "s/1" });
    t.match(got, { type: "Success", revision: 2, sequence: { revision: 2, createdAt } });
    t.match(await call("delete", { name: "s/1" }), {
      type: "Success",
      revision: 0,
      sequence: null,
    });
    for (const name of ["get", "update", "delete"])
      t.match(await call(name, { name: "s/1", ...(name === "update" ? { increment: 2 } : {}) }), {
        type: "NotFound",
        revision: -1,
      });
    for (const name of ["next", "reserve"])
      t.match(await call(name, { name: "s/1", ...(name === "reserve" ? { count: 2 } : {}) }), {
        type: "NotFound",
        revision: 0,
        allocation: EMPTY_ALLOCATION,
      });
    t.match(await call("create", { name: "s/1" }), { type: "Success", revision: 0 }, "S16");
    t.match(await call("next", { name: "s/1" }), { allocation: { start: 1 } }, "S16");
  });

  await t.test("S10, S11 keys; S12, S13 update; S9 after an update", async (t) => {
    await call("create", { name: "s/2", blockSize: 10, maxValue: 1000 });
    const first = (await call("next", { name: "s/2", idempotencyKey: " k " }))["allocation"];
    t.match(first, { start: 1, revision: 1 });
    t.same((await call("next", { name: "s/2", idempotencyKey: "k" }))["allocation"], first, "S11");
    t.same(
      (await call("reserve", { name: "s/2", count: 1, idempotencyKey: "k" }))["allocation"],
      first,
    );
    t.match(await call("reserve", { name: "s/2", count: 2, idempotencyKey: "k" }), {
      type: "InvalidInput",
    });
    t.match(await call("next", { name: "s/2", idempotencyKey: "  " }), {
      allocation: { start: Number },
    });
    const long = "k".repeat(1024);
    t.match(await call("next", { name: "s/2", idempotencyKey: ` ${long} ` }), { type: "Success" });
    t.match(await call("next", { name: "s/2", idempotencyKey: `${long}k` }), {
      type: "InvalidInput",
      revision: 0,
    });
    const update = (body: object) => call("update", { name: "s/2", ...body });
    for (const body of [
      {},
      { increment: 0 },
      { increment: -1 },
      { blockSize: 0 },
      { blockSize: 2147483648 },
      { maxValue: 5, removeMaxValue: true },
      { blockSize: 5, removeBlockSize: true },
      { currentValue: 1001 },
      { currentValue: 10, maxValue: 9 },
      { removeMaxValue: false },
    ])
      t.match(
        await update(body),
        { type: "InvalidInput", revision: -1, sequence: null },
        JSON.stringify(body),
      );
    const updated = await update({
      currentValue: 5000,
      increment: 10,
      removeMaxValue: true,
      removeBlockSize: true,
    });
    t.match(updated, {
      type: "Success",
      sequence: {
        currentValue: 5000,
        increment: 10,
        maxValue: null,
        blockSize: null,
        incarnation: 1,
      },
    });
    t.equal((updated["sequence"] as { revision: number }).revision, updated["revision"]);
    t.match(await call("next", { name: "s/2" }), { allocation: { start: 5010 } }, "S13");
    t.match(await call("next", { name: "s/2", idempotencyKey: "k" }), {
      allocation: { start: Number },
    });
    t.match(await update({ initialValue: 7 }), {
      sequence: { initialValue: 7, increment: 10, incarnation: 2 },
    });
    t.match(await update({ maxValue: MAX }), { type: "Success" }, "text of digits");
  });

  await t.test("S5 and int64 edges, exact both ways", async (t) => {
    const body = `{"name":"s/3","initialValue":${MIN},"increment":${MAX},"maxValue":${MAX}}`;
    const created = await raw("create", body);
    t.match(created.text, `"initialValue":${MIN}`);
    t.match(created.text, `"increment":${MAX},"maxValue":${MAX}`);
    t.match((await raw("next", { name: "s/3" })).text, '"start":-1,"end":-1,"count":1');
    t.match((await raw("next", { name: "s/3" })).text, '"start":9223372036854775806');
    t.match(await call("next", { name: "s/3" }), {
      type: "MaxValueExceeded",
      revision: 0,
      sequence: null,
    });
    await call("create", { name: "s/4", maxValue: 5, initialValue: 2 });
    t.match(await call("reserve", { name: "s/4", count: 4 }), { type: "MaxValueExceeded" });
    t.match(await call("reserve", { name: "s/4", count: 3 }), { allocation: { start: 3, end: 5 } });
    t.match(await call("next", { name: "s/4" }), { type: "MaxValueExceeded" });
    await call("create", `{"name":"s/5","initialValue":"${MAX}"}`);
    t.match(await call("next", { name: "s/5" }), { type: "MaxValueExceeded" });
    await call("create", { name: "s/6" });
    t.match(await call("reserve", { name: "s/6", count: 2147483647 }), {
      allocation: { end: 2147483647 },
    });
    for (const count of ["0", "-1", "2147483648", "1.5", "null"])
      t.match(
        await call("reserve", `{"name":"s/6","count":${count}}`),
        { type: "InvalidInput" },
        count,
      );
    for (const value of ["9223372036854775808", "-9223372036854775809", "1.0", "1e2", "1E400"])
      t.match(
        await call("create", `{"name":"s/7","initialValue":${value}}`),
        { type: "InvalidInput" },
        value,
      );
  });

  await t.test("S1, S2 refusals, 3.3 forms", async (t) => {
    const name = "\u{1F600}".repeat(256);
    for (const body of [
      {},
      { name: " \t\u00a0" },
      { name: "__svc:x" },
      { name: " __svc:x" },
      { name: `${name}x` },
      { name: "s/8", increment: 0 },
      { name: "s/8", initialValue: 2, maxValue: 1 },
      { name: "s/8", blockSize: 0 },
      { name: "s/8", durability: "Ephemeral" },
      { name: "s/8", durability: "nonsense" },
    ])
      t.match(
        await call("create", body),
        { type: "InvalidInput", revision: -1 },
        JSON.stringify(body).slice(0, 60),
      );
    t.match(await call("create", { name, maxValue: 0 }), { type: "Success" });
    t.match(await call("create", { name: "s/\u0000" }), { type: "Success" });
    t.match(await call("get", { name: "s/\u0000" }), { sequence: { name: "s/\u0000" } });
    t.match(await call("get", { name, durability: 1 }), { type: 0, sequence: { durability: 1 } });
    t.match(await call("get", { name, durability: "Persistent" }), { type: "Success" });
    t.match(await call("get", { name, durability: null }), { type: "Success" });
    t.match(await call("get", { name, durability: 0 }), { type: 3, revision: -1 });
    t.match(await call("get", { name, durability: 9 }), { type: 3 });
    t.match(await call("next", { name: "none", durability: 1 }), {
      type: 1,
      allocation: EMPTY_ALLOCATION,
    });
    t.match(await call("next", `{"durability":1.5,"name":"none"}`), { type: 3 });
  });

  await t.test("2.2 over gRPC", async (t) => {
    const { grpc } = node;
    const gone = await grpc.call("Sequencer", "GetSequence", { Name: "g/1", Durability: 1 });
    t.match(gone, { code: 0, fields: { Type: 1, Sequence: null, Revision: "-1" } });
    const fields = {
      Name: "g/1",
      InitialValue: 10,
      Increment: 2,
      MaxValue: 100,
      BlockSize: 3,
      Durability: 1,
    };
    const created = (await grpc.call("Sequencer", "CreateSequence", fields)).fields;
    t.match(created, {
      Type: 0,
      Revision: "0",
      ServedFrom: node.grpcUrl,
      Sequence: {
        Name: "g/1",
        CurrentValue: "10",
        MaxValue: "100",
        BlockSize: 3,
        Durability: 1,
        Incarnation: "0",
      },
      Route: { Endpoint: node.grpcUrl, Provenance: 1 },
    });
    const stamp = created["Sequence"] as Record<string, unknown>;
    t.equal(stamp["CreatedAtPhysical"], stamp["UpdatedAtPhysical"]);
    t.match(
      (await grpc.call("Sequencer", "NextSequenceValue", { Name: "g/1", Durability: 1 })).fields,
      {
        Type: 0,
        Allocation: { Name: "g/1", Start: "12", End: "12", Count: 1, Revision: "1" },
      },
    );
    const many = { Name: "g/1", Count: 99, Durability: 1 };
    t.match((await grpc.call("Sequencer", "ReserveSequenceRange", many)).fields, {
      Type: 4,
      Allocation: null,
    });
    const updated = await grpc.call("Sequencer", "UpdateSequence", {
      Name: "g/1",
      CurrentValue: 0,
      Durability: 1,
    });
    t.match(updated.fields, { Type: 0, Sequence: { CurrentValue: "0", Incarnation: "1" } });
    const empty = await grpc.call("Sequencer", "UpdateSequence", { Name: "g/1", Durability: 1 });
    t.match(empty.fields, { Type: 3, Revision: "-1" });
    t.match(
      (await grpc.call("Sequencer", "NextSequenceValue", { Name: "g/1" })).fields,
      { Type: 3 },
      "UNSPECIFIED",
    );
    t.match(
      (await grpc.call("Sequencer", "CreateSequence", { Name: "g/2", Durability: 1 })).fields,
      { Type: 3 },
    );
    const deleted = await grpc.call("Sequencer", "DeleteSequence", { Name: "g/1", Durability: 1 });
    t.match(deleted.fields, { Type: 0, Revision: "0", Sequence: null });
  });
}
