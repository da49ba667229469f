/**
 * Property: a range is cut only after the source has frozen the interval and the target has closed it,
 * both in the attempt that is cut, and neither was undone before; and only after the cut the target
 * adopts it and the source lets it go.
 *
 * Invariant: told in trace time, each step when the first replica applied it.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenAttempt, type SeenMove, attemptName, intervalText } from "./seen-moves.js";

export class CutAfterClose {
  private readonly findings: Findings;
  /** Partitions that have the interval frozen, or closed, by attempt. */
  private readonly frozenAt = new Map<string, number>();
  private readonly closedAt = new Map<string, number>();
  private readonly cuts = new Set<number>();

  constructor(minimum: Readonly<Record<string, number>> = { cuts: 10 }) {
    this.findings = new Findings("a cut comes after freeze and close", minimum);
  }

  frozen(partition: number, attempt: SeenAttempt): void {
    this.frozenAt.set(attemptName(attempt), partition);
  }

  closed(partition: number, attempt: SeenAttempt): void {
    this.closedAt.set(attemptName(attempt), partition);
  }

  /** The interval is open at the source again, or the target has dropped it. */
  undone(attempt: Pick<SeenAttempt, "moveId" | "attempt">, side: "source" | "target"): void {
    (side === "source" ? this.frozenAt : this.closedAt).delete(attemptName(attempt));
  }

  cut(move: SeenMove, attempt: number): void {
    this.findings.count("cuts");
    this.cuts.add(move.moveId);
    const name = attemptName({ moveId: move.moveId, attempt });
    const what = `${move.kind} ${name} of ${intervalText(move)}`;
    if (this.frozenAt.get(name) !== move.source) {
      this.findings.violation(`${what} is cut, and partition ${move.source} has not frozen it`);
    }
    if (this.closedAt.get(name) !== move.target) {
      this.findings.violation(`${what} is cut, and partition ${move.target} has not closed it`);
    }
  }

  /** The target owns the interval, or the source deletes what it has of it. */
  followed(move: SeenMove, side: "source" | "target"): void {
    if (this.cuts.has(move.moveId)) return;
    const what = side === "source" ? "let go of" : "adopted";
    const who = `partition ${move[side]} has ${what} ${intervalText(move)}`;
    this.findings.violation(`${who}, and ${move.kind} ${move.moveId} is not cut`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
