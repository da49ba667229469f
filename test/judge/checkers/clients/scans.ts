/**
 * Property K13, K15, K16: what reads of many keys show. Rows are in order, in scope, none twice; each was written, and
 * had its value at some time during the read; a key that nobody touched from before the read to its end is in it; and the
 * rows of one bucket or of one page of a range stood together at one instant.
 *
 * Judged on persistent keys, whose values are unique but for repeats of one ask. Invariants: 1. A write is over only when another one that was called
 * after its answer was answered itself. 2. A write without an answer may happen at any later time.
 */
import { compareText } from "../../../../src/base/bytes.js";
import type { Attempt, History, KvManyReadOperation, KvResult } from "../../history.js";
import { endOrder, mayHaveHappened } from "../intervals.js";
import { type ManyRead, isInScope, isWhole, scansOf } from "./many-reads.js";
import { Findings, type Verdict } from "../verdict.js";

export interface ScanMinimum {
  readonly pages: number;
  readonly rows: number;
  readonly untouched: number;
}

export function checkScans(
  history: History,
  minimum: ScanMinimum = { pages: 20, rows: 50, untouched: 20 },
): Verdict {
  const findings = new Findings("scans", { ...minimum });
  const keys = keysOf(history);
  for (const pages of scansOf(history)) {
    const [first] = pages;
    if (first === undefined) continue;
    findings.count("scans");
    findings.count("pages", pages.length);
    if (pages.length > 1) findings.count("scans of several pages");
    checkShape(findings, pages);
    if (first.operation.ephemeral) continue;
    for (const page of pages) checkRows(findings, page, keys);
    if (isWhole(pages)) checkUntouched(findings, pages, first.operation, keys);
  }
  return findings.verdict();
}

/** All attempts to write one value to one key. */
interface Writing {
  readonly attempt: Attempt;
  /** When it was written at the earliest, and at the latest. */
  readonly fromOrder: number;
  readonly toOrder: number;
}

/** What happened to one persistent key. */
class KeyChanges {
  private readonly changes: Attempt[] = [];
  private readonly writings = new Map<string, Writing>();
  /** Order of the earliest answer among the changes from here on. */
  private earliestEnd: number[] = [];
  /** Order of the latest answer among the changes up to here. */
  private latestEnd: number[] = [];

  add(attempt: Attempt): void {
    const { operation, outcome } = attempt;
    if (outcome?.kind === "ok") {
      const { type } = outcome.result as KvResult;
      if (type !== "Set" && type !== "Deleted" && type !== "Extended") return;
    }
    this.changes.push(attempt);
    if (operation.kind !== "kv-set" || operation.value === null) return;
    const known = this.writings.get(operation.value);
    const fromOrder = Math.min(attempt.callOrder, known?.fromOrder ?? Infinity);
    const toOrder = Math.max(endOrder(attempt), known?.toOrder ?? 0);
    this.writings.set(operation.value, { attempt, fromOrder, toOrder });
  }

  seal(): void {
    const { changes } = this;
    changes.sort((a, b) => a.callOrder - b.callOrder);
    let latest = 0;
    this.latestEnd = changes.map((change) => (latest = Math.max(latest, endOrder(change))));
    let earliest = Infinity;
    this.earliestEnd = changes.map(() => 0);
    for (let at = changes.length - 1; at >= 0; at--) {
      const change = changes[at] as Attempt;
      // Other changes of a key leave its value as it is.
      const { kind } = change.operation;
      if (kind === "kv-set" || kind === "kv-delete")
        earliest = Math.min(earliest, endOrder(change));
      this.earliestEnd[at] = earliest;
    }
  }

  writing(value: string): Writing | null {
    return this.writings.get(value) ?? null;
  }

  /** When the value was certainly gone; Infinity when that is not certain. */
  overAt({ toOrder }: Writing): number {
    return this.earliestEnd[this.calledBefore(toOrder)] ?? Infinity;
  }

  /** The write whose value the key certainly has from `fromOrder` to `toOrder`; null when there is none. */
  settled(fromOrder: number, toOrder: number): Attempt | null {
    const count = this.calledBefore(toOrder);
    const write = this.changes[count - 1];
    if (write === undefined || write.operation.kind !== "kv-set") return null;
    if (write.outcome?.kind !== "ok" || write.operation.expiresMs !== 0) return null;
    const isAlone = count < 2 || (this.latestEnd[count - 2] as number) < write.callOrder;
    return isAlone && endOrder(write) < fromOrder ? write : null;
  }

