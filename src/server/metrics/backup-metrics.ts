/**
 * What is counted of backups, restores and the collection.
 *
 * Invariants: 1. No label holds a name, a path or an id. 2. The time of the last success is that of
 * this node: 0 = it took no backup since its start.
 */
import { Counter, Gauge, type Registry } from "prom-client";
import type { BackupEvent } from "../../operations/api/backup-world.js";

export class BackupMetrics {
  private readonly lastSuccess: Gauge;
  private readonly runs: Counter;
  private readonly restores: Counter;
  private readonly passes: Counter;
  private readonly reclaimedBytes: Counter;
  private readonly invalid: Gauge;

  constructor(
    registry: Registry,
    private readonly wallMs: () => number,
  ) {
    const registers = [registry];
    const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
      new Counter({ name, help, labelNames, registers });
    const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
    this.lastSuccess = gauge(
      "svc_backup_last_success_timestamp_seconds",
      "When this node took its last backup, in seconds since 1970; 0 = none since its start",
    );
    this.runs = counter("svc_backup_runs_total", "Backups by what was asked and how they ended", [
      "kind",
      "outcome",
    ]);
    this.restores = counter("svc_restore_runs_total", "Restores by how they ended", ["outcome"]);
    this.passes = counter(
      "svc_backup_gc_runs_total",
      "Passes of the collection by how they ended",
      ["outcome"],
    );
    this.reclaimedBytes = counter("svc_backup_gc_bytes_total", "Bytes that the collection freed");
    this.invalid = gauge(
      "svc_backup_catalog_invalid",
      "Backups in the catalogue that cannot be used, when this node read it last",
    );
  }

  ended({ kind, outcome }: BackupEvent): void {
    if (kind === "gc") return this.passes.inc({ outcome });
    if (kind === "restore") return this.restores.inc({ outcome });
    this.runs.inc({ kind, outcome });
    if (outcome === "Ok") this.lastSuccess.set(this.wallMs() / 1000);
  }

  reclaimed(sizeBytes: number): void {
    this.reclaimedBytes.inc(sizeBytes);
  }

  catalogueSeen(invalid: number): void {
    this.invalid.set(invalid);
  }
}
