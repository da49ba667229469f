/** Contract 3.8: probes, metrics, the OpenAPI document. */
import type { Test } from "tap";
import { VERSION } from "../../../src/base/generated/version.js";
import type { Node } from "./node.js";
import { CONTRACT_PATHS } from "./table.js";
import { http1, post } from "./wire.js";

/** Sum of the values of all lines of one metric whose labels contain all of `labels`. */
function valueOf(text: string, name: string, ...labels: string[]): number | null {
  const lines = text.split("\n").filter((line) => {
    const match = /^([a-z_]+)(\{.*\})? /.exec(line);
    return match?.[1] === name && labels.every((label) => (match[2] ?? "").includes(label));
  });
  if (lines.length === 0) return null;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

export async function observing(t: Test, node: Node): Promise<void> {
  const { http } = node;

  await t.test("probes", async (t) => {
    t.match(await http1(http, "/livez"), { status: 200, text: /^ok\s*$/ });
    t.match(await http1(http, "/livez?verbose"), { status: 200, text: /^(\[\+\]\S+ ok\n)+ok\s*$/ });
    t.match(await http1(http, "/readyz"), { status: 200, text: /^ok\s*$/ });
    const verbose = (await http1(http, "/readyz?verbose")).text.trimEnd().split("\n");
    const names = ["initialized", "membership", "leaders", "applied", "storage", "shutdown"];
    t.same(verbose, [...names.map((name) => `[+]${name} ok`), "ok"]);
    t.match(await http1(http, "/"), {
      status: 200,
      text: new RegExp(`^svc-server ${VERSION}\\s*$`),
    });
  });

  await t.test("metrics have their names and labels, and move", async (t) => {
    const read = async () => (await http1(http, "/metrics")).text;
    const before = await read();
    await post(http, "/v1/locks/try-lock", { resource: "metric", owner: "a", expiresMs: 1000 });
    await post(http, "/v1/locks/try-lock", { resource: "metric", owner: "b", expiresMs: 1000 });
    await post(http, "/v1/sequences/create", { name: "metric" });
    await post(http, "/v1/sequences/reserve", { name: "metric", count: 40 });
    const after = await read();
    const moved = (name: string, ...labels: string[]) =>
      (valueOf(after, name, ...labels) ?? NaN) - (valueOf(before, name, ...labels) ?? 0);
    t.equal(moved("svc_lock_grants_total"), 1);
    t.equal(moved("svc_sequence_values_total"), 40);
    t.equal(
      moved("svc_requests_total", 'api="locks"', 'operation="try-lock"', 'outcome="Busy"'),
      1,
    );
    t.equal(
      moved("svc_requests_total", 'api="sequences"', 'operation="reserve"', 'outcome="Success"'),
      1,
    );
    t.equal(
      moved("svc_request_duration_seconds_count", 'api="sequences"', 'operation="reserve"'),
      1,
    );
    t.ok(moved("svc_wal_sync_duration_seconds_count") >= 3);
    t.ok(moved("svc_raft_batch_entries_count") >= 3);
    t.ok(moved("svc_raft_commit_index") >= 3);
    t.ok(moved("svc_raft_applied_index") >= 3);
    t.equal(valueOf(after, "svc_inflight_requests"), 0);
    t.equal(valueOf(after, "svc_raft_is_leader"), 17);
    t.equal(valueOf(after, "svc_raft_is_leader", 'partition="16"'), 1);
    t.equal(valueOf(after, "svc_raft_pending_proposals", 'partition="3"'), 0);
    t.ok((valueOf(after, "svc_raft_term", 'partition="0"') ?? 0) >= 1);
    t.ok((valueOf(after, "svc_raft_leader_changes_total", 'partition="0"') ?? 0) >= 1);
    t.equal(valueOf(after, "svc_build_info", `version="${VERSION}"`), 1);
    t.match(after, /^# TYPE svc_snapshots_total counter$/m);
    t.match(after, /^# TYPE svc_backup_last_success_timestamp_seconds gauge$/m);
    t.not(valueOf(after, "svc_backup_last_success_timestamp_seconds"), null);
    t.match((await http1(http, "/metrics")).headers["content-type"], /^text\/plain/);
  });

  await t.test("the OpenAPI document lists every path and nothing else", async (t) => {
    const document = (await http1(http, "/openapi.json")).body;
    t.match(document["openapi"], /^3\.1\./);
    t.same(
      Object.keys(document["paths"] as object).sort(),
      CONTRACT_PATHS.map(([, path]) => path).sort(),
    );
  });
}
