/**
 * What goes wrong in the world, and when: draws faults by the plan and heals them again.
 *
 * Owns the schedule of faults; what may be destroyed is the atlas's to say. Invariants: 1. Each
 * fault has a number; leaving one out leaves all others where they are. 2. Every fault heals by
 * itself, or in `healAll`. 3. A fault counts as seen only when it did something.
 */
import type { Prng } from "../../../src/base/prng.js";
import { IDENTITY_KEY } from "../../../src/host/storage/identity.js";
import type { Atlas } from "./fault-budget.js";
import { Disaster } from "./disaster.js";
import type { FaultKind, OperatorKind, PlacementKind, RangeKind, UpgradeKind } from "./kinds.js";
import { spoilDisk } from "./disk.js";
import { strikeBesideHeirs } from "./heirs.js";
import { loseDisk, rollBack } from "./loss.js";
import { repeatImport } from "./late-copy.js";
import { delayCut } from "./late-cut.js";
import { MoveMoments, aimAtMove } from "./moves.js";
import { spoilNetwork } from "./network.js";
import { strikeProcess } from "./process.js";
import { strikeSpecially } from "./special.js";
import type { Plan } from "../plan/plan.js";
import { Repairs } from "./repairs.js";
import type { SimNetwork } from "../net/network.js";
import type { Scene } from "./fault-context.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

type Heal = () => void;
type AnyKind = FaultKind | OperatorKind | UpgradeKind | PlacementKind | RangeKind;

export class Faults implements Scene {
  readonly seen: Partial<Record<AnyKind, number>> = {};
  /** Numbers given out so far. */
  count = 0;
  readonly moments = new MoveMoments();
  readonly repairs: Repairs;
  readonly disaster: Disaster | null;
  private readonly prng: Prng;
  private readonly heals = new Set<Heal>();
  private readonly restarts: Prng;
  private readonly rests: Prng;
  private readonly held = new Set<Server>();
  private isOver = false;
  private isFounded = false;

  constructor(
    readonly world: World,
    private readonly plan: Plan,
    readonly servers: readonly Server[],
    readonly network: SimNetwork,
    private readonly atlas: Atlas,
    /** A member was removed by force. */
    removed: () => void = () => undefined,
  ) {
    this.prng = world.prng("faults");
    this.restarts = world.prng("restarts");
    this.rests = world.prng("rests");
    this.repairs = new Repairs(world, servers, removed);
    const { disaster, faults } = plan;
    const isOff = disaster === null || !faults.includes("lose-majority");
    this.disaster = isOff ? null : new Disaster(this, disaster);
  }

  start(): void {
    if (this.plan.faults.length > 0) this.later();
    if (this.disaster === null) return;
    const number = ++this.count;
    if (this.plan.without.includes(number)) return;
    this.disaster.start(() => this.saw("lose-majority", number, 0));
  }

  private later(): void {
    // Now and then a rest, in which the cluster gets to work (P-175).
    const restMs = this.rests.chance(1, 8) ? 2000 + this.rests.below(6000) : 0;
    const delayMs = 1 + this.prng.below(2 * this.plan.faultEveryMs) + restMs;
    this.world.schedule(delayMs, () => {
      if (this.isOver) return;
      this.strike();
      this.later();
    });
  }

  private strike(): void {
    this.strikeOneOf(this.plan.faults, this.prng);
  }

  /** One of `kinds`, drawn by `from`; on whichever schedule. */
  strikeOneOf(kinds: readonly FaultKind[], from: Prng): void {
    const number = ++this.count;
    const { plan } = this;
    const kind = kinds[from.below(kinds.length)] as FaultKind;
    // Draws of its own, so that what a fault draws does not move those after it.
    const prng = from.fork(kind);
    if (plan.without.includes(number)) return;
    const server = this.servers[prng.below(this.servers.length)] as Server;
    if (this.doIt(kind, server, prng)) this.saw(kind, number, server.nodeId);
  }

  /** Fault `number` did something. `node`: 0 = to nobody in particular. */
  saw(kind: AnyKind, number: number, node: number): void {
    this.seen[kind] = (this.seen[kind] ?? 0) + 1;
    this.world.trace.mix(number);
    this.world.say(node, `FAULT ${number}: ${kind}`);
  }

  /** Ends all faults: everybody who is not lost for good is up again. */
  healAll(): void {
    this.isOver = true;
    this.moments.clear();
    for (const heal of [...this.heals]) heal();
    for (const server of this.servers) {
      server.disk.hungUntilMs = 0;
      server.rows.hungUntilMs = 0;
      if (!server.isUp) server.start();
    }
  }

  /** `server` is down, and is not started again before its time, or before all faults end. */
  keepDown(server: Server, afterMs: number): void {
    this.held.add(server);
    this.until(afterMs, () => {
      this.held.delete(server);
      server.start();
    });
  }

