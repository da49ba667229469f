/**
 * What the leader of meta proves for a backup: asked until somebody answers.
 *
 * Invariant: an answer is of a round that began after the question.
 */
import { failure } from "../../base/result.js";
import type { TopologyAnswer } from "../backups/backup-messages.js";
import type { BackupRequest } from "../backups/backup-taking.js";
import type { KeeperWorld, Stepped } from "./keeper-world.js";

const ANSWER_MS = 5000;
const AGAIN_MS = 200;

/** `done` hears null when nobody proved it by `untilMs`. */
export function readTopology(
  world: KeeperWorld,
  untilMs: number,
  isOver: () => boolean,
  done: (topology: TopologyAnswer | null) => void,
): void {
  const attempt = (): void => {
    const nowMs = world.nowMs();
    if (isOver() || nowMs >= untilMs) return done(null);
    const leader = world.leaderOf(0);
    if (leader === 0 || !world.link.reaches(leader)) return world.waits.after(AGAIN_MS, attempt);
    const deadlineMs = Math.min(untilMs, nowMs + ANSWER_MS);
    world.link.ask(leader, { kind: "topology" }, deadlineMs, (answer) => {
      if (answer?.kind === "topology") return done(answer);
      world.waits.after(AGAIN_MS, attempt);
    });
  };
  attempt();
}

/** Why what was taken between two reads is no backup; null: it is one. `isLed`: meta, from here. */
export function topologyFault(
  before: TopologyAnswer,
  now: TopologyAnswer,
  kind: BackupRequest["kind"],
  isLed: boolean,
): Stepped {
  const isSame = now.topologyVersion === before.topologyVersion && now.lineage === before.lineage;
  if (!isSame) {
    const what = "Partitions or key ranges changed while the backup was taken.";
    return failure("TopologyChanged", what);
  }
  if (kind !== "coordinated" || (isLed && now.term === before.term)) return null;
  const what = "The leadership of the meta partition changed while the backup was taken.";
  return failure("RetryableLeadershipLoss", what);
}
