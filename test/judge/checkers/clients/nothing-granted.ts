/**
 * Property P-191, C12: when the disks of a majority are gone, nothing is granted and nothing is
 * read any more: what the rest knows may be old.
 *
 * Invariant: only what was called after the loss is judged.
 */
import type { History } from "../../history.js";
import { Findings, type Verdict } from "../verdict.js";

/** `lostAtMs`: null where a majority stayed. */
export function checkNothingGranted(history: History, lostAtMs: number | null): Verdict {
  const findings = new Findings("nothing is granted without a majority", {});
  for (const attempt of lostAtMs === null ? [] : history.attempts) {
    if (attempt.callMs < (lostAtMs ?? 0)) continue;
    findings.count("calls after the loss");
    const { outcome, operation } = attempt;
    // What is refused for its form needs nobody's state; a local scan promises none that is new.
    if (outcome?.kind !== "ok" || outcome.result.type === "InvalidInput") continue;
    if (operation.kind === "kv-scan-local") continue;
    findings.violation("answered although a majority of the disks is gone", [attempt]);
  }
  return findings.verdict();
}
