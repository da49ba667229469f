/**
 * Lanes between this program and those of level 1, which know them as streams of HTTP/2 only; the
 * other way round, an older program that calls this one, is in `faults.test.ts` and in the fuzzing.
 */
import { createServer } from "node:net";
import t, { type Test } from "tap";
import { equalBytes } from "../../../src/base/bytes.js";
import { OpeningReader, LANE_OPENING } from "../../../src/net/wire.js";
import type { PeerTls } from "../../../src/net/settings.js";
import { PeerNode, numbered } from "../../conformance/peers.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import { OlderPeer } from "../../doubles/net/older-peer.js";
import { closePort, openNetwork, peerSettings, until } from "../../doubles/net/world.js";

const LANES = ["control", "log", "bulk", "calls"] as const;

async function open(t: Test, nodeId: number, tls: PeerTls | null): Promise<[PeerNode, string]> {
  let endpoint = "";
  const network = await openNetwork(peerSettings(nodeId, () => endpoint, { tls: () => tls }));
  endpoint = `127.0.0.1:${network.port}`;
  t.teardown(() => closePort(network));
  return [new PeerNode(nodeId, network).start(), endpoint];
}

async function linksWithOlder(t: Test, tls: PeerTls | null): Promise<void> {
  const [one] = await open(t, 1, tls);
  const [two, endpoint] = await open(t, 2, null);
  const older = await OlderPeer.open(endpoint, tls);
  t.teardown(() => older.close());
  one.peers({ nodeId: 2, endpoint: older.address });
  await until("they are linked", () => one.isUp(2));
  // A link may be lost to a busy machine: what is sent then is gone, and so are its connections.
  const exchange = async (kind: "http2" | "sockets"): Promise<void> => {
    const bytes = numbered(kind.length, 70_000, "log");
    const came = new Set<string>();
    await until(`every lane travels: ${kind}`, () => {
      for (const lane of LANES) {
        if (two.from(1, lane).some((frame) => equalBytes(frame, bytes))) came.add(lane);
        else if (one.isUp(2)) one.send(2, lane, bytes);
      }
      return came.size === LANES.length && older.open[kind] === LANES.length;
    });
  };
  await exchange("http2");
  t.equal(older.open.sockets, 0);
  older.isUpgraded = true;
  older.cut();
  await exchange("sockets");
  t.equal(older.open.http2, 0, "an upgraded one is spoken to on sockets");
}

t.test("5.5 lanes with an older program travel over HTTP/2, until it is upgraded", (t) =>
  linksWithOlder(t, null),
);
t.test("5.5 so they do with TLS", async (t) => {
  await linksWithOlder(t, await (await PeerAuthority.make("peers")).issue("node"));
});

t.test(
  "5.5 whoever ends a connection without a word is not taken for an older program",
  async (t) => {
    const first = new Set<string>();
    let met = 0;
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", (chunk: Buffer) => {
        met += 1;
        first.add(chunk.subarray(0, LANE_OPENING.length).toString("latin1"));
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.teardown(() => server.close());
    const bound = server.address();
    if (bound === null || typeof bound === "string") throw new Error("it has a port");
    const [one] = await open(t, 1, null);
    one.peers({ nodeId: 2, endpoint: `127.0.0.1:${bound.port}` });
    await until("it was tried several times", () => met >= 6);
    t.strictSame([...first], [Buffer.from(LANE_OPENING).toString("latin1")]);
  },
);

t.test("an opening is read in any pieces, and told from all else", (t) => {
  const opening = Buffer.from(LANE_OPENING);
  const behind = Buffer.from("behind");
  for (let at = 0; at <= opening.length; at++) {
    const reader = new OpeningReader();
    const [head, tail] = [opening.subarray(0, at), Buffer.concat([opening.subarray(at), behind])];
    t.equal(reader.push(head), at === opening.length ? "lane" : "short");
    t.equal(reader.push(tail), "lane");
    t.strictSame(Buffer.from(reader.rest), behind);
  }
  for (let at = 0; at < opening.length; at++) {
    const wrong = Buffer.from(opening);
    wrong[at] = (wrong[at] ?? 0) ^ 1;
    t.equal(new OpeningReader().push(wrong), at === 0 ? "other" : "broken");
  }
  t.equal(new OpeningReader().push(Buffer.from("PRI * HTTP/2.0\r\n")), "other");
  t.equal(new OpeningReader().push(Buffer.from([0, 0, 24, 4])), "other", "settings of HTTP/2");
  t.end();
});
