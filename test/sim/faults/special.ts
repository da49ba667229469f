/**
 * Faults of profiles of their own: each brings about one thing that the drawn ones seldom do.
 *
 * Invariant: each heals by itself.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import type { FaultKind } from "./kinds.js";
import type { Scene } from "./fault-context.js";
import type { SimLink } from "../net/simlink.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";

/** Most bytes of a frame of garbage. */
const GARBAGE_MAX_BYTES = 5000;
/** No frame of any lane begins with it. */
const NO_KIND = 0xff;

/** False: nothing was done, or `kind` is none of these. */
export function strikeSpecially(
  scene: Scene,
  kind: FaultKind,
  server: Server,
  prng: Prng,
): boolean {
  switch (kind) {
    case "left-behind":
      return leaveBehind(scene, server, prng);
    case "away":
      if (scene.servers.some(({ isUp }) => !isUp)) return false;
      scene.keepDown(server, World.between(prng, 2000, 8000));
      server.end("kill", "away");
      return true;
    case "store-stuck": {
      const { rows } = server;
      if (rows.isFull || rows.hungUntilMs > scene.world.nowMs) return false;
      const lastsMs = World.between(prng, 8000, 25_000);
      if (prng.chance(1, 2)) {
        rows.hungUntilMs = scene.world.nowMs + lastsMs;
        return true;
      }
      rows.isFull = true;
      scene.until(lastsMs, () => {
        rows.isFull = false;
      });
      return true;
    }
    case "meta-deaf":
      if (server.deafTo.has(META_PARTITION)) return false;
      server.deafTo.add(META_PARTITION);
      scene.until(World.between(prng, 500, 12_000), () => {
        server.deafTo.delete(META_PARTITION);
      });
      return true;
    case "late-calls":
      return delayCalls(scene, server, prng);
    case "garbage":
      return sendGarbage(scene, server, prng);
    case "replay":
      return sendAgain(scene, server, prng);
    default:
      return false;
  }
}

/** Whoever comes back asks leaders for entries that these read from the disk: they have only just begun themselves. */
function leaveBehind(scene: Scene, server: Server, prng: Prng): boolean {
  const others = scene.servers.filter((other) => other !== server);
  if (others.some(({ isUp }) => !isUp)) return false;
  const awayMs = World.between(prng, 4000, 9000);
  const restartMs = World.between(prng, 2000, 4000);
  scene.keepDown(server, awayMs + restartMs);
  server.end("kill", "left behind");
  scene.until(awayMs, () => {
    for (const other of others) {
      if (!other.isUp) continue;
      scene.keepDown(other, 10 + prng.below(300));
      other.end("kill", "restarted while another one is away");
    }
  });
  return true;
}

/** One direction alone: what is asked comes late, and others ask as fast as ever. */
function delayCalls(scene: Scene, server: Server, prng: Prng): boolean {
  const others = scene.servers.filter((other) => other !== server && other.isUp);
  const to = others[prng.below(Math.max(1, others.length))];
  if (to === undefined) return false;
  const direction = scene.network.direction(server.nodeId, to.nodeId);
  if (direction.lateCallsMs > 0) return false;
  direction.lateCallsMs = World.between(prng, 50, 400);
  scene.until(World.between(prng, 500, 2500), () => {
    direction.lateCallsMs = 0;
  });
  return true;
}

/** A link from `server` to somebody who is up. */
function someLink(scene: Scene, server: Server, prng: Prng): SimLink | undefined {
  const others = scene.servers.filter((other) => other !== server && other.isUp);
  const to = others[prng.below(Math.max(1, others.length))];
  return to === undefined ? undefined : scene.network.listener(server.nodeId)?.link(to.nodeId);
}

function sendAgain(scene: Scene, server: Server, prng: Prng): boolean {
  const link = someLink(scene, server, prng);
  let count = 0;
  for (const { lane, bytes } of link?.sent?.draw(prng) ?? []) {
    if (link?.send(lane, bytes) === true) count++;
  }
  scene.network.counts.replayed += count;
  return count > 0;
}

function sendGarbage(scene: Scene, server: Server, prng: Prng): boolean {
  const link = someLink(scene, server, prng);
  const lanes = link?.openLanes() ?? [];
  const lane = lanes[prng.below(Math.max(1, lanes.length))];
  if (link === undefined || lane === undefined) return false;
  const bytes = new Uint8Array(prng.below(prng.chance(1, 2) ? 40 : GARBAGE_MAX_BYTES));
  for (let at = 0; at < bytes.length; at++) bytes[at] = at === 0 ? NO_KIND : prng.below(256);
  scene.network.counts.garbage++;
  return link.send(lane, bytes);
}
