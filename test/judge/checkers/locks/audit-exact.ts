/**
 * Property: forced releases that had their effect are the rows of the audit, no more and no fewer,
 * each with what it was about (F5); they outlive crashes and changes of leaders.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type AuditRow, type Forced, type LockEvent, nameOf } from "./forced.js";

export const AUDIT_MINIMUM = { rows: 20, "told releases": 20, refusals: 5 };

/** `rows`: all of them, the newest first; null: nobody could be asked in peace. */
export function checkAuditExact(
  events: readonly LockEvent[],
  rows: readonly AuditRow[] | null,
  minimum: Readonly<Record<string, number>> = AUDIT_MINIMUM,
): Verdict {
  const findings = new Findings("audit-exact", minimum);
  if (rows === null) {
    findings.violation("nobody tells the audit in peace");
    return findings.verdict();
  }
  const asks = new Map<string, Forced>();
  for (const event of events) if (event.kind === "forced") asks.set(event.reason, event);
  const found = new Map<string, AuditRow>();
  const released = new Set<string>();
  for (const [at, row] of rows.entries()) {
    findings.count("rows");
    const { reason, token, owner, durability } = row;
    const told = `row ${row.partitionId}/${row.auditId} of ${nameOf(row)}, token ${token}`;
    const above = rows[at - 1];
    if (above !== undefined && above.stampMs < row.stampMs) {
      findings.violation(`${told}: newer than the one before it`);
    }
    const ask = asks.get(reason);
    if (ask === undefined || nameOf(ask) !== nameOf(row) || ask.token !== token) {
      findings.violation(`${told}: nobody asked for it ("${reason}")`);
      continue;
    }
    if (found.has(reason)) findings.violation(`${told}: there twice`);
    found.set(reason, row);
    if (ask.end === "unlocked" && (ask.owner !== owner || ask.auditId !== row.auditId)) {
      findings.violation(`${told}: ${owner}, told ${ask.owner} with row ${ask.auditId}`);
    }
    // Of an ephemeral lock the row comes before the effect, and may stay without one.
    if (durability === 0) continue;
    if (ask.end === "refused") findings.violation(`${told}: was refused`);
    if (ask.end === "unknown") findings.count("rows of the unknown");
    const grant = `${nameOf(row)} ${token}`;
    if (released.has(grant)) findings.violation(`${told}: the grant was ended twice`);
    released.add(grant);
  }
  for (const ask of asks.values()) {
    if (ask.end === "refused") findings.count("refusals");
    if (ask.end !== "unlocked") continue;
    findings.count("told releases");
    if (found.has(ask.reason)) continue;
    findings.violation(`${nameOf(ask)}, token ${ask.token}, "${ask.reason}": no row tells of it`);
  }
  return findings.verdict();
}
