/**
 * A fault aimed at replicas that move: whoever may lead the group next hears nothing of meta while a replica comes and
 * another one goes, and when that is over the leader dies. So the next leader knows an old record, in which whoever went
 * still votes.
 *
 * Invariants: 1. It heals by itself, and in peace nothing waits any more. 2. Meta keeps a majority that hears.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import type { Server } from "../world/server.js";
import type { Scene } from "./fault-context.js";
import { leaderOf } from "./moves.js";

/** Between two looks at the records (ms). */
const LOOK_MS = 20;
/** A move is waited for, and its end, for so long (ms). */
const WAIT_MS = 15_000;
/** So long the heirs know the old record after the death of the leader (ms). */
const AFTER_MS = 4000;

/** `struck`: the leader died. */
export function strikeBesideHeirs(scene: Scene, struck: (node: number) => void): void {
  let isOver = false;
  scene.until(WAIT_MS, () => {
    isOver = true;
  });
  const look = (): void => {
    if (isOver) return;
    const aim = aimOf(scene);
    if (aim === null) {
      scene.world.schedule(LOOK_MS, look);
      return;
    }
    isOver = true;
    deafen(scene, aim, struck);
  };
  look();
}

interface Aim {
  readonly partition: number;
  readonly heirs: readonly Server[];
}

function records(scene: Scene): readonly PartitionRecord[] {
  return leaderOf(scene, META_PARTITION)?.running?.node.metaGroup().machine.meta.partitions() ?? [];
}

/** A partition to which a replica comes in the place of another one, and who may lead it next. */
function aimOf(scene: Scene): Aim | null {
  const meta = leaderOf(scene, META_PARTITION);
  for (const { partitionId, replicas } of records(scene)) {
    if (!replicas.some(({ role, replaces }) => role === "learner" && replaces !== 0)) continue;
    const leader = leaderOf(scene, partitionId);
    const heirs = scene.servers.filter((server) => {
      const replica = replicas.find(({ nodeId }) => nodeId === server.nodeId);
      return replica?.role === "voter" && server !== leader;
    });
    const isMeant = leader !== null && leader !== meta && !heirs.some((each) => each === meta);
    const others = scene.servers.filter(({ isUp }) => isUp).length - heirs.length - 1;
    if (isMeant && heirs.length > 0 && others >= heirs.length) {
      return { partition: partitionId, heirs };
    }
  }
  return null;
}

function deafen(scene: Scene, { partition, heirs }: Aim, struck: (node: number) => void): void {
  let isOver = false;
  const deaf = heirs.filter(({ deafTo }) => !deafTo.has(META_PARTITION));
  for (const server of deaf) server.deafTo.add(META_PARTITION);
  scene.until(WAIT_MS + AFTER_MS, () => {
    isOver = true;
    for (const server of deaf) server.deafTo.delete(META_PARTITION);
  });
  const sinceMs = scene.world.nowMs;
  const look = (): void => {
    if (isOver || scene.world.nowMs - sinceMs > WAIT_MS) return;
    const record = records(scene).find(({ partitionId }) => partitionId === partition);
    const isMoving = record?.replicas.some(({ role }) => role !== "voter") ?? true;
    if (isMoving) {
      scene.world.schedule(LOOK_MS, look);
      return;
    }
    const leader = leaderOf(scene, partition);
    if (leader === null || heirs.includes(leader)) return;
    scene.keepDown(leader, AFTER_MS);
    leader.end("kill", "its heirs know an old record");
    struck(leader.nodeId);
  };
  look();
}
