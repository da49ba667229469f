/**
 * Leaderships that are given away now and then while everything goes on.
 *
 * Invariant: what is drawn comes from the generator of whoever asks for it.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

export interface HandOvers {
  readonly world: World;
  readonly servers: readonly Server[];
  readonly prng: Prng;
  /** Mean time between two (ms); null: there are none. */
  readonly everyMs: number | null;
  readonly isOver: () => boolean;
  /** Of one group each. */
  readonly given: () => void;
}

export function handOverNowAndThen(parts: HandOvers): void {
  const { world, servers, prng, everyMs, isOver, given } = parts;
  if (everyMs === null) return;
  world.schedule(1 + prng.below(2 * everyMs), () => {
    if (isOver()) return;
    const server = servers[prng.below(servers.length)];
    server?.handOver(prng.chance(1, 2), (ordered) => {
      for (let count = 0; count < ordered.length; count++) given();
    });
    handOverNowAndThen(parts);
  });
}
