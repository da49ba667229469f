/** Contract 3.6, 3.7, 6.3 and 7.6 on a cluster of one: ranges and backups, nothing a stub. */
import type { Test } from "tap";
import type { Node } from "./node.js";
import { http1, post } from "./wire.js";

export async function ranges(t: Test, node: Node): Promise<void> {
  const { http, grpc } = node;
  const range = (name: string, body: object) => post(http, `/v1/ranges/${name}`, body);

  await t.test("6.3 register, list, split, merge, unregister", async (t) => {
    const fresh = (await http1(http, "/v1/ranges?keySpace=r")).body;
    t.same(fresh, {
      initialized: true,
      localEndpoint: fresh["localEndpoint"],
      keySpaces: [
        { keySpace: "r", routingMode: "Hash", descriptors: [], moves: [], leaving: false },
      ],
    });
    const seeded = await range("register", { keySpace: "r" });
    t.equal(seeded.status, 200);
    t.same(seeded.body, {
      success: true,
      status: "Seeded",
      seeded: true,
      routingMode: "KeyRange",
      descriptorCount: 1,
      reason: seeded.body["reason"],
    });
    t.match((await range("register", { keySpace: "r" })).body, {
      success: true,
      status: "AlreadySeeded",
      seeded: false,
    });
    const listed = (await http1(http, "/v1/ranges")).body["keySpaces"] as {
      readonly descriptors: readonly { readonly keys: number | null }[];
    }[];
    const home = (await post(http, "/v1/kv/try-get", { key: "r/1" })).body["route"] as Record<
      string,
      unknown
    >;
    t.match(home, { generation: 1 });
    t.same(listed, [
      {
        keySpace: "r",
        routingMode: "KeyRange",
        descriptors: [
          {
            startKey: null,
            endKey: null,
            partitionId: home["partitionId"],
            generation: 1,
            keys: listed[0]?.descriptors[0]?.keys,
          },
        ],
        moves: [],
        leaving: false,
      },
    ]);
    t.match((await http1(http, "/v1/cluster/routing?keySpace=r")).body["keySpaces"], [
      {
        keySpace: "r",
        routingMode: "KeyRange",
        ranges: [{ startKey: null, endKey: null, generation: 1 }],
      },
    ]);
    t.match((await grpc.call("Cluster", "GetRanges", { KeySpace: "r" })).fields, {
      Initialized: true,
      KeySpaces: [{ KeySpace: "r", RoutingMode: "KeyRange", Descriptors: [{ Generation: "1" }] }],
    });
    for (const [body, status] of [
      [{ keySpace: "unknown", splitKey: "unknown/1" }, "NoRange"],
      [{ keySpace: "r", splitKey: "other/1" }, "InvalidSplitKey"],
      [{ keySpace: "r", splitKey: "r/1" }, "BelowMinRangeSize"],
    ] as const) {
      const refused = await range("split", body);
      t.equal(refused.status, 409, status);
      t.match(refused.body, {
        success: false,
        status,
        determinate: true,
        newPartitionId: 0,
        newGeneration: 0,
        leaderHint: "",
        reason: /\.$/,
        code: "refused",
        type: "urn:svc:problem:refused",
      });
    }
    const items = Array.from({ length: 12 }, (_, at) => ({ key: `r/${at}` }));
    await post(http, "/v1/kv/try-set-many", { items });
    t.match((await range("split", { keySpace: "r", splitKey: "r/5" })).body, {
      status: "Succeeded",
      determinate: true,
      newGeneration: 2,
    });
    t.match(await range("merge", {}), {
      status: 200,
      body: { success: true, status: "Completed", determinate: true, merges: 0, leaderHint: "" },
    });
    t.match((await grpc.call("Cluster", "MergeRanges", {})).fields, {
      Success: true,
      Status: "Completed",
      Merges: 0,
    });
    t.match((await grpc.call("Cluster", "SplitRange", { KeySpace: "r", SplitKey: "x" })).fields, {
      Status: "InvalidSplitKey",
      Determinate: true,
    });
    t.match((await grpc.call("KeyValuer", "RegisterKeyRange", { KeySpace: "r" })).fields, {
      Success: true,
      Status: "AlreadySeeded",
      RoutingMode: "KeyRange",
      DescriptorCount: 2,
    });
    t.match(await range("unregister", { keySpace: "r" }), {
      status: 200,
      body: {
        success: true,
        status: "Removed",
        routingMode: "Hash",
        descriptorCount: 0,
        reason: String,
      },
    });
    t.match((await range("unregister", { keySpace: "r" })).body, {
      success: true,
      status: "Removed",
    });
    t.match((await grpc.call("KeyValuer", "RemoveKeyRange", { KeySpace: "r" })).fields, {
      Status: "Removed",
    });
    t.equal(
      ((await post(http, "/v1/kv/get-by-bucket", { prefixKey: "r" })).body["items"] as unknown[])
        .length,
      12,
    );
    for (const keySpace of ["", "__svc:a", "a/meta", "a".repeat(1025)])
      for (const name of ["register", "unregister", "split"]) {
        const refused = await range(
          name,
          name === "split" ? { keySpace, splitKey: "a" } : { keySpace },
        );
        t.equal(refused.status, 400, `${name} ${keySpace.slice(0, 10)}`);
        t.match(refused.body, { success: false, status: "InvalidInput", code: "invalid-argument" });
      }
    t.match(await range("register", {}), { status: 400, body: { status: "InvalidInput" } });
    t.match(await post(http, "/v1/ranges/register", '{"keySpace":5}'), {
      body: { code: "wrong-type", status: 400 },
    });
  });
}

