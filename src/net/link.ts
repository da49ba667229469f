/**
 * The link to one peer: its four lanes, and whether what is sent to it gets there.
 *
 * Invariants: 1. The link is up once "control" and "log" are admitted. 2. When any lane is lost all
 * begin anew: nothing of an old connection arrives behind something of a new one, and whoever waits
 * for what was sent on the lost one is told by the end of the link. 3. Ups and downs alternate. 4.
 * It is tried where it is listed and, in turn, where the peer itself said it is; who is there, the
 * handshake proves. 5. A peer that asks has a connection for the answers from then on: by its end
 * it hears that they are lost, also where none was on its way yet.
 */
import type { PeerAddress, PeerEvents, PeerHello, PeerLane } from "../ports.js";
import { Lane, type LaneOwner } from "./lane.js";
import type { PeerNetworkPorts, LinkSettings } from "./settings.js";

const RESET_REASON = "the link is down";

/** The part of the host's events that a link tells, as far as the port is still open. */
export interface LinkOwner extends Pick<PeerEvents, "admit" | "refused" | "linkUp" | "linkDown"> {
  linkClosed(link: PeerLink): void;
}

export class PeerLink implements LaneOwner {
  private readonly lanes: Readonly<Record<PeerLane, Lane>>;
  private isUp = false;
  private isClosing = false;
  private closedLanes = 0;
  /** The first failure of a time without a link was told. */
  private isTold = false;
  /** The peer asked something: it may wait for an answer for long. */
  private isAsked = false;
  /** Address from which the peer was last heard. */
  source: string | null = null;
  /** Where the peer itself said last that it is reached. */
  private told: string;

  constructor(
    readonly peer: PeerAddress,
    settings: LinkSettings,
    private readonly ports: PeerNetworkPorts,
    private readonly owner: LinkOwner,
  ) {
    this.told = peer.endpoint;
    const make = (name: PeerLane): Lane => new Lane(peer, name, settings, ports, this);
    this.lanes = {
      control: make("control"),
      log: make("log"),
      bulk: make("bulk"),
      calls: make("calls"),
    };
    this.lanes.control.open();
    this.lanes.log.open();
  }

  /** What is sent gets there. */
  get isLinked(): boolean {
    return this.isUp;
  }

  /** Whether any of its connections began before `timeMs`. */
  beganBefore(timeMs: number): boolean {
    return Object.values(this.lanes).some((lane) => lane.beganBefore(timeMs));
  }

  /** Ends its connections; it comes up again by itself. */
  renew(): void {
    if (this.isClosing) return;
    if (this.isUp) this.goDown();
    else for (const lane of Object.values(this.lanes)) lane.reset(RESET_REASON);
  }

  send(lane: PeerLane, bytes: Uint8Array): boolean {
    return this.isUp && this.lanes[lane].send(bytes);
  }

  queuedBytes(lane: PeerLane): number {
    return this.lanes[lane].queuedBytes;
  }

  /** Where to try next: a peer that moved is listed at its old place until somebody reaches it. */
  endpointOf(attempt: number): string {
    return attempt % 2 === 0 ? this.peer.endpoint : this.told;
  }

  /** The peer shows life on a way of its own, from the address `source`; it says where it is. */
  wake(source: string | null, endpoint: string): void {
    this.source = source;
    if (endpoint !== "") this.told = endpoint;
    for (const lane of Object.values(this.lanes)) lane.wake();
  }

  /** For good; `linkClosed` follows. */
  close(withinMs: number): void {
    if (this.isClosing) return;
    this.isClosing = true;
    for (const lane of Object.values(this.lanes)) lane.close(withinMs);
  }

  admit(hello: PeerHello): ReturnType<PeerEvents["admit"]> {
    return this.owner.admit(hello);
  }

  refused(...note: Parameters<PeerEvents["refused"]>): void {
    this.owner.refused(...note);
  }

  laneUp(lane: PeerLane, hello: PeerHello): void {
    const { control, log } = this.lanes;
    if (lane === "bulk" || lane === "calls" || this.isClosing) return;
    if (!control.isUp || !log.isUp || this.isUp) return;
    this.isUp = true;
    this.isTold = false;
    this.ports.logger.log("debug", "Linked with a peer.", this.fields());
    if (this.isAsked) this.lanes.calls.open();
    this.owner.linkUp(hello);
  }

  laneDown(lane: PeerLane, reason: string): void {
    const wasUp = this.isUp;
    if (reason !== RESET_REASON) {
      const event = wasUp ? "Lost the link to a peer." : "Cannot link with a peer yet.";
      const level = wasUp || !this.isTold ? "info" : "debug";
      this.ports.logger.log(level, event, { ...this.fields(), lane, reason });
      this.isTold = true;
    }
    if (wasUp) this.goDown();
  }

  /**
   * The peer's own connection for calls ended: answers that were on it are lost, and nobody but
   * this side knows who waits for them.
   */
  answersLost(): void {
    if (!this.isUp || this.isClosing) return;
    const event = "Lost the answers of a peer: its connection for calls ended.";
    this.ports.logger.log("info", event, this.fields());
    this.goDown();
  }

  /** Calls of the peer came. */
  asked(): void {
    this.isAsked = true;
    if (this.isUp) this.lanes.calls.open();
  }

  private goDown(): void {
    this.isUp = false;
    for (const lane of Object.values(this.lanes)) lane.reset(RESET_REASON);
    this.owner.linkDown(this.peer.nodeId);
  }

  laneClosed(): void {
    this.closedLanes += 1;
    if (this.isUp) {
      this.isUp = false;
      this.owner.linkDown(this.peer.nodeId);
    }
    if (this.closedLanes === Object.keys(this.lanes).length) this.owner.linkClosed(this);
  }

  private fields(): { peer: number; endpoint: string } {
    return { peer: this.peer.nodeId, endpoint: this.peer.endpoint };
  }
}
