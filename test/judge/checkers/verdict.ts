/**
 * What a checker says: pass, fail with the events that show it, vacuous when it saw too little to say anything, or
 * undecided when it ran out of its budget. Only pass is green, or few undecided objects of many (P-166, P-176).
 *
 * Invariants: 1. A violation outweighs everything. 2. The evidence is counted by name, and each minimum names evidence.
 */
import { type Attempt, attemptLine } from "../history.js";

export type VerdictKind = "pass" | "fail" | "vacuous" | "undecided";

export interface Verdict {
  readonly property: string;
  readonly kind: VerdictKind;
  /** What was looked at, by name. */
  readonly seen: Readonly<Record<string, number>>;
  /** How much of it there must be. */
  readonly minimum: Readonly<Record<string, number>>;
  /** Each with the events that show it; bounded. */
  readonly violations: readonly string[];
  /** Number of violations, also of those that are not listed. */
  readonly violationCount: number;
  /** What could not be decided; bounded. */
  readonly open: readonly string[];
}

const LISTED_MAX = 10;

let reported = 0;

/** Violations that any checker of this process has found: as long as it stays, no verdict fails that did not before. */
export function violationsReported(): number {
  return reported;
}

export class Findings {
  private readonly seen: Record<string, number> = {};
  private readonly violations: string[] = [];
  private violationCount = 0;
  private readonly open: string[] = [];
  private openCount = 0;

  constructor(
    readonly property: string,
    private readonly minimum: Readonly<Record<string, number>>,
  ) {
    for (const name of Object.keys(minimum)) this.seen[name] = 0;
  }

  count(name: string, by = 1): void {
    this.seen[name] = (this.seen[name] ?? 0) + by;
  }

  violation(text: string, events: readonly Attempt[] = []): void {
    this.violationCount++;
    reported++;
    if (this.violations.length >= LISTED_MAX) return;
    this.violations.push([text, ...events.map((event) => `    ${attemptText(event)}`)].join("\n"));
  }

  undecided(text: string): void {
    this.openCount++;
    this.count("undecided");
    if (this.open.length < LISTED_MAX) this.open.push(text);
  }

  verdict(): Verdict {
    const { property, seen, minimum, violations, violationCount, open } = this;
    const tooLittle = Object.entries(minimum).some(([name, least]) => (seen[name] ?? 0) < least);
    let kind: VerdictKind = "pass";
    if (violationCount > 0) kind = "fail";
    else if (this.openCount > 0) kind = "undecided";
    else if (tooLittle) kind = "vacuous";
    return { property, kind, seen: { ...seen }, minimum, violations, violationCount, open };
  }
}

/** One attempt in words, for the report of a violation. */
export function attemptText(attempt: Attempt): string {
  const { id, process, node, callOrder, callMs, returnOrder, returnMs } = attempt;
  const call = `${callMs.toFixed(1)} ms (#${callOrder})`;
  const end = returnMs === null ? "no answer" : `${returnMs.toFixed(1)} ms (#${returnOrder})`;
  const { operation, outcome, term, lost } = JSON.parse(attemptLine(attempt)) as Attempt;
  const what = JSON.stringify({ ...operation, outcome, term, lost });
  return `[${id}] ${process} at node ${node}, ${call} to ${end}: ${what}`;
}

/** One line, then the violations. */
export function verdictText(verdict: Verdict): string {
  const { property, kind, seen, minimum, violations, violationCount, open } = verdict;
  const counts = Object.entries(seen).map(([name, count]) => {
    const least = minimum[name];
    return least === undefined ? `${name} ${count}` : `${name} ${count} (at least ${least})`;
  });
  const lines = [`${kind.toUpperCase().padEnd(9)} ${property}: ${counts.join(", ")}`];
  for (const violation of violations) lines.push(`  ${violation}`);
  if (violationCount > violations.length) {
    lines.push(`  and ${violationCount - violations.length} more`);
  }
  for (const text of open) lines.push(`  undecided: ${text}`);
  return lines.join("\n");
}

/**
 * True when every verdict is green. `openShare`: the share of a checker's objects that may stay
 * undecided (P-176: red above a quota); what it saw of the others must be enough.
 */
export function allPass(verdicts: readonly Verdict[], openShare = 0): boolean {
  return verdicts.length > 0 && verdicts.every((verdict) => isGreen(verdict, openShare));
}

function isGreen({ kind, seen, minimum }: Verdict, openShare: number): boolean {
  if (kind !== "undecided") return kind === "pass";
  const saw = Object.entries(minimum).every(([name, least]) => (seen[name] ?? 0) >= least);
  return saw && (seen["undecided"] ?? 0) <= openShare * (seen["objects"] ?? 0);
}
