/**
 * What the fuzzing of the peer port is made with: a node under attack, hostile bytes, and calls of
 * removed members over real connections.
 *
 * The seed can be set by SVC_FUZZ_SEED, the number of rounds by SVC_FUZZ_INPUTS.
 */
import type { Test } from "tap";
import { type NumberRange, PROGRAM, type Program, RANGE_END } from "../../src/base/levels.js";
import { PEER_RECEIVE_MAX_BYTES, PROGRAM_VERSION_MAX_BYTES } from "../../src/base/limits.js";
import { Prng } from "../../src/base/prng.js";
import { PeerCredentials } from "../../src/net/credentials.js";
import { writeMessage } from "../../src/net/messages.js";
import type { PeerNetwork } from "../../src/net/network.js";
import type { Extension } from "../../src/net/program.js";
import * as packets from "../../src/net/packets.js";
import type { PeerLane, PeerRefusal } from "../../src/ports.js";
import { CLUSTER, PeerNode, numbered } from "../conformance/peers.js";
import { closePort, openNetwork, peerSettings, realPorts, until } from "../doubles/net/world.js";

const { HANDSHAKE_MAX_BYTES, NONCE_BYTES, NO_NONCE } = packets;
export const SEED = Number(process.env["SVC_FUZZ_SEED"] ?? 198);
export const ROUNDS = Number(process.env["SVC_FUZZ_INPUTS"] ?? 200);
/** Connections of removed members at a time. */
const AT_A_TIME = 20;

export function credentialsWith(secret: Buffer | null): PeerCredentials {
  return new PeerCredentials({ secret, requireNodeId: false }, realPorts().logger);
}

/** A node under attack; nobody but the honest peer, node 2, may ever be heard. */
export class Target {
  readonly endpoint: string;
  readonly node: PeerNode;
  /** Node ids whose greetings were put before the judge. */
  readonly judged = new Set<number>();

  private constructor(
    private readonly network: PeerNetwork,
    readonly credentials: PeerCredentials,
  ) {
    this.endpoint = `127.0.0.1:${network.port}`;
    this.node = new PeerNode(1, network);
    const { judge } = this.node;
    this.node.judge = (hello): PeerRefusal | null => {
      this.judged.add(hello.nodeId);
      return judge(hello);
    };
    this.node.start();
  }

  /** A stranger has `withinMs` to prove who it is. */
  static async open(t: Test, secret: Buffer | null, withinMs = 400): Promise<Target> {
    const network = await openPeer(t, 1, secret, withinMs);
    return new Target(network, credentialsWith(secret));
  }

  get port(): number {
    return this.network.port;
  }

  /** What the listener holds for those who are connected. */
  get held(): number {
    const { lanes, sockets, expected } = this.network["listener"] as unknown as Record<
      "lanes" | "sockets" | "expected",
      { readonly size: number }
    >;
    return lanes.size + sockets.size + expected.size;
  }

  /** Nothing happened to the node by all that; then an honest peer comes. */
  async check(t: Test, secret: Buffer | null): Promise<void> {
    const { node } = this;
    await until("nothing is held for strangers", () => this.held === 0);
    t.strictSame(node.refusals, [], "nobody was refused on behalf of others");
    t.strictSame(node.happened, [], "and no link came or went");
    t.strictSame(node.frames, [], "and no frame was taken");
    t.strictSame(node.reentries, []);
    const network = await openPeer(t, 2, secret);
    const honest = new PeerNode(2, network).start();
    node.peers({ nodeId: 2, endpoint: `127.0.0.1:${network.port}` });
    honest.peers({ nodeId: 1, endpoint: this.endpoint });
    await until("an honest peer links", () => node.isUp(2) && honest.isUp(1));
    for (const lane of ["control", "log", "bulk", "calls"] as const) {
      t.ok(honest.send(1, lane, numbered(5, 70_000, lane)));
      t.ok(node.send(2, lane, numbered(6, 70_000, lane)));
      await until("frames pass both ways", () => {
        return node.from(2, lane).length === 1 && honest.from(1, lane).length === 1;
      });
      t.strictSame(node.from(2, lane), [numbered(5, 70_000, lane)]);
    }
    t.strictSame(node.happened, ["up 2"]);
  }
}

async function openPeer(
  t: Test,
  nodeId: number,
  secret: Buffer | null,
  handshakeWithinMs = 1500,
): Promise<PeerNetwork> {
  let endpoint = "";
  const changes = { handshakeWithinMs, joinWithinMs: 200 };
  const settings = peerSettings(nodeId, () => endpoint, changes);
  const ports = { ...realPorts(), credentials: credentialsWith(secret) };
  const network = await openNetwork(settings, ports);
  endpoint = `127.0.0.1:${network.port}`;
  t.teardown(() => closePort(network));
  return network;
}

