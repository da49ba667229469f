/**
 * The network between the nodes of a world: directed links with four lanes each, as the real peer
 * network has them.
 *
 * Each lane is a TCP connection, so of loss, duplicates and changed order there is what a connection
 * can do: a lane keeps its order and delivers each frame once, or loses a last part of it with the
 * connection, in the middle of a frame too. Order changes between lanes, and between a connection
 * and the next one: what a lost link had on its way may come after its end, until the lane of the
 * new link takes its place. One lane may stand broken while the others deliver. While a direction
 * is cut, frames wait in it; they arrive in a burst when the cut ends. Frames of a process that
 * died may still arrive: any first part of what was on its way. A node that died takes its
 * connections with it. What no connection can do, garbage and frames that come again, is done by
 * faults of a profile of its own.
 *
 * Invariants: 1. A frame reaches only the life that its connection was made with. 2. Ups and downs
 * of a link alternate. 3. Nothing is called in the turn of the call to a port. 4. All draws come
 * from the network's generator.
 */
import type { Prng } from "../../../src/base/prng.js";
import type {
  JoinAnswer,
  JoinRequest,
  PeerIdentity,
  PeerLane,
  PeerProfile,
} from "../../../src/ports.js";
import type { SimLane } from "./lanes.js";
import type { Life } from "../world/process.js";
import { SimPeers } from "./peers.js";
import type { World } from "../world/world.js";

/** A slow frame takes up to so many times the way of another one. */
export const SLOWEST_TIMES = 30;

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
  /** Links keep what they sent, for faults that send it again. */
  readonly keepsFrames?: boolean;
}

/** One direction between two nodes: what can be wrong with it, and what lost links left in it. */
export class Direction {
  /** Cut by so many faults. */
  cuts = 0;
  /** Extra delay (ms). */
  slowMs = 0;
  /** Extra delay of calls alone (ms). */
  lateCallsMs = 0;
  /** 0 = as much as one likes. */
  bytesPerMs = 0;
  /** The wire is busy with what was sent up to then. */
  busyUntilMs = 0;
  /** Lanes of former connections, of which something may still arrive. */
  private former: SimLane[] = [];

  keepFormer(lanes: readonly SimLane[]): void {
    for (const lane of lanes) lane.isFormer = true;
    this.former = [...this.former, ...lanes].filter((lane) => lane.flights.length > 0);
  }

  /** A new connection took the place of the former ones of this lane. */
  endFormer(name: PeerLane): void {
    for (const lane of this.former) if (lane.name === name) lane.drop();
    this.former = this.former.filter((lane) => lane.flights.length > 0);
  }

  release(): void {
    for (const lane of this.former) lane.deliver();
  }
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
    lanesBroken: 0,
    intoBroken: 0,
    ofLostLinks: 0,
    garbage: 0,
    replayed: 0,
  };
  /** Told when a node asks one of another cluster for a link, and what came of it. */
  met: ((from: string, to: string, isLetIn: boolean) => void) | null = null;
  /** After so long each lane misses its echo (ms). */
  readonly echoMs: Readonly<Record<PeerLane, number>>;

  constructor(
    readonly world: World,
    readonly temper: NetworkTemper,
  ) {
    this.prng = world.prng("network");
    const { silenceMs } = temper;
    const dataMs = Math.max(3000, 4 * silenceMs);
    this.echoMs = { control: silenceMs, log: dataMs, bulk: 10_000, calls: dataMs };
  }

  /** The port of a new life. The former life's links are gone by then. */
  port(life: Life, profile: PeerProfile): SimPeers {
    const port = new SimPeers(this, life, profile);
    this.ports.set(profile.nodeId, port);
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
      if (port.profile.endpoint === endpoint) return port.isListening ? port : null;
    }
    return null;
  }

  /** `port` was closed in peace and everything that it sent has arrived. */
  portClosed(port: SimPeers): void {
    const { nodeId } = port.profile;
    if (this.ports.get(nodeId) === port) this.lifeEnded(nodeId, true);
  }

  direction(from: number, to: number): Direction {
    const key = from * 65_536 + to;
    let found = this.directions.get(key);
    if (found === undefined) {
      found = new Direction();
      this.directions.set(key, found);
    }
    return found;
  }

  /** Some direction delivers late, or little at a time. */
  get isClogged(): boolean {
    for (const { slowMs, bytesPerMs } of this.directions.values()) {
      if (slowMs > 0 || bytesPerMs > 0) return true;
    }
    return false;
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
      this.world.schedule(this.delayMs(from, to), () => {
        direction.release();
        this.ports.get(from)?.link(to)?.release();
      });
    };
  }

  /** How long a frame takes from `from` to `to` if it leaves now. */
  delayMs(from: number, to: number): number {
    const { prng, temper } = this;
    let delay = temper.baseMs + (temper.jitterMs * prng.below(1024)) / 1024;
    if (temper.slowPerMillion > 0 && prng.below(1_000_000) < temper.slowPerMillion) {
      delay *= 1 + prng.below(SLOWEST_TIMES);
    }
    return delay + this.direction(from, to).slowMs;
  }

  /** Node `nodeId` stands still: nobody gets an echo from it. */
  silent(nodeId: number): void {
    for (const port of this.ports.values()) port.link(nodeId)?.suspect();
  }

  /**
   * A node without links asks the node `seed` to take it in; nobody there answers "retry". `done`
   * is not called when the way is cut, or when the seed ends before it answered.
   */
  askToJoin(seed: number, request: JoinRequest, done: (answer: JoinAnswer) => void): void {
    const { world } = this;
    const back = (answer: JoinAnswer): void => {
      world.schedule(this.delayMs(seed, request.nodeId), () => {
        if (!this.isCut(seed, request.nodeId)) done(answer);
      });
    };
    world.schedule(this.delayMs(request.nodeId, seed), () => {
      if (this.isCut(request.nodeId, seed)) return;
      const listener = this.listener(seed);
      if (listener === null) return back({ status: "retry", reason: "nobody answers there" });
      listener.tell((events) => events.joinAsked(request, back));
    });
  }

  /**
   * Asks whoever is at node `seed` who it is; null = nobody there can tell. `done` is not called
   * when the way is cut.
   */
  askIdentity(asker: number, seed: number, done: (identity: PeerIdentity | null) => void): void {
    const { world } = this;
    world.schedule(this.delayMs(asker, seed), () => {
      if (this.isCut(asker, seed)) return;
      const identity = this.ports.get(seed)?.identity() ?? null;
      world.schedule(this.delayMs(seed, asker), () => {
        if (!this.isCut(seed, asker)) done(identity);
      });
    });
  }

  /** A handshake was judged by both sides, or refused by one. */
  judged(from: PeerProfile, to: PeerProfile, isLetIn: boolean): void {
    if (from.clusterId !== to.clusterId) this.met?.(from.clusterId, to.clusterId, isLetIn);
  }

  /** `by` takes node `nodeId` for no peer any more: what that one sends there ends. */
  forgotten(by: SimPeers, nodeId: number): void {
    this.ports.get(nodeId)?.link(by.profile.nodeId)?.endedBy(by);
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
