/**
 * Property S6: no value is handed out twice within one incarnation of a sequence, except as a replay of a key.
 *
 * Invariant: two allocations are compared unless an incarnation may have begun between them; a key's answers count as
 * one allocation.
 */
import type { Attempt, History } from "../../history.js";
import { type Allocated, IncarnationChanges, allocatedBy, byObject } from "../intervals.js";
import { Findings, type Verdict } from "../verdict.js";

/** Neighbours that are compared with one allocation: more overlap only where many incarnations reuse values. */
const NEIGHBOURS_MAX = 256;

export function checkValuesUnique(history: History, minimum = 100): Verdict {
  const findings = new Findings("no value twice in an incarnation", { allocations: minimum });
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("sequence ")) checkSequence(findings, object, attempts);
  }
  return findings.verdict();
}

function checkSequence(findings: Findings, object: string, attempts: readonly Attempt[]): void {
  const changes = new IncarnationChanges(attempts);
  const allocations = distinctAllocations(attempts, findings);
  allocations.sort((a, b) => compare(a.result.start, b.result.start));
  for (const [at, earlier] of allocations.entries()) {
    findings.count("allocations");
    findings.count("values", earlier.result.count);
    for (let next = at + 1; next < allocations.length && next <= at + NEIGHBOURS_MAX; next++) {
      const later = allocations[next] as Allocated;
      if (later.result.start > earlier.result.end) break;
      findings.count("compared");
      const events = [earlier.attempt, later.attempt].sort((a, b) => a.callOrder - b.callOrder);
      const [first, second] = events as [Attempt, Attempt];
      if (changes.mayLieBetween(first, second) || changes.mayLieBetween(second, first)) continue;
      findings.violation(`${object}: ${later.result.start} was handed out twice`, events);
    }
  }
}

/** One allocation per answer; answers of one key with the same values are one. */
function distinctAllocations(attempts: readonly Attempt[], findings: Findings): Allocated[] {
  const allocations: Allocated[] = [];
  const keyed = new Set<string>();
  for (const attempt of attempts) {
    const allocated = allocatedBy(attempt);
    if (allocated === null) continue;
    if (allocated.key !== null) {
      const { start, end, revision } = allocated.result;
      const identity = `${start} ${end} ${revision} ${allocated.key}`;
      if (keyed.has(identity)) {
        findings.count("replays");
        continue;
      }
      keyed.add(identity);
    }
    allocations.push(allocated);
  }
  return allocations;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
