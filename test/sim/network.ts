/**
 * The network between the nodes of a world: directed links with four lanes each, as the real peer
 * network has them.
 *
 * What is sent over a lane arrives in order or not at all. While a direction is cut, frames wait in
 * it, as TCP would send them again; they arrive in a burst when the cut ends in time, and are lost
 * when the sender gave the link up before. Frames of a process that died may still arrive: any
 * first part of what was on its way. A node that died takes its connections with it.
 *
 * Invariants: 1. A frame reaches only the life that its connection was made with. 2. Ups and downs
 * of a link alternate. 3. Nothing is called in the turn of the call to a port. 4. All draws come
 * from the network's generator.
 */
import type { Prng } from "../../src/base/prng.js";
import type { JoinAnswer, JoinRequest, PeerHello } from "../../src/ports.js";
import type { Life } from "./process.js";
import { SimPeers } from "./peers.js";
import type { World } from "./world.js";

/** How the wires are, all of them. */
export interface NetworkTemper {
  /** Shortest way from node to node (ms). */
  readonly baseMs: number;
  /** Evenly spread on top of it (ms). */
  readonly jitterMs: number;
  /** Chance that a frame takes up to thirty times as long; per million. */
  readonly slowPerMillion: number;
  /** A link over which nothing comes back for so long is given up (ms). */
  readonly silenceMs: number;
}

/** What can be wrong with one direction between two nodes. */
export interface Direction {
  /** Cut by so many faults. */
  cuts: number;
  /** Extra delay (ms). */
  slowMs: number;
  /** 0 = as much as one likes. */
  bytesPerMs: number;
  /** The wire is busy with what was sent up to then. */
  busyUntilMs: number;
}

export class SimNetwork {
  readonly prng: Prng;
  private readonly ports = new Map<number, SimPeers>();
  private readonly directions = new Map<number, Direction>();
  readonly counts = {
    frames: 0,
    bytes: 0,
    dropped: 0,
    held: 0,
    burst: 0,
    ofFormerLives: 0,
    linkUps: 0,
    linkDowns: 0,
    refusedFull: 0,
    refusedHandshakes: 0,
  };

  constructor(
    readonly world: World,
    readonly temper: NetworkTemper,
  ) {
    this.prng = world.prng("network");
  }

  /** The port of a new life. The former life's links are gone by then. */
  port(life: Life, hello: PeerHello): SimPeers {
    const port = new SimPeers(this, life, hello);
    this.ports.set(hello.nodeId, port);
    return port;
  }

  /** The port that listens for `nodeId` now; null when nobody does. */
  listener(nodeId: number): SimPeers | null {
    const port = this.ports.get(nodeId);
    return port !== undefined && port.isListening ? port : null;
  }

  /** Whoever listens at `endpoint` now. */
  listenerAt(endpoint: string): SimPeers | null {
    for (const port of this.ports.values()) {
      if (port.hello.endpoint === endpoint) return port.isListening ? port : null;
    }
    return null;
  }

  /** `port` was closed in peace and everything that it sent has arrived. */
  portClosed(port: SimPeers): void {
    const { nodeId } = port.hello;
    if (this.ports.get(nodeId) === port) this.lifeEnded(nodeId, true);
  }

  direction(from: number, to: number): Direction {
    const key = from * 65_536 + to;
    let found = this.directions.get(key);
    if (found === undefined) {
      found = { cuts: 0, slowMs: 0, bytesPerMs: 0, busyUntilMs: 0 };
      this.directions.set(key, found);
    }
    return found;
  }

  isCut(from: number, to: number): boolean {
    return this.direction(from, to).cuts > 0;
  }

  /** Nothing gets from `from` to `to` until the returned function is called. */
  cut(from: number, to: number): () => void {
    const direction = this.direction(from, to);
    direction.cuts++;
    for (const [a, b] of [
      [from, to],
      [to, from],
    ] as const) {
      this.ports.get(a)?.link(b)?.suspect();
    }
    return () => {
      if (--direction.cuts > 0) return;
      this.world.schedule(this.delayMs(from, to), () => this.ports.get(from)?.link(to)?.release());
    };
  }

  /** How long a frame takes from `from` to `to` if it leaves now. */
  delayMs(from: number, to: number): number {
    const { prng, temper } = this;
    let delay = temper.baseMs + (temper.jitterMs * prng.below(1024)) / 1024;
    if (temper.slowPerMillion > 0 && prng.below(1_000_000) < temper.slowPerMillion) {
      delay *= 1 + prng.below(30);
    }
    return delay + this.direction(from, to).slowMs;
  }

  /** Node `nodeId` stands still: nobody gets an echo from it. */
  silent(nodeId: number): void {
    for (const port of this.ports.values()) port.link(nodeId)?.suspect();
  }

  /** A node without links asks the node `seed` to take it in; nobody there answers "retry". */
  askToJoin(seed: number, request: JoinRequest, done: (answer: JoinAnswer) => void): void {
    const { world } = this;
    const back = (answer: JoinAnswer): void => {
      world.schedule(this.delayMs(seed, request.nodeId), () => done(answer));
    };
    world.schedule(this.delayMs(request.nodeId, seed), () => {
      const listener = this.isCut(request.nodeId, seed) ? null : this.listener(seed);
      if (listener === null) return back({ status: "retry", reason: "nobody answers there" });
      listener.tell((events) => events.joinAsked(request, back));
    });
  }

  /** The process of `nodeId` is gone. `isKnown`: the system tells the other ends of its connections. */
  lifeEnded(nodeId: number, isKnown: boolean): void {
    const gone = this.ports.get(nodeId);
    if (gone === undefined) return;
    this.ports.delete(nodeId);
    gone.end();
    for (const port of this.ports.values()) port.link(nodeId)?.peerGone(isKnown);
  }
}