export async function backups(t: Test, node: Node): Promise<void> {
  const { http, grpc } = node;
  const id = "0b8f2a44-9c1e-4e0f-8a8e-0123456789ab";

  await t.test("7.6 every call is refused with NotConfigured", async (t) => {
    const calls: [string, string, object | null][] = [
      ["POST", "/v1/backups/full", {}],
      ["POST", "/v1/backups/coordinated", {}],
      ["POST", "/v1/backups/incremental", { parentBackupId: id }],
      ["POST", "/v1/backups/incremental", { parentBackupId: id.toUpperCase() }],
      ["GET", "/v1/backups", null],
      ["GET", `/v1/backups/${id}/chain`, null],
      ["POST", "/v1/backups/validate-chain", { leafBackupId: id, targetDir: "x", targetTimeMs: 5 }],
      ["POST", "/v1/backups/gc?dryRun=true", {}],
      ["POST", "/v1/backups/gc", {}],
      ["POST", "/v1/restore", { leafBackupId: id, targetDir: "/tmp/x", targetTimeMs: 0 }],
    ];
    for (const [method, path, body] of calls) {
      const answer = body === null ? await http1(http, path) : await post(http, path, body);
      t.equal(answer.status, path === "/v1/restore" ? 403 : 503, `${method} ${path}`);
      t.equal(answer.headers["x-svc-backup-outcome"], "NotConfigured");
      t.equal(answer.headers["content-type"], "application/problem+json");
      t.match(answer.body, {
        code: "backup-failed",
        outcome: "NotConfigured",
        status: answer.status,
      });
      t.match(answer.body["detail"], /\(operation [0-9a-f]{12}\)$/);
    }
    const malformed: [string, object | null][] = [
      ["/v1/backups/incremental", { parentBackupId: "nonsense" }],
      ["/v1/backups/incremental", {}],
      ["/v1/backups/nonsense/chain", null],
      ["/v1/backups/validate-chain", { leafBackupId: "" }],
      ["/v1/restore", { leafBackupId: id, targetDir: "" }],
      ["/v1/restore", { leafBackupId: id, targetDir: "relative" }],
      ["/v1/restore", { leafBackupId: "x", targetDir: "/tmp/x" }],
      ["/v1/backups/gc?dryRun=yes", {}],
    ];
    for (const [path, body] of malformed) {
      const answer = body === null ? await http1(http, path) : await post(http, path, body);
      t.match(answer, { status: 400, body: { code: "invalid-argument" } }, path);
      t.equal(answer.headers["x-svc-backup-outcome"], undefined);
    }
  });

  await t.test("7.6 over gRPC", async (t) => {
    for (const [name, fields] of [
      ["TakeFullBackup", {}],
      ["TakeCoordinatedBackup", {}],
      ["TakeIncrementalBackup", { ParentBackupId: id }],
      ["ListBackups", {}],
      ["GetBackupChain", { LeafBackupId: id }],
      ["ValidateChain", { LeafBackupId: id }],
      ["Restore", { LeafBackupId: id, TargetDir: "/tmp/x" }],
      ["RunBackupGarbageCollection", { DryRun: true }],
    ] as const) {
      const answer = await grpc.call("Backups", name, fields);
      t.equal(answer.code, 14, name);
      t.same(answer.trailers.get("svc-backup-outcome"), ["NotConfigured"]);
      t.match(answer.details, /\(operation [0-9a-f]{12}\)$/);
    }
    const malformed = await grpc.call("Backups", "Restore", { LeafBackupId: id });
    t.equal(malformed.code, 3);
    t.equal((await grpc.call("Backups", "GetBackupChain", { LeafBackupId: "x" })).code, 3);
  });
}
