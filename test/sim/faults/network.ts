/**
 * Faults of the network: cuts of every shape, slow wires, connections and lanes that break.
 *
 * Invariant: each heals by itself.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { FaultKind } from "./kinds.js";
import { someLeader } from "./process.js";
import type { Scene } from "./fault-context.js";
import type { Server } from "../world/server.js";

/** False: nothing was done, or `kind` is none of these. */
export function spoilNetwork(scene: Scene, kind: FaultKind, server: Server, prng: Prng): boolean {
  const ids = scene.servers.filter(({ isRetired }) => !isRetired).map(({ nodeId }) => nodeId);
  const { nodeId } = server;
  const most = [100, 1500, 10_000][prng.below(3)] as number;
  const lastsMs = 1 + prng.below(most);
  const others = ids.filter((id) => id !== nodeId);
  const other = others[prng.below(Math.max(1, others.length))];
  if (other === undefined) return false;
  const cut = (from: number, to: number): void => {
    if (from !== to) scene.until(lastsMs, scene.network.cut(from, to));
  };
  const both = (a: number, b: number): void => {
    cut(a, b);
    cut(b, a);
  };
  switch (kind) {
    case "partition":
    case "partition-one-way": {
      const here = ids.filter(() => prng.chance(1, 2));
      const there = ids.filter((id) => !here.includes(id));
      if (here.length === 0 || there.length === 0) return false;
      for (const a of here) for (const b of there) (kind === "partition" ? both : cut)(a, b);
      return true;
    }
    case "isolate":
      for (const id of others) both(nodeId, id);
      return true;
    case "ring":
      if (ids.length < 4) return false;
      for (const a of ids) {
        for (const b of ids) {
          const apart = Math.abs(a - b);
          if (a < b && apart > 1 && apart < ids.length - 1) both(a, b);
        }
      }
      return true;
    case "link-cut":
      both(nodeId, other);
      return true;
    case "half-open":
      cut(nodeId, other);
      return true;
    case "strand-leader":
      return strandLeader(scene, prng);
    default:
      return spoilLink(scene, kind, nodeId, other, lastsMs, prng);
  }
}

/** For about the time in which the others notice, choose another leader and go on, or less. */
function strandLeader(scene: Scene, prng: Prng): boolean {
  const leader = someLeader(scene, prng);
  if (leader === null) return false;
  const { electionMs = 1000 } = leader.plan.host;
  const lastsMs = Math.round((electionMs * (1 + prng.below(8))) / 2);
  for (const { nodeId, isRetired } of scene.servers) {
    if (isRetired || nodeId === leader.nodeId) continue;
    scene.until(lastsMs, scene.network.cut(leader.nodeId, nodeId));
    scene.until(lastsMs, scene.network.cut(nodeId, leader.nodeId));
  }
  return true;
}

function spoilLink(
  scene: Scene,
  kind: FaultKind,
  from: number,
  to: number,
  lastsMs: number,
  prng: Prng,
): boolean {
  const link = scene.network.listener(from)?.link(to);
  switch (kind) {
    case "link-break":
      return link?.breakNow() ?? false;
    case "lane-break": {
      const lanes = link?.openLanes() ?? [];
      const lane = lanes[prng.below(Math.max(1, lanes.length))];
      return lane !== undefined && (link?.breakLane(lane, prng.chance(1, 2)) ?? false);
    }
    case "clog": {
      const direction = scene.network.direction(from, to);
      if (direction.slowMs > 0 || direction.bytesPerMs > 0) return false;
      direction.slowMs = [5, 100, 1500][prng.below(3)] as number;
      direction.bytesPerMs = [0, 1, 50][prng.below(3)] as number;
      scene.until(lastsMs, () => {
        direction.slowMs = 0;
        direction.bytesPerMs = 0;
        scene.network.listener(from)?.link(to)?.unclog();
      });
      return true;
    }
    default:
      return false;
  }
}
