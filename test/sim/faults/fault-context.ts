/**
 * Where faults happen: the world, its machines and its network, and how a fault is ended again.
 * Types only.
 */
import type { MoveMoments } from "./moves.js";
import type { SimNetwork } from "../net/network.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

export interface Scene {
  readonly world: World;
  /** All machines that there ever were, by node id from 1; joiners come at the end. */
  readonly servers: readonly Server[];
  readonly network: SimNetwork;
  /** What moves of key ranges come to. */
  readonly moments: MoveMoments;
  /** Has `heal` called once: after `afterMs`, or when all faults end. */
  readonly until: (afterMs: number, heal: () => void) => void;
  /** `server` is down after its end, and is started when so much time has passed (ms), or when all faults end. */
  keepDown(server: Server, afterMs: number): void;
}
