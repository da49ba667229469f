/**
 * The peer port of a real node: one listener, one link to each peer.
 *
 * Owns both. Why lanes are sockets, and HTTP/2 is spoken directly here and not through the gRPC
 * package: a link must be destroyed the moment an echo is missing, lanes must not share
 * connections, back-off must end at a sign of life, and a frame must leave in its turn; the package
 * decides these by itself. Questions are gRPC all the same, and so are lanes with a program of
 * level 1, as proto/peer.proto says and a test with the package proves.
 * Invariants: 1. Nothing is called back inside a call, and nothing after `close`. 2. What a node
 * may do here is the host's judgement, asked at every handshake.
 */
import { assert } from "../base/assert.js";
import { failure, ok, type Result } from "../base/result.js";
import type {
  JoinAnswer,
  JoinRequest,
  PeerAddress,
  PeerBoot,
  PeerEvents,
  PeerHello,
  PeerIdentity,
  PeerLane,
  PeerPort,
  PeerRefusal,
} from "../ports.js";
import { PeerLink, type LinkOwner } from "./link.js";
import { PeerListener, type ListenerOwner } from "./listener.js";
import { LinkRenewal, type RenewalOwner } from "./renewal.js";
import {
  type LinkSettings,
  type PeerNetworkPorts,
  type PeerNetworkSettings,
  assertPeerSettings,
} from "./settings.js";

export class PeerNetwork implements PeerPort, LinkOwner, ListenerOwner, RenewalOwner {
  private readonly links = new Map<number, PeerLink>();
  /** Links that were let go and still end. */
  private readonly leaving = new Set<PeerLink>();
  private readonly listener: PeerListener;
  private readonly renewal: LinkRenewal;
  /** Peers that were named before the start. */
  private early: readonly PeerAddress[] = [];
  private events: PeerEvents | null = null;
  private isHeld = false;
  private heldStart: (() => void) | null = null;
  private linkSettings: LinkSettings | null = null;
  private closing: (() => void) | null = null;
  private isClosed = false;
  private boundPort = 0;
  /** Bytes of the frames of other nodes. */
  receivedBytes = 0;

  private constructor(
    private readonly settings: PeerNetworkSettings,
    private readonly ports: PeerNetworkPorts,
  ) {
    this.listener = new PeerListener(settings, ports, this);
    this.renewal = new LinkRenewal(settings, ports, this);
  }

  /**
   * Binds the listener. Until `start` it answers who this node is, as soon as that is known, and
   * links with nobody. Fails with "cannot-listen".
   */
  static open(
    settings: PeerNetworkSettings,
    ports: PeerNetworkPorts,
    done: (result: Result<PeerNetwork, "cannot-listen">) => void,
  ): void {
    assertPeerSettings(settings);
    let network: PeerNetwork;
    try {
      network = new PeerNetwork(settings, ports);
    } catch (error) {
      const { message } = error as Error;
      return ports.timer.soon(() => done(failure("cannot-listen", message)));
    }
    network.listener.listen((bound) => {
      if (!bound.ok) return done(bound);
      network.boundPort = bound.value;
      done(ok(network));
    });
  }

  /** The port that is really listened on. */
  get port(): number {
    return this.boundPort;
  }

  get isServing(): boolean {
    return this.events !== null && this.closing === null;
  }

  get isKnown(): boolean {
    return this.closing === null && this.settings.standing() !== null;
  }

  /** From now on a start takes effect with `release`: what others are told is not known yet. */
  hold(): void {
    assert(this.events === null, "what was started is not held");
    this.isHeld = true;
  }

  release(): void {
    const { heldStart } = this;
    this.isHeld = false;
    this.heldStart = null;
    if (this.closing === null) heldStart?.();
  }

  start(events: PeerEvents, boot: PeerBoot): void {
    assert(this.events === null && this.closing === null, "a peer port is started once");
    if (this.isHeld) {
      assert(this.heldStart === null, "a peer port is started once");
      this.heldStart = () => this.start(events, boot);
      return;
    }
    this.events = events;
    const { settings } = this;
    this.linkSettings = { ...settings, hello: () => ({ ...settings.profile(), ...boot }) };
    this.setPeers(this.early);
    this.early = [];
  }

