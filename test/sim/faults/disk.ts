/**
 * Faults of disks and state stores: slow, hung, full, and a write that fails. None of them damages
 * what is durable.
 *
 * Invariant: each heals by itself.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { FaultKind } from "./kinds.js";
import type { Scene } from "./fault-context.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";

/** False: nothing was done, or `kind` is none of these. */
export function spoilDisk(scene: Scene, kind: FaultKind, server: Server, prng: Prng): boolean {
  const { disk, rows } = server;
  const { nowMs } = scene.world;
  switch (kind) {
    case "disk-hung":
      disk.hungUntilMs = nowMs + World.between(prng, 100, 8000);
      return true;
    case "store-hung":
      rows.hungUntilMs = nowMs + World.between(prng, 100, 20_000);
      return true;
    case "disk-slow": {
      if (disk.slowness > 1) return false;
      disk.slowness = 10 + prng.below(40);
      scene.until(World.between(prng, 500, 10_000), () => {
        disk.slowness = 1;
      });
      return true;
    }
    case "disk-full":
      if (disk.isFull) return false;
      disk.isFull = true;
      scene.until(World.between(prng, 1000, 20_000), () => {
        disk.isFull = false;
      });
      return true;
    case "store-full":
      if (rows.isFull) return false;
      rows.isFull = true;
      scene.until(World.between(prng, 1000, 20_000), () => {
        rows.isFull = false;
      });
      return true;
    case "disk-error":
      if (server.running === null) return false;
      server.expectsFatal = true;
      disk.failNext = true;
      return true;
    default:
      return false;
  }
}
