/**
 * The peer listener beside authentication: real servers, and others that would like to be peers.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import {
  ServerProcess,
  endAll,
  nodeFlags,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";

const directory = temporaryDirectory();
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const TOKEN = "admin-token-0123456789ab";

function file(name: string, text: string): string {
  const path = join(directory.path, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

const tokens = file("tokens", `admin ada ${tokenDigestText(TOKEN)}\n`);
const secret = file("secret", "0123456789abcdef0123456789abcdef\n");
const wrong = file("wrong", "fedcba9876543210fedcba9876543210\n");
const short = file("short", "0123456789abcdef\n");

function start(name: string, ...flags: readonly string[]): ServerProcess {
  const path = join(directory.path, name);
  return new ServerProcess([...nodeFlags(path), "--storage=memory", ...flags]);
}

function peerOf(server: ServerProcess): string {
  return /peer=(\S+)/.exec(server.output)?.[1] ?? "";
}

async function get(server: ServerProcess, path: string): Promise<string> {
  const { http } = await server.addresses();
  const headers = { authorization: `Bearer ${TOKEN}` };
  return (await fetch(`http://${http}${path}`, { headers })).text();
}

async function members(server: ServerProcess): Promise<string> {
  const text = await get(server, "/v1/cluster/membership");
  const { members } = JSON.parse(text) as { members: { nodeId: number; role: string }[] };
  return members.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
}

async function refusedCount(server: ServerProcess, reason: string): Promise<number> {
  const text = await get(server, "/metrics");
  const pattern = new RegExp(`svc_connections_refused_total\\{reason="${reason}"\\} (\\d+)`);
  return Number(pattern.exec(text)?.[1] ?? Number.NaN);
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
    await sleep(50);
  }
}

const guarded = `--auth-tokens-file=${tokens}`;

t.test("P-198 a peer listener open to all is no companion of tokens", async (t) => {
  const refused = start("refused", guarded);
  t.match(await refused.ended, { code: 2 });
  t.match(refused.log, /peer listener.*127\.0\.0\.1.*--peer-secret-file.*--allow-insecure/);
  const tooShort = start("short", guarded, `--peer-secret-file=${short}`);
  t.match(await tooShort.ended, { code: 2 });
  t.match(tooShort.log, /has 16 characters; it must be at least 32/);
  const insecure = start("insecure", guarded, "--allow-insecure");
  await insecure.ready();
  t.match(insecure.log, /whoever reaches the peer listener needs none/);
  t.same(await insecure.stop(), { code: 0, signal: null });
});

t.test("P-198 who does not know the secret joins nothing", async (t) => {
  const server = start("one", guarded, `--peer-secret-file=${secret}`);
  await server.ready();
  t.equal(await members(server), "1 Voter");
  const seed = `--join=${peerOf(server)}`;
  const rogues = [
    start("rogue2", seed, "--raft-nodeid=2"),
    start("rogue3", seed, "--raft-nodeid=3", `--peer-secret-file=${wrong}`),
  ];
  await until("they are turned away", async () => (await refusedCount(server, "unproven")) >= 2);
  await sleep(1000);
  t.equal(await members(server), "1 Voter");
  for (const rogue of rogues) {
    t.equal(rogue.output, "", "it never got as far as to listen");
    await rogue.kill();
  }
  const good = start("good", seed, "--raft-nodeid=4", `--peer-secret-file=${secret}`);
  await good.ready();
  await until("a node that knows it is a voter", async () => {
    return (await members(server)) === "1 Voter, 4 Voter";
  });
  t.same(await good.kill(), { code: null, signal: "SIGKILL" });
});

t.test("P-198 contract 10.5 a certificate of another node joins nothing", async (t) => {
  const authority = await PeerAuthority.make("peers");
  const flagsOf = async (name: string, ...uris: string[]): Promise<string[]> => {
    const pair = await authority.issue(name, ...uris);
    mkdirSync(join(directory.path, name));
    return [
      `--peer-tls-cert=${file(join(name, "c.pem"), pair.certificate)}`,
      `--peer-tls-key=${file(join(name, "k.pem"), pair.key)}`,
      `--peer-tls-ca=${file(join(name, "ca.pem"), pair.ca)}`,
      "--peer-tls-require-node-id",
    ];
  };
  const server = start("tls1", guarded, ...(await flagsOf("c1", "svc:node:1")));
  await server.ready();
  const seed = `--join=${peerOf(server)}`;
  const second = await flagsOf("c2", "svc:node:2");
  const thief = start("thief", seed, "--raft-nodeid=3", ...second);
  t.match(await thief.ended, { code: 2 });
  t.match(thief.log, /certificate.*not for node 3/);
  t.ok((await refusedCount(server, "other-identity")) >= 1);
  t.equal(await members(server), "1 Voter");
  const named = start("tls2", seed, "--raft-nodeid=2", ...second);
  await named.ready();
  await until("the node that it names is a voter", async () => {
    return (await members(server)) === "1 Voter, 2 Voter";
  });
});

t.test(
  "contract 9 a single node that accepts no peers, and one that gets a peer port",
  async (t) => {
    const path = join(directory.path, "single");
    const run = (...flags: readonly string[]): ServerProcess => {
      return new ServerProcess([...nodeFlags(path, ...flags), guarded]);
    };
    const endpoint = async (server: ServerProcess): Promise<string | undefined> => {
      const text = await get(server, "/v1/cluster/membership");
      const { members } = JSON.parse(text) as { members: { endpoint: string }[] };
      return members.length === 1 ? members[0]?.endpoint : undefined;
    };
    const single = run("--peer-port=off");
    await single.ready();
    t.match(single.output, / peer=off node=1\n/);
    t.equal(await endpoint(single), "", "the member list lists it without an address");
    t.same(await single.stop(), { code: 0, signal: null });
    const guardedPeers = `--peer-secret-file=${secret}`;
    const listening = run("--peer-port=0", guardedPeers);
    await listening.ready();
    const listed = peerOf(listening);
    t.match(listed, /^127\.0\.0\.1:\d+$/);
    await until(
      "the member list has its address",
      async () => (await endpoint(listening)) === listed,
    );
    const flags = [`--join=${listed}`, "--raft-nodeid=2", guarded, guardedPeers];
    const second = new ServerProcess([...nodeFlags(join(directory.path, "second")), ...flags]);
    await second.ready();
    await until(
      "another one joined",
      async () => (await members(listening)) === "1 Voter, 2 Voter",
    );
    await listening.kill();
    const refused = run("--peer-port=off");
    t.match(await refused.ended, { code: 2 });
    t.match(refused.log, /--peer-port is off.*2 members/);
    t.equal(refused.output, "", "it served nobody");
    const again = run("--peer-port=off", `--join=${listed}`);
    t.match(await again.ended, { code: 2 });
    t.match(again.log, /--peer-port is off.*--join/);
  },
);
