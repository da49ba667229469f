/**
 * When which term had its leader, as the world saw it, so that an answer about ephemeral things can be told by the
 * leadership that gave it.
 *
 * A leadership is over at the latest when the next one serves: nothing that it answers takes effect later (C2).
 * Leaderships that took over what the one before had in its memory are of one era with it: their answers have the term
 * of the first of them. Invariant: an answer is given a term only when no leadership of another era, and for
 * allocations no other leadership at all, can have decided it.
 */
import {
  hashPartition,
  keySpaceHashText,
  keySpaceOf,
  lockHashText,
  sequenceHashText,
} from "../../../../src/base/routing.js";
import type { Attempt, History } from "../../history.js";
import type { Operation } from "../../operation.js";
import { endOrder } from "../intervals.js";

interface Leadership {
  readonly term: number;
  readonly fromMs: number;
  /** Term of the first leadership with this memory. */
  readonly era: number;
}

export class Leaderships {
  private readonly groups = new Map<number, Leadership[]>();

  /** Leaderships that took over the memory of the one before. */
  inherited = 0;

  /**
   * The leader of `term` serves `group` from `fromMs` on. Terms of a group may be told again. `inherits`: it took over
   * what the leader of the term before had in its memory.
   */
  serves(group: number, term: number, fromMs: number, inherits = false): void {
    let known = this.groups.get(group);
    if (known === undefined) this.groups.set(group, (known = []));
    const last = known.at(-1);
    if (last !== undefined && last.term >= term) return;
    if (inherits) this.inherited++;
    const era = inherits && last?.term === term - 1 ? last.era : term;
    known.push({ term, fromMs, era });
  }

  /** The term of the one leadership that there was between the two; null when there were several or none. */
  only(group: number, fromMs: number, toMs: number): number | null {
    const last = this.latest(group, toMs);
    return last === undefined || last.fromMs > fromMs ? null : last.term;
  }

  /** The era of all leaderships that there were between the two; null when there were several or none. */
  onlyEra(group: number, fromMs: number, toMs: number): number | null {
    const first = this.latest(group, fromMs);
    const last = this.latest(group, toMs);
    return first !== undefined && first.era === last?.era ? first.era : null;
  }

  private latest(group: number, atMs: number): Leadership | undefined {
    const known = this.groups.get(group) ?? [];
    let low = 0;
    let high = known.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((known[middle] as Leadership).fromMs <= atMs) low = middle + 1;
      else high = middle;
    }
    return known[low - 1];
  }
}

/** Where to ask who led while `operation` ran; null for those of which nobody wants to know. */
function hashTextOf(operation: Operation): string | null {
  if (operation.kind === "allocate") return sequenceHashText(operation.name);
  if (!("ephemeral" in operation) || !operation.ephemeral) return null;
  // A scan asks many partitions: none of them answers alone.
  if (operation.kind === "kv-scan" || operation.kind === "kv-scan-local") return null;
  if ("resource" in operation) return lockHashText(operation.resource);
  return keySpaceHashText("key" in operation ? keySpaceOf(operation.key) : operation.prefix);
}

/** "" for what is in none. */
function spaceOf(operation: Operation): string {
  if ("key" in operation) return keySpaceOf(operation.key);
  return "prefix" in operation ? operation.prefix : "";
}

/** Key spaces that somebody asked to split: what is in them may lie elsewhere than by its hash. */
export function splitSpaces({ attempts }: History): ReadonlySet<string> {
  const spaces = new Set<string>();
  for (const { operation } of attempts) {
    if (operation.kind === "split-range") spaces.add(operation.keySpace);
  }
  return spaces;
}

/**
 * The history with the terms of answers about ephemeral locks and keys, and of allocations, where
 * they are certain.
 */
export function withLeaderships(
  history: History,
  leaderships: Leaderships,
  partitions: number,
  /** Key spaces that were moved: what was ephemeral in them went with each move (K19). */
  moved: ReadonlySet<string> = new Set(),
): History {
  const attempts = history.attempts.map((attempt): Attempt => {
    const { operation, returnMs } = attempt;
    if (returnMs === null || endOrder(attempt) === Infinity) return attempt;
    const hashText = hashTextOf(operation);
    if (hashText === null || moved.has(spaceOf(operation))) return attempt;
    const group = hashPartition(hashText, partitions);
    const { callMs } = attempt;
    const term =
      operation.kind === "allocate"
        ? leaderships.only(group, callMs, returnMs)
        : leaderships.onlyEra(group, callMs, returnMs);
    return { ...attempt, term };
  });
  return { ...history, attempts };
}
