/** The real links between nodes, on loopback: what every peer port must do, plain and with TLS. */
import { connect as connectSession } from "node:http2";
import t from "tap";
import { type PeerTls, laneBounds } from "../../../src/net/settings.js";
import type { PeerAddress, TimerPort } from "../../../src/ports.js";
import { PeerNode, peerConformance } from "../../conformance/peers.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import {
  RealHarness,
  TIMES,
  closePort,
  openNetwork,
  peerSettings,
  realPorts,
  sleep,
  until,
} from "../../doubles/net/world.js";

t.test("plain", async (t) => {
  await peerConformance(t, async () => Promise.resolve(new RealHarness()));
});

t.test("with TLS on both sides", async (t) => {
  const authority = await PeerAuthority.make("peers");
  const tls = await authority.issue("node");
  await peerConformance(t, async () => Promise.resolve(new RealHarness({ tls: () => tls })));
});

async function nodeWith(nodeId: number, tls: PeerTls | null): Promise<[PeerNode, string]> {
  let endpoint = "";
  const network = await openNetwork(peerSettings(nodeId, () => endpoint, { tls: () => tls }));
  endpoint = `127.0.0.1:${network.port}`;
  return [new PeerNode(nodeId, network).start(), endpoint];
}

t.test("P-164 without a certificate of the peers' CA nobody is let in", async (t) => {
  const [ours, theirs] = [await PeerAuthority.make("ours"), await PeerAuthority.make("theirs")];
  const good = await ours.issue("one");
  const stranger = await theirs.issue("two");
  const [one, endpoint] = await nodeWith(1, good);
  // A certificate of another CA, one of ours that does not trust ours, and none at all.
  const others: readonly (readonly [string, PeerTls | null])[] = [
    ["another CA", { ...stranger, ca: good.ca }],
    ["trusts another CA", { ...good, ca: stranger.ca }],
    ["no TLS", null],
  ];
  for (const [name, tls] of others) {
    const [two, twoEndpoint] = await nodeWith(2, tls);
    two.peers({ nodeId: 1, endpoint });
    one.peers({ nodeId: 2, endpoint: twoEndpoint });
    await sleep(300);
    for (const node of [one, two]) {
      t.strictSame(node.happened, [], `${name}: no link, and nobody was judged`);
      t.equal(node.frames.length, 0);
    }
    one.peers();
    await closePort(two.port);
  }
  const [three, threeEndpoint] = await nodeWith(3, await ours.issue("three"));
  three.peers({ nodeId: 1, endpoint });
  one.peers({ nodeId: 3, endpoint: threeEndpoint });
  await until("a good one is let in after all that", () => three.isUp(1) && one.isUp(3));
  const plain = connectSession(`https://${endpoint}`, { rejectUnauthorized: false });
  plain.on("error", () => undefined);
  await until("a client without a certificate is cut off", () => plain.destroyed);
  for (const node of [one, three]) await closePort(node.port);
});

t.test("5.7 nobody is greeted before it is known where clients find the node", async (t) => {
  const [one, endpoint] = await nodeWith(1, null);
  let twoEndpoint = "";
  let clientEndpoint = "";
  const settings = peerSettings(2, () => twoEndpoint);
  const profile = () => ({ ...settings.profile(), clientEndpoint });
  const network = await openNetwork({ ...settings, profile });
  twoEndpoint = `127.0.0.1:${network.port}`;
  network.hold();
  const two = new PeerNode(2, network).start();
  two.peers({ nodeId: 1, endpoint });
  one.peers({ nodeId: 2, endpoint: twoEndpoint });
  await sleep(300);
  for (const node of [one, two]) t.strictSame(node.happened, [], "no link, and nobody was judged");
  clientEndpoint = "http://two:8083";
  network.release();
  await until("they are linked", () => one.isUp(2) && two.isUp(1));
  t.equal(one.hellos.get(2)?.clientEndpoint, clientEndpoint);
  for (const node of [one, two]) await closePort(node.port);
  const late = await openNetwork(peerSettings(3, () => ""));
  late.hold();
  new PeerNode(3, late).start();
  await closePort(late);
  late.release();
  t.notOk(late.isServing, "one that was closed meanwhile stays so");
});

t.test(
  "5.2 a peer that came back at another endpoint is reached where it says it is",
  async (t) => {
    for (const tls of [null, await (await PeerAuthority.make("peers")).issue("node")]) {
      const [one, endpoint] = await nodeWith(1, tls);
      const [gone, listed] = await nodeWith(2, tls);
      await closePort(gone.port);
      one.peers({ nodeId: 2, endpoint: listed });
      const [two] = await nodeWith(2, tls);
      await sleep(300);
      t.notOk(one.isUp(2), "nobody told where it is");
      two.peers({ nodeId: 1, endpoint });
      await until("linked both ways", () => one.isUp(2) && two.isUp(1));
      for (const node of [one, two]) await closePort(node.port);
    }
  },
);

t.test(
  "echoes to all peers leave at the same times: the process wakes once for them",
  async (t) => {
    const ports = realPorts();
    const everyMs = 70;
    const control = { ...laneBounds(TIMES).control, echoEveryMs: everyMs, echoWithinMs: 30_000 };
    const lanes = { ...laneBounds(TIMES), control };
    let nowMs = 0;
    /** How many timers of the first node were set to each multiple of the pause. */
    const dues = new Map<number, number>();
    const clock = {
      ...ports.clock,
      monotonicMs: (): number => (nowMs = ports.clock.monotonicMs()),
    };
    const timer: TimerPort = {
      soon: ports.timer.soon,
      after: (delayMs, callback) => {
        const multiple = (nowMs + delayMs) / everyMs;
        const nearest = Math.round(multiple);
        if (Math.abs(multiple - nearest) < 1e-6) dues.set(nearest, (dues.get(nearest) ?? 0) + 1);
        return ports.timer.after(delayMs, callback);
      },
    };
    const nodes: PeerNode[] = [];
    const endpoints: string[] = [];
    for (const nodeId of [1, 2, 3]) {
      const settings = peerSettings(nodeId, () => endpoints[nodeId - 1] ?? "", { lanes });
      const network = await openNetwork(
        settings,
        nodeId === 1 ? { ...ports, clock, timer } : ports,
      );
      endpoints.push(`127.0.0.1:${network.port}`);
      nodes.push(new PeerNode(nodeId, network).start());
    }
    const [one, two, three] = nodes as [PeerNode, PeerNode, PeerNode];
    const [first, second, third] = endpoints as [string, string, string];
    const to = (nodeId: number, endpoint: string): PeerAddress => ({ nodeId, endpoint });
    one.peers(to(2, second), to(3, third));
    two.peers(to(1, first));
    three.peers(to(1, first));
    await until("both are up", () => one.isUp(2) && one.isUp(3));
    await until(
      "echoes go on",
      () => [...dues.values()].filter((count) => count === 2).length >= 10,
    );
    t.ok(Math.max(...dues.values()) === 2, "one timer for each peer");
    for (const node of nodes) await closePort(node.port);
  },
);
