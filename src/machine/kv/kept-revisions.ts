/**
 * Which older revisions of a key are kept, as ascending runs. Pure.
 *
 * Revisions set with SET_NO_REVISION, tombstones and expired ones leave holes between runs.
 * Invariants: 1. Runs ascend and do not touch. 2. At most RUNS_MAX runs: with more holes than that
 * the oldest runs are given up, so that the latest row stays small whatever the number of kept
 * revisions.
 */
import { assert } from "../../base/assert.js";
import type { RevisionRun } from "./kv-row.js";

const RUNS_MAX = 256;

const NONE: readonly number[] = [];

/** `runs` with `revision`, which is above all of them. */
export function keepRevision(
  runs: readonly RevisionRun[],
  revision: number,
): readonly RevisionRun[] {
  const last = runs[runs.length - 1];
  if (last === undefined) return [{ first: revision, count: 1 }];
  const end = last.first + last.count;
  assert(end <= revision, "revisions are kept in ascending order");
  if (end !== revision) return [...runs, { first: revision, count: 1 }];
  const longer = { first: last.first, count: last.count + 1 };
  // Nearly every key has one run.
  return runs.length === 1 ? [longer] : [...runs.slice(0, -1), longer];
}

/** The result of trimming. */
export interface TrimmedRevisions {
  readonly kept: readonly RevisionRun[];
  readonly dropped: readonly number[];
}

/** Drops the oldest revisions until `keepMax` are left, at most `dropsMax` of them in one go. */
export function trimRevisions(
  runs: readonly RevisionRun[],
  keepMax: number,
  dropsMax: number,
): TrimmedRevisions {
  let excess = -keepMax;
  for (const run of runs) excess += run.count;
  // Giving up the oldest runs keeps the list short, however many holes there are.
  for (let at = 0, lost = 0; at < runs.length - RUNS_MAX; at++) {
    lost += (runs[at] as RevisionRun).count;
    excess = Math.max(excess, lost);
  }
  if (excess <= 0) return { kept: runs, dropped: NONE };
  const [oldest] = runs;
  if (excess === 1 && dropsMax > 0 && oldest !== undefined && oldest.count > 1) {
    // The step of every write to a key whose history is full.
    const rest = { first: oldest.first + 1, count: oldest.count - 1 };
    const kept = runs.length === 1 ? [rest] : [rest, ...runs.slice(1)];
    return { kept, dropped: [oldest.first] };
  }
  let left = Math.min(excess, dropsMax);
  const dropped: number[] = [];
  const kept: RevisionRun[] = [];
  for (const run of runs) {
    const taken = Math.min(run.count, left);
    for (let at = 0; at < taken; at++) dropped.push(run.first + at);
    left -= taken;
    if (taken < run.count) kept.push({ first: run.first + taken, count: run.count - taken });
  }
  return { kept, dropped };
}

/** True when `revision` is among them. */
export function isKept(runs: readonly RevisionRun[], revision: number): boolean {
  return runs.some((run) => run.first <= revision && revision < run.first + run.count);
}
