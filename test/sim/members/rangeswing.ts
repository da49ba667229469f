/**
 * A load that swings: the keys of one key space become more and fewer again, first around the size at
 * which a range is split, then around the one below which neighbours are merged.
 *
 * Invariant: which keys are there is a function of the time and of what was acknowledged.
 */
import type { HistoryRecorder } from "../../judge/history.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { type Recording, onKey, setKey } from "./recorded.js";
import type { RangeThresholds } from "./rangeplan.js";

/** Between two writes (ms). */
const EVERY_MS = 1000;
/** A swing up and down (ms). */
const PERIOD_MS = 90_000;
/** By so much of the size it swings to both sides. */
const SWING = 0.3;

export class RangeSwing {
  private readonly recording: Recording;
  private readonly keys: string[] = [];
  private isOver = false;
  private writes = 0;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly servers: readonly Server[],
    private readonly keySpace: string,
    private readonly thresholds: RangeThresholds,
    history: HistoryRecorder,
  ) {
    this.recording = { world, plan, history, name: "swing" };
  }

  start(): void {
    this.world.schedule(EVERY_MS, () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  settle(): void {
    this.isOver = true;
  }

  /** So many keys are to be there now. */
  private get wished(): number {
    const { splitThreshold, mergeMinSize } = this.thresholds;
    const { nowMs } = this.world;
    const size = nowMs < this.plan.ticks / 2 ? splitThreshold : mergeMinSize;
    const place = (nowMs % PERIOD_MS) / PERIOD_MS;
    const wave = place < 0.5 ? 4 * place - 1 : 3 - 4 * place;
    return Math.round(size * (1 + SWING * wave));
  }

  private act(): void {
    const server = this.servers[++this.writes % this.servers.length] as Server;
    const { keys, wished, recording } = this;
    if (keys.length < wished) {
      // Spread over all of the space, whatever is there.
      const key = `${this.keySpace}/key-${((this.writes * 7919) % 10_007).toString(36)}`;
      keys.push(key);
      setKey(recording, server, key, `swing ${this.writes}`);
    } else if (keys.length > wished) {
      onKey(recording, server, "kv-delete", keys.shift() as string);
    }
  }
}