// Hostile bytes ---------------------------------------------------------------------------------

const LANES: readonly PeerLane[] = ["control", "log", "bulk", "calls"];
/** Lengths that somebody may announce, whatever follows. */
const LENGTHS = [0, 1, 2, HANDSHAKE_MAX_BYTES, HANDSHAKE_MAX_BYTES + 1, PEER_RECEIVE_MAX_BYTES];
LENGTHS.push(PEER_RECEIVE_MAX_BYTES + 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff);

export class Hostile {
  readonly prng: Prng;

  /** `salt` keeps the tests apart. */
  constructor(salt: number) {
    this.prng = new Prng(SEED * 31 + salt);
  }

  one<T>(from: readonly T[]): T {
    return from[this.prng.below(from.length)] as T;
  }

  bytes(sizeBytes: number): Uint8Array {
    return Uint8Array.from({ length: sizeBytes }, () => this.prng.below(256));
  }

  greeting(changes: Partial<packets.Greeting> = {}): packets.Greeting {
    const nodeId = 3 + this.prng.below(5);
    return {
      hello: {
        nodeId,
        storageId: `s${nodeId}`,
        endpoint: "127.0.0.1:1",
        clientEndpoint: "",
        clusterId: CLUSTER,
        program: this.program(),
        storage: "lmdb",
        bootNumber: this.prng.nextUint32() >>> 0,
        bootNonce: this.prng.nextUint32() >>> 0,
        earlierNonces: [1, 2],
      },
      lane: this.one(LANES),
      target: 1,
      nonce: this.bytes(NONCE_BYTES),
      answerTo: NO_NONCE,
      ...changes,
    };
  }

  /** Ranges of any kind that include this program's own, and any version. */
  program(): Program {
    const { levels, protocols } = PROGRAM;
    const around = ({ min, max }: NumberRange): NumberRange => {
      return { min: 1 + this.prng.below(min), max: max + this.prng.below(RANGE_END - max) };
    };
    const version = "9".repeat(this.prng.below(PROGRAM_VERSION_MAX_BYTES + 1));
    return { levels: around(levels), protocols: around(protocols), version };
  }

  /** What a later program might say. */
  extensions(): Extension[] {
    let tag = this.prng.below(3);
    return Array.from({ length: this.prng.below(6) }, () => {
      tag += 1 + this.prng.below(1 << this.prng.below(20));
      return { tag, bytes: this.bytes(this.prng.below(150)) };
    });
  }

  refusal(answerTo: Uint8Array, nodeId = 2): Uint8Array {
    const by = { nodeId, endpoint: "127.0.0.1:1" };
    const refusal = this.one(["storage-lost", "not-a-member", "other-cluster"] as const);
    return packets.encodeRefusal({ by, refusal, program: PROGRAM, answerTo });
  }

  /** A copy with bytes changed, cut off, repeated or put in. */
  damaged(source: Uint8Array): Uint8Array {
    const { prng } = this;
    let bytes = source.slice();
    for (let change = prng.below(3); change >= 0; change--) {
      const at = prng.below(bytes.length + 1);
      switch (prng.below(5)) {
        case 0:
          bytes = bytes.slice(0, at);
          break;
        case 1:
          bytes.fill(255, at, Math.min(bytes.length, at + 1 + prng.below(8)));
          break;
        case 2:
          bytes = Uint8Array.from([...bytes.subarray(0, at), ...this.bytes(prng.below(20))]);
          break;
        case 3:
          bytes = Uint8Array.from([...bytes.subarray(0, at), ...bytes]);
          break;
        default:
          if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << prng.below(8));
      }
    }
    return bytes;
  }

  /** The head of a message whose length is a lie, or that says it is compressed. */
  head(): Uint8Array {
    const bytes = Buffer.alloc(5 + this.prng.below(40), this.prng.below(8));
    bytes[0] = this.prng.chance(1, 4) ? this.prng.below(256) : 0;
    bytes.writeUInt32BE(this.one(LENGTHS), 1);
    return new Uint8Array(bytes);
  }
}

export function message(body: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  writeMessage(body, (piece) => parts.push(piece));
  return new Uint8Array(Buffer.concat(parts));
}

/** Runs `round` so many times, some at a time. */
export async function rounds(count: number, round: (at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await round(next++);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}
