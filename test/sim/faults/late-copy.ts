/**
 * A fault aimed at the copy of a move: an import arrives once more, behind a later one of the same
 * attempt, as a frame of a lost connection may.
 *
 * Invariants: 1. What arrives was sent, byte for byte. 2. In peace nothing waits any more.
 */
import { type MovePair, leadElsewhere, leaderOf } from "./moves.js";
import type { Scene } from "./fault-context.js";

/** Imports go on it, and snapshots. */
const LANE = "bulk";

/** `struck`: an import was sent once more. */
export function repeatImport(scene: Scene, struck: (node: number) => void): void {
  scene.moments.once("begun", (move) => {
    // Frames are what goes from node to node: whoever leads the source leads a new target too.
    scene.moments.once("opened", ({ source, target }) => {
      const leader = leaderOf(scene, target);
      const isSame = source === move.source && leader === leaderOf(scene, source);
      if (leader !== null && isSame) {
        scene.world.schedule(0, () => leadElsewhere(scene, leader, target));
      }
    });
    scene.moments.once("imported", (now) => repeatOf(scene, now, struck));
  });
}

function repeatOf(
  scene: Scene,
  { source, target }: MovePair,
  struck: (node: number) => void,
): void {
  const from = leaderOf(scene, source);
  const to = leaderOf(scene, target);
  if (from === null || to === null) return;
  const link = scene.network.listener(from.nodeId)?.link(to.nodeId);
  const first = link?.sent?.lastOf(LANE) ?? null;
  if (link === undefined || first === null) return;
  scene.moments.once("imported", (later) => {
    if (source !== later.source || target !== later.target) return;
    scene.world.schedule(0, () => {
      if (link.send(LANE, first)) struck(from.nodeId);
    });
  });
}
