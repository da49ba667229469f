/**
 * What every PeerPort must do, whoever made it: one suite for the real links and for simulated ones.
 *
 * Invariants: 1. Only the port and the harness are used. 2. Nothing here depends on timing.
 */
import type { Test } from "tap";
import { PROGRAM, programMismatch } from "../../src/base/levels.js";
import { PEER_FRAME_MAX_BYTES } from "../../src/base/limits.js";
import type {
  JoinAnswer,
  JoinRequest,
  PeerAddress,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerRefusal,
} from "../../src/ports.js";

export interface PeerHarness {
  /**
   * Makes the port of a node, not started. Again for the same node after its port was closed: the
   * node restarts at the same endpoint.
   */
  open(nodeId: number, clusterId?: string): Promise<PeerPort>;
  endpointOf(nodeId: number): string;
  /** Lets the world go on until `condition` holds; rejects, naming `what`, when it never does. */
  until(what: string, condition: () => boolean): Promise<void>;
  /** Lets the world go on for a while in which nothing should happen. */
  settle(): Promise<void>;
  close(port: PeerPort): Promise<void>;
  /** A node without a port of its own asks `seed` to take it in. */
  askToJoin(seed: number, request: JoinRequest, done: (answer: JoinAnswer) => void): void;
  finish(): Promise<void>;
}

const LANES: readonly PeerLane[] = ["control", "log", "bulk", "calls"];
export const CLUSTER = "c".repeat(32);

/** A port with its events written down. */
export class PeerNode implements PeerEvents {
  readonly happened: string[] = [];
  readonly frames: { from: number; lane: PeerLane; bytes: Uint8Array }[] = [];
  readonly hellos = new Map<number, PeerHello>();
  readonly refusals: { by: PeerAddress; refusal: PeerRefusal }[] = [];
  judge: (hello: PeerHello) => PeerRefusal | null;
  joins: JoinRequest[] = [];
  joinAnswer: JoinAnswer = {
    status: "accepted",
    clusterId: CLUSTER,
    level: 3,
    founders: [1, 2, 3],
  };
  /** What was called back while a call of the port was running: there must be none. */
  readonly reentries: string[] = [];
  private inCall = false;

  constructor(
    readonly nodeId: number,
    readonly port: PeerPort,
    clusterId = CLUSTER,
  ) {
    this.judge = (hello) => {
      if (hello.clusterId !== clusterId) return "other-cluster";
      return programMismatch(PROGRAM, hello.program);
    };
  }

  private note(text: string): void {
    if (this.inCall) this.reentries.push(text);
    this.happened.push(text);
  }

  call<T>(what: (port: PeerPort) => T): T {
    this.inCall = true;
    try {
      return what(this.port);
    } finally {
      this.inCall = false;
    }
  }

  start(): this {
    this.call((port) =>
      port.start(this, { bootNumber: 3, bootNonce: 4_000_000_000, earlierNonces: [7, 0] }),
    );
    return this;
  }

  peers(...peers: readonly PeerAddress[]): void {
    this.call((port) => port.setPeers(peers));
  }

  send(to: number, lane: PeerLane, bytes: Uint8Array): boolean {
    return this.call((port) => port.send(to, lane, bytes));
  }

  count(text: string): number {
    return this.happened.filter((other) => other === text).length;
  }

  isUp(nodeId: number): boolean {
    return this.count(`up ${nodeId}`) > this.count(`down ${nodeId}`);
  }

  from(nodeId: number, lane: PeerLane): Uint8Array[] {
    const own = this.frames.filter((frame) => frame.from === nodeId && frame.lane === lane);
    return own.map(({ bytes }) => bytes);
  }

  admit(hello: PeerHello): PeerRefusal | null {
    if (this.inCall) this.reentries.push("admit");
    return this.judge(hello);
  }

  refused(by: PeerAddress, refusal: PeerRefusal): void {
    this.refusals.push({ by, refusal });
    this.note(`refused by ${by.nodeId}: ${refusal}`);
  }

