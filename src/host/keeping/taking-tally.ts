/** What taking backups came to on this node, since the process began. */
import type { BackupFacts, Histogram } from "../requests/backup-facts.js";
import { PAUSE_SECONDS_BOUNDS } from "../requests/backup-facts.js";
import type { SubstitutionReason } from "../backups/backup-taking.js";

export type CutResult = "cut" | "passed" | "failed";

export class TakingTally {
  private readonly phases = new Map<string, { seconds: number; count: number }>();
  private readonly bytes = new Map<string, number>();
  private readonly rounds = new Map<CutResult, number>();
  private readonly substitutions = new Map<SubstitutionReason, number>();
  private readonly pauseCounts = new Array<number>(PAUSE_SECONDS_BOUNDS.length + 1).fill(0);
  private pauseSum = 0;
  /** Of the leaders' wall clocks, as the last backup here found them (ms). */
  private skewMs = 0;

  phase(name: string, forMs: number): void {
    const known = this.phases.get(name) ?? { seconds: 0, count: 0 };
    known.seconds += forMs / 1000;
    known.count++;
    this.phases.set(name, known);
  }

  wrote(kind: string, sizeBytes: number): void {
    this.bytes.set(kind, (this.bytes.get(kind) ?? 0) + sizeBytes);
  }

  round(result: CutResult): void {
    this.rounds.set(result, (this.rounds.get(result) ?? 0) + 1);
  }

  paused(forMs: number): void {
    const seconds = forMs / 1000;
    const at = PAUSE_SECONDS_BOUNDS.findIndex((bound) => seconds <= bound);
    const slot = at < 0 ? PAUSE_SECONDS_BOUNDS.length : at;
    this.pauseCounts[slot] = (this.pauseCounts[slot] ?? 0) + 1;
    this.pauseSum += seconds;
  }

  substituted(reason: SubstitutionReason): void {
    this.substitutions.set(reason, (this.substitutions.get(reason) ?? 0) + 1);
  }

  sawClocks(wallMs: readonly number[]): void {
    if (wallMs.length > 0) this.skewMs = Math.max(...wallMs) - Math.min(...wallMs);
  }

  facts(): BackupFacts {
    const pauses: Histogram = { counts: [...this.pauseCounts], sum: this.pauseSum };
    const { phases, bytes, rounds, substitutions } = this;
    return { phases, bytes, rounds, substitutions, pauses, clockSkewSeconds: this.skewMs / 1000 };
  }
}
