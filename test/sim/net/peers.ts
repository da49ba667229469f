/**
 * The peer port of one life of a node: its links to the others, and what comes in from them.
 *
 * Same contract as the real one (`src/peerports.ts`). Invariants: see `network.ts`.
 */
import { assert } from "../../../src/base/assert.js";
import { PEER_FRAME_MAX_BYTES } from "../../../src/base/limits.js";
import type {
  PeerAddress,
  PeerBoot,
  PeerEvents,
  PeerHello,
  PeerLane,
  PeerPort,
  PeerIdentity,
  PeerProfile,
  PeerStanding,
} from "../../../src/ports.js";
import type { SimNetwork } from "./network.js";
import type { Life } from "../world/process.js";
import { SimLink } from "./simlink.js";

export class SimPeers implements PeerPort {
  private events: PeerEvents | null = null;
  private readonly links = new Map<number, SimLink>();
  /** How often the connections of a node were ended here because it was no peer any more. */
  private readonly forgets = new Map<number, number>();
  private wanted: readonly PeerAddress[] = [];
  private isClosed = false;
  private boot: PeerBoot = { bootNumber: 0, bootNonce: 0, earlierNonces: [] };
  /** What it answers to who it is; null: nothing yet. */
  standing: () => PeerStanding | null = () => null;
  /** Told of every frame that the node sends, whether it leaves or not. */
  onSend: ((to: number, lane: PeerLane, bytes: Uint8Array) => void) | null = null;

  constructor(
    readonly network: SimNetwork,
    readonly life: Life,
    readonly profile: PeerProfile,
  ) {}

  get hello(): PeerHello {
    return { ...this.profile, ...this.boot };
  }

  identity(): PeerIdentity | null {
    const standing = this.isClosed || this.life.isOver ? null : this.standing();
    return standing === null ? null : { ...this.profile, ...standing };
  }

  get isListening(): boolean {
    return this.events !== null && !this.isClosed && !this.life.isOver;
  }

  link(nodeId: number): SimLink | undefined {
    return this.links.get(nodeId);
  }

  /** A handshake during which this grows comes to nothing. */
  forgetsOf(nodeId: number): number {
    return this.forgets.get(nodeId) ?? 0;
  }

  start(events: PeerEvents, boot: PeerBoot): void {
    assert(this.events === null && !this.isClosed, "a port is started once");
    this.events = events;
    this.boot = boot;
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
      // What that node sends here ends too; it may come again, and is judged again.
      this.life.at(0, () => {
        if (this.links.has(nodeId)) return;
        this.forgets.set(nodeId, this.forgetsOf(nodeId) + 1);
        this.network.forgotten(this, nodeId);
      });
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
    this.onSend?.(to, lane, bytes);
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