  linkUp(hello: PeerHello): void {
    this.hellos.set(hello.nodeId, hello);
    this.note(`up ${hello.nodeId}`);
  }

  linkDown(nodeId: number): void {
    this.note(`down ${nodeId}`);
  }

  frame(from: number, lane: PeerLane, bytes: Uint8Array): void {
    if (this.inCall) this.reentries.push("frame");
    this.frames.push({ from, lane, bytes });
  }

  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    this.joins.push(request);
    answer(this.joinAnswer);
  }
}

/** Bytes that tell their number and size; `lane` keeps lanes apart. */
export function numbered(at: number, size: number, lane: PeerLane): Uint8Array {
  const bytes = new Uint8Array(size).fill((at * 31 + size) & 255);
  if (size >= 8) {
    new DataView(bytes.buffer).setUint32(0, at);
    new DataView(bytes.buffer).setUint32(4, LANES.indexOf(lane));
  }
  return bytes;
}

class Fixture {
  readonly nodes: PeerNode[] = [];
  /** All that ever were, closed ones too. */
  readonly made: PeerNode[] = [];

  constructor(readonly harness: PeerHarness) {}

  async node(nodeId: number, clusterId?: string): Promise<PeerNode> {
    const port = await this.harness.open(nodeId, clusterId);
    const node = new PeerNode(nodeId, port, clusterId);
    this.nodes.push(node);
    this.made.push(node);
    return node.start();
  }

  address(nodeId: number): PeerAddress {
    return { nodeId, endpoint: this.harness.endpointOf(nodeId) };
  }

  async linked(): Promise<[PeerNode, PeerNode]> {
    const [one, two] = [await this.node(1), await this.node(2)];
    one.peers(this.address(2));
    two.peers(this.address(1));
    await this.harness.until("both are linked", () => one.isUp(2) && two.isUp(1));
    return [one, two];
  }

  close(node: PeerNode): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    return this.harness.close(node.port);
  }

  async end(t: Test): Promise<void> {
    for (const node of [...this.nodes]) await this.close(node);
    await this.harness.finish();
    t.pass("everything closed");
  }
}

type Part = (t: Test, fixture: Fixture) => Promise<void>;

const orderAndWholeness: Part = async (t, fixture) => {
  const [one, two] = await fixture.linked();
  const sizes = [1, 0, 7, 100, 1024, 16_384, 16_385, 70_000, 8, 300_000];
  const sent = new Map<PeerLane, Uint8Array[]>(LANES.map((lane) => [lane, []]));
  for (let at = 0; at < 60; at++) {
    for (const lane of LANES) {
      const size = lane === "control" ? at : (sizes[at % sizes.length] as number);
      const bytes = numbered(at, size, lane);
      for (const [from, to] of [
        [one, two],
        [two, one],
      ] as const) {
        t.ok(from.send(to.nodeId, lane, bytes), `${lane} ${at}`);
      }
      sent.get(lane)?.push(bytes);
    }
    // Some in one turn, some in turns of their own.
    if (at % 7 === 0) await fixture.harness.until("a turn later", () => true);
  }
  for (const [node, from] of [
    [one, 2],
    [two, 1],
  ] as const) {
    for (const lane of LANES) {
      await fixture.harness.until(`${lane} arrived`, () => node.from(from, lane).length >= 60);
      const same = node.from(from, lane).every((bytes, at) => {
        const wanted = sent.get(lane)?.[at];
        return wanted !== undefined && Buffer.compare(bytes, wanted) === 0;
      });
      t.ok(same, `${lane} of node ${from}: whole, in order, none twice`);
      t.equal(node.from(from, lane).length, 60);
    }
  }
  for (const lane of LANES) t.equal(one.port.queuedBytes(2, lane), 0, "nothing is left in a queue");
};

