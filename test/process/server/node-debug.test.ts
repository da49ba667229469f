/** The node debug of a real server: what must be in it is, and what must never be is not. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { ServerProcess, endAll, nodeFlags, temporaryDirectory } from "../cluster/server-process.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** What is planted as stored data, secrets and environment. */
const CANARIES = {
  token: "canary-token-0123456789",
  secret: "canary-secret-of-peers-0123456789abcdef",
  environment: "canary-environment",
  key: "canary-key",
  value: "canary-value",
  owner: "canary-owner",
  resource: "canary-resource",
  sequence: "canary-sequence",
  idempotency: "canary-idempotency",
} as const;

/** The forms in which bytes might stand in a text. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [text, bytes.toString("hex"), bytes.toString("base64").replace(/=+$/, "")];
}

t.test("5.7 a node debug has all members, and no stored data or secret in any form", async (t) => {
  const file = (name: string, text: string): string => {
    const path = join(directory.path, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  process.env["CANARY"] = CANARIES.environment;
  const server = new ServerProcess([
    ...nodeFlags(join(directory.path, "data")),
    `--auth-tokens-file=${file("tokens", `admin ada ${tokenDigestText(CANARIES.token)}\n`)}`,
    `--peer-secret-file=${file("secret", CANARIES.secret)}`,
    "--slow-request-threshold=1ms",
  ]);
  const { http } = await server.ready();
  const authorization = `Bearer ${CANARIES.token}`;
  const post = async (path: string, body: object): Promise<number> => {
    const headers = { authorization, "content-type": "application/json" };
    const options = { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(`http://${http}/v1/${path}`, options);
    await answer.text();
    return answer.status;
  };
  const { key, value, owner, resource, sequence, idempotency } = CANARIES;
  const base64 = Buffer.from(value).toString("base64");
  t.equal(await post("kv/try-set", { key, value: base64 }), 200);
  t.equal(await post("locks/try-lock", { resource, owner, expiresMs: 60_000 }), 200);
  t.equal(await post("sequences/create", { name: sequence }), 200);
  const next = { name: sequence, idempotencyKey: idempotency };
  t.equal(await post("sequences/next", next), 200);
  const debug = (query: string, headers: Record<string, string>): Promise<Response> =>
    fetch(`http://${http}/v1/node/debug${query}`, { headers });
  t.equal((await debug("", {})).status, 401);
  t.equal((await debug("?profileSeconds=61", { authorization })).status, 400);
  const first = debug("?profileSeconds=1", { authorization });
  const busy = await debug("", { authorization });
  const answer = await first;
  const both = [answer.status, busy.status].sort();
  t.same(both, [200, 503], "one at a time");
  const text = await (answer.status === 200 ? answer : busy).text();
  for (const [name, canary] of Object.entries(CANARIES)) {
    for (const form of formsOf(canary)) t.notOk(text.includes(form), `no ${name} as ${form}`);
  }
  const all = JSON.parse(text) as Record<string, unknown>;
  t.same(all["missing"], {});
  const members = "config health level links log logs membership metrics missing partitions ";
  t.equal(Object.keys(all).sort().join(" "), `${members}placement process profile store version`);
  for (const [name, member] of Object.entries(all)) t.not(member, null, name);
  t.match(all, {
    health: { ready: true },
    membership: { members: [{ nodeId: 1 }] },
    partitions: { length: 17 },
    profile: { nodes: Array },
    config: { nodeId: 1, slowRequestMs: 1 },
  });
  const [one = "", two = ""] = all["metrics"] as readonly string[];
  t.match(one, /^svc_ready 1$/m);
  t.not(one, two);
  const lines = all["logs"] as readonly string[];
  t.ok(lines.some((line) => line.includes('"msg":"slow request"')));
  t.notOk(
    lines.some((line) => line.includes("call refused")),
    "audit lines are left out",
  );
  t.match(server.log, /call refused/);
  t.equal((await server.stop()).code, 0);
});
