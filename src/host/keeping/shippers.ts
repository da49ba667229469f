/**
 * Which replica ships each partition of a backup, as its keeper chooses them, and the holds that
 * these have.
 *
 * Invariants: 1. A replica is asked for its hold before anything of it is used, and the hold is
 * renewed for as long as the backup goes on (P-135). 2. Who could not ship a partition is not asked
 * again for it, until nobody else is left. 3. What is said of a log is what a replica said of it:
 * who cannot be reached proves nothing.
 */
import { BACKUP_BARRIER_MS, HOLD_LAPSES_MS } from "../../base/limits.js";
import { hostsOf, shippersInOrder } from "../../control/backup-plan.js";
import type { EntryPosition } from "../../machine/machine.js";
import type { BackupAnswer } from "../backups/backup-messages.js";
import { type KeeperWorld, type Part, type TakingFailure, unavailable } from "./keeper-world.js";
import { runPool } from "./pool.js";

const RENEW_EVERY_MS = HOLD_LAPSES_MS / 3;
const ANSWER_MS = 5000;
const AGAIN_MS = 300;
const HOLDS_AT_ONCE = 16;

export type HoldEnd =
  | { readonly status: "held" }
  /** All that can be asked have let go of it. */
  | { readonly status: "compacted" }
  /** A log has something else there. */
  | { readonly status: "other-history" }
  | { readonly status: "failed"; readonly fault: TakingFailure };

type HoldDone = (end: HoldEnd) => void;

export class Shippers {
  private isOver = false;

  constructor(
    private readonly world: KeeperWorld,
    private readonly parts: readonly Part[],
  ) {
    this.renewLater();
  }

  /** Has a replica keep its log above `after`; null: above what it has applied. */
  hold(part: Part, after: EntryPosition | null, done: HoldDone): void {
    const untilMs = this.world.nowMs() + BACKUP_BARRIER_MS;
    const attempt = (): void => {
      if (this.isOver) return done(this.failed(part));
      this.askInTurn(part, after, new Set(), (end) => {
        if (end !== null) return done(end);
        part.tried.clear();
        if (this.world.nowMs() >= untilMs) return done(this.failed(part));
        this.world.waits.after(AGAIN_MS, attempt);
      });
    };
    attempt();
  }

  /** Has the log of every partition kept from where its parent ends. Ends with what is worst. */
  holdAll(told: () => void, done: HoldDone): void {
    let worst: HoldEnd = { status: "held" };
    runPool(
      this.parts,
      {
        atOnce: HOLDS_AT_ONCE,
        // Another history is found first, if there is any.
        mayBegin: () => worst.status !== "other-history",
        run: (part, ended) => {
          this.hold(part, part.before, (end) => {
            if (end.status === "failed") return ended(end.fault);
            const isWorse = end.status === "other-history" || worst.status === "held";
            if (end.status !== "held" && isWorse) worst = end;
            ended(null);
          });
        },
        told,
        isOver: () => this.isOver,
      },
      (fault) => done(fault === null ? worst : { status: "failed", fault }),
    );
  }

  private failed({ partition }: Part): HoldEnd {
    return {
      status: "failed",
      fault: unavailable(`No replica of partition ${partition} ships it.`),
    };
  }

  /** `done` hears null when nobody could tell. */
  private askInTurn(
    part: Part,
    after: EntryPosition | null,
    said: Set<string>,
    done: (end: HoldEnd | null) => void,
  ): void {
    const { world } = this;
    const [node] = this.candidates(part);
    if (node === undefined) return done(said.has("compacted") ? { status: "compacted" } : null);
    const session = world.nextSession();
    const { partition } = part;
    const deadlineMs = world.nowMs() + ANSWER_MS;
    world.link.ask(node, { kind: "hold", session, partition, after }, deadlineMs, (answer) => {
      if (answer?.kind === "held") {
        if (this.isOver) {
          world.link.tell(node, { kind: "leave", session });
          return done(this.failed(part));
        }
        part.shipper = node;
        part.session = session;
        part.streams = 0;
        return done({ status: "held" });
      }
      if (answer === null) world.link.tell(node, { kind: "leave", session });
      const why = refusalOf(answer);
      if (why === "other-history") return done({ status: "other-history" });
      part.tried.add(node);
      said.add(why);
      this.askInTurn(part, after, said, done);
    });
  }

  private candidates(part: Part): number[] {
    const { world } = this;
    const reads = world.metaReads();
    if (reads === null) return [];
    const members = reads.members().map(({ nodeId }) => nodeId);
    const record = part.partition === 0 ? null : reads.partition(part.partition);
    return shippersInOrder({
      self: world.nodeId,
      hosts: hostsOf(record, members),
      leader: world.leaderOf(part.partition),
      isOut: (node) => part.tried.has(node) || !world.link.reaches(node),
      load: (node) => this.parts.filter(({ shipper }) => shipper === node).length,
    });
  }

  /** The replica is of no use any more, or is not needed. */
  leave(part: Part): void {
    if (part.shipper === 0) return;
    this.world.link.tell(part.shipper, { kind: "leave", session: part.session });
    part.shipper = 0;
    part.session = 0;
  }

  /** As `leave`, and another one is to be found. */
  lost(part: Part): void {
    part.tried.add(part.shipper);
    part.lost++;
    this.leave(part);
  }

  private renewLater(): void {
    this.world.waits.after(RENEW_EVERY_MS, () => {
      if (this.isOver) return;
      this.renew();
      this.renewLater();
    });
  }

  private renew(): void {
    const byNode = new Map<number, Part[]>();
    for (const part of this.parts) {
      if (part.shipper === 0) continue;
      const list = byNode.get(part.shipper);
      if (list === undefined) byNode.set(part.shipper, [part]);
      else list.push(part);
    }
    for (const [node, held] of byNode) {
      const sessions = held.map(({ session }) => session);
      const deadlineMs = this.world.nowMs() + ANSWER_MS;
      this.world.link.ask(node, { kind: "renew", sessions }, deadlineMs, (answer) => {
        const lost = answer?.kind === "renewed" ? answer.lost : [];
        for (const part of held) if (lost.includes(part.session)) this.forget(part);
      });
    }
  }

  /** Its hold has ended there: whoever uses it next finds another one. */
  private forget(part: Part): void {
    part.shipper = 0;
    part.session = 0;
  }

  /** The backup is over. */
  end(): void {
    this.isOver = true;
    for (const part of this.parts) this.leave(part);
  }
}

function refusalOf(answer: BackupAnswer | null): string {
  return answer?.kind === "no" ? answer.why : "silent";
}
