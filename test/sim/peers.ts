/**
 * The peer port of one life of a node: its links to the others, and what comes in from them.
 *
 * Same contract as the real one (`src/peerports.ts`). Invariants: see `network.ts`.
 */
import { assert } from "../../src/base/assert.js";
import { PEER_FRAME_MAX_BYTES } from "../../src/base/limits.js";
import type {
  PeerAddress,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerRefusal,
} from "../../src/ports.js";
import type { SimNetwork } from "./network.js";
import type { Life } from "./process.js";

const LANES: readonly PeerLane[] = ["control", "log", "bulk", "calls"];
const HANDSHAKE_WITHIN_MS = 1500;
const RECONNECT_FIRST_MS = 50;
const RECONNECT_LAST_MS = 300;
const QUEUE_BYTES: Readonly<Record<PeerLane, number>> = {
  control: 256 << 10,
  log: 16 << 20,
  bulk: 16 << 20,
  calls: 16 << 20,
};

interface Flight {
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

interface LaneState {
  /** Sent and not delivered, in order. */
  flights: Flight[];
  lastArrivalMs: number;
}

export class SimPeers implements PeerPort {
  private events: PeerEvents | null = null;
  private readonly links = new Map<number, SimLink>();
  private wanted: readonly PeerAddress[] = [];
  private isClosed = false;

  constructor(
    readonly network: SimNetwork,
    readonly life: Life,
    readonly hello: PeerHello,
  ) {}

  get isListening(): boolean {
    return this.events !== null && !this.isClosed && !this.life.isOver;
  }

  link(nodeId: number): SimLink | undefined {
    return this.links.get(nodeId);
  }

  start(events: PeerEvents): void {
    assert(this.events === null && !this.isClosed, "a port is started once");
    this.events = events;
    this.follow();
  }

  setPeers(peers: readonly PeerAddress[]): void {
    assert(!this.isClosed, "the port is open");
    this.wanted = peers;
    if (this.events !== null) this.follow();
  }

  private follow(): void {
    for (const [nodeId, link] of this.links) {
      if (this.wanted.some((peer) => peer.nodeId === nodeId)) continue;
      this.links.delete(nodeId);
      link.letGo();
    }
    for (const peer of this.wanted) {
      if (this.links.has(peer.nodeId)) continue;
      const link = new SimLink(this, peer);
      this.links.set(peer.nodeId, link);
      link.connect();
    }
  }

  send(to: number, lane: PeerLane, bytes: Uint8Array): boolean {
    this.life.touch("peers");
    assert(bytes.length <= PEER_FRAME_MAX_BYTES, "a frame is within its bound");
    return this.links.get(to)?.send(lane, bytes) ?? false;
  }

  queuedBytes(to: number, lane: PeerLane): number {
    return this.links.get(to)?.queuedBytes(lane) ?? 0;
  }

  close(done: () => void): void {
    assert(!this.isClosed, "a port is closed once");
    this.isClosed = true;
    // What was sent before the end still arrives, in front of it.
    const lastMs = Math.max(0, ...[...this.links.values()].map((link) => link.leave()));
    this.links.clear();
    const { network, life } = this;
    network.world.schedule(lastMs, () => network.portClosed(this));
    life.at(1, done);
  }

  /** The process is gone; what was on its way may arrive, up to any frame. */
  end(): void {
    for (const link of this.links.values()) link.orphan();
    this.links.clear();
  }

  /** Gives `call` to the process, if it still listens. Never inside a call of the process. */
  tell(call: (events: PeerEvents) => void): void {
    this.life.enter(() => this.tellNow(call));
  }

  /** For callbacks that are in the process already. */
  tellNow(call: (events: PeerEvents) => void): void {
    if (this.events !== null && !this.isClosed) call(this.events);
  }
}

/** What one node sends to another. */
export class SimLink {
  private lanes: Record<PeerLane, LaneState> = emptyLanes();
  private state: "idle" | "connecting" | "up" | "gone" = "idle";
  /** Counts connections: what belongs to an older one is void. */
  private connection = 0;
  private receiver: SimPeers | null = null;
  private pauseMs = RECONNECT_FIRST_MS;
  private readonly network: SimNetwork;
  private readonly from: number;
  private readonly to: number;

  constructor(
    private readonly port: SimPeers,
    private readonly peer: PeerAddress,
  ) {
    this.network = port.network;
    this.from = port.hello.nodeId;
    this.to = peer.nodeId;
  }

  // Making the connection ----------------------------------------------------------------------