const largest: Part = async (t, fixture) => {
  const [one, two] = await fixture.linked();
  const bytes = numbered(1, PEER_FRAME_MAX_BYTES, "log");
  t.ok(one.send(2, "log", bytes));
  t.ok(two.send(1, "log", bytes));
  t.ok(one.send(2, "bulk", bytes));
  t.ok(two.send(1, "bulk", bytes));
  for (const [node, from] of [
    [one, 2],
    [two, 1],
  ] as const) {
    for (const lane of ["log", "bulk"] as const) {
      await fixture.harness.until("it arrived", () => node.from(from, lane).length === 1);
      t.ok(Buffer.compare(node.from(from, lane)[0] as Uint8Array, bytes) === 0, "unharmed");
    }
  }
  t.throws(() => one.port.send(2, "log", new Uint8Array(PEER_FRAME_MAX_BYTES + 1)), "too large");
};

const downLinks: Part = async (t, fixture) => {
  const one = await fixture.node(1);
  t.notOk(one.send(2, "log", new Uint8Array(1)), "a node that is no peer");
  await fixture.harness.open(3).then((port) => fixture.harness.close(port));
  one.peers(fixture.address(3));
  for (const lane of LANES) t.notOk(one.send(3, lane, new Uint8Array(1)), `${lane}: no link yet`);
  await fixture.harness.settle();
  t.notOk(one.send(3, "log", new Uint8Array(1)), "nobody is there");
  t.equal(one.port.queuedBytes(3, "log"), 0);
  t.strictSame(one.happened, [], "nothing was told about a link that never stood");
};

const pairs: Part = async (t, fixture) => {
  const [one, two] = await fixture.linked();
  one.peers();
  await fixture.harness.until("let go", () => one.count("down 2") === 1);
  t.notOk(one.send(2, "log", new Uint8Array(1)), "let go");
  await fixture.harness.until("the other way still stands", () => two.isUp(1));
  one.peers(fixture.address(2));
  await fixture.harness.until("linked again", () => one.isUp(2) && two.isUp(1));
  await fixture.close(two);
  await fixture.harness.until("the peer is gone", () => !one.isUp(2));
  const again = await fixture.node(2);
  again.peers(fixture.address(1));
  await fixture.harness.until("it came back", () => one.isUp(2) && again.isUp(1));
  t.ok(one.send(2, "log", numbered(5, 64, "log")));
  await fixture.harness.until("a frame arrives", () => again.from(1, "log").length === 1);
  for (const node of [one, again]) {
    const links = node.happened.filter((text) => /^(?:up|down) /.test(text));
    const alternate = links.every((text, at) => text.startsWith(at % 2 === 0 ? "up" : "down"));
    t.ok(alternate, `ups and downs take turns: ${links.join(", ")}`);
  }
};

const hellos: Part = async (t, fixture) => {
  const [one, two] = await fixture.linked();
  for (const [node, other] of [
    [one, two],
    [two, one],
  ] as const) {
    const hello = node.hellos.get(other.nodeId);
    t.equal(hello?.clusterId, CLUSTER);
    t.equal(hello?.endpoint, fixture.harness.endpointOf(other.nodeId));
    t.ok((hello?.storageId.length ?? 0) > 0, "it says which storage it has");
    t.match(
      hello,
      { bootNumber: 3, bootNonce: 4_000_000_000, earlierNonces: [7, 0] },
      "and which start of it this is",
    );
  }
};

const refusals: Part = async (t, fixture) => {
  const [one, two] = [await fixture.node(1), await fixture.node(2)];
  two.judge = () => "storage-lost";
  one.peers(fixture.address(2));
  await fixture.harness.until("node 1 was refused", () => one.refusals.length > 0);
  t.equal(one.refusals[0]?.by.nodeId, 2);
  t.equal(one.refusals[0]?.refusal, "storage-lost");
  t.equal(one.refusals[0]?.by.endpoint, fixture.harness.endpointOf(2));
  t.equal(one.count("up 2"), 0, "and has no link");
  t.notOk(one.send(2, "log", new Uint8Array(1)));
  // The side that dials judges too, and says so.
  two.judge = () => null;
  one.judge = () => "not-a-member";
  await fixture.harness.until("node 2 was refused", () => two.refusals.length > 0);
  t.equal(two.refusals[0]?.by.nodeId, 1);
  t.equal(two.refusals[0]?.refusal, "not-a-member");
  t.equal(one.count("up 2"), 0);
  one.judge = () => null;
  await fixture.harness.until("both were let in", () => one.isUp(2));
};

