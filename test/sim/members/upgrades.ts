/**
 * Whoever upgrades a cluster: starts nodes with the next program and with the one before again, and
 * finalizes, while everything else goes on; in peace brings all of it to its end, and takes the time.
 *
 * Invariants: 1. Numbers come from the schedule of faults. 2. A node that is refused because of its
 * level gets the program that supports it, as its operator would do. 3. In peace all nodes get the
 * new program, then the level is raised, and every group follows.
 */
import type { FinalizeResult } from "../../../src/host/cluster/finalizing.js";
import type { Prng } from "../../../src/base/prng.js";
import { META_PARTITION } from "../../../src/base/ids.js";
import { administer } from "../../doubles/operations/administration.js";
import type { Faults } from "../faults/faults.js";
import type { UpgradeKind } from "../faults/kinds.js";
import type { Plan } from "../plan/plan.js";
import type { Observer } from "../world/observe.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { NEW_PROGRAM, OLD_PROGRAM, type UpgradePlan } from "./upgradeplan.js";

const CALL_MS = 5000;
/** Pause between two looks in peace (ms). */
const LOOK_MS = 200;
const LEVEL = NEW_PROGRAM.levels.max;

export class Upgrades {
  readonly counts = { forward: 0, back: 0, refused: 0, finalizeCalls: 0, finalized: 0, heldUp: 0 };
  private readonly prng: Prng;
  private isOver = false;
  private isCalling = false;
  /** Since when all nodes are up with the new program, in peace; Infinity: they are not. */
  private wholeSinceMs = Infinity;
  private isDone = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly upgrade: UpgradePlan,
    private readonly servers: readonly Server[],
    private readonly faults: Faults,
    private readonly checks: Observer,
    private readonly violate: (text: string) => void,
  ) {
    this.prng = world.prng("upgrades");
  }

  /** What a machine begins with. */
  built(server: Server): void {
    const isNew = this.prng.below(100) < this.upgrade.newPercent;
    server.program = isNew ? NEW_PROGRAM : OLD_PROGRAM;
  }

  start(): void {
    const delayMs = 1 + this.prng.below(2 * this.upgrade.everyMs);
    this.world.schedule(delayMs, () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  /** The faults are over. */
  settle(): void {
    this.isOver = true;
    this.look();
  }

  /** What is not at its end; null when nothing is. */
  unfinished(): string | null {
    return this.isDone ? null : "the upgrade is under way";
  }

  /**
   * A node refused to start, or stopped, because of a level. False: no node of this world was ever
   * told of a higher one.
   */
  isRefusal(server: Server): boolean {
    const supports = server.program.levels.max;
    const highest = Math.max(...this.servers.map(({ storedLevel }) => storedLevel));
    this.counts.refused++;
    this.checks.refusedLevel?.(server.nodeId, supports, highest);
    if (highest <= supports) return false;
    server.program = NEW_PROGRAM;
    return true;
  }

  private act(): void {
    const { faults, upgrade } = this;
    const number = ++faults.count;
    const kind = upgrade.kinds[this.prng.below(upgrade.kinds.length)] as UpgradeKind;
    const prng = this.prng.fork(kind);
    if (this.plan.without.includes(number)) return;
    const able = this.servers.filter(({ isRetired, isLost }) => !isRetired && !isLost);
    const server = able[prng.below(Math.max(1, able.length))];
    if (server === undefined) return;
    if (kind === "finalize") return this.finalize(server, () => faults.saw(kind, number, 0));
    const isForward = kind === "roll-forward";
    const program = isForward ? NEW_PROGRAM : OLD_PROGRAM;
    if (server.program === program) return;
    this.roll(server, isForward, prng.chance(1, 2) ? 1000 + prng.below(3000) : 0);
    faults.saw(kind, number, server.nodeId);
  }

  /** The next life has the other program. `graceMs`: 0 = it is killed. */
  private roll(server: Server, isForward: boolean, graceMs: number): void {
    server.program = isForward ? NEW_PROGRAM : OLD_PROGRAM;
    this.counts[isForward ? "forward" : "back"]++;
    this.checks.rolled?.(isForward ? "forward" : "back");
    if (graceMs > 0 && server.running !== null) server.stop(graceMs);
    else server.end("kill", "another program is put in its place");
  }

  /** Has the level raised by one, at `server`. `done`: it was taken in. */
  private finalize(server: Server, done: () => void): void {
    const { running } = server;
    if (running === null || this.isCalling) return;
    this.isCalling = true;
    this.counts.finalizeCalls++;
    const { life, operations, node } = running;
    const old = this.members.filter((each) => each.runs === OLD_PROGRAM);
    const lives = old.map(({ lifeNumber }) => lifeNumber);
    const open = { isOpen: true };
    const over = (): void => {
      if (open.isOpen) this.isCalling = false;
      open.isOpen = false;
    };
    this.world.schedule(2 * CALL_MS, over);
    done();
    life.enter(() => {
      const context = { deadlineMs: life.monotonicMs() + CALL_MS, forwardHops: 0, requestId: "u" };
      administer(operations, "cluster.finalize", { level: 0 }, context, (answer) => {
        this.world.schedule(0, () => {
          over();
          this.answered(answer as FinalizeResult);
          if (answer.status !== "Finalized" || life.isOver) return;
          const listed = node.metaGroup().machine.meta;
          for (const [at, { nodeId, lifeNumber }] of old.entries()) {
            // Who went back unheard, and was not heard since, may be listed as it was before.
            const isListed = (listed.member(nodeId)?.levelMax ?? LEVEL) < LEVEL;
            if (isListed && lifeNumber === lives[at]) this.checks.leftBehind?.(nodeId);
          }
        });
      });
    });
  }

  private answered({ status, level, blockers }: FinalizeResult): void {
    this.world.say(0, `finalize: ${status}, level ${level}`);
    if (status === "Finalized") this.counts.finalized++;
    if (status === "RefusedMembers") this.counts.heldUp++;
    if (status === "RefusedMembers" && blockers.length === 0) {
      this.violate("finalize is refused for members, and names none");
    }
    // Whoever lost its data keeps its place in the list, and nobody takes it away in this world.
    const isOfTheLost = blockers.every(({ nodeId }) => {
      return !this.members.some((server) => server.nodeId === nodeId);
    });
    if (this.isOver && status === "RefusedMembers" && isOfTheLost) this.isDone = true;
    if (status === "Finalized" && level !== LEVEL) this.violate(`finalized at level ${level}`);
    if (status === "InvalidInput") this.violate("finalize takes its own level for invalid");
  }

  private get members(): readonly Server[] {
    return this.servers.filter(({ isLost, isDamaged, isRetired }) => {
      return !isLost && !isDamaged && !isRetired;
    });
  }

  private look(): void {
    if (this.isDone || this.world.hasEnded) return;
    this.world.schedule(LOOK_MS, () => this.look());
    for (const server of this.members) {
      const isOld = server.program === OLD_PROGRAM || server.runs === OLD_PROGRAM;
      if (isOld && server.isUp) this.roll(server, true, 0);
      else if (isOld) server.program = NEW_PROGRAM;
    }
    const { members } = this;
    const isWhole = members.every(({ running }) => running?.node.health().ready === true);
    if (!isWhole) this.wholeSinceMs = Infinity;
    else this.wholeSinceMs = Math.min(this.wholeSinceMs, this.world.nowMs);
    if (!isWhole) return;
    const levels = members.flatMap(({ running }) => {
      return (running?.node.groups() ?? []).map(({ machine }): number => machine.level);
    });
    const meta = members[0]?.running?.node.group(META_PARTITION)?.machine.meta;
    if ((meta?.cluster()?.level ?? 0) < LEVEL) {
      const [server] = members;
      if (server !== undefined) this.finalize(server, () => undefined);
    } else if (levels.every((level) => level === LEVEL)) {
      this.isDone = true;
      this.checks.finalized?.(this.world.nowMs - this.wholeSinceMs);
    }
  }
}
