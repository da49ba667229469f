/**
 * One node is asked to leave, as a patient operator does it: asked again when the answer says that
 * it may be, or when none came; stopped only when it has left.
 *
 * Invariants: 1. The node is stopped for good only after it said that it left. 2. A task ends: left,
 * needed, or its data is lost. 3. Who heard that a drain did not end in time asks again when nobody
 * is to be removed by force any more: the drain may have waited for a machine that is gone, and
 * while it lasts nobody is removed.
 */
import { IDENTITY_KEY } from "../../../src/host/storage/identity.js";
import type { Prng } from "../../../src/base/prng.js";
import type { LeaveAnswer } from "../../../src/operations/api/administration.js";
import type { OpenCall, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { administer } from "../../doubles/operations/administration.js";

/** Beside the drain, the call may take so long (ms); contract 5.3. */
const CONFIRM_MS = 30_000;
/** A call that is answered later than this after its deadline was forgotten (ms). */
const LATE_MS = 5000;
/** So often it is looked whether removals are over (ms). */
const LOOK_EVERY_MS = 1000;

export type LeaveEnd = "left" | "needed" | "lost";

export class LeaveTask {
  /** Calls that were made. */
  calls = 0;
  private isOver = false;

  constructor(
    private readonly world: World,
    readonly server: Server,
    private readonly drainMs: number,
    private readonly prng: Prng,
    /** Somebody is to be removed by force. */
    private readonly isRemoving: () => boolean,
    /** `isDrained`: its replicas have gone to others. */
    private readonly ended: (how: LeaveEnd, isDrained: boolean) => void,
  ) {}

  start(): void {
    this.ask();
  }

  private later(): void {
    this.world.schedule(100 + this.prng.below(1500), () => this.ask());
  }

  private whenNobodyIsRemoved(): void {
    if (!this.isRemoving()) return this.later();
    this.world.schedule(LOOK_EVERY_MS, () => this.whenNobodyIsRemoved());
  }

  private end(how: LeaveEnd, isDrained = false): void {
    this.isOver = true;
    this.ended(how, isDrained);
  }

  private ask(): void {
    const { server, world } = this;
    if (this.isOver) return;
    // A member whose disk was lost waits to be taken in, and knows of nothing that it could leave.
    const isEmpty = server.isDamaged && server.rows.get(IDENTITY_KEY) === undefined;
    if (server.isLost || server.isRetired || isEmpty) return this.end("lost");
    const { running } = server;
    if (running === null || running.node.shuttingDown) return this.later();
    const { life, operations } = running;
    const call: OpenCall = { ended: () => this.later(), disturbed: () => undefined };
    server.openCall(call);
    this.calls++;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + this.drainMs + CONFIRM_MS;
      const context = { deadlineMs, forwardHops: 0, requestId: `leave-${server.nodeId}` };
      administer(operations, "cluster.leave", { nodeId: 0 }, context, (answer) => {
        if (life.monotonicMs() > deadlineMs + LATE_MS && !life.isPaused) {
          world.say(server.nodeId, "answers the leave long after its bound");
        }
        server.closeCall(call);
        world.schedule(1, () => this.take(answer));
      });
    });
  }

  private take(answer: LeaveAnswer): void {
    const { outcome, left, retryable, drained } = answer;
    this.world.say(this.server.nodeId, `answers the leave: ${outcome}`);
    // A member whose disk was lost knows of no cluster that it could leave.
    const isEmpty = outcome === "NotInitialized" && this.server.isDamaged;
    if (isEmpty) this.end("lost");
    else if (left) this.end("left", drained);
    else if (outcome === "DrainTimedOut") this.whenNobodyIsRemoved();
    else if (retryable) this.later();
    else this.end("needed");
  }
}
