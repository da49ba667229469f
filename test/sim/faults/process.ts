/**
 * Faults of processes: ends, pauses, slow processors and clocks that lie.
 *
 * Invariant: each heals by itself; who ended is started again by the schedule.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { FaultKind } from "./kinds.js";
import type { Scene } from "./fault-context.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";

/** False: nothing was done, or `kind` is none of these. */
export function strikeProcess(scene: Scene, kind: FaultKind, server: Server, prng: Prng): boolean {
  const { life } = server;
  if (life === null) return false;
  switch (kind) {
    case "kill":
    case "power-loss":
      server.end(kind, `${kind} by the world`);
      return true;
    case "crash-inside":
      life.crashCountdown = 1 + prng.below(prng.chance(1, 2) ? 60 : 2000);
      return true;
    case "pause":
    case "slow":
      return slowDown(scene, kind, server, prng);
    case "clock-jump": {
      const sizeMs = [100, 10_000, 86_400_000][prng.below(3)] as number;
      const jumpMs = World.between(prng, 1, sizeMs) * (prng.chance(1, 2) ? 1 : -1);
      server.clockError.wallOffsetMs += jumpMs;
      return true;
    }
    case "clock-rate": {
      life.setRate(0.96 + prng.below(80) / 1000);
      scene.until(World.between(prng, 1000, 20_000), () => server.life?.setRate(1));
      return true;
    }
    case "kill-leader":
    case "pause-leader":
      return strikeLeader(scene, kind, prng);
    case "kill-several":
    case "power-loss-all":
      return strikeSeveral(scene, kind, prng);
    default:
      return false;
  }
}

function strikeSeveral(scene: Scene, kind: "kill-several" | "power-loss-all", prng: Prng): boolean {
  let count = 0;
  const isAll = kind === "power-loss-all";
  const power = isAll || prng.chance(1, 2);
  for (const server of scene.servers) {
    if (!server.isUp || (!isAll && prng.chance(1, 3))) continue;
    server.end(power ? "power-loss" : "kill", "killed with others");
    count++;
  }
  return count > 0;
}

/** A node that leads some group, if there is one. */
export function someLeader(scene: Scene, prng: Prng): Server | null {
  const leaders = scene.servers.filter((server) => {
    return server.running?.node.groups().some((group) => group.isServing()) ?? false;
  });
  const leader = leaders[prng.below(Math.max(1, leaders.length))];
  return leader === undefined || leader.isLost ? null : leader;
}

function strikeLeader(scene: Scene, kind: "kill-leader" | "pause-leader", prng: Prng): boolean {
  const leader = someLeader(scene, prng);
  if (leader === null) return false;
  return strikeProcess(scene, kind === "kill-leader" ? "kill" : "pause", leader, prng);
}

function slowDown(scene: Scene, kind: "pause" | "slow", server: Server, prng: Prng): boolean {
  const { life } = server;
  if (life === null) return false;
  const calm = server.disturb(kind);
  if (kind === "pause") {
    life.pause();
    scene.network.silent(server.nodeId);
    const most = [200, 2000, 15_000][prng.below(3)] as number;
    scene.until(1 + prng.below(most), () => {
      life.resume();
      // What was queued takes a moment to be answered.
      scene.world.schedule(2000, calm);
    });
    return true;
  }
  life.costMs = [0.1, 1, 5][prng.below(3)] as number;
  scene.until(World.between(prng, 500, 10_000), () => {
    life.costMs = 0;
    scene.world.schedule(5000, calm);
  });
  return true;
}
