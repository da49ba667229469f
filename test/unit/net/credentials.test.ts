/** By what peers know each other: the shared secret, and certificates that name a node. */
import t, { type Test } from "tap";
import { PROGRAM } from "../../../src/base/levels.js";
import type { JoinAnswer, PeerIdentity } from "../../../src/ports.js";
import type { Result } from "../../../src/base/result.js";
import { PeerQuestions } from "../../../src/net/asking.js";
import {
  type CredentialSettings,
  PeerCredentials,
  namedNodes,
} from "../../../src/net/credentials.js";
import type { PeerNetworkPorts, PeerTls } from "../../../src/net/settings.js";
import { PeerNode } from "../../conformance/peers.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import {
  type Told,
  closePort,
  openNetwork,
  peerSettings,
  realPorts,
  until,
} from "../../doubles/net/world.js";

const SECRET = Buffer.from("0123456789abcdef0123456789abcdef");
const OTHER = Buffer.from("another-secret-another-secret-00");

interface Made {
  readonly node: PeerNode;
  readonly peer: { readonly nodeId: number; readonly endpoint: string };
  readonly ports: PeerNetworkPorts;
  readonly told: Told[];
}

function portsWith(settings: Partial<CredentialSettings>, told: Told[] = []): PeerNetworkPorts {
  const ports = realPorts(told);
  const whole = { secret: null, requireNodeId: false, ...settings };
  return { ...ports, credentials: new PeerCredentials(whole, ports.logger) };
}

async function make(
  t: Test,
  nodeId: number,
  settings: Partial<CredentialSettings>,
  tls: PeerTls | null = null,
): Promise<Made> {
  const told: Told[] = [];
  const ports = portsWith(settings, told);
  let endpoint = "";
  const network = await openNetwork(
    peerSettings(nodeId, () => endpoint, { tls: () => tls }),
    ports,
  );
  endpoint = `127.0.0.1:${network.port}`;
  t.teardown(() => closePort(network));
  const node = new PeerNode(nodeId, network).start();
  return { node, peer: { nodeId, endpoint }, ports, told };
}

function introduce(one: Made, two: Made): void {
  one.node.peers(two.peer);
  two.node.peers(one.peer);
}

t.test("P-198 proofs: purpose, direction, nonces and every byte count", (t) => {
  const ports = realPorts();
  const ours = new PeerCredentials({ secret: SECRET, requireNodeId: false }, ports.logger);
  const theirs = new PeerCredentials({ secret: OTHER, requireNodeId: false }, ports.logger);
  const [body, context] = [Buffer.from("body"), Buffer.from("nonce")];
  const sealed = ours.seal("question", body, context);
  t.equal(sealed.length, body.length + 32);
  t.same(ours.open("question", sealed, context), body);
  t.equal(theirs.open("question", sealed, context), null, "another secret");
  t.equal(ours.open("reply", sealed, context), null, "another purpose");
  t.equal(ours.open("question", sealed, Buffer.from("nonc")), null, "another nonce");
  t.equal(ours.open("question", sealed, context, Buffer.alloc(0)), null, "another context");
  t.equal(ours.open("question", body, context), null, "no proof at all");
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] as number) ^ 1;
    t.equal(ours.open("question", changed, context), null);
  }
  t.end();
});

t.test("contract 10.5 the nodes that a certificate names", (t) => {
  const cases: readonly (readonly [string | undefined, readonly number[] | null])[] = [
    [undefined, null],
    ["", null],
    ["DNS:peer.example", null],
    ["URI:svc:node:7", [7]],
    ["DNS:a, URI:svc:node:7, URI:svc:node:8, IP Address:10.0.0.1", [7, 8]],
    ["URI:spiffe://x/y", null],
    ["URI:svc:node:", [0]],
    ["URI:svc:node:1x", [0]],
    ["URI:svc:node:123456", [0]],
    ['DNS:"a, URI:svc:node:1"', null],
    ['DNS:"a\\", URI:svc:node:1", URI:svc:node:2', [2]],
    ['URI:"svc:node:1, b"', null],
  ];
  for (const [text, nodes] of cases) t.same(namedNodes(text), nodes, String(text));
  t.end();
});

