/**
 * How one node comes to a link with another: handshake, refusals, and pauses between attempts.
 *
 * Invariants: 1. At most one attempt at a time, and none while the link is up. 2. Both sides judge
 * the handshake before the link is up.
 */
import type { PeerAddress, PeerEvents, PeerRefusal } from "../../../src/ports.js";
import type { SimNetwork } from "./network.js";
import type { SimPeers } from "./peers.js";

const HANDSHAKE_WITHIN_MS = 1500;
const RECONNECT_FIRST_MS = 50;
const RECONNECT_LAST_MS = 300;
/** A peer that refused is asked again, but not at the pace of one that is starting (ms). */
const REFUSED_PAUSE_MS = 2000;

export class Dial {
  private state: "idle" | "connecting" | "up" | "gone" = "idle";
  /** Counts attempts: what belongs to an older one is void. */
  private attempt = 0;
  private pauseMs = RECONNECT_FIRST_MS;
  private readonly network: SimNetwork;
  private readonly from: number;
  private readonly to: number;

  /** `up`: the link is made, in a turn of the process. */
  constructor(
    private readonly port: SimPeers,
    private readonly peer: PeerAddress,
    private readonly up: (receiver: SimPeers, events: PeerEvents) => void,
  ) {
    this.network = port.network;
    this.from = port.profile.nodeId;
    this.to = peer.nodeId;
  }

  connect(): void {
    if (this.state === "gone" || this.port.life.isOver) return;
    this.state = "connecting";
    const attempt = ++this.attempt;
    const { network, from, to } = this;
    const { world } = network;
    const timeout = world.schedule(HANDSHAKE_WITHIN_MS, () => this.failed(attempt));
    const fail = (): void => {
      world.cancel(timeout);
      this.failed(attempt);
    };
    if (network.isCut(from, to) || network.isCut(to, from)) return;
    world.schedule(network.delayMs(from, to), () => {
      const receiver = network.listenerAt(this.peer.endpoint);
      if (receiver === null) return void world.schedule(network.delayMs(to, from), fail);
      receiver.tell((events) => {
        const isOther = receiver.profile.nodeId !== to;
        const refusal = isOther ? "other-node" : events.admit(this.port.hello);
        const forgets = receiver.forgetsOf(from);
        world.schedule(network.delayMs(to, from), () => {
          if (attempt !== this.attempt || network.isCut(to, from)) return;
          world.cancel(timeout);
          if (refusal !== null) return this.wasRefused(attempt, refusal, receiver);
          this.judge(attempt, receiver, forgets);
        });
      });
    });
  }

  private wasRefused(attempt: number, refusal: PeerRefusal, by: SimPeers): void {
    this.network.counts.refusedHandshakes++;
    this.network.judged(this.port.profile, by.profile, false);
    this.port.tell((events) => events.refused(this.peer, refusal, by.profile.program));
    this.failed(attempt, REFUSED_PAUSE_MS);
  }

  /** `forgets`: of the receiver when it let this node in. */
  private judge(attempt: number, receiver: SimPeers, forgets: number): void {
    this.port.tell((events) => {
      if (attempt !== this.attempt || this.state !== "connecting") return;
      const refusal = events.admit(receiver.hello);
      if (refusal !== null) {
        const by = { nodeId: this.from, endpoint: this.port.profile.endpoint };
        const { program } = this.port.profile;
        receiver.tell((others) => others.refused(by, refusal, program));
        return this.failed(attempt);
      }
      // The other process may have ended meanwhile, or takes this node for no peer any more; the
      // connection then breaks at once.
      const isForgotten = receiver.forgetsOf(this.from) !== forgets;
      if (!receiver.isListening || isForgotten) return this.failed(attempt);
      this.network.judged(this.port.profile, receiver.profile, true);
      this.state = "up";
      this.pauseMs = RECONNECT_FIRST_MS;
      this.up(receiver, events);
      receiver.link(this.from)?.wake();
    });
  }

  /** The peer shows life on another way. */
  wake(): void {
    this.pauseMs = RECONNECT_FIRST_MS;
    if (this.state !== "idle") return;
    const { attempt } = this;
    this.network.world.schedule(0, () => {
      if (this.state === "idle" && attempt === this.attempt) this.connect();
    });
  }

  /** The link is lost: it is to be made again. */
  lost(): void {
    this.state = "idle";
    this.attempt++;
    this.retry(this.pauseMs);
  }

  /** No link is wanted any more. */
  stop(): void {
    this.state = "gone";
    this.attempt++;
  }

  private failed(attempt: number, pauseMs = this.pauseMs): void {
    if (attempt !== this.attempt || this.state === "gone" || this.state === "up") return;
    this.state = "idle";
    this.retry(pauseMs);
  }

  private retry(fullMs: number): void {
    const { prng, world } = this.network;
    const pauseMs = fullMs * (0.75 + prng.below(512) / 1024);
    this.pauseMs = Math.min(RECONNECT_LAST_MS, this.pauseMs * 2);
    const { attempt } = this;
    world.schedule(pauseMs, () => {
      if (this.state === "idle" && attempt === this.attempt) this.connect();
    });
  }
}
