/**
 * Property (P-102): what the target has of the interval when it closes it, and still has when it adopts
 * it, is what the source had when it froze it: keys, revisions, values, history, tombstones, stamps.
 *
 * Invariant: an attempt is compared when both sides are known, whichever is told first.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type RangeState, difference, lossOf } from "./range-state.js";
import { type SeenAttempt, attemptName, intervalText } from "./seen-moves.js";

const MINIMUM = { moves: 10, keys: 50, "history rows": 10, tombstones: 5 };

export class SameState {
  private readonly findings: Findings;
  private readonly frozenStates = new Map<string, RangeState>();
  private readonly closedStates = new Map<string, RangeState>();

  constructor(minimum: Readonly<Record<string, number>> = MINIMUM) {
    this.findings = new Findings("the target has what the source had", minimum);
  }

  frozen(attempt: SeenAttempt, state: RangeState): void {
    this.frozenStates.set(attemptName(attempt), state);
  }

  closed(attempt: SeenAttempt, state: RangeState): void {
    const name = attemptName(attempt);
    this.closedStates.set(name, state);
    const source = this.frozenStates.get(name);
    const where = `attempt ${name} of ${intervalText(attempt)}`;
    if (source === undefined) {
      return this.findings.violation(`${where} is closed, and nothing was frozen`);
    }
    this.findings.count("moves");
    this.findings.count("keys", source.keys.size);
    for (const { history, isTombstone } of source.keys.values()) {
      this.findings.count("history rows", history);
      if (isTombstone) this.findings.count("tombstones");
    }
    const found = difference(source.keys, state.keys);
    if (found !== null) this.findings.violation(`${where}: at the target ${found}`);
  }

  /** `state`: as of the entry that adopts it. */
  adopted(attempt: SeenAttempt, state: RangeState): void {
    const name = attemptName(attempt);
    const closed = this.closedStates.get(name);
    const where = `attempt ${name} of ${intervalText(attempt)}`;
    if (closed === undefined) {
      return this.findings.violation(`${where} is adopted, and was not closed`);
    }
    this.findings.count("adopted");
    const found = lossOf(closed.keys, state.keys);
    if (found !== null) this.findings.violation(`${where}: since it was closed ${found}`);
    this.forget(name);
  }

  /** Count or digest differ at the target: an alarm, the copy was wrong or was counted wrongly. */
  mismatched(attempt: SeenAttempt, state: RangeState): void {
    const name = attemptName(attempt);
    const source = this.frozenStates.get(name);
    const found = source === undefined ? null : difference(source.keys, state.keys);
    const what = found === null ? "both sides have the same" : `at the target ${found}`;
    this.findings.violation(
      `attempt ${name} of ${intervalText(attempt)}: its copy is refused, and ${what}`,
    );
  }

  private forget(name: string): void {
    this.frozenStates.delete(name);
    this.closedStates.delete(name);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
