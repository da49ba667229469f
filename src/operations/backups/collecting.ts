/**
 * The collection of old backups: when a node makes a pass, and what comes of it.
 *
 * Invariants: 1. The leader of meta makes a pass every so often, and whoever took a backup makes
 * one after it; both in their turn among backups and restores, and given up when that does not
 * come. 2. A pass that fails is logged, and the next one tries again. 3. Nobody who asks for
 * something waits for a pass that waits for another node: only one that was asked for does that.
 */
import type { AnswerNamed } from "../../api/calls.js";
import { type Collected, type CollectionResult, collect } from "../../backup/collection.js";
import { utcText } from "../../backup/manifest.js";
import { uuidOf } from "../../backup/names.js";
import { BACKUP_TURN_WAIT_MS } from "../../base/limits.js";
import type { TimerHandle } from "../../ports.js";
import type { BackupWorld } from "../api/backup-world.js";
import type { Serving } from "../serving/serving.js";
import type { Course, Runs } from "./runs.js";

export class Collecting {
  private timer: TimerHandle | null = null;

  constructor(
    private readonly serving: Serving,
    private readonly world: BackupWorld,
    private readonly runs: Runs,
  ) {
    this.arm();
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  private arm(): void {
    const { archive, collectEveryMs } = this.world;
    if (archive === null || collectEveryMs === 0) return;
    this.timer = this.serving.ports.timer.after(collectEveryMs, () => {
      this.arm();
      const { node } = this.serving;
      if (node.closing || !node.initialized) return;
      const meta = node.metaGroup();
      if (meta.isLeader() && meta.isServing()) this.byItself();
    });
  }

  /** A backup was taken here. */
  follow(): void {
    this.byItself();
  }

  private byItself(): void {
    const { logger } = this.serving.ports;
    const operation = this.runs.operationId();
    if (this.runs.isStopping) return;
    this.runs.inTurn("gc", operation, null, (course) => {
      if (course === null) return;
      this.pass(course, false, false, (result) => {
        course.end();
        if (result.ok) return;
        const { code, message } = result;
        const level = code === "busy" || code === "Cancelled" ? "info" : "warn";
        logger.log(level, "no pass over the backups", { operation, outcome: code, cause: message });
      });
    });
  }

  /** Makes a pass within the turn of `course`, which the caller ends. */
  pass(
    course: Course,
    isDry: boolean,
    wasAsked: boolean,
    done: (result: CollectionResult) => void,
  ): void {
    const { ports, settings } = this.serving;
    const { archive, signatures, retention: rules, witness } = this.world;
    if (archive === null) return;
    const order = {
      ...{ rules, isDry, node: settings.peerEndpoint, tag: this.runs.tag() },
      waitMs: wasAsked ? BACKUP_TURN_WAIT_MS : 0,
      wallMs: () => ports.clock.wallMs(),
      isCancelled: () => course.isCancelled(),
    };
    const { operation } = course;
    collect({ archive, timer: ports.timer, signatures }, order, (result) => {
      if (result.ok) this.told(operation, result.value);
      if (result.ok || result.code !== "busy") {
        const fields = { operation, dryRun: isDry, ...(result.ok ? counts(result.value) : {}) };
        const outcome = result.ok ? "Ok" : (result.code as "IoError");
        const isNews = wasAsked || !result.ok || result.value.sizeBytes > 0;
        if (isNews) witness.ended({ kind: "gc", outcome, wasAsked, fields });
      }
      done(result);
    });
  }

  private told(operation: string, collected: Collected): void {
    const { logger } = this.serving.ports;
    const { witness } = this.world;
    const { applied, sizeBytes, deletions, orphans, unplaced, catalogue } = collected;
    witness.catalogueSeen(catalogue.entries.filter(({ fault }) => fault !== null).length);
    if (unplaced.length > 0) {
      const text = "retention waits: of a manifest nobody can tell where it belongs";
      logger.log("warn", text, { operation, backup: uuidOf(unplaced[0] ?? "") });
    }
    if (!applied) return;
    witness.reclaimed(sizeBytes);
    for (const { entry, reason } of deletions) {
      logger.log("info", "backup collected", { operation, backup: uuidOf(entry.id), reason });
    }
    for (const { name, reason } of orphans) {
      logger.log("info", "leftover of a backup collected", { operation, leftover: name, reason });
    }
  }
}

function counts({ sizeBytes, deletions, orphans }: Collected): Readonly<Record<string, number>> {
  return { backups: deletions.length, orphans: orphans.length, sizeBytes };
}

export function collectionAnswer(collected: Collected): AnswerNamed<"backups.collectGarbage"> {
  const { applied, sizeBytes, deletions, orphans } = collected;
  return {
    applied,
    bytesReclaimed: BigInt(sizeBytes),
    retentionDeletions: deletions.map(({ entry, reason }) => ({
      backupId: uuidOf(entry.id),
      type: entry.manifest?.type ?? "",
      createdAtUtc: utcText(entry.createdAtMs),
      bytes: BigInt(entry.sizeBytes),
      reason,
    })),
    orphanReclamations: orphans.map(({ name, isDirectory, reason }) => ({
      name,
      isDirectory,
      reason,
    })),
  };
}