  /** Number of changes that were called before `order`. */
  private calledBefore(order: number): number {
    let low = 0;
    let high = this.changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.changes[middle] as Attempt).callOrder < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function keysOf(history: History): Map<string, KeyChanges> {
  const keys = new Map<string, KeyChanges>();
  for (const attempt of history.attempts) {
    const { operation } = attempt;
    if (!("key" in operation) || operation.ephemeral || !mayHaveHappened(attempt)) continue;
    if (operation.kind === "kv-get" || operation.kind === "kv-exists") continue;
    let changes = keys.get(operation.key);
    if (changes === undefined) keys.set(operation.key, (changes = new KeyChanges()));
    changes.add(attempt);
  }
  for (const changes of keys.values()) changes.seal();
  return keys;
}

function checkShape(findings: Findings, pages: readonly ManyRead[]): void {
  let last: string | null = null;
  for (const { attempt, operation, result } of pages) {
    const limit = operation.page?.limit ?? 0;
    if (limit > 0 && result.items.length > limit) {
      findings.violation(`${result.items.length} rows in a page of ${limit}`, [attempt]);
    }
    for (const { key } of result.items) {
      findings.count("rows");
      if (!isInScope(operation, key)) findings.violation(`${key} is out of scope`, [attempt]);
      if (last !== null && compareText(key, last) <= 0) {
        findings.violation(`${key} after ${last}`, [attempt]);
      }
      last = key;
    }
  }
}

/** Each row had its value during the read; those of one instant had theirs together. */
function checkRows(
  findings: Findings,
  { attempt, operation, result }: ManyRead,
  keys: ReadonlyMap<string, KeyChanges>,
): void {
  const isInstant = operation.kind === "kv-bucket" || operation.kind === "kv-range";
  let latestStart = attempt.callOrder;
  let earliestOver = endOrder(attempt);
  let starter: Attempt | null = null;
  for (const { key, value, isTombstone } of result.items) {
    if (value === null || isTombstone === true) continue;
    const changes = keys.get(key);
    const writing = changes?.writing(value) ?? null;
    if (changes === undefined || writing === null) {
      findings.violation(`${key} shows ${value}, which nobody wrote`, [attempt]);
      continue;
    }
    findings.count("rows traced");
    const overAt = changes.overAt(writing);
    if (writing.fromOrder > endOrder(attempt) || overAt < attempt.callOrder) {
      const events = [writing.attempt, attempt];
      findings.violation(`${key} shows a value that it had at another time`, events);
    }
    if (writing.fromOrder > latestStart) {
      latestStart = writing.fromOrder;
      starter = writing.attempt;
    }
    earliestOver = Math.min(earliestOver, overAt);
  }
  if (!isInstant) return;
  findings.count("views");
  if (latestStart > earliestOver) {
    const events = starter === null ? [attempt] : [starter, attempt];
    findings.violation("rows of one view that never stood together", events);
  }
}

/** K15: who exists unchanged during the whole scan is in it. */
function checkUntouched(
  findings: Findings,
  pages: readonly ManyRead[],
  operation: KvManyReadOperation,
  keys: ReadonlyMap<string, KeyChanges>,
): void {
  const first = (pages[0] as ManyRead).attempt;
  const last = (pages.at(-1) as ManyRead).attempt;
  const shown = new Map(
    pages.flatMap(({ result }) => result.items.map((item) => [item.key, item])),
  );
  for (const [key, changes] of keys) {
    if (!isInScope(operation, key)) continue;
    const write = changes.settled(first.callOrder, endOrder(last));
    if (write === null || write.operation.kind !== "kv-set") continue;
    findings.count("untouched");
    const item = shown.get(key);
    if (item === undefined) {
      findings.violation(`${key} is missing, and nobody touched it`, [write, first, last]);
    } else if (item.value !== write.operation.value) {
      findings.violation(`${key} shows another value than its last`, [write, first, last]);
    }
  }
}
