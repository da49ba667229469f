/**
 * What goes wrong in the world, and when: draws faults by the plan and heals them again.
 *
 * Owns the schedule of faults and the atlas of what may be destroyed. Invariants: 1. Each fault has
 * a number; leaving one out leaves all others where they are. 2. Every fault heals by itself, or in
 * `healAll`. 3. What is destroyed for good never reaches a majority of the nodes. 4. A fault counts
 * as seen only when it did something.
 */
import type { Prng } from "../../src/base/prng.js";
import type { FaultKind } from "./faultkinds.js";
import type { Plan } from "./plan.js";
import type { SimNetwork } from "./network.js";
import type { Server } from "./server.js";
import { World } from "./world.js";

type Heal = () => void;

export class Faults {
  readonly seen: Partial<Record<FaultKind, number>> = {};
  /** Faults drawn so far. */
  count = 0;
  private readonly prng: Prng;
  private readonly heals = new Set<Heal>();
  private readonly restarts: Prng;
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly servers: readonly Server[],
    private readonly network: SimNetwork,
  ) {
    this.prng = world.prng("faults");
    this.restarts = world.prng("restarts");
  }

  start(): void {
    if (this.plan.faults.length > 0) this.later();
  }

  private later(): void {
    const delayMs = 1 + this.prng.below(2 * this.plan.faultEveryMs);
    this.world.schedule(delayMs, () => {
      if (this.isOver) return;
      this.strike();
      this.later();
    });
  }

  private strike(): void {
    const number = ++this.count;
    const { plan, world } = this;
    const kind = plan.faults[this.prng.below(plan.faults.length)] as FaultKind;
    // Draws of its own, so that what a fault draws does not move those after it.
    const prng = this.prng.fork(kind);
    if (plan.without.includes(number)) return;
    const server = this.servers[prng.below(this.servers.length)] as Server;
    if (!this.doIt(kind, server, prng)) return;
    this.seen[kind] = (this.seen[kind] ?? 0) + 1;
    world.trace.mix(number);
    world.say(server.nodeId, `FAULT ${number}: ${kind}`);
  }

  /** Ends all faults: everybody who is not lost for good is up again. */
  healAll(): void {
    this.isOver = true;
    for (const heal of [...this.heals]) heal();
    for (const server of this.servers) {
      server.disk.hungUntilMs = 0;
      server.rows.hungUntilMs = 0;
      if (!server.isUp) server.start();
    }
  }

  /** Has `heal` called once: after `afterMs`, or when all faults end. */
  private until(afterMs: number, heal: Heal): void {
    const once = (): void => {
      if (this.heals.delete(once)) heal();
    };
    this.heals.add(once);
    this.world.schedule(afterMs, once);
  }

  /** A process ended, by a fault or by itself: it is started again some time. */
  restartLater(server: Server): void {
    if (server.isLost) return;
    const prng = this.restarts;
    // Below and above election timeouts and leases.
    const most = [10, 300, 3000, 12_000][prng.below(4)] as number;
    const delayMs = 1 + prng.below(most);
    if (this.isOver) this.world.schedule(10, () => server.start());
    else this.until(delayMs, () => server.start());
  }

  private doIt(kind: FaultKind, server: Server, prng: Prng): boolean {
    const { life } = server;
    if (life === null || server.isLost) return false;
    switch (kind) {
      case "kill":
      case "power-loss":
        server.end(kind, `${kind} by the world`);
        return true;
      case "crash-inside":
        life.crashCountdown = 1 + prng.below(prng.chance(1, 2) ? 60 : 2000);
        return true;
      case "graceful-stop":
        if (server.running === null) return false;
        server.stop(1000 + prng.below(4000));
        return true;
      case "pause":
      case "slow":
        return this.slowDown(kind, server, prng);
      case "clock-jump": {
        const sizeMs = [100, 10_000, 86_400_000][prng.below(3)] as number;
        const jumpMs = World.between(prng, 1, sizeMs) * (prng.chance(1, 2) ? 1 : -1);
        server.clockError.wallOffsetMs += jumpMs;
        return true;
      }
      case "clock-rate": {
        life.setRate(0.96 + prng.below(80) / 1000);
        this.until(World.between(prng, 1000, 20_000), () => server.life?.setRate(1));
        return true;
      }
      case "kill-leader":
      case "pause-leader":
      case "kill-several":
      case "power-loss-all":
        return this.strikeSeveral(kind, prng);
      case "bit-flip":
      case "stray-write":
      case "wipe":
        return this.destroy(kind, server);
      default:
        return this.spoilDisk(kind, server, prng) || this.spoilNetwork(kind, server, prng);
    }
  }

  /** The atlas: what is destroyed for good stays below a majority. */
  private destroy(kind: FaultKind, server: Server): boolean {
    const spoiled = this.servers.filter((other) => other.isDamaged).length;
    const allowed = Math.floor((this.servers.length - 1) / 2);
    if (!server.isDamaged && spoiled >= allowed) return false;
    if (kind === "wipe") {
      server.isDamaged = true;
      server.wipe();
      return true;
    }
    if (!server.disk.damage(kind === "bit-flip" ? "bit" : "sector")) return false;
    server.isDamaged = true;
    return true;
  }

  private strikeSeveral(kind: FaultKind, prng: Prng): boolean {
    if (kind === "kill-several" || kind === "power-loss-all") {
      let count = 0;
      const isAll = kind === "power-loss-all";
      const power = isAll || prng.chance(1, 2);
      for (const server of this.servers) {
        if (!server.isUp || (!isAll && prng.chance(1, 3))) continue;
        server.end(power ? "power-loss" : "kill", "killed with others");
        count++;
      }
      return count > 0;
    }
    const leaders = this.servers.filter((server) => {
      return server.running?.node.groups().some((group) => group.isServing()) ?? false;
    });
    const leader = leaders[prng.below(Math.max(1, leaders.length))];
    if (leader === undefined) return false;
    return this.doIt(kind === "kill-leader" ? "kill" : "pause", leader, prng);
  }

  private slowDown(kind: "pause" | "slow", server: Server, prng: Prng): boolean {
    const { life } = server;
    if (life === null) return false;
    const calm = server.disturb(kind);
    if (kind === "pause") {
      life.pause();
      this.network.silent(server.nodeId);
      const most = [200, 2000, 15_000][prng.below(3)] as number;
      this.until(1 + prng.below(most), () => {
        life.resume();
        // What was queued takes a moment to be answered.
        this.world.schedule(2000, calm);
      });
      return true;
    }
    life.costMs = [0.1, 1, 5][prng.below(3)] as number;
    this.until(World.between(prng, 500, 10_000), () => {
      life.costMs = 0;
      this.world.schedule(5000, calm);
    });
    return true;
  }

  private spoilDisk(kind: FaultKind, server: Server, prng: Prng): boolean {
    const { disk, rows } = server;
    const { nowMs } = this.world;
    switch (kind) {
      case "disk-hung":
        disk.hungUntilMs = nowMs + World.between(prng, 100, 8000);
        return true;
      case "store-hung":
        rows.hungUntilMs = nowMs + World.between(prng, 100, 20_000);
        return true;
      case "disk-slow": {
        if (disk.slowness > 1) return false;
        disk.slowness = 10 + prng.below(40);
        this.until(World.between(prng, 500, 10_000), () => {
          disk.slowness = 1;
        });
        return true;
      }
      case "disk-full":
        if (disk.isFull) return false;
        disk.isFull = true;
        this.until(World.between(prng, 1000, 20_000), () => {
          disk.isFull = false;
        });
        return true;
      case "store-full":
        if (rows.isFull) return false;
        rows.isFull = true;
        this.until(World.between(prng, 1000, 20_000), () => {
          rows.isFull = false;
        });
        return true;
      case "disk-error":
        if (server.running === null) return false;
        server.expectsFatal = true;
        disk.failNext = true;
        return true;
      default:
        return false;
    }
  }

  private spoilNetwork(kind: FaultKind, server: Server, prng: Prng): boolean {
    const ids = this.servers.map(({ nodeId }) => nodeId);
    const { nodeId } = server;
    const most = [100, 1500, 10_000][prng.below(3)] as number;
    const lastsMs = 1 + prng.below(most);
    const others = ids.filter((id) => id !== nodeId);
    const other = others[prng.below(Math.max(1, others.length))];
    if (other === undefined) return false;
    const cut = (from: number, to: number): void => {
      if (from !== to) this.until(lastsMs, this.network.cut(from, to));
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
      default:
        return this.spoilLink(kind, nodeId, other, lastsMs, prng);
    }
  }

  private spoilLink(
    kind: FaultKind,
    from: number,
    to: number,
    lastsMs: number,
    prng: Prng,
  ): boolean {
    const link = this.network.listener(from)?.link(to);
    switch (kind) {
      case "link-break":
        return link?.breakNow() ?? false;
      case "lane-break":
        return (
          link?.breakLane((["bulk", "calls"] as const)[prng.below(2)] as "bulk" | "calls") ?? false
        );
      case "clog": {
        const direction = this.network.direction(from, to);
        if (direction.slowMs > 0 || direction.bytesPerMs > 0) return false;
        direction.slowMs = [5, 100, 1500][prng.below(3)] as number;
        direction.bytesPerMs = [0, 1, 50][prng.below(3)] as number;
        this.until(lastsMs, () => {
          direction.slowMs = 0;
          direction.bytesPerMs = 0;
        });
        return true;
      }
      default:
        return false;
    }
  }
}