  setPeers(peers: readonly PeerAddress[]): void {
    if (this.closing !== null) return;
    const { linkSettings } = this;
    if (linkSettings === null) {
      this.early = peers;
      return;
    }
    const wanted = new Map(peers.map((peer) => [peer.nodeId, peer.endpoint]));
    assert(wanted.size === peers.length, "a peer is listed once");
    assert(!wanted.has(this.settings.profile().nodeId), "a node is no peer of its own");
    for (const [nodeId, link] of this.links) {
      const endpoint = wanted.get(nodeId);
      if (endpoint === link.peer.endpoint) continue;
      this.letGo(nodeId, link);
      if (endpoint === undefined) this.ports.timer.soon(() => this.forget(nodeId));
    }
    for (const [nodeId, endpoint] of wanted) {
      if (this.links.has(nodeId)) continue;
      const peer = { nodeId, endpoint };
      this.links.set(nodeId, new PeerLink(peer, linkSettings, this.ports, this));
    }
  }

  send(to: number, lane: PeerLane, bytes: Uint8Array): boolean {
    return this.links.get(to)?.send(lane, bytes) ?? false;
  }

  queuedBytes(to: number, lane: PeerLane): number {
    return this.links.get(to)?.queuedBytes(lane) ?? 0;
  }

  /**
   * `settings.tls` says something else now: new connections use it at once, and the links are
   * renewed one after the other.
   */
  renew(): void {
    if (this.closing !== null) return;
    this.listener.renew();
    this.renewal.begin();
  }

  close(done: () => void): void {
    assert(this.closing === null, "a peer port is closed once");
    this.closing = done;
    this.renewal.stop();
    for (const [nodeId, link] of this.links) this.letGo(nodeId, link, this.settings.closeWithinMs);
    this.ports.timer.soon(() => this.closeListener());
  }

  // What links and listener tell --------------------------------------------------------------

  hello(): PeerHello {
    assert(this.linkSettings !== null, "nobody is greeted before the start");
    return this.linkSettings.hello();
  }

  identity(): PeerIdentity | null {
    const standing = this.settings.standing();
    return standing === null ? null : { ...this.settings.profile(), ...standing };
  }

  judge(hello: PeerHello): PeerRefusal | null {
    assert(this.events !== null, "nobody is judged before the start");
    return this.events.judge(hello);
  }

  admit(hello: PeerHello): PeerRefusal | null {
    assert(this.events !== null, "nobody is judged before the start");
    return this.events.admit(hello);
  }

  refused(...note: Parameters<PeerEvents["refused"]>): void {
    if (this.isServing) this.events?.refused(...note);
  }

  linkUp(hello: PeerHello): void {
    if (this.isServing) this.events?.linkUp(hello);
  }

  linkDown(nodeId: number): void {
    if (this.isServing) this.events?.linkDown(nodeId);
  }

  frame(from: number, lane: PeerLane, bytes: Uint8Array): void {
    this.receivedBytes += bytes.length;
    if (lane === "calls") this.links.get(from)?.asked();
    if (this.isServing) this.events?.frame(from, lane, bytes);
  }

  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    if (this.isServing && this.events !== null) this.events.joinAsked(request, answer);
    else answer({ status: "retry", reason: "the node is not serving" });
  }

  heardOf(nodeId: number, source: string | null, endpoint: string): void {
    this.links.get(nodeId)?.wake(source, endpoint);
  }

  answersLost(nodeId: number): void {
    this.links.get(nodeId)?.answersLost();
  }

  linkClosed(link: PeerLink): void {
    this.leaving.delete(link);
    if (this.closing !== null) this.closeListener();
  }

  // What the renewal asks and wants ------------------------------------------------------------

  linkedBefore(timeMs: number): readonly number[] {
    const nodes = new Set(this.listener.heardBefore(timeMs));
    for (const [nodeId, link] of this.links) if (link.beganBefore(timeMs)) nodes.add(nodeId);
    return [...nodes];
  }

  isBack(nodeId: number): boolean {
    return this.links.get(nodeId)?.isLinked ?? true;
  }

  renewLink(nodeId: number): void {
    // The link first: it must not take the end of the other direction for a loss.
    this.links.get(nodeId)?.renew();
    this.listener.letGo(nodeId);
  }

  private letGo(nodeId: number, link: PeerLink, withinMs = 0): void {
    this.links.delete(nodeId);
    this.leaving.add(link);
    link.close(withinMs);
  }

  private forget(nodeId: number): void {
    if (!this.links.has(nodeId)) this.listener.letGo(nodeId);
  }

  private closeListener(): void {
    if (this.leaving.size > 0 || this.isClosed || this.closing === null) return;
    this.isClosed = true;
    const done = this.closing;
    this.listener.close(() => done());
  }
}
