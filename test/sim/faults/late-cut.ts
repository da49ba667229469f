/**
 * A fault aimed at the judge of moves: the cut of an attempt is under way for so long that another
 * leader of the source takes the next attempt before it arrives. That leader hears nothing of meta since
 * the attempt was claimed, so that it does not know that it is the one which the target has closed.
 *
 * Invariants: 1. It heals by itself, and in peace nothing waits any more. 2. Meta keeps a majority beside
 * the heir, which is deaf, and the leader of the source, which it does not hear.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Server } from "../world/server.js";
import { World } from "../world/world.js";
import type { Scene } from "./fault-context.js";
import { type MovePair, leaderOf } from "./moves.js";

/** The heir knows the old record for so long (ms). */
const DEAF_MS = 8000;
/** Long enough for the heir to lead and to claim twice, and shorter than links last (ms). */
const HELD_MIN_MS = 300;
const HELD_MAX_MS = 1500;
/** A leader that is being replaced asks for nothing any more (ms). */
const ASKS_MS = 40;
/** With fewer nodes meta decides nothing without the two. */
const NODES_MIN = 5;

/** `struck`: a cut is held up, and the leadership of its source handed over. */
export function delayCut(scene: Scene, prng: Prng, struck: (node: number) => void): void {
  scene.moments.once("retried", (move) => {
    const heir = heirOf(scene, move);
    if (heir === null) return;
    heir.deafTo.add(META_PARTITION);
    let isOver = false;
    scene.until(DEAF_MS, () => {
      isOver = true;
      heir.deafTo.delete(META_PARTITION);
    });
    const wait = (): void => {
      scene.moments.once("closed", ({ source, target }) => {
        if (isOver) return;
        if (source !== move.source || target !== move.target) return wait();
        hold(scene, move, heir, prng, struck);
      });
    };
    wait();
  });
}

/** Who may lead the source next, and leads neither it nor meta now. */
function heirOf(scene: Scene, { source }: MovePair): Server | null {
  if (scene.servers.filter(({ isUp }) => isUp).length < NODES_MIN) return null;
  const leaders = [leaderOf(scene, source), leaderOf(scene, META_PARTITION)];
  const able = scene.servers.filter((server) => {
    const group = server.running?.node.groups().find(({ partition }) => partition === source);
    return group !== undefined && !leaders.includes(server) && server.deafTo.size === 0;
  });
  return able[0] ?? null;
}

function hold(
  scene: Scene,
  { source }: MovePair,
  heir: Server,
  prng: Prng,
  struck: (node: number) => void,
): void {
  const leader = leaderOf(scene, source);
  const judge = leaderOf(scene, META_PARTITION);
  if (leader === null || judge === null || leader === judge || leader === heir) return;
  const lastsMs = World.between(prng, HELD_MIN_MS, HELD_MAX_MS);
  scene.until(lastsMs, scene.network.cut(leader.nodeId, judge.nodeId));
  scene.world.say(leader.nodeId, `its cut is held up; node ${heir.nodeId} is to lead the source`);
  // By then it has heard that the target closed it, and has asked for the cut.
  scene.world.schedule(ASKS_MS + prng.below(ASKS_MS), () => {
    const { running } = leader;
    running?.life.enter(() => {
      const replica = running.node["parts"].registry.all.find(({ group }) => {
        return group.partition === source;
      })?.replica;
      replica?.moveTo({ to: heir.nodeId, mustCarry: false, reason: "balance" });
    });
  });
  struck(leader.nodeId);
}
