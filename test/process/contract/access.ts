/** Contract 10.1 to 10.3: roles by token file and by client certificate, over REST and gRPC. */
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createHash, webcrypto } from "node:crypto";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import type { Test } from "tap";
import {
  ServerProcess,
  freePorts,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { startNode, type Node } from "./node.js";
import { CONTRACT_PATHS } from "./table.js";
import { GrpcCaller, http1, post } from "./wire.js";

/** The peer listener of these nodes is nobody's business here. */
const OPEN_PEERS = "--allow-insecure";

const TOKENS = {
  reader: "reader-token-0123456789",
  writer: "writer-token-0123456789",
  admin: "admin-token-0123456789",
};
type Role = keyof typeof TOKENS;
const ROLES: readonly Role[] = ["reader", "writer", "admin"];

const RPCS = [
  ["Locker", "GetLock", "reader"],
  ["Locker", "TryLock", "writer"],
  ["Locker", "ListLocks", "reader"],
  ["Locker", "ForceUnlock", "admin"],
  ["Locker", "ListLockAudit", "admin"],
  ["Sequencer", "GetSequence", "reader"],
  ["Sequencer", "NextSequenceValue", "writer"],
  ["KeyValuer", "TryGetKeyValue", "reader"],
  ["KeyValuer", "ScanByPrefix", "reader"],
  ["KeyValuer", "TryDeleteManyKeyValue", "writer"],
  ["KeyValuer", "RegisterKeyRange", "admin"],
  ["Cluster", "GetMembership", "reader"],
  ["Cluster", "GetRoutingMetadata", "reader"],
  ["Cluster", "MergeRanges", "admin"],
  ["Cluster", "Leave", "admin"],
  ["Backups", "ListBackups", "admin"],
] as const;

function line(role: string, token: string): string {
  return `${role} ${role}-name sha256:${createHash("sha256").update(token).digest("hex")}\n`;
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

async function checkPaths(t: Test, node: Node): Promise<void> {
  for (const [method, pattern, needed] of CONTRACT_PATHS) {
    const path = pattern.replace("{id}", "0b8f2a44-9c1e-4e0f-8a8e-0123456789ab");
    const ask = (headers: Record<string, string>) =>
      http1(node.http, path, {
        method,
        headers: method === "POST" ? { "content-type": "application/json", ...headers } : headers,
        body: method === "POST" ? "not even JSON" : undefined,
      });
    const nobody = await ask({});
    if (needed === null) {
      t.equal(nobody.status, 200, path);
      continue;
    }
    t.match(
      [nobody.status, nobody.body["code"], nobody.headers["www-authenticate"]],
      [401, "unauthenticated", "Bearer"],
      path,
    );
    for (const role of ROLES) {
      const { status, body } = await ask(bearer(TOKENS[role]));
      const allowed = ROLES.indexOf(role) >= ROLES.indexOf(needed);
      if (allowed)
        t.notOk(
          [401, 403].includes(status) && body["code"] !== "backup-failed",
          `${role} ${path} ${status}`,
        );
      else
        t.match(
          [status, body["code"]],
          [403, "forbidden"],
          `${role} ${path}, before the body is read`,
        );
    }
  }
  for (const wrong of [
    "Bearer wrong-token-0123456789",
    `Basic ${TOKENS.admin}`,
    TOKENS.admin,
    "Bearer short",
  ])
    t.equal(
      (await http1(node.http, "/metrics", { headers: { authorization: wrong } })).status,
      401,
      wrong,
    );
}

async function checkRpcs(t: Test, node: Node): Promise<void> {
  for (const [service, name, needed] of RPCS) {
    t.equal(
      (await node.grpc.call(service, name, {})).code,
      16,
      `${service}/${name} UNAUTHENTICATED`,
    );
    for (const role of ROLES) {
      const { code } = await node.grpc.call(service, name, {}, bearer(TOKENS[role]));
      const allowed = ROLES.indexOf(role) >= ROLES.indexOf(needed);
      if (allowed) t.notOk([7, 16].includes(code), `${role} ${service}/${name}`);
      else t.equal(code, 7, `${role} ${service}/${name} PERMISSION_DENIED`);
    }
  }
  t.equal((await node.grpc.raw("/grpc.health.v1.Health/Check", Buffer.alloc(0))).code, 0);
  t.equal(await node.grpc.stream("Locker", "BatchClientLockRequests").ended, 16);
  const stream = node.grpc.stream("Locker", "BatchClientLockRequests", bearer(TOKENS.reader));
  stream.send({ Type: 4, RequestId: 1, GetLock: { Resource: "a" } });
  await stream.arrived(1);
  t.match(stream.received, [{ GetLock: { Type: 102 } }]);
  stream.send({
    Type: 1,
    RequestId: 2,
    TryLock: { Resource: "a", Owner: Buffer.from("a"), ExpiresMs: 1 },
  });
  t.equal(await stream.ended, 7, "a role too low ends the stream");
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

async function makePair(
  name: string,
  issuer: { cert: x509.X509Certificate; key: webcrypto.CryptoKey } | null,
) {
  x509.cryptoProvider.set(webcrypto);
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const common = {
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
  };
  const cert =
    issuer === null
      ? await x509.X509CertificateGenerator.createSelfSigned({
          ...common,
          name,
          keys,
          signingAlgorithm: ALGORITHM,
          extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
        })
      : await x509.X509CertificateGenerator.create({
          ...common,
          subject: name,
          issuer: issuer.cert.subject,
          publicKey: keys.publicKey,
          signingKey: issuer.key,
          signingAlgorithm: ALGORITHM,
        });
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const pem = `-----BEGIN PRIVATE KEY-----\n${der.toString("base64")}\n-----END PRIVATE KEY-----\n`;
  const pair: Pair = { cert: cert.toString("pem"), key: pem };
  return { pair, cert, key: keys.privateKey };
}

export async function access(t: Test): Promise<void> {
  const directory = temporaryDirectory();
  t.teardown(() => directory.remove());
  const file = join(directory.path, "tokens");
  const whole = `# comment\n\n${ROLES.map((role) => line(role, TOKENS[role])).join("")}`;
  writeFileSync(file, whole, { mode: 0o600 });

  await t.test("10.1, 10.2 roles by token, SIGHUP", async (t) => {
    const node = await startNode(t, `--auth-tokens-file=${file}`, OPEN_PEERS, "--log-level=info");
    await checkPaths(t, node);
    await checkRpcs(t, node);
    const asAdmin = { "content-type": "application/json", ...bearer(TOKENS.admin) };
    const locks = async (name: string, body: object) => {
      const asked = { method: "POST", headers: asAdmin, body: JSON.stringify(body) };
      return (await http1(node.http, `/v1/locks/${name}`, asked)).body;
    };
    for (const over of ["rest", "grpc"]) {
      const resource = `ended over ${over}`;
      t.match(await locks("try-lock", { resource, owner: "a", expiresMs: 60_000 }), { type: 0 });
      const forced = { resource, fencingToken: 0, reason: "r" };
      if (over === "rest") t.match(await locks("force-unlock", forced), { type: 3 });
      else {
        const asked = { Resource: resource, Durability: 1, FencingToken: 0, Reason: "r" };
        const { fields } = await node.grpc.call(
          ...(["Locker", "ForceUnlock", asked, bearer(TOKENS.admin)] as const),
        );
        t.match(fields, { Type: 3 });
      }
      const { items } = await locks("audit", { prefix: resource });
      t.match(items, [{ resource, actor: "admin-name" }], "F5 who");
    }
    t.match(node.server.log, /\/v1\/locks\/force-unlock/, "10.7");
    t.match(node.server.log, /\/Locker\/ForceUnlock/, "10.7");
    const status = async (token: string) =>
      (await http1(node.http, "/metrics", { headers: bearer(token) })).status;
    writeFileSync(file, whole + line("reader", "another-token-0123456789"));
    node.server.signal("SIGHUP");
    while ((await status("another-token-0123456789")) !== 200) await sleep(10);
    writeFileSync(file, "writer broken\n");
    node.server.signal("SIGHUP");
    while (!/error.*not reloaded/.test(node.server.log)) await sleep(10);
    t.equal(await status(TOKENS.reader), 200, "the old content stays");
    t.notMatch(node.server.log, /reader-token/, "no token in the log");
    t.same(await node.server.stop(), { code: 0, signal: null });
  });

  await t.test("10.2 a bad token file stops the start", async (t) => {
    for (const [text, mode, message] of [
      ["owner x sha256:00\n", 0o600, /line 1/],
      [whole, 0o644, /everybody may read/],
    ] as const) {
      writeFileSync(file, text);
      chmodSync(file, mode);
      const server = new ServerProcess([
        ...nodeFlags(directory.path),
        `--auth-tokens-file=${file}`,
        OPEN_PEERS,
      ]);
      t.equal((await server.ended).code, 2);
      t.match(server.log, message);
    }
    chmodSync(file, 0o600);
    writeFileSync(file, whole);
  });

  await t.test("10.3 roles by client certificate, and a token decides alone", async (t) => {
    const authority = await makePair("CN=authority", null);
    const other = await makePair("CN=authority", null);
    const clients = {
      admin: (await makePair("CN=a, OU=svc-admin", authority)).pair,
      writer: (await makePair("CN=w, OU=x, OU=svc-writer", authority)).pair,
      plain: (await makePair("CN=p", authority)).pair,
      stranger: (await makePair("CN=a, OU=svc-admin", other)).pair,
    };
    const ca = join(directory.path, "ca.pem");
    writeFileSync(ca, authority.pair.cert);
    const [health = 0] = await freePorts(1);
    const probed = `--health-port=${health}`;
    const node = await startNode(t, `--tls-client-ca=${ca}`, probed, OPEN_PEERS);
    const probe = await fetch(`http://127.0.0.1:${health}/livez`);
    t.same([probe.status, await probe.text()], [200, "ok"], "a probe needs no certificate");
    const path = "/v1/locks/try-lock";
    const headers = { "content-type": "application/json" };
    const ask = async (pair: Pair | null, target = path) => {
      const client = pair === null ? {} : { cert: pair.cert, key: pair.key };
      const asked = http1(node.https, target, { method: "POST", headers, body: "{}", ...client });
      return (await asked.catch(() => ({ status: 0 }))).status;
    };
    t.same(
      [await ask(clients.writer), await ask(clients.plain), await ask(clients.admin)],
      [200, 403, 200],
    );
    t.same(
      [await ask(clients.writer, "/v1/ranges/merge"), await ask(clients.admin, "/v1/ranges/merge")],
      [403, 200],
    );
    t.same([await ask(null), await ask(clients.stranger)], [0, 0], "required, and verified");
    t.equal((await post(node.http, path, {})).status, 401, "no certificate on the cleartext port");
    const trusted = readFileSync(join(node.directory, "tls", "development.crt"));
    const { cert, key } = clients.writer;
    const secure = grpc.credentials.createSsl(trusted, Buffer.from(key), Buffer.from(cert));
    const caller = new GrpcCaller(node.https.slice(8).replace("127.0.0.1", "localhost"), secure);
    t.match(await caller.call("Locker", "TryLock", {}), { code: 0, fields: { Type: 100 } });
    t.equal((await caller.call("Cluster", "MergeRanges", {})).code, 7);
    caller.close();
    t.equal(statSync(join(node.directory, "tls", "development.key")).mode & 0o077, 0);

    const both = await startNode(
      t,
      `--tls-client-ca=${ca}`,
      `--auth-tokens-file=${file}`,
      OPEN_PEERS,
    );
    const over = (pair: Pair | null, more: Record<string, string>) =>
      http1(both.https, "/v1/ranges/merge", {
        method: "POST",
        headers: { ...headers, ...more },
        ...(pair === null ? {} : { cert: pair.cert, key: pair.key }),
      });
    t.equal((await over(null, {})).status, 401, "optional now");
    t.equal((await over(null, bearer(TOKENS.admin))).status, 200);
    t.equal((await over(clients.admin, {})).status, 200);
    t.equal(
      (await over(clients.admin, bearer(TOKENS.reader))).status,
      403,
      "a presented token decides alone",
    );
    t.equal((await over(clients.admin, bearer("wrong-token-0123456789"))).status, 401);
  });
}
