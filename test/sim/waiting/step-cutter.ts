/**
 * Cuts a leader off from all others, not from its clients, just after it handed a lock over in
 * memory: for about the time in which another one is chosen and goes on.
 *
 * Invariants: 1. Each cut heals by itself, and all of them when it is stopped. 2. What it draws is
 * drawn from a generator of its own.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { SimNetwork } from "../net/network.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { HeirTap } from "./heir-tap.js";

/** How long ago a leader may have handed over (ms). */
const JUST_NOW_MS = 30;
const LOOK_EVERY_MS = 5;

export interface CutterParts {
  readonly world: World;
  readonly servers: readonly Server[];
  readonly network: Pick<SimNetwork, "cut">;
  readonly heirs: HeirTap;
  /** Mean time between two cuts (ms). */
  readonly everyMs: number;
  /** Only with so many next holders on its list. */
  readonly listMin: number;
  readonly count: (name: string) => void;
}

export class StepCutter {
  private readonly prng: Prng;
  private readonly heals = new Set<() => void>();
  private isStopped = false;

  constructor(private readonly parts: CutterParts) {
    this.prng = parts.world.prng("step cutter");
  }

  start(): void {
    this.parts.world.schedule(1 + this.prng.below(2 * this.parts.everyMs), () => this.aim());
  }

  stop(): void {
    this.isStopped = true;
    for (const heal of [...this.heals]) heal();
  }

  /** Waits for somebody who hands over. */
  private aim(): void {
    if (this.isStopped) return;
    const { world, count } = this.parts;
    const leader = this.stepping();
    if (leader === null) {
      world.schedule(LOOK_EVERY_MS, () => this.aim());
      return;
    }
    count("leaders cut off while they hand over");
    this.cutOff(leader);
    this.start();
  }

  private stepping(): Server | null {
    const { servers, heirs, world } = this.parts;
    const found = servers.find(({ running }) => {
      const groups = running?.node.groups() ?? [];
      return groups.some((group) => {
        const isNow = heirs.steppedMs(group) >= world.nowMs - JUST_NOW_MS;
        return isNow && heirs.longestList(group) >= this.parts.listMin;
      });
    });
    return found ?? null;
  }

  private cutOff({ nodeId, plan }: Server): void {
    const { servers, network, world } = this.parts;
    const { electionMs = 1000 } = plan.host;
    const lastsMs = Math.round((electionMs * (2 + this.prng.below(6))) / 2);
    for (const other of servers) {
      if (other.nodeId === nodeId) continue;
      for (const end of [network.cut(nodeId, other.nodeId), network.cut(other.nodeId, nodeId)]) {
        const heal = (): void => {
          if (this.heals.delete(heal)) end();
        };
        this.heals.add(heal);
        world.schedule(lastsMs, heal);
      }
    }
  }
}
