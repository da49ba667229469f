/** How named peers are found: a name server that answers, is slow, silent or wrong. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { LOOKUP_PATIENCE_MS, NameResolver, plainAddress } from "../../../src/net/resolve.js";
import type { PeerNetworkPorts } from "../../../src/net/settings.js";
import { systemTimers } from "../../../src/sys.js";
import { PeerNode } from "../../conformance/peers.js";
import { NameServer } from "../../doubles/net/dns.js";
import { closePort, openNetwork, peerSettings, realPorts, until } from "../../doubles/net/world.js";

async function world(t: Test, hosts = ""): Promise<[NameServer, NameResolver]> {
  const server = await NameServer.open();
  const directory = mkdtempSync(join(tmpdir(), "svc-names-"));
  const hostsPath = join(directory, "hosts");
  writeFileSync(hostsPath, hosts);
  t.teardown(async () => {
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return [server, new NameResolver(systemTimers, { servers: [server.address], hostsPath })];
}

/** Longer than anybody may wait. */
const PATIENT_MS = 60_000;

function find(
  names: NameResolver,
  host: string,
  source: string | null = null,
  withinMs = PATIENT_MS,
): Promise<readonly string[]> {
  return new Promise((resolve) => names.find(host, withinMs, source, resolve));
}

t.test("literals and the hosts file are answers, and nobody is asked", async (t) => {
  const hosts = "# own\n10.1.1.1 One one.example # first\n::7 one.example\nnonsense two.example\n";
  const [server, names] = await world(t, hosts);
  t.same(await find(names, "10.0.0.1"), ["10.0.0.1"]);
  t.same(await find(names, "fd00::1"), ["fd00::1"]);
  t.same(await find(names, "ONE.example"), ["10.1.1.1", "::7"]);
  t.same(await find(names, "localhost"), ["127.0.0.1", "::1"]);
  t.equal(server.asked.size, 0);
  t.same(await find(names, "two.example"), []);
  t.equal(server.asked.size, 1);
});

t.test("the answer comes first, then what is known besides", async (t) => {
  const [server, names] = await world(t);
  server.names.set("a.example", ["10.0.0.1", "10.0.0.2"]);
  names.worked("a.example", "::ffff:10.0.0.3");
  const found = await find(names, "a.example", "10.0.0.4");
  t.same(found, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]);
  server.names.set("a.example", ["10.0.0.4"]);
  t.same(await find(names, "a.example", "10.0.0.4"), ["10.0.0.4", "10.0.0.3"]);
  t.equal(names.failures, 0);
  t.equal(plainAddress("::ffff:10.0.0.3"), "10.0.0.3");
  t.equal(plainAddress("fd00::1"), "fd00::1");
});

t.test(
  "P-203 a name server that is silent: one look-up, bounded waits, known addresses",
  async (t) => {
    const [server, names] = await world(t);
    server.silent = true;
    names.worked("gone.example", "10.0.0.9");
    const startedMs = performance.now();
    const finds = Array.from({ length: 50 }, () => find(names, "gone.example", "10.0.0.8"));
    for (const found of await Promise.all(finds)) t.same(found, ["10.0.0.9", "10.0.0.8"]);
    const tookMs = performance.now() - startedMs;
    t.ok(tookMs >= LOOKUP_PATIENCE_MS - 1, "the name server had its time");
    t.ok(tookMs < 10 * LOOKUP_PATIENCE_MS, "and no more, machine willing");
    t.ok((server.asked.get("gone.example") ?? 0) <= 3, "fifty waited for the same questions");
    t.equal(names.failures, 1, "counted once");
    const shortMs = performance.now();
    await find(names, "gone.example", null, 20);
    t.ok(performance.now() - shortMs < LOOKUP_PATIENCE_MS, "never longer than the try itself");
  },
);

t.test("P-203 a slow name server: its late answer serves the next try", async (t) => {
  const [server, names] = await world(t);
  server.names.set("slow.example", ["10.0.0.5"]);
  server.delayMs = LOOKUP_PATIENCE_MS + 100;
  t.same(await find(names, "slow.example"), [], "too late for the first");
  t.equal(names.failures, 1);
  let found: readonly string[] = [];
  for (let tries = 0; tries < 200 && found.length === 0; tries++) {
    found = await find(names, "slow.example", null, 50);
  }
  t.same(found, ["10.0.0.5"]);
});

async function node(t: Test, nodeId: number, name: string, ports: PeerNetworkPorts, port = 0) {
  let bound = port;
  const settings = peerSettings(nodeId, () => `${name}:${bound}`, { port });
  const network = await openNetwork(settings, ports);
  bound = network.port;
  t.teardown(() => closePort(network));
  return {
    node: new PeerNode(nodeId, network).start(),
    peer: { nodeId, endpoint: `${name}:${bound}` },
  };
}

t.test(
  "P-203 links by name, with a name server that knows nothing or the wrong thing",
  async (t) => {
    const [server, names] = await world(t);
    // An address at which somebody accepts and says nothing that a peer would say.
    const stranger = createServer((socket) => socket.end("no peer"));
    server.names.set("one.example", ["127.0.0.1"]);
    server.names.set("two.example", ["127.0.0.9"]);
    const ports = { ...realPorts(), names };
    const one = await node(t, 1, "one.example", ports);
    const two = await node(t, 2, "two.example", ports);
    const port = Number(two.peer.endpoint.split(":")[1]);
    await new Promise<void>((resolve) => stranger.listen(port, "127.0.0.9", resolve));
    t.teardown(() => stranger.close());
    two.node.peers(one.peer);
    one.node.peers(two.peer);
    await until("linked to the address that the peer comes from", () => one.node.isUp(2));
    await until("and the other way round", () => two.node.isUp(1));
    one.node.peers();
    two.node.peers();
    await until("apart", () => !one.node.isUp(2) && !two.node.isUp(1));
    server.silent = true;
    one.node.peers(two.peer);
    two.node.peers(one.peer);
    await until("linked without any name server", () => one.node.isUp(2) && two.node.isUp(1));
  },
);
