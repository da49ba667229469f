/** Certificates of peers that change while the links stand: who is let in from then on, and who stays. */
import t, { type Test } from "tap";
import type { PeerNetwork } from "../../../src/net/network.js";
import { LinkRenewal, type RenewalOwner } from "../../../src/net/renewal.js";
import type { PeerTls } from "../../../src/net/settings.js";
import { PeerNode } from "../../conformance/peers.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import { meetPeer } from "../../doubles/net/visitor.js";
import {
  closePort,
  openNetwork,
  peerSettings,
  realPorts,
  sleep,
  until,
} from "../../doubles/net/world.js";

const HANDSHAKE_MS = 1500;
const RENEWAL_MS = 6000;

interface Made {
  readonly node: PeerNode;
  readonly network: PeerNetwork;
  readonly peer: { readonly nodeId: number; readonly endpoint: string };
  /** Puts other certificates in place. */
  renew(tls: PeerTls): void;
}

async function make(t: Test, nodeId: number, first: PeerTls): Promise<Made> {
  let [tls, endpoint] = [first, ""];
  const times = { handshakeWithinMs: HANDSHAKE_MS, linkRenewalMs: RENEWAL_MS };
  const network = await openNetwork(
    peerSettings(nodeId, () => endpoint, { tls: () => tls, ...times }),
  );
  endpoint = `127.0.0.1:${network.port}`;
  t.teardown(() => closePort(network));
  const node = new PeerNode(nodeId, network).start();
  const renew = (other: PeerTls): void => {
    tls = other;
    network.renew();
  };
  return { node, network, peer: { nodeId, endpoint }, renew };
}

t.test("contract 10.8 a withdrawn CA: new connections, resumed sessions, old links", async (t) => {
  const [older, newer] = [await PeerAuthority.make("older"), await PeerAuthority.make("newer")];
  const [first, second, third] = [
    await newer.issue("one"),
    await newer.issue("two"),
    await older.issue("three"),
  ];
  const both = `${first.ca}\n${third.ca}\n`;
  const one = await make(t, 1, { ...first, ca: both });
  const two = await make(t, 2, { ...second, ca: both });
  const three = await make(t, 3, { ...third, ca: both });
  one.node.peers(two.peer, three.peer);
  two.node.peers(one.peer);
  three.node.peers(one.peer);
  const isWhole = (): boolean => one.node.isUp(2) && one.node.isUp(3) && three.node.isUp(1);
  await until("all are linked, by certificates of two CAs", () => isWhole() && two.node.isUp(1));
  const { port } = one.network;
  const before = await meetPeer(port, third);
  t.equal(before.isLetIn, true);
  const again = await meetPeer(port, third, before.session);
  t.match(again, { isLetIn: true, isResumed: true }, "sessions are resumed while nothing changes");
  const good = await meetPeer(port, second);
  const startedMs = performance.now();
  one.renew(await newer.issue("one again"));
  const refused = await meetPeer(port, third, before.session);
  t.match(refused, { isLetIn: false, isResumed: false }, "no session of the withdrawn CA is good");
  t.equal((await meetPeer(port, third)).isLetIn, false, "nor its certificate");
  const fresh = await meetPeer(port, second, good.session);
  t.match(
    fresh,
    { isLetIn: true, isResumed: false },
    "one of the other CA is, but proves itself anew",
  );
  if (performance.now() - startedMs < 2 * HANDSHAKE_MS) t.ok(isWhole(), "the links still stand");
  await until("the good link was renewed", () => one.node.count("up 2") === 2 && one.node.isUp(2));
  await until("the other link ended, in both directions", () => {
    return !one.node.isUp(3) && !three.node.isUp(1);
  });
  await until("the other side of the good one is back too", () => two.node.isUp(1));
  await sleep(RENEWAL_MS / 4);
  t.notOk(one.node.isUp(3) || three.node.isUp(1), "and does not come back");
  t.equal(one.node.count("down 2"), 1, "what was renewed once is left alone");
  three.renew({ ...(await newer.issue("three")), ca: both });
  await until("a new certificate lets it in again", isWhole);
});

