/** The checkers of forced releases fire, pass, and notice when they saw nothing. */
import t from "tap";
import { checkAuditExact } from "../../checkers/locks/audit-exact.js";
import { checkForceCompares } from "../../checkers/locks/force-compares.js";
import type { AuditRow, Change, Forced, Grant, LockEvent } from "../../checkers/locks/forced.js";

const lock = { resource: "r", durability: 1 };

function grant(token: bigint, owner: string, atMs: number): Grant {
  return { kind: "grant", ...lock, owner, token, sentMs: atMs - 1, atMs };
}

function forced(token: bigint, atMs: number | null, more: Partial<Forced> = {}): Forced {
  const told = { ...lock, token, reason: `${token}`, sentMs: (atMs ?? 10) - 1, atMs };
  return { kind: "forced", ...told, end: "unlocked", owner: "a", auditId: 1, ...more };
}

function change(token: bigint, sentMs: number, isDone: boolean): Change {
  return { kind: "change", ...lock, token, isDone, sentMs, atMs: sentMs + 1 };
}

function row(token: bigint, more: Partial<AuditRow> = {}): AuditRow {
  const told = { owner: "a", token, reason: `${token}`, stampMs: 5 };
  return { ...lock, auditId: 1, partitionId: 1, ...told, ...more };
}

const kinds = (...events: LockEvent[]): string => checkForceCompares(events, {}).kind;

t.test("force-compares", (t) => {
  const good = [grant(1n, "a", 1), forced(1n, 5), grant(2n, "b", 7), change(1n, 9, false)];
  t.equal(kinds(...good), "pass");
  t.equal(checkForceCompares(good).kind, "vacuous");
  t.equal(kinds(grant(1n, "a", 1), grant(2n, "b", 3), forced(1n, 9)), "fail", "a newer one");
  t.equal(kinds(grant(1n, "a", 1), grant(2n, "b", 8), forced(1n, 9)), "pass", "at the same time");
  t.equal(kinds(grant(1n, "b", 1), forced(1n, 5)), "fail", "another owner");
  t.equal(kinds(forced(1n, 5), forced(1n, 9)), "fail", "twice");
  t.equal(kinds(forced(1n, 5), change(1n, 9, true)), "fail", "it goes on");
  t.equal(kinds(forced(1n, 5), change(1n, 3, true)), "pass", "it was on its way");
  t.equal(kinds(forced(1n, null, { end: "unknown" }), change(1n, 9, true)), "pass");
  t.end();
});

t.test("audit-exact", (t) => {
  const judged = (rows: readonly AuditRow[] | null, ...events: LockEvent[]): string =>
    checkAuditExact(events, rows, {}).kind;
  t.equal(judged([row(1n)], forced(1n, 5)), "pass");
  t.equal(checkAuditExact([forced(1n, 5)], [row(1n)]).kind, "vacuous");
  t.equal(judged(null, forced(1n, 5)), "fail", "nobody tells");
  t.equal(judged([], forced(1n, 5)), "fail", "no row");
  t.equal(judged([row(1n)]), "fail", "nobody asked");
  t.equal(judged([row(1n), row(1n)], forced(1n, 5)), "fail", "twice");
  t.equal(judged([row(1n, { owner: "b" })], forced(1n, 5)), "fail", "another owner");
  t.equal(judged([row(1n, { auditId: 2 })], forced(1n, 5)), "fail", "another number");
  t.equal(judged([row(2n, { reason: "1" })], forced(1n, 5)), "fail", "another token");
  t.equal(judged([row(1n)], forced(1n, 5, { end: "refused", owner: null })), "fail", "refused");
  const lost = forced(1n, null, { end: "unknown", owner: null });
  t.equal(judged([row(1n)], lost), "pass", "nobody knew");
  t.equal(judged([], lost), "pass");
  const again = forced(1n, 9, { reason: "again", auditId: 2 });
  const two = [row(1n, { reason: "again", auditId: 2 }), row(1n)];
  t.equal(judged(two, forced(1n, 5), again), "fail", "one grant ended twice");
  const old = [row(1n, { stampMs: 4 }), row(2n, { stampMs: 5 })];
  t.equal(judged(old, forced(1n, 5), forced(2n, 9)), "fail", "not the newest first");
  const ephemeral = { durability: 0, owner: null, end: "refused" } as const;
  t.equal(judged([row(1n, { durability: 0 })], forced(1n, 5, ephemeral)), "pass", "noted before");
  t.end();
});