t.test("P-198 without the secret nobody is linked, told or taken in", async (t) => {
  const one = await make(t, 1, { secret: SECRET });
  const two = await make(t, 2, { secret: SECRET });
  introduce(one, two);
  await until("those who know it are linked", () => one.node.isUp(2) && two.node.isUp(1));
  for (const secret of [null, OTHER]) {
    const rogue = await make(t, 3, { secret });
    one.node.peers(two.peer, rogue.peer);
    rogue.node.peers(one.peer);
    const before = one.ports.credentials.unproven;
    await until("it is turned away", () => one.ports.credentials.unproven > before + 2);
    for (const { node } of [one, rogue]) t.notOk(node.isUp(node === one.node ? 3 : 1), "no link");
    t.notOk(
      one.node.happened.some((event) => JSON.stringify(event).includes("3")),
      "nor judged",
    );
    const heard: Result<PeerIdentity | JoinAnswer, "no-answer">[] = [];
    const questions = new PeerQuestions({ tls: () => null, ports: rogue.ports });
    questions.identify(one.peer.endpoint, (answer) => void heard.push(answer));
    const request = {
      nodeId: 3,
      storageId: "s",
      endpoint: "e:1",
      storage: "lmdb",
      program: PROGRAM,
    } as const;
    questions.join(one.peer.endpoint, request, (answer) => void heard.push(answer));
    await until("both questions end", () => heard.length === 2);
    for (const end of heard) t.match(end, { ok: false, message: /proof|no answer/ });
    one.node.peers(two.peer);
  }
  const questions = new PeerQuestions({ tls: () => null, ports: two.ports });
  const identity = await new Promise<Result<PeerIdentity, "no-answer">>((resolve) => {
    questions.identify(one.peer.endpoint, resolve);
  });
  t.match(identity, { value: { nodeId: 1 } }, "who proves it is answered, with a proof");
});

t.test(
  "P-198 contract 10.5 a certificate is for the node that it names, in both directions",
  async (t) => {
    const authority = await PeerAuthority.make("peers");
    const [first, second, unnamed] = [
      await authority.issue("one", "svc:node:1"),
      await authority.issue("two", "svc:node:2"),
      await authority.issue("any"),
    ];
    const one = await make(t, 1, {}, first);
    const two = await make(t, 2, {}, second);
    introduce(one, two);
    await until("each is who it says it is", () => one.node.isUp(2) && two.node.isUp(1));
    const thief = await make(t, 3, {}, second);
    one.node.peers(two.peer, thief.peer);
    thief.node.peers(one.peer);
    const counted = (made: Made): number => made.ports.credentials.otherIdentities;
    await until("refused by who is called", () => counted(one) >= 2);
    t.notOk(one.node.isUp(3) || thief.node.isUp(1));
    const options = { tls: () => second, ports: thief.ports };
    const request = {
      nodeId: 3,
      storageId: "s",
      endpoint: "e:1",
      storage: "lmdb",
      program: PROGRAM,
    } as const;
    const answer = await new Promise<JoinAnswer | null>((resolve) => {
      new PeerQuestions(options).join(one.peer.endpoint, request, (result) => {
        resolve(result.ok ? result.value : null);
      });
    });
    t.match(answer, { status: "refused", reason: /not for node 3/ });
    one.node.peers(two.peer);
    const any = await make(t, 4, {}, unnamed);
    introduce(one, any);
    await until("one that names no node is good for all", () => one.node.isUp(4));
    t.ok(
      one.told.some(({ event }) => event.includes("names no node")),
      "with a warning",
    );
    const strict = await make(
      t,
      5,
      { requireNodeId: true },
      await authority.issue("e", "svc:node:5"),
    );
    introduce(strict, any);
    await until("unless names are asked for", () => counted(strict) >= 2);
    t.notOk(strict.node.isUp(4) || any.node.isUp(5));
  },
);