  get isEstablished(): boolean {
    return this.atlas.seenMembers.version > 0;
  }

  repair(server: Server): void {
    this.repairs.begin(server);
  }

  /** Its machine is gone for good. */
  scrap(server: Server): void {
    this.repairs.scrap(server);
  }

  readonly until = (afterMs: number, heal: Heal): void => {
    const once = (): void => {
      if (this.heals.delete(once)) heal();
    };
    this.heals.add(once);
    this.world.schedule(afterMs, once);
  };

  /** A process ended, by a fault or by itself: it is started again some time. */
  restartLater(server: Server): void {
    if (server.isLost || server.isRetired || this.held.has(server)) return;
    const prng = this.restarts;
    // Below and above election timeouts and leases.
    const most = [10, 300, 3000, 12_000][prng.below(4)] as number;
    const delayMs = 1 + prng.below(most);
    // Who waits to be replaced is refused again and again.
    const soonMs = server.isUnderRepair ? 1000 : 10;
    if (this.isOver) this.world.schedule(soonMs, () => server.start());
    else this.until(delayMs, () => server.start());
  }

  private doIt(kind: FaultKind, server: Server, prng: Prng): boolean {
    if (server.life === null || server.isLost) return false;
    switch (kind) {
      case "graceful-stop":
        return this.stopGracefully(server, prng);
      case "bit-flip":
      case "row-flip":
      case "stray-write":
      case "wipe":
      case "lose-disk":
      case "roll-back":
        return this.destroy(kind, server, prng);
      case "lose-majority":
        // Has a time of its own in the plan.
        return false;
      case "strike-move":
      case "part-move":
      case "mute-meta":
      case "mute-side":
      case "deaf-side":
      case "give-up":
      case "late-source":
        return this.aim(kind, prng);
      case "late-copy": {
        const number = this.count;
        repeatImport(this, (node) => this.saw(kind, number, node));
        return false;
      }
      case "late-cut": {
        const number = this.count;
        delayCut(this, prng, (node) => this.saw(kind, number, node));
        return false;
      }
      case "old-heirs": {
        const number = this.count;
        strikeBesideHeirs(this, (node) => this.saw(kind, number, node));
        return false;
      }
      default:
        return (
          strikeProcess(this, kind, server, prng) ||
          spoilDisk(this, kind, server, prng) ||
          strikeSpecially(this, kind, server, prng) ||
          spoilNetwork(this, kind, server, prng)
        );
    }
  }

  /** Counts when its moment has come. */
  private aim(kind: FaultKind, prng: Prng): boolean {
    const number = this.count;
    aimAtMove(this, kind, prng, (node) => this.saw(kind, number, node));
    return false;
  }

  /** Counts when the process has stopped by itself, and handed over what it led. */
  private stopGracefully(server: Server, prng: Prng): boolean {
    if (server.running === null) return false;
    const number = this.count;
    this.world.say(server.nodeId, `FAULT ${number}: graceful-stop begins`);
    server.stop(1000 + prng.below(4000), (isHandedOver) => {
      if (isHandedOver) this.saw("graceful-stop", number, server.nodeId);
    });
    return false;
  }

  private destroy(kind: FaultKind, server: Server, prng: Prng): boolean {
    // A cluster that is not founded yet waits for every founder, and for a disk to be set right.
    this.isFounded ||= this.servers.every(({ isJoiner, rows }) => {
      return isJoiner || rows.get(IDENTITY_KEY) !== undefined;
    });
    // Which groups a node has a copy of, only the partition map says.
    const isMapped = this.plan.placer === null || this.atlas.seenMap.version > 0;
    if (!this.isFounded || !isMapped || !this.atlas.mayLose(server)) return false;
    // Who left and is started by mistake would join anew with an empty disk, and then be taken away;
    // nobody replaces it.
    if (server.isRetired && ["wipe", "lose-disk", "roll-back"].includes(kind)) return false;
    if (kind === "lose-disk" || kind === "roll-back") return this.takeAway(kind, server, prng);
    if (kind === "wipe") {
      server.isDamaged = true;
      server.wipe();
      return true;
    }
    const isDone =
      kind === "row-flip"
        ? server.rows.damage()
        : server.disk.damage(kind === "bit-flip" ? "bit" : "sector");
    if (!isDone) return false;
    server.isDamaged = true;
    return true;
  }

  /** Somebody replaces the node later. */
  private takeAway(kind: "lose-disk" | "roll-back", server: Server, prng: Prng): boolean {
    if (server.isDamaged || this.disaster !== null) return false;
    const isDone = kind === "lose-disk" ? loseDisk(server) : rollBack(server, this.servers, prng);
    if (isDone) this.repair(server);
    return isDone;
  }
}
