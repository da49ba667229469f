/**
 * What must be possible in peace: a coordinated backup, an incremental one of it, and a restore of
 * that, by whichever nodes are left.
 *
 * Invariants: 1. Each is asked for again until it is done: peace has a bound. 2. Where clocks are too
 * far apart for a cut, a Full takes its place. 3. Nothing is asked for where nobody is left: a cluster
 * too young to be forced was given up for good.
 */
import type { CallName, EndNamed, RequestNamed } from "../../../src/api/calls.js";
import { uuidOf } from "../../../src/backup/names.js";
import { CUT_SKEW_MAX_MS } from "../../../src/base/limits.js";
import { call } from "../../doubles/operations/administration.js";
import type { Server } from "../world/server.js";
import { wordsOf } from "./asker.js";
import type { BackupRun } from "./backup-run.js";
import { RESTORE_ROOT } from "./restore-root.js";

const FIRST_AFTER_MS = 2000;
const AGAIN_MS = 500;
const BOUND_MS = 40_000;

export class LastBackups {
  private step: "coordinated" | "incremental" | "restore" | "done" = "done";
  private said = "not asked for yet";
  private parent = "";
  private tries = 0;

  constructor(
    private readonly run: BackupRun,
    /** Of the cluster that is there in the end. */
    private readonly servers: () => readonly Server[],
  ) {}

  start(): void {
    this.step = "coordinated";
    this.later(FIRST_AFTER_MS);
  }

  unsettled(): string | null {
    return this.step === "done" ? null : `no ${this.step} in peace: ${this.said}`;
  }

  private later(afterMs: number): void {
    this.run.parts.world.schedule(afterMs, () => this.next());
  }

  private next(): void {
    if (this.servers().every(({ isRetired, isLost }) => isRetired || isLost)) this.step = "done";
    switch (this.step) {
      case "coordinated":
        return this.first();
      case "incremental":
        return this.incremental();
      case "restore":
        return this.restore();
      case "done":
    }
  }

  /** Who leads the meta partition. */
  private leader(): Server | null {
    const leads = ({ running }: Server): boolean => {
      return running?.node.metaGroup().isServing() === true;
    };
    return this.servers().find(leads) ?? null;
  }

  private first(): void {
    const ahead = this.servers().map(({ clockError }) => Math.abs(clockError.wallOffsetMs));
    const name = Math.max(...ahead) > CUT_SKEW_MAX_MS / 4 ? "backups.full" : "backups.coordinated";
    this.ask(this.leader(), name, {}, (end) => {
      this.parent = end.answer.backupId;
      this.step = "incremental";
    });
  }

  private incremental(): void {
    const up = this.servers().filter(({ running }) => running !== null);
    const server = up[this.tries % Math.max(1, up.length)] ?? null;
    const request = { parentBackupId: this.parent };
    this.ask(server, "backups.incremental", request, (end) => {
      this.parent = end.answer.backupId;
      this.step = "restore";
    });
  }

  private restore(): void {
    const up = this.servers().filter(({ running }) => running !== null);
    const server = up[this.tries % Math.max(1, up.length)] ?? null;
    const target = `last${this.tries}`;
    const leafId = this.parent.replaceAll("-", "");
    const request = {
      ...{ leafBackupId: uuidOf(leafId), targetDir: `${RESTORE_ROOT}/${target}` },
      ...{ targetTimeMs: 0n, sequenceSkip: 0n },
    };
    this.ask(server, "backups.restore", request, () => {
      this.step = "done";
      this.run.restorer.lookedAt(leafId, target);
    });
  }

  private ask<N extends CallName>(
    server: Server | null,
    name: N,
    request: RequestNamed<N>,
    done: (end: Extract<EndNamed<N>, { readonly answer: unknown }>) => void,
  ): void {
    this.tries++;
    const running = server?.running ?? null;
    if (server === null || running === null) return this.later(AGAIN_MS);
    const { life, operations } = running;
    let hasEnded = false;
    const look = (): void => {
      if (hasEnded) return;
      if (life.isOver) {
        this.said = "its node went down";
        return this.next();
      }
      this.run.parts.world.schedule(AGAIN_MS, look);
    };
    look();
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + BOUND_MS;
      call(operations, name, request, { deadlineMs, forwardHops: 0, requestId: name }, (end) => {
        hasEnded = true;
        this.said = wordsOf(end);
        this.run.parts.checks.went.count(`in peace, ${this.step}: ${this.said}`);
        if ("answer" in end) done(end as Extract<EndNamed<N>, { readonly answer: unknown }>);
        // By clocks that are behind others it may be old already, and retention takes it away.
        const isGone = this.said === "ParentMissing" || this.said === "CorruptChain";
        if (isGone && !this.run.catalogued.ids.includes(this.parent.replaceAll("-", ""))) {
          this.step = "done";
        }
        this.later(AGAIN_MS);
      });
    });
  }
}
