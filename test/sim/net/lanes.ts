/**
 * One lane of a link: an ordered connection of its own, with what is on its way in it.
 *
 * What is sent over a lane arrives in order, or a first part of it does: a break cuts the rest off,
 * in the middle of a frame too, which is then none. A lane is never a place of duplicates: bytes of
 * one connection come once, and another connection begins with nothing of the former.
 *
 * Invariants: 1. Frames of a lane keep their order. 2. A lane leads to one life of its receiver.
 */
import type { PeerLane } from "../../../src/ports.js";
import type { SimNetwork } from "./network.js";
import type { SimPeers } from "./peers.js";

export const LANES: readonly PeerLane[] = ["control", "log", "bulk", "calls"];

/** Bytes that may wait for a connection, as the real lanes bound them. */
export const QUEUE_BYTES: Readonly<Record<PeerLane, number>> = {
  control: 256 << 10,
  log: 16 << 20,
  bulk: 16 << 20,
  calls: 16 << 20,
};

interface Flight {
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

export class SimLane {
  /** Sent and not delivered, in order. */
  flights: Flight[] = [];
  lastArrivalMs = 0;
  /** Its connection is broken, and its sender does not know it yet: what is sent is lost. */
  isBroken = false;
  /** Its link is lost. */
  isFormer = false;

  constructor(
    readonly name: PeerLane,
    private readonly network: SimNetwork,
    private readonly sender: SimPeers,
    readonly receiver: SimPeers,
    /** Open with the link; the others open with their first frame. */
    public isOpen: boolean,
  ) {}

  /** Sends a frame that arrives at `atMs`. */
  push(bytes: Uint8Array, atMs: number): void {
    const { world } = this.network;
    this.lastArrivalMs = atMs;
    this.flights.push({ bytes, atMs });
    world.schedule(atMs - world.nowMs, () => this.deliver());
  }

  /** Everything that is on its way arrives now, as far as the way is free. */
  hurry(): void {
    const atMs = this.network.world.nowMs;
    this.flights = this.flights.map(({ bytes }) => ({ bytes, atMs }));
    this.deliver();
  }

  /** Hands over what has arrived, unless the way is cut. */
  deliver(): void {
    const { network, receiver, sender, name } = this;
    const from = sender.profile.nodeId;
    const to = receiver.profile.nodeId;
    const { world, counts } = network;
    while (this.flights.length > 0) {
      const next = this.flights[0];
      if (next === undefined || next.atMs > world.nowMs) return;
      if (network.isCut(from, to)) {
        counts.held++;
        return;
      }
      this.flights.shift();
      if (!receiver.isListening) {
        counts.dropped++;
        continue;
      }
      if (sender.life.isOver) counts.ofFormerLives++;
      else if (this.isFormer) counts.ofLostLinks++;
      const { trace } = world;
      trace.mix((from << 16) ^ to);
      trace.mixBytes(next.bytes);
      if (trace.hasWords) {
        world.say(to, `frame of node ${from}, ${name}, ${next.bytes.length} bytes`);
      }
      receiver.tell((events) => events.frame(from, name, next.bytes));
    }
  }

  /** Loses any last part of what is on its way. */
  cutShort(): void {
    const { prng, counts } = this.network;
    const kept = prng.below(this.flights.length + 1);
    counts.dropped += this.flights.length - kept;
    this.flights.length = kept;
  }

  /** Loses all of it. */
  drop(): void {
    this.network.counts.dropped += this.flights.length;
    // Its events may still come; they find nothing.
    this.flights = [];
  }
}

export type Lanes = Readonly<Record<PeerLane, SimLane>>;

export function lanesBetween(sender: SimPeers, receiver: SimPeers): Lanes {
  const lane = (name: PeerLane, isOpen: boolean): SimLane =>
    new SimLane(name, sender.network, sender, receiver, isOpen);
  return {
    control: lane("control", true),
    log: lane("log", true),
    bulk: lane("bulk", false),
    calls: lane("calls", false),
  };
}