  connect(): void {
    if (this.state === "gone" || this.port.life.isOver) return;
    this.state = "connecting";
    const connection = ++this.connection;
    const { network, from, to } = this;
    const { world } = network;
    const timeout = world.schedule(HANDSHAKE_WITHIN_MS, () => this.failed(connection));
    const fail = (): void => {
      world.cancel(timeout);
      this.failed(connection);
    };
    if (network.isCut(from, to) || network.isCut(to, from)) return;
    world.schedule(network.delayMs(from, to), () => {
      const receiver = network.listenerAt(this.peer.endpoint);
      if (receiver === null) return void world.schedule(network.delayMs(to, from), fail);
      receiver.tell((events) => {
        const isOther = receiver.hello.nodeId !== to;
        const refusal = isOther ? "other-node" : events.admit(this.port.hello);
        world.schedule(network.delayMs(to, from), () => {
          if (connection !== this.connection || network.isCut(to, from)) return;
          world.cancel(timeout);
          if (refusal !== null) return this.wasRefused(connection, refusal);
          this.judge(connection, receiver);
        });
      });
    });
  }

  private wasRefused(connection: number, refusal: PeerRefusal): void {
    this.network.counts.refusedHandshakes++;
    this.port.tell((events) => events.refused(this.peer, refusal));
    this.failed(connection);
  }

  private judge(connection: number, receiver: SimPeers): void {
    this.port.tell((events) => {
      if (connection !== this.connection || this.state !== "connecting") return;
      const refusal = events.admit(receiver.hello);
      if (refusal !== null) {
        const by = { nodeId: this.from, endpoint: this.port.hello.endpoint };
        receiver.tell((others) => others.refused(by, refusal));
        return this.failed(connection);
      }
      // The other process may have ended meanwhile; the connection then breaks at once.
      if (!receiver.isListening) return this.failed(connection);
      this.state = "up";
      this.pauseMs = RECONNECT_FIRST_MS;
      this.receiver = receiver;
      this.lanes = emptyLanes();
      this.network.counts.linkUps++;
      this.network.world.say(this.from, `link to node ${this.to} is up`);
      events.linkUp(receiver.hello);
      if (this.isSilent()) this.suspect();
    });
  }

  private failed(connection: number): void {
    if (connection !== this.connection || this.state === "gone" || this.state === "up") return;
    this.state = "idle";
    this.retry();
  }

  private retry(): void {
    const { prng, world } = this.network;
    const pauseMs = this.pauseMs * (0.75 + prng.below(512) / 1024);
    this.pauseMs = Math.min(RECONNECT_LAST_MS, this.pauseMs * 2);
    const { connection } = this;
    world.schedule(pauseMs, () => {
      if (this.state === "idle" && connection === this.connection) this.connect();
    });
  }

  // Losing it ----------------------------------------------------------------------------------

  /** Something may be wrong: if it still is after the time for an echo, the link is given up. */
  suspect(): void {
    if (this.state !== "up") return;
    const { connection } = this;
    this.network.world.schedule(this.network.temper.silenceMs, () => {
      if (this.state === "up" && connection === this.connection && this.isSilent())
        this.lose("silent");
    });
  }

  private isSilent(): boolean {
    const { network, from, to, receiver } = this;
    if (network.isCut(from, to) || network.isCut(to, from)) return true;
    return receiver === null || receiver.life.isOver || receiver.life.isPaused;
  }

  /** The process at the other end is gone. */
  peerGone(isKnown: boolean): void {
    if (this.state !== "up") return;
    const { network, from, to, connection } = this;
    if (!isKnown) return this.suspect();
    network.world.schedule(network.delayMs(to, from), () => {
      if (this.state !== "up" || connection !== this.connection) return;
      if (network.isCut(to, from)) this.suspect();
      else this.lose("reset by its end");
    });
  }

  /** The connection breaks, maybe in the middle of a frame. */
  breakNow(): boolean {
    if (this.state !== "up") return false;
    this.lose("broken");
    return true;
  }

  /** One lane alone breaks: what is on its way over it is lost, in any last part. */
  breakLane(lane: PeerLane): boolean {
    const { flights } = this.lanes[lane];
    if (this.state !== "up" || flights.length === 0) return false;
    this.cutShort(this.lanes[lane]);
    return true;
  }

  private lose(why: string): void {
    const { network } = this;
    if (why !== "silent") this.deliverSome();
    this.dropFlights();
    this.state = "idle";
    this.connection++;
    this.receiver = null;
    network.counts.linkDowns++;
    network.world.say(this.from, `link to node ${this.to} is down: ${why}`);
    this.port.tell((events) => events.linkDown(this.to));
    this.retry();
  }

