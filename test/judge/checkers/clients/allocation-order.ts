/**
 * Property S7: if one call's answer was received before another call was sent, the later one's values are larger, also
 * across leader changes and through different nodes.
 *
 * Invariants: 1. Only the first attempt of a key counts: its later ones may replay. 2. Allocations between which an
 * incarnation may have begun are not compared.
 */
import type { Attempt, History } from "../../history.js";
import {
  type Allocated,
  allocatedBy,
  byObject,
  endOrder,
  mayChangeIncarnation,
} from "../intervals.js";
import { Findings, type Verdict } from "../verdict.js";

export function checkAllocationOrder(history: History, minimum = 100): Verdict {
  const findings = new Findings("order of allocations", { compared: minimum });
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("sequence ")) checkSequence(findings, object, attempts);
  }
  return findings.verdict();
}

interface Moment {
  readonly order: number;
  readonly attempt: Attempt;
  readonly isCall: boolean;
}

function checkSequence(findings: Findings, object: string, attempts: readonly Attempt[]): void {
  const moments: Moment[] = [];
  const seenKeys = new Set<string>();
  const counted = new Map<Attempt, Allocated>();
  for (const attempt of attempts) {
    if (mayChangeIncarnation(attempt)) addMoments(moments, attempt);
    const { operation } = attempt;
    const key = operation.kind === "allocate" ? (operation.idempotencyKey?.trim() ?? "") : "";
    const isFirst = key === "" || !seenKeys.has(key);
    if (key !== "") seenKeys.add(key);
    const allocated = allocatedBy(attempt);
    if (allocated === null || !isFirst) continue;
    counted.set(attempt, allocated);
    addMoments(moments, attempt);
  }
  moments.sort((a, b) => a.order - b.order);
  sweep(findings, object, moments, counted);
}

function addMoments(moments: Moment[], attempt: Attempt): void {
  moments.push({ order: attempt.callOrder, attempt, isCall: true });
  const end = endOrder(attempt);
  if (end < Infinity) moments.push({ order: end, attempt, isCall: false });
}

function sweep(
  findings: Findings,
  object: string,
  moments: readonly Moment[],
  counted: ReadonlyMap<Attempt, Allocated>,
): void {
  let openChanges = 0;
  let lastChange = 0;
  let highest: Allocated | null = null;
  const floors = new Map<Attempt, Allocated | null>();
  for (const { order, attempt, isCall } of moments) {
    const allocated = counted.get(attempt);
    if (allocated === undefined) {
      openChanges += isCall ? 1 : -1;
      lastChange = order;
      highest = null;
    } else if (isCall) {
      floors.set(attempt, highest);
    } else {
      const floor: Allocated | null = floors.get(attempt) ?? null;
      floors.delete(attempt);
      if (openChanges > 0 || attempt.callOrder < lastChange) continue;
      if (floor !== null) {
        findings.count("compared");
        if (allocated.result.start <= floor.result.end) {
          const text = `${object}: ${allocated.result.start} after ${floor.result.end} was received`;
          findings.violation(text, [floor.attempt, attempt]);
        }
      }
      if (highest === null || allocated.result.end > highest.result.end) highest = allocated;
    }
  }
}
