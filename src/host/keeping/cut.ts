/**
 * A coordinated cut: one stamp T at which every group has a mark, while none of them takes a write
 * above it until all are known to have theirs.
 *
 * Rounds of prepare, choose, close, verify and release, by whoever leads meta. Invariants: 1. A
 * round counts only if every leader closed at exactly T and then proved, by a question that went
 * out after the last of them had closed, that it had led and paused without a break since (P-134).
 * 2. Epochs rise with every round of a term of meta, whoever the backup is for. 3. However a round
 * ends, every group that may have paused is told to go on; those that do not hear it go on by
 * themselves. 4. No answer within its bound is a no.
 */
import {
  BACKUP_BARRIER_MS,
  CUT_ANSWER_MS,
  CUT_FAILED_ROUNDS_MAX,
  CUT_PASSED_ROUNDS_MAX,
} from "../../base/limits.js";
import type { Hlc } from "../../base/hlc.js";
import { compareHlc } from "../../base/hlc.js";
import { chooseCut } from "../../control/backup-plan.js";
import type { BackupAnswer, BackupAsk, MarkItem, MarkPlace } from "../backups/backup-messages.js";
import { type Part, type TakingFailure, type Undertaking, unavailable } from "./keeper-world.js";
import { byLeader } from "./marks.js";
import type { CutResult } from "./taking-tally.js";

const AGAIN_MS = 200;
/** After a round that failed, which may be an election somewhere. */
const REST_MS = 1000;

export type CutEnd =
  | { readonly status: "cut"; readonly at: Hlc }
  | { readonly status: "failed"; readonly fault: TakingFailure }
  | { readonly status: "over" };

interface Asked {
  readonly node: number;
  readonly partitions: readonly number[];
}

export class Cut {
  private failed = 0;
  private passed = 0;
  private readonly untilMs: number;

  constructor(
    private readonly undertaking: Undertaking,
    private readonly parts: readonly Part[],
    /** The next round of this term of meta. */
    private readonly nextRound: () => number,
    private readonly done: (end: CutEnd) => void,
  ) {
    this.untilMs = undertaking.world.nowMs() + BACKUP_BARRIER_MS;
    this.begin();
  }

  /** Begins a round as soon as every group has a leader that can be asked. */
  private begin(): void {
    const { world } = this.undertaking;
    if (this.undertaking.isOver()) return this.done({ status: "over" });
    const lists = byLeader(this.parts, (partition) => world.leaderOf(partition));
    const asked = lists.map(({ node, parts }) => ({
      node,
      partitions: parts.map(({ partition }) => partition),
    }));
    if (asked.every(({ node }) => node !== 0 && world.link.reaches(node))) {
      return this.prepare(asked);
    }
    if (world.nowMs() >= this.untilMs) return this.giveUp("a partition has no leader");
    world.waits.after(AGAIN_MS, () => this.begin());
  }

  /** Asks all at once; `done` hears the answers, and how long the slowest took. */
  private askAll(
    asked: readonly Asked[],
    askOf: (partitions: readonly number[]) => BackupAsk,
    done: (answers: readonly (BackupAnswer | null)[], slowestMs: number) => void,
  ): void {
    const { world } = this.undertaking;
    const beganMs = world.nowMs();
    const answers: (BackupAnswer | null)[] = [];
    for (const { node, partitions } of asked) {
      world.link.ask(node, askOf(partitions), beganMs + CUT_ANSWER_MS, (answer) => {
        answers.push(answer);
        if (answers.length === asked.length) done(answers, world.nowMs() - beganMs);
      });
    }
  }

  private prepare(asked: readonly Asked[]): void {
    const { world } = this.undertaking;
    const beganMs = world.wallMs();
    const ask = (partitions: readonly number[]): BackupAsk => ({ kind: "prepare", partitions });
    this.askAll(asked, ask, (answers, slowestAnswerMs) => {
      const toldMs: number[] = [];
      const aheadMs: number[] = [0];
      for (const answer of answers) {
        if (answer?.kind !== "prepared" || answer.stampMs < 0) {
          return this.again("failed", "a leader did not answer");
        }
        toldMs.push(answer.stampMs, answer.wallMs);
        aheadMs.push(answer.wallMs - beganMs);
      }
      world.tally.sawClocks(aheadMs);
      const choice = chooseCut({
        ...{ node: world.nodeId, wallMs: world.wallMs(), toldMs, slowestAnswerMs },
      });
      const { at, verdict } = choice;
      if (verdict === "too-far-ahead") {
        return this.giveUp(
          "a clock or a stamp is more than a day ahead of this node's clock",
          true,
        );
      }
      if (verdict === "is-ahead") {
        const event = "The stamp of a coordinated backup is ahead of the clock of this node.";
        world.logger.log("warn", event, { aheadMs: choice.aheadMs });
      }
      this.close(asked, at);
    });
  }

  private close(asked: readonly Asked[], at: Hlc): void {
    const { backupId, topology, world } = this.undertaking;
    const epoch = { epochTerm: topology.term, round: this.nextRound() };
    const beganMs = world.nowMs();
    const release = (): void => {
      world.tally.paused(world.nowMs() - beganMs);
      for (const { node, partitions } of asked) {
        world.link.tell(node, { kind: "release", ...epoch, partitions });
      }
    };
    const ask = (partitions: readonly number[]): BackupAsk => {
      return { kind: "close", ...epoch, at, backupId, partitions };
    };
    this.askAll(asked, ask, (answers) => {
      const items = answers.flatMap((answer) => (answer?.kind === "marks" ? answer.items : []));
      const marks = marksAt(items, at);
      if (marks.size !== this.parts.length) {
        release();
        const isPassed = items.some(({ end }) => end === "passed");
        return this.again(isPassed ? "passed" : "failed", "a partition did not close");
      }
      const verify = (partitions: readonly number[]): BackupAsk => {
        return { kind: "verify", ...epoch, partitions };
      };
      this.askAll(asked, verify, (proofs) => {
        release();
        const isProved = proofs.every((proof) => proof?.kind === "verified" && proof.isProved);
        if (!isProved) return this.again("failed", "a pause was not proved");
        world.tally.round("cut");
        for (const part of this.parts) part.mark = marks.get(part.partition) ?? null;
        this.done({ status: "cut", at });
      });
    });
  }

  private again(result: CutResult, why: string): void {
    const { world } = this.undertaking;
    world.tally.round(result);
    world.logger.log("info", "A round of a coordinated cut failed.", { result, why });
    if (result === "passed") this.passed++;
    else this.failed++;
    if (this.failed >= CUT_FAILED_ROUNDS_MAX || this.passed >= CUT_PASSED_ROUNDS_MAX) {
      return this.giveUp(why);
    }
    world.waits.after(result === "passed" ? AGAIN_MS : REST_MS, () => this.begin());
  }

  /** `isNews`: no round was counted for it. */
  private giveUp(why: string, isNews = false): void {
    if (isNews) this.undertaking.world.tally.round("failed");
    this.done({
      status: "failed",
      fault: unavailable(`The partitions have no common cut: ${why}.`),
    });
  }
}

/** The marks that are stamped exactly `at`, by partition. */
function marksAt(items: readonly MarkItem[], at: Hlc): Map<number, MarkPlace> {
  const marks = new Map<number, MarkPlace>();
  for (const { partition, mark } of items) {
    if (mark !== null && compareHlc(mark.stamp, at) === 0) marks.set(partition, mark);
  }
  return marks;
}
