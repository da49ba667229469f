/**
 * How long groups stand still for coordinated cuts: looked at every few milliseconds while one is taken.
 *
 * Invariant: a pause counts from the first look at it to the first one without it.
 */
import type { PauseBounded } from "../../judge/checkers/backups/pause-bounded.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

const LOOK_EVERY_MS = 20;
/** Looks go on for so long after a cut was begun (ms). */
const AFTER_MS = 12_000;

export class PauseLook {
  private untilMs = -1;
  /** By life and partition, since when. */
  private readonly since = new Map<string, number>();

  constructor(
    private readonly world: World,
    private readonly servers: () => readonly Server[],
    private readonly checker: PauseBounded,
  ) {}

  /** A cut is about to be made. */
  begin(): void {
    const isOn = this.untilMs >= this.world.nowMs;
    this.untilMs = this.world.nowMs + AFTER_MS;
    if (!isOn) this.look();
  }

  private look(): void {
    const { world, since } = this;
    const living = new Set<string>();
    for (const { running, nodeId, lifeNumber } of this.servers()) {
      if (running === null) continue;
      const { node } = running;
      for (const group of node.groups()) {
        const key = `${nodeId}/${lifeNumber}/${group.partition}`;
        living.add(key);
        const begun = since.get(key);
        const isOn = group.isLeader() && group["replica"].pauses.cut.isOn(node.nowMs());
        if (isOn && begun === undefined) since.set(key, world.nowMs);
        if (isOn || begun === undefined) continue;
        since.delete(key);
        this.checker.paused(nodeId, group.partition, world.nowMs - begun);
      }
    }
    // What paused in a life that ended, ended with it.
    for (const key of since.keys()) if (!living.has(key)) since.delete(key);
    if (world.nowMs >= this.untilMs && since.size === 0) return;
    world.schedule(LOOK_EVERY_MS, () => this.look());
  }
}
