/** Who did what, and who was refused: the audit log of a real server, by REST and by gRPC. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { AuditLog } from "../../../src/server/security/audit.js";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { SvcClient } from "../../../src/client/mod.js";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

type Line = Readonly<Record<string, unknown>>;

function lines(path: string): Line[] {
  const text = readFileSync(path, "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

async function until(what: string, condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
    await sleep(20);
  }
}

const ADMIN = "admin-token-0123456789ab";
const READER = "reader-token-0123456789";

t.test("contract 10.7 administrative calls and refusals leave a line; tokens never", async (t) => {
  const tokens = join(directory.path, "tokens");
  const two = `admin ada ${tokenDigestText(ADMIN)}\nreader rita ${tokenDigestText(READER)}\n`;
  writeFileSync(tokens, two, { mode: 0o600 });
  const path = join(directory.path, "audit.log");
  const server = new ServerProcess([
    ...nodeFlags(join(directory.path, "data")),
    "--storage=memory",
    `--auth-tokens-file=${tokens}`,
    "--allow-insecure",
    `--audit-log=${path}`,
  ]);
  const { http, grpc } = await server.ready();
  const post = async (target: string, token: string | null, requestId: string): Promise<number> => {
    const headers: Record<string, string> = {
      "x-request-id": requestId,
      "content-type": "application/json",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    };
    const init = { method: "POST", headers, body: "{}" };
    const answer = await fetch(`http://${http}${target}`, init);
    await answer.text();
    return answer.status;
  };
  await post("/v1/ranges/merge", ADMIN, "rest-1");
  t.equal(await post("/v1/ranges/merge", READER, "rest-2"), 403);
  t.equal(await post("/v1/ranges/merge", null, "rest-3"), 401);
  t.equal(await post("/v1/kv/try-get", READER, "rest-4"), 200, "no administration: no line");
  const base = { operation: "/v1/ranges/merge", address: "127.0.0.1" };
  const of = (requestId: string): Line | undefined => {
    return lines(path).find((line) => line["requestId"] === requestId);
  };
  const ada = { ...base, caller: "ada", role: "admin", event: "administrative call" };
  t.match(of("rest-1"), { ...ada, outcome: /^\d{3}$/, time: /^\d{4}-/ });
  const rita = { ...base, caller: "rita", role: "reader", event: "call refused", outcome: "403" };
  t.match(of("rest-2"), rita);
  t.match(of("rest-3"), { ...base, caller: "", role: "", outcome: "401" });
  t.equal(of("rest-4"), undefined);
  for (const token of [ADMIN, READER]) {
    const client = new SvcClient({ endpoints: [`http://${grpc}`], token });
    await client.ranges.merge().catch(() => undefined);
    await client.close();
  }
  const rpc = lines(path).filter((line) => line["operation"] === "/Cluster/MergeRanges");
  t.match(rpc[0], { caller: "ada", role: "admin", address: "127.0.0.1", outcome: "OK" });
  t.match(rpc[1], { caller: "rita", role: "reader", outcome: "PERMISSION_DENIED" });
  renameSync(path, `${path}.1`);
  writeFileSync(tokens, `${two}writer willi ${tokenDigestText("writer-token-0123456789")}\n`);
  server.signal("SIGHUP");
  const reloaded = (): Line | undefined => {
    try {
      return lines(path).find((line) => line["event"] === "reload");
    } catch {
      return undefined;
    }
  };
  await until("the file was reopened and the reload told", () => reloaded() !== undefined);
  t.match(reloaded(), { what: "tokens", result: "ok", added: "willi", removed: "" });
  t.same(await server.stop(), { code: 0, signal: null });
  t.match(lines(`${path}.1`)[0], { event: "started", configuration: /^[0-9a-f]{16}$/ });
  t.match(lines(path).at(-1), { event: "stopped" });
  const all = readFileSync(path, "utf8") + readFileSync(`${path}.1`, "utf8") + server.log;
  t.notOk(all.includes(ADMIN) || all.includes(READER), "no token anywhere");
});

t.test("contract 10.7 refusals are bounded per second, and what was left out is counted", (t) => {
  const logged: (Record<string, unknown> | undefined)[] = [];
  let nowMs = 0;
  const logger = {
    log: (_level: string, _event: string, fields?: Record<string, unknown>) =>
      void logged.push(fields),
  };
  const opened = AuditLog.open("off", "n", logger, () => nowMs);
  if (!opened.ok) throw new Error(opened.message);
  const entry = { operation: "/x", caller: "", role: "", address: "a", requestId: "" };
  for (let at = 0; at < 50; at++) opened.value.denied({ ...entry, outcome: "401" });
  t.equal(logged.length, 20);
  nowMs = 1000;
  opened.value.denied({ ...entry, outcome: "401" });
  t.match(logged.at(-1), { leftOut: 30 });
  t.match(
    AuditLog.open("/nowhere/there/x", "n", logger, () => 0),
    { ok: false },
  );
  t.end();
});