  /** The peer is no peer any more. */
  letGo(): void {
    const wasUp = this.state === "up";
    this.dropFlights();
    this.state = "gone";
    this.connection++;
    // Not in the turn of the call that let the peer go.
    if (wasUp) this.port.life.at(0, () => this.port.tellNow((events) => events.linkDown(this.to)));
  }

  /** The sender's process ended: a first part of what it sent still arrives. */
  orphan(): void {
    for (const lane of Object.values(this.lanes)) this.cutShort(lane);
    this.state = "gone";
  }

  /** The port closes in peace: returns in how long everything has arrived (ms). */
  leave(): number {
    this.state = "gone";
    this.connection++;
    const { nowMs } = this.network.world;
    const last = LANES.map((lane) => this.lanes[lane].flights.at(-1)?.atMs ?? nowMs);
    return Math.max(...last) - nowMs;
  }

  private cutShort(lane: LaneState): void {
    const kept = this.network.prng.below(lane.flights.length + 1);
    this.network.counts.dropped += lane.flights.length - kept;
    lane.flights.length = kept;
  }

  /** Of what was on its way some first part got through before the break. */
  private deliverSome(): void {
    const { nowMs } = this.network.world;
    for (const name of LANES) {
      const lane = this.lanes[name];
      this.cutShort(lane);
      lane.flights = lane.flights.map(({ bytes }) => ({ bytes, atMs: nowMs }));
      this.deliver(name, lane);
    }
  }

  private dropFlights(): void {
    for (const lane of Object.values(this.lanes)) {
      this.network.counts.dropped += lane.flights.length;
      // Its events may still come; they find nothing.
      lane.flights = [];
    }
    this.lanes = emptyLanes();
  }

  // Frames -------------------------------------------------------------------------------------

  send(lane: PeerLane, bytes: Uint8Array): boolean {
    const { network, from, to } = this;
    if (this.state !== "up") return false;
    const { world } = network;
    if (this.queuedBytes(lane) + bytes.length > QUEUE_BYTES[lane]) {
      network.counts.refusedFull++;
      // Of what may be dropped the real lane drops the oldest; to the receiver it is the same loss.
      return lane === "control";
    }
    network.counts.frames++;
    network.counts.bytes += bytes.length;
    const direction = network.direction(from, to);
    let departMs = world.nowMs;
    if (direction.bytesPerMs > 0) {
      departMs = Math.max(departMs, direction.busyUntilMs) + bytes.length / direction.bytesPerMs;
      direction.busyUntilMs = departMs;
    }
    const state = this.lanes[lane];
    const arrivesMs = Math.max(departMs + network.delayMs(from, to), state.lastArrivalMs);
    state.lastArrivalMs = arrivesMs;
    state.flights.push({ bytes, atMs: arrivesMs });
    world.schedule(arrivesMs - world.nowMs, () => this.deliver(lane, state));
    return true;
  }

  /** Hands over what has arrived, unless the way is cut. */
  private deliver(name: PeerLane, lane: LaneState): void {
    const { network, receiver, from, to } = this;
    if (receiver === null) return;
    const { world } = network;
    while (lane.flights.length > 0) {
      const next = lane.flights[0] as Flight;
      if (next.atMs > world.nowMs) return;
      if (network.isCut(from, to)) {
        network.counts.held++;
        return;
      }
      lane.flights.shift();
      if (!receiver.isListening) {
        network.counts.dropped++;
        continue;
      }
      if (this.port.life.isOver) network.counts.ofFormerLives++;
      const { trace } = world;
      trace.mix((from << 16) ^ to);
      trace.mixBytes(next.bytes);
      if (trace.hasWords) {
        world.say(to, `frame of node ${from}, ${name}, ${next.bytes.length} bytes`);
      }
      receiver.tell((events) => events.frame(from, name, next.bytes));
    }
  }

  /** The way is free again: what was held arrives in a burst. */
  release(): void {
    for (const name of LANES) {
      const lane = this.lanes[name];
      this.network.counts.burst += lane.flights.length;
      this.deliver(name, lane);
    }
  }

  queuedBytes(lane: PeerLane): number {
    const { bytesPerMs, busyUntilMs } = this.network.direction(this.from, this.to);
    const held = this.network.isCut(this.from, this.to);
    if (bytesPerMs === 0 && !held) return 0;
    const { nowMs } = this.network.world;
    let bytes = 0;
    for (const flight of this.lanes[lane].flights) {
      if (held || flight.atMs > nowMs) bytes += flight.bytes.length;
    }
    return busyUntilMs > nowMs || held ? bytes : 0;
  }
}

function emptyLanes(): Record<PeerLane, LaneState> {
  const lane = (): LaneState => ({ flights: [], lastArrivalMs: 0 });
  return { control: lane(), log: lane(), bulk: lane(), calls: lane() };
}
