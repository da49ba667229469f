/**
 * Property: a forced release ends the grant that it names, and no newer one (F3); and what it ended
 * stays ended.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type Forced, type Grant, type LockEvent, nameOf } from "./forced.js";

export const FORCE_MINIMUM = { releases: 20, refused: 5, "changes after": 5 };

export function checkForceCompares(
  events: readonly LockEvent[],
  minimum: Readonly<Record<string, number>> = FORCE_MINIMUM,
): Verdict {
  const findings = new Findings("force-compares", minimum);
  const grants = new Map<string, Grant[]>();
  for (const event of events) {
    if (event.kind !== "grant") continue;
    const name = nameOf(event);
    grants.set(name, [...(grants.get(name) ?? []), event]);
  }
  const ended = new Map<string, Forced>();
  for (const event of events) {
    if (event.kind !== "forced") continue;
    if (event.end === "refused") findings.count("refused");
    if (event.end !== "unlocked") continue;
    findings.count("releases");
    const name = nameOf(event);
    const told = `${name}, token ${event.token}, "${event.reason}"`;
    for (const grant of grants.get(name) ?? []) {
      if (grant.token === event.token && grant.owner !== event.owner) {
        findings.violation(`${told}: ended the grant of ${grant.owner}, says ${event.owner}`);
      }
      const isBefore = grant.atMs !== null && grant.atMs < event.sentMs;
      if (grant.token > event.token && isBefore) {
        findings.violation(`${told}: token ${grant.token} was told before it was asked for`);
      }
    }
    const key = `${name} ${event.token}`;
    if (ended.has(key)) findings.violation(`${told}: the grant was ended before`);
    ended.set(key, event);
  }
  for (const event of events) {
    if (event.kind !== "change") continue;
    const forced = ended.get(`${nameOf(event)} ${event.token}`);
    if (forced?.atMs === undefined || forced.atMs === null || event.sentMs <= forced.atMs) continue;
    findings.count("changes after");
    if (!event.isDone) continue;
    findings.violation(`${nameOf(event)}, token ${event.token}: changed after it was ended`);
  }
  return findings.verdict();
}
