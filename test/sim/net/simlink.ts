/**
 * What one node sends to another: a link of four lanes, made, lost and made again.
 *
 * As the real link: it is up when "control" and "log" are; when any lane is lost all begin anew, and
 * whoever waits is told by the end of the link. A lane may be broken for some time before its sender
 * finds out, while the other lanes still deliver. Of the former connection a first part of each lane
 * may still arrive after the link was lost, until the new one takes the lane's place.
 *
 * Invariants: see `network.ts`.
 */
import type { PeerAddress, PeerEvents, PeerLane } from "../../../src/ports.js";
import { Dial } from "./dial.js";
import { LANES, type Lanes, QUEUE_BYTES, type SimLane, lanesBetween } from "./lanes.js";
import type { SimNetwork } from "./network.js";
import type { SimPeers } from "./peers.js";
import { SentFrames } from "./sentframes.js";

/** A shorter queue is left to drain (ms). */
const LONG_QUEUE_MS = 1000;

export class SimLink {
  /** null: the link is not up. */
  private lanes: Lanes | null = null;
  /** Where the lane for calls was given up and nobody was told. */
  private callsLeftAt: SimPeers | null = null;
  /** Counts connections: what belongs to an older one is void. */
  private connection = 0;
  /** null: nothing is kept. */
  readonly sent: SentFrames | null;
  private readonly dial: Dial;
  private readonly network: SimNetwork;
  private readonly from: number;
  private readonly to: number;

  constructor(
    private readonly port: SimPeers,
    peer: PeerAddress,
  ) {
    this.network = port.network;
    this.from = port.profile.nodeId;
    this.to = peer.nodeId;
    this.sent = this.network.temper.keepsFrames === true ? new SentFrames() : null;
    this.dial = new Dial(port, peer, (receiver, events) => this.up(receiver, events));
  }

  private get receiver(): SimPeers | null {
    return this.lanes?.control.receiver ?? null;
  }

  connect(): void {
    this.dial.connect();
  }

  /** The peer shows life on another way. */
  wake(): void {
    this.dial.wake();
  }

  private up(receiver: SimPeers, events: PeerEvents): void {
    this.lanes = lanesBetween(this.port, receiver);
    this.connection++;
    // The receiver ends an older connection of the same lane.
    const direction = this.network.direction(this.from, this.to);
    direction.endFormer("control");
    direction.endFormer("log");
    this.network.counts.linkUps++;
    this.network.world.say(this.from, `link to node ${this.to} is up`);
    events.linkUp(receiver.hello);
    if (this.isSilent()) this.suspect();
  }

  // Losing it ----------------------------------------------------------------------------------

  /** Something may be wrong: if it still is after the time for an echo, the link is given up. */
  suspect(): void {
    if (this.lanes === null) return;
    const { connection } = this;
    this.network.world.schedule(this.network.temper.silenceMs, () => {
      if (this.lanes !== null && connection === this.connection && this.isSilent())
        this.lose("silent");
    });
  }

  private isSilent(): boolean {
    const { network, from, to, receiver } = this;
    if (network.isCut(from, to) || network.isCut(to, from)) return true;
    return receiver === null || receiver.life.isOver || receiver.life.isPaused;
  }

  /** The process at the other end is gone, or ended the connections. */
  peerGone(isKnown: boolean): void {
    if (this.lanes === null) return;
    if (isKnown) this.loseLater("reset by its end");
    else this.suspect();
  }

  /** `by` does not listen to this node any more: nothing that is on its way is taken. */
  endedBy(by: SimPeers): void {
    if (this.receiver !== by) return;
    this.dropFlights();
    this.peerGone(true);
  }

  /** The answers of the peer on this node's own calls are lost with the peer's connection. */
  answersLost(): void {
    if (this.lanes !== null) this.lose("the peer's connection for calls ended");
  }

  /** The end of the connection is on its way to this side. */
  private loseLater(why: string): void {
    const { network, from, to, connection } = this;
    network.world.schedule(network.delayMs(to, from), () => {
      if (this.lanes === null || connection !== this.connection) return;
      if (network.isCut(to, from)) this.suspect();
      else this.lose(why);
    });
  }

  /** The connection breaks, maybe in the middle of a frame. */
  breakNow(): boolean {
    if (this.lanes === null) return false;
    this.lose("broken");
    return true;
  }

  /** Lanes that can break now. */
  openLanes(): readonly PeerLane[] {
    return this.eachLane().flatMap(({ name, isOpen, isBroken }) => {
      return isOpen && !isBroken ? [name] : [];
    });
  }

  /**
   * One lane alone breaks, maybe in the middle of a frame: what is on its way over it is lost, in
   * any last part, and what is sent on it until the sender finds out. `isSilent`: nobody is told,
   * an echo has to be missed. The other lanes deliver meanwhile.
   */
  breakLane(name: PeerLane, isSilent: boolean): boolean {
    const lane = this.lanes?.[name];
    if (this.lanes === null || lane === undefined || !lane.isOpen || lane.isBroken) return false;
    const { network, connection } = this;
    lane.isBroken = true;
    lane.cutShort();
    network.counts.lanesBroken++;
    const why = `its lane ${name} broke`;
    if (!isSilent) {
      this.loseLater(why);
      if (name === "calls") this.tellAnswersLost(lane.receiver);
    }
    // Also where the word of its end was on its way while the way was cut, and is lost.
    network.world.schedule(network.echoMs[name], () => {
      if (this.lanes !== null && connection === this.connection) this.lose(why);
    });
    return true;
  }

