/**
 * Who holds which locks, the end of a grant by force, and who did that.
 *
 * Invariants: 1. A list is read to its end, or to the limit. 2. A doubt is never printed as a
 * release or as a refusal.
 */
import type { ForcedRelease, ListedLock, LockAuditRecord } from "../../client/mod.js";
import {
  INVALID_INPUT_REMARK,
  durabilityOf,
  outcome,
  type Outcome,
  type RunContext,
  type RunTable,
} from "../invocation/context.js";
import { doubt, isRefusal } from "../invocation/failures.js";
import { ownerText, tableLines, timeText } from "../terminal/format.js";
import { visibleText } from "../terminal/text-width.js";
import type { OptionValues } from "../commands/values.js";
import { DOES_NOT_EXIST, INVALID_INPUT, INVALID_OWNER, UNLOCKED } from "./lock-types.js";

const REFUSALS: Readonly<Record<number, string>> = {
  [INVALID_INPUT]: "InvalidInput",
  [DOES_NOT_EXIST]: "LockDoesNotExist",
  [INVALID_OWNER]: "InvalidOwner",
};

/** Items up to the limit; what the service does not accept is a refusal with none. */
async function read<Item>(
  items: AsyncIterable<Item>,
  limit: number | null,
): Promise<{ readonly found: readonly Item[]; readonly isRefused: boolean }> {
  const found: Item[] = [];
  try {
    for await (const item of items) {
      found.push(item);
      if (limit !== null && found.length >= limit) break;
    }
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return { found, isRefused: true };
  }
  return { found, isRefused: false };
}

function orDash(bytes: Uint8Array | null): string {
  return bytes === null ? "-" : visibleText(ownerText(bytes));
}

function textOrNull(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : ownerText(bytes);
}

function lockRow(lock: ListedLock): string[] {
  return [
    visibleText(lock.resource),
    orDash(lock.owner),
    String(lock.fencingToken),
    lock.held ? `${(lock.expiresInMs / 1000).toFixed(1)} s` : "-",
    String(lock.waiters),
    orDash(lock.note),
  ];
}

async function listLocks(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const limit = values.number("--limit");
  const options = {
    ...context.calling(),
    prefix: values.text("--prefix") ?? "",
    heldOnly: values.flag("--held"),
    durability: durabilityOf(values),
  };
  const pageLimit = limit === null || limit > 10_000 ? {} : { limit };
  const { found, isRefused } = await read(client.locks.list({ ...options, ...pageLimit }), limit);
  const header = ["Resource", "Owner", "Token", "Expires in", "Waiters", "Note"];
  const lines =
    found.length === 0
      ? ["No locks found."]
      : tableLines(header, found.map(lockRow), context.columns);
  const document = found.map(({ owner, note, expires, ...lock }) => ({
    resource: lock.resource,
    owner: textOrNull(owner),
    fencingToken: lock.fencingToken,
    held: lock.held,
    expires: { ...expires },
    expiresInMs: lock.expiresInMs,
    waiters: lock.waiters,
    note: textOrNull(note),
  }));
  return outcome(!isRefused, lines, document, isRefused ? INVALID_INPUT_REMARK : null);
}

function typeOf(released: ForcedRelease | null): number {
  if (released === null) return INVALID_INPUT;
  if (released.unlocked) return UNLOCKED;
  return released.refusal === "not-held" ? DOES_NOT_EXIST : INVALID_OWNER;
}

async function forceUnlock(values: OptionValues, context: RunContext): Promise<Outcome> {
  const resource = values.requiredText("--force-unlock");
  const client = await context.client();
  const step = {
    ...context.calling(),
    fencingToken: BigInt(values.int64("--fencing-token") ?? 0n),
    reason: values.requiredText("--reason"),
    dropWaiters: values.flag("--drop-waiters"),
    durability: durabilityOf(values),
  };
  const released = await client.locks.forceUnlock(resource, step).catch((error: unknown) => {
    if (!isRefusal(error)) throw error;
    return null;
  });
  if (released !== null && released.doubtful && !released.unlocked) {
    throw doubt(`${resource}: not held by that grant now; --lock-audit tells who released it`);
  }
  const type = typeOf(released);
  const { owner, fencingToken, auditId } = released ?? {
    owner: null,
    fencingToken: 0n,
    auditId: 0,
  };
  const isDone = type === UNLOCKED;
  const line = isDone
    ? `f${fencingToken} unlocked ${orDash(owner)} audit ${auditId}`
    : `not unlocked: ${REFUSALS[type] ?? type}`;
  const told = { resource, type, fencingToken, owner: textOrNull(owner), auditId };
  return outcome(isDone, [line], told, released === null ? INVALID_INPUT_REMARK : null);
}

function auditRow(row: LockAuditRecord): string[] {
  return [
    timeText(BigInt(row.stamp.l)),
    visibleText(row.resource),
    String(row.fencingToken),
    orDash(row.owner),
    visibleText(row.actor),
    visibleText(row.reason),
  ];
}

async function lockAudit(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const limit = values.number("--limit");
  const pageLimit = limit === null || limit > 10_000 ? {} : { limit };
  const options = { ...context.calling(), prefix: values.text("--prefix") ?? "", ...pageLimit };
  const { found, isRefused } = await read(client.locks.audit(options), limit);
  const header = ["Time", "Resource", "Token", "Owner", "By", "Reason"];
  const lines =
    found.length === 0
      ? ["No lock was released by force."]
      : tableLines(header, found.map(auditRow), context.columns);
  const document = found.map((row) => ({
    auditId: row.auditId,
    partitionId: row.partitionId,
    resource: row.resource,
    durability: row.durability === "persistent" ? 1 : 0,
    owner: ownerText(row.owner),
    fencingToken: row.fencingToken,
    stamp: { ...row.stamp },
    actor: row.actor,
    reason: row.reason,
    requestId: row.requestId,
    nodeId: row.nodeId,
    waitersDropped: row.waitersDropped,
  }));
  return outcome(!isRefused, lines, document, isRefused ? INVALID_INPUT_REMARK : null);
}

export const LOCK_ADMIN_RUN: RunTable = {
  "--list-locks": listLocks,
  "--force-unlock": forceUnlock,
  "--lock-audit": lockAudit,
};