const foreign: Part = async (t, fixture) => {
  const one = await fixture.node(1);
  const stranger = await fixture.node(9, "f".repeat(32));
  one.peers(fixture.address(9));
  stranger.peers(fixture.address(1));
  await fixture.harness.until("told", () => one.refusals.length + stranger.refusals.length > 1);
  for (const node of [one, stranger]) {
    t.ok(
      node.refusals.every(({ refusal }) => refusal === "other-cluster"),
      "P-164 another cluster",
    );
    t.equal(node.happened.filter((text) => text.startsWith("up")).length, 0);
    t.equal(node.frames.length, 0);
  }
  // Somebody else answers at the endpoint of node 2.
  one.peers({ nodeId: 2, endpoint: fixture.harness.endpointOf(9) });
  const other = (): boolean => one.refusals.some(({ refusal }) => refusal === "other-node");
  await fixture.harness.until("it is not node 2", other);
  t.equal(one.count("up 2"), 0);
};

const joins: Part = async (t, fixture) => {
  const one = await fixture.node(1);
  const request = {
    nodeId: 4,
    storageId: "s4",
    endpoint: "127.0.0.1:9",
    storage: "memory",
    program: PROGRAM,
  } as const;
  const ask = async (): Promise<JoinAnswer> => {
    const answers: JoinAnswer[] = [];
    fixture.harness.askToJoin(1, request, (given) => answers.push(given));
    await fixture.harness.until("answered", () => answers.length > 0);
    return answers[0] as JoinAnswer;
  };
  t.strictSame(await ask(), one.joinAnswer);
  t.strictSame(one.joins, [request]);
  one.joinAnswer = { status: "refused", reason: "node 4 is a member with another storage" };
  t.strictSame(await ask(), one.joinAnswer);
};

const closing: Part = async (t, fixture) => {
  const [one, two] = await fixture.linked();
  t.ok(one.send(2, "log", numbered(1, 5000, "log")));
  await fixture.close(one);
  t.notOk(one.port.send(2, "log", new Uint8Array(1)), "a closed port sends nothing");
  const told = one.happened.length;
  await fixture.harness.until("the other side knows", () => !two.isUp(1));
  t.equal(two.from(1, "log").length, 1, "what was sent before the end still arrived");
  two.send(1, "log", new Uint8Array(1));
  await fixture.harness.settle();
  t.equal(one.happened.length, told, "nothing is called back after the end");
  t.equal(one.frames.length, 0);
};

const PARTS: readonly (readonly [string, Part])[] = [
  ["frames arrive whole and in order, per lane, both ways at once", orderAndWholeness],
  ["P-154 the largest legal frames both ways at once", largest],
  ["what is sent on a link that is down is dropped, and said so", downLinks],
  ["ups and downs come in pairs, whoever ends a link", pairs],
  ["each side learns who the other is", hellos],
  ["both sides judge, and the other one is told", refusals],
  ["P-164 P-089 foreign clusters and wrong nodes are not let in", foreign],
  ["a node without a cluster asks to be taken in", joins],
  ["the end: what was sent leaves, and then there is silence", closing],
];

export async function peerConformance(
  t: Test,
  makeHarness: () => Promise<PeerHarness>,
): Promise<void> {
  for (const [name, part] of PARTS) {
    await t.test(name, async (t) => {
      const fixture = new Fixture(await makeHarness());
      try {
        await part(t, fixture);
        for (const node of fixture.made)
          t.strictSame(node.reentries, [], "no callback inside a call");
      } finally {
        await fixture.end(t);
      }
    });
  }
}