  private lose(why: string): void {
    const { network, lanes } = this;
    if (lanes === null) return;
    this.leaveSome(why === "silent");
    const { isOpen, receiver } = lanes.calls;
    // Of a silent end the receiver hears when the lane opens again.
    this.callsLeftAt = isOpen && why === "silent" ? receiver : null;
    if (isOpen && why !== "silent") this.tellAnswersLost(receiver);
    this.lanes = null;
    network.counts.linkDowns++;
    network.world.say(this.from, `link to node ${this.to} is down: ${why}`);
    this.port.tell((events) => events.linkDown(this.to));
    this.dial.lost();
  }

  /** The peer is no peer any more. */
  letGo(): void {
    const wasUp = this.lanes !== null;
    this.dropFlights();
    this.lanes = null;
    this.dial.stop();
    // Not in the turn of the call that let the peer go.
    if (wasUp) this.port.life.at(0, () => this.port.tellNow((events) => events.linkDown(this.to)));
  }

  /** The sender's process ended: a first part of what it sent still arrives. */
  orphan(): void {
    for (const lane of this.eachLane()) lane.cutShort();
    this.close();
  }

  /** The port closes in peace: returns in how long everything has arrived (ms). */
  leave(): number {
    const { nowMs } = this.network.world;
    const last = this.eachLane().map((lane) => lane.flights.at(-1)?.atMs ?? nowMs);
    this.close();
    return Math.max(nowMs, ...last) - nowMs;
  }

  /** Nothing more is sent; what is on its way goes on. */
  private close(): void {
    this.network.direction(this.from, this.to).keepFormer(this.eachLane());
    this.lanes = null;
    this.dial.stop();
  }

  private eachLane(): SimLane[] {
    const { lanes } = this;
    return lanes === null ? [] : LANES.map((name) => lanes[name]);
  }

  /** The receiver's own link hears that nobody carries its answers any more. */
  private tellAnswersLost(receiver: SimPeers): void {
    const { network, from, to } = this;
    network.world.schedule(network.delayMs(from, to), () => {
      if (receiver.isListening && !network.isCut(from, to)) receiver.link(from)?.answersLost();
    });
  }

  /**
   * Of what was on its way some first part gets through: at once, or as late as it was to come. The
   * system sends on what a closed connection had taken, also behind the end of a cut.
   */
  private leaveSome(isSilent: boolean): void {
    const { network, from, to } = this;
    const isLate = isSilent || network.prng.chance(1, 2);
    const lanes = this.eachLane();
    for (const lane of lanes) {
      lane.cutShort();
      if (isLate) continue;
      lane.hurry();
      // What a cut still holds back is lost with the connection.
      lane.drop();
    }
    network.direction(from, to).keepFormer(lanes);
  }

  private dropFlights(): void {
    for (const lane of this.eachLane()) lane.drop();
  }

  // Frames -------------------------------------------------------------------------------------

  send(name: PeerLane, bytes: Uint8Array): boolean {
    const { network, from, to, lanes } = this;
    if (lanes === null) return false;
    const { world } = network;
    const lane = lanes[name];
    if (this.queuedBytes(name) + bytes.length > QUEUE_BYTES[name]) {
      network.counts.refusedFull++;
      // Of what may be dropped the real lane drops the oldest; to the receiver it is the same loss.
      return name === "control";
    }
    network.counts.frames++;
    network.counts.bytes += bytes.length;
    if (lane.isBroken) {
      network.counts.intoBroken++;
      return true;
    }
    const direction = network.direction(from, to);
    let departMs = world.nowMs;
    if (direction.bytesPerMs > 0) {
      departMs = Math.max(departMs, direction.busyUntilMs) + bytes.length / direction.bytesPerMs;
      direction.busyUntilMs = departMs;
    }
    if (!lane.isOpen) this.openLazy(lane);
    const lateMs = name === "calls" ? direction.lateCallsMs : 0;
    const onWayMs = network.delayMs(from, to) + lateMs;
    const arrivesMs = Math.max(departMs + onWayMs, lane.lastArrivalMs);
    lane.push(bytes, arrivesMs);
    this.sent?.keep(name, bytes);
    return true;
  }

  /** A lane opens with its first frame: the handshake goes before it. */
  private openLazy(lane: SimLane): void {
    const { network, from, to } = this;
    lane.isOpen = true;
    const opensMs = network.delayMs(from, to) + network.delayMs(to, from);
    lane.lastArrivalMs = network.world.nowMs + opensMs;
    if (lane.name === "calls" && this.callsLeftAt === lane.receiver) {
      this.callsLeftAt = null;
      this.tellAnswersLost(lane.receiver);
    }
    const direction = network.direction(from, to);
    network.world.schedule(opensMs, () => direction.endFormer(lane.name));
  }

  /** The way is free again: what was held arrives in a burst. */
  release(): void {
    for (const lane of this.eachLane()) {
      this.network.counts.burst += lane.flights.length;
      lane.deliver();
    }
  }

  /** The wire takes as much as one likes again: what stood before it for long arrives now. */
  unclog(): void {
    const { nowMs } = this.network.world;
    this.network.direction(this.from, this.to).busyUntilMs = 0;
    for (const lane of this.eachLane()) {
      if (lane.lastArrivalMs < nowMs + LONG_QUEUE_MS) continue;
      lane.lastArrivalMs = nowMs;
      lane.hurry();
    }
  }

  queuedBytes(name: PeerLane): number {
    const { lanes } = this;
    if (lanes === null) return 0;
    const { bytesPerMs, busyUntilMs } = this.network.direction(this.from, this.to);
    const held = this.network.isCut(this.from, this.to);
    if (bytesPerMs === 0 && !held) return 0;
    const { nowMs } = this.network.world;
    let bytes = 0;
    for (const flight of lanes[name].flights) {
      if (held || flight.atMs > nowMs) bytes += flight.bytes.length;
    }
    return busyUntilMs > nowMs || held ? bytes : 0;
  }
}
