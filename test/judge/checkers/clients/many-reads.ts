/**
 * Reads of many keys as reads of each key in their scope, for the checkers that look at one key at a time.
 *
 * A scan of several pages considers every key in exactly one of them. Invariants: 1. A key that is shown was read between
 * call and answer of its page. 2. A key that is not shown was considered, and not found, in the page whose stretch it
 * lies in; between two pages nobody knows in which of both. 3. What a scan that was not read to its end, or that covers
 * an unknown part of the cluster, does not show says nothing.
 */
import { compareText } from "../../../../src/base/bytes.js";
import type { Attempt, History, KvManyReadOperation, KvManyReadResult } from "../../history.js";

/** A read of many keys that was answered. */
export interface ManyRead {
  readonly attempt: Attempt;
  readonly operation: KvManyReadOperation;
  readonly result: KvManyReadResult;
}

const KINDS: ReadonlySet<string> = new Set(["kv-bucket", "kv-scan", "kv-scan-local", "kv-range"]);

export function isManyRead(attempt: Attempt): boolean {
  return KINDS.has(attempt.operation.kind);
}

/** The attempt as an answered read of many keys; null for everything else. */
export function manyReadOf(attempt: Attempt): ManyRead | null {
  if (!isManyRead(attempt) || attempt.outcome?.kind !== "ok") return null;
  const result = attempt.outcome.result as KvManyReadResult;
  if (result.type !== "Got") return null;
  return { attempt, operation: attempt.operation as KvManyReadOperation, result };
}

/** Answered reads of many keys, the pages of one scan together and in their order. */
export function scansOf(history: History): ManyRead[][] {
  const scans: ManyRead[][] = [];
  const byScan = new Map<number, ManyRead[]>();
  for (const attempt of history.attempts) {
    const read = manyReadOf(attempt);
    if (read === null) continue;
    const { page } = read.operation;
    if (page === undefined) {
      scans.push([read]);
      continue;
    }
    const known = byScan.get(page.scan);
    if (known === undefined) {
      const pages = [read];
      byScan.set(page.scan, pages);
      scans.push(pages);
    } else if (known.length === page.number) known.push(read);
  }
  return scans;
}

/** True when the scan was read to its end, and says so. */
export function isWhole(pages: readonly ManyRead[]): boolean {
  const last = pages.at(-1);
  if (last === undefined || last.operation.kind === "kv-scan-local") return false;
  return last.operation.page === undefined || last.result.nextCursor === null;
}

/** K12, K15, K16: whether `key` belongs to what is read. */
export function isInScope(operation: KvManyReadOperation, key: string): boolean {
  const { kind, prefix, page } = operation;
  if (kind === "kv-scan" || kind === "kv-scan-local") return key.startsWith(prefix);
  const slash = key.lastIndexOf("/");
  if ((slash < 0 ? key : key.slice(0, slash)) !== prefix) return false;
  if (page === undefined) return true;
  const { startKey, startInclusive, endKey, endInclusive } = page;
  if (startKey !== null) {
    const order = compareText(key, startKey);
    if (order < 0 || (order === 0 && !startInclusive)) return false;
  }
  if (endKey === null) return true;
  const order = compareText(key, endKey);
  return order < 0 || (order === 0 && endInclusive);
}

/** The history with each read of many keys replaced by a read of every key that it says something of. */
export function withManyReads(history: History): History {
  const scans = scansOf(history);
  const attempts = history.attempts.filter((attempt) => !isManyRead(attempt));
  if (scans.length === 0) return { ...history, attempts };
  const keys = { persistent: new Set<string>(), ephemeral: new Set<string>() };
  for (const { operation } of history.attempts) {
    if ("key" in operation)
      keys[operation.ephemeral ? "ephemeral" : "persistent"].add(operation.key);
  }
  for (const pages of scans) {
    const { ephemeral } = (pages[0] as ManyRead).operation;
    addReads(attempts, pages, keys[ephemeral ? "ephemeral" : "persistent"]);
  }
  return { ...history, attempts };
}

function addReads(attempts: Attempt[], pages: readonly ManyRead[], known: Iterable<string>): void {
  const shown = new Set<string>();
  for (const { attempt, operation, result } of pages) {
    for (const { key, value, revision, isTombstone } of result.items) {
      shown.add(key);
      if (isTombstone === true) continue;
      const got = { type: "Got", value, revision } as const;
      attempts.push(readOf(key, operation.ephemeral, attempt, attempt, got));
    }
  }
  const [first] = pages;
  if (first === undefined || first.operation.kind === "kv-scan-local") return;
  const { operation } = first;
  for (const key of known) {
    if (shown.has(key) || !isInScope(operation, key)) continue;
    const stretch = consideredIn(pages, key);
    if (stretch === null) continue;
    const nothing = { type: "DoesNotExist", value: null, revision: 0n } as const;
    attempts.push(readOf(key, operation.ephemeral, stretch.from, stretch.to, nothing));
  }
}

function readOf(
  key: string,
  ephemeral: boolean,
  from: Attempt,
  to: Attempt,
  result: { type: "Got" | "DoesNotExist"; value: string | null; revision: bigint },
): Attempt {
  return {
    ...to,
    callOrder: from.callOrder,
    callMs: from.callMs,
    operation: { kind: "kv-get", key, ephemeral, expiresMs: 0, revision: -1n },
    outcome: { kind: "ok", result },
  };
}

/** The pages in one of which a key that was not shown was considered; null when it was in none. */
function consideredIn(
  pages: readonly ManyRead[],
  key: string,
): { readonly from: Attempt; readonly to: Attempt } | null {
  for (const [at, page] of pages.entries()) {
    const { items } = page.result;
    const first = items[0];
    const last = items.at(-1);
    const isEnd = at === pages.length - 1 && isWhole(pages);
    const isHere = isEnd || (last !== undefined && compareText(key, last.key) < 0);
    if (!isHere) continue;
    const isInside = first !== undefined && compareText(key, first.key) > 0;
    let from = at;
    // A page without items says nothing of where it began.
    while (!isInside && from > 0) {
      from--;
      if ((pages[from] as ManyRead).result.items.length > 0) break;
    }
    return { from: (pages[from] as ManyRead).attempt, to: page.attempt };
  }
  return null;
}
