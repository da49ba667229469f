/**
 * Whoever looks after nodes whose data is gone or outdated: asks any whole member to remove the node,
 * empties a disk that is no good, and waits until the node was taken in again (contract 5.6).
 *
 * Invariants: 1. One command per try, and none anew before the last one is over. 2. A repair ends
 * when the node belongs to the cluster again, or was lost for another reason. 3. What a removed
 * member ran with is never used again: if it came back in time to be removed alive, its disk is
 * emptied too.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { LeaveAnswer } from "../../../src/operations/api/administration.js";
import type { OpenCall, Server } from "../world/server.js";
import { World } from "../world/world.js";
import { administer } from "../../doubles/operations/administration.js";

/** A removal may take so long (ms). */
const REMOVE_WITHIN_MS = 15_000;

export class Repairs {
  readonly counts = { "nodes replaced": 0, "remove calls": 0, "machines removed": 0 };
  private readonly open = new Set<Server>();
  /** Machines that are gone for good: somebody takes them off the member list. */
  private readonly scrapped = new Set<Server>();
  private readonly prng: Prng;

  constructor(
    private readonly world: World,
    private readonly servers: readonly Server[],
    /** A member was removed by force, and is no member any more. */
    private readonly removed: () => void = () => undefined,
  ) {
    this.prng = world.prng("repairs");
  }

  /** `server` is damaged. */
  begin(server: Server): void {
    if (this.open.has(server)) return;
    this.open.add(server);
    server.isUnderRepair = true;
    this.later(() => this.remove(server), 500, 5000);
  }

  /** The machine of `server` is gone for good: its operator took it away, or it died. */
  scrap(server: Server): void {
    if (this.scrapped.has(server)) return;
    this.scrapped.add(server);
    this.later(() => this.remove(server), 500, 5000);
  }

  /** What was begun and is not at its end; null when there is nothing. */
  unfinished(): string | null {
    for (const { nodeId } of this.scrapped) return `node ${nodeId} is still removed`;
    for (const { nodeId } of this.open) return `node ${nodeId} is still replaced`;
    return null;
  }

  private later(step: () => void, leastMs: number, mostMs: number): void {
    this.world.schedule(World.between(this.prng, leastMs, mostMs), step);
  }

  /** True: nothing is left to do. */
  private isDone(server: Server): boolean {
    if (this.scrapped.has(server)) return false;
    if (server.isDamaged && !server.isLost) return false;
    if (this.open.delete(server) && !server.isLost) this.counts["nodes replaced"]++;
    server.isUnderRepair = false;
    return true;
  }

  private remove(server: Server): void {
    if (this.isDone(server)) return;
    const able = this.servers.filter(({ running, isDamaged }) => {
      const isMember = running?.operations.health().reason !== "not-a-member";
      return !isDamaged && running?.node.shuttingDown === false && isMember;
    });
    const again = (): void => this.later(() => this.remove(server), 300, 1500);
    const asked = able[this.prng.below(Math.max(1, able.length))];
    if (asked === undefined) return again();
    this.ask(asked, server.nodeId, (answer) => {
      if (answer === null) {
        // What was asked may still be under way elsewhere.
        return this.later(() => this.remove(server), REMOVE_WITHIN_MS, REMOVE_WITHIN_MS);
      }
      this.world.say(asked.nodeId, `answers the removal of ${server.nodeId}: ${answer.outcome}`);
      if (answer.left) this.removed();
      const isGone = answer.left || answer.outcome === "NotAMember";
      if (isGone && this.scrapped.delete(server)) this.counts["machines removed"]++;
      else if (isGone) this.bringBack(server);
      else again();
    });
  }

  private bringBack(server: Server): void {
    // One that came back while it was being removed runs on, with the directory of no member.
    const cameBack = server.running?.operations.health().reason === "not-a-member";
    if (!cameBack && this.isDone(server)) return;
    if (cameBack || server.isOutdated) {
      this.open.add(server);
      server.isUnderRepair = true;
      server.wipe();
      server.start();
    }
    this.later(() => this.bringBack(server), 500, 1000);
  }

  /** null: no answer will come. */
  private ask(asked: Server, nodeId: number, done: (answer: LeaveAnswer | null) => void): void {
    const { running } = asked;
    if (running === null) return done(null);
    const { life, operations } = running;
    const call: OpenCall = { ended: () => done(null), disturbed: () => undefined };
    asked.openCall(call);
    this.counts["remove calls"]++;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + REMOVE_WITHIN_MS;
      const context = { deadlineMs, forwardHops: 0, requestId: `remove-${nodeId}` };
      administer(operations, "cluster.leave", { nodeId }, context, (answer) => {
        asked.closeCall(call);
        this.world.schedule(1, () => done(answer));
      });
    });
  }
}