/** A clock that is turned by hand, links that come back or not. */
class Scene implements RenewalOwner {
  nowMs = 0;
  readonly began = new Map<number, number>();
  readonly gone = new Set<number>();
  readonly lost = new Set<number>();
  readonly renewed: { readonly nodeId: number; readonly atMs: number }[] = [];
  private due: { readonly atMs: number; readonly run: () => void } | null = null;
  readonly renewal: LinkRenewal;

  constructor(nodes: number, linkRenewalMs: number) {
    for (let nodeId = 1; nodeId <= nodes; nodeId++) this.began.set(nodeId, 0);
    const timer = {
      soon: (run: () => void) => run(),
      after: (delayMs: number, run: () => void) => {
        this.due = { atMs: this.nowMs + delayMs, run };
        return { cancel: () => (this.due = null) };
      },
    };
    const clock = { ...realPorts().clock, monotonicMs: () => this.nowMs };
    const settings = { handshakeWithinMs: HANDSHAKE_MS, linkRenewalMs };
    this.renewal = new LinkRenewal(settings, { ...realPorts(), timer, clock }, this);
  }

  linkedBefore(timeMs: number): readonly number[] {
    return [...this.began].filter(([, beganMs]) => beganMs < timeMs).map(([nodeId]) => nodeId);
  }

  isBack(nodeId: number): boolean {
    return !this.gone.has(nodeId);
  }

  renewLink(nodeId: number): void {
    this.renewed.push({ nodeId, atMs: this.nowMs });
    if (!this.lost.has(nodeId)) this.began.set(nodeId, this.nowMs);
    else this.began.delete(nodeId);
    if (this.lost.has(nodeId)) this.gone.add(nodeId);
  }

  /** Lets the time go on to the end of the renewal, or to `untilMs`. */
  run(untilMs = Number.MAX_SAFE_INTEGER): void {
    for (let turns = 0; this.due !== null && this.due.atMs <= untilMs; turns++) {
      if (turns > 1000) throw new Error("the renewal does not end");
      const { atMs, run } = this.due;
      this.due = null;
      this.nowMs = Math.max(this.nowMs, atMs);
      run();
    }
  }
}

const HOUR_MS = 3_600_000;

t.test("contract 10.8 links are renewed one after the other, each once, in time", (t) => {
  const scene = new Scene(20, HOUR_MS);
  scene.renewal.begin();
  scene.run();
  const order = scene.renewed.map(({ nodeId }) => nodeId);
  t.same(
    [...order].sort((a, b) => a - b),
    [...scene.began.keys()],
  );
  t.ok(new Set(scene.renewed.map(({ atMs }) => atMs)).size === 20, "no two at a time");
  t.ok((scene.renewed[0]?.atMs ?? 0) >= 2 * HANDSHAKE_MS, "handshakes under way are waited for");
  t.ok(scene.nowMs <= HOUR_MS);
  const others = new Scene(20, HOUR_MS);
  others.renewal.begin();
  others.run();
  const times = new Set(scene.renewed.map(({ atMs }) => atMs));
  t.notOk(
    others.renewed.some(({ atMs }) => times.has(atMs)),
    "two nodes do not act in step",
  );
  t.end();
});

t.test("contract 10.8 a link that does not come back is waited for, but not for ever", (t) => {
  const scene = new Scene(5, HOUR_MS);
  for (const nodeId of scene.began.keys()) scene.lost.add(nodeId);
  scene.renewal.begin();
  scene.run((HOUR_MS * 3) / 4 - 1);
  t.equal(scene.renewed.length, 1, "the others stay while there is time");
  scene.run();
  t.equal(scene.renewed.length, 5);
  t.ok(scene.nowMs <= HOUR_MS + 5000);
  t.end();
});

t.test("contract 10.8 a second change while the first is on its way", (t) => {
  const scene = new Scene(3, HOUR_MS);
  scene.renewal.begin();
  scene.run(HOUR_MS / 2);
  const first = scene.renewed.length;
  t.ok(first > 0);
  scene.nowMs = Math.max(scene.nowMs, HOUR_MS / 2);
  const changedMs = scene.nowMs;
  scene.renewal.begin();
  scene.run();
  t.equal(scene.renewed.length, first + 3, "all of them again");
  for (const beganMs of scene.began.values()) t.ok(beganMs >= changedMs + 2 * HANDSHAKE_MS);
  t.ok(scene.nowMs <= HOUR_MS + 2 * HANDSHAKE_MS + 5000, "and no later for it");
  t.end();
});
