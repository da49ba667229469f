/**
 * Evidence that the judges of histories saw what they are to judge: operations on keys that moved while
 * they ran, buckets that lay in several ranges, and scans during which keys moved (K13, K15, C8).
 *
 * Whether what was answered is right they say themselves. Invariant: only answered attempts count.
 */
import type { History } from "../../history.js";
import { manyReadOf } from "../clients/many-reads.js";
import { Findings, type Verdict } from "../verdict.js";
import { type SeenInterval, holds } from "./seen-moves.js";

/** One move that was cut, in true time. */
export interface MadeMove extends SeenInterval {
  readonly frozenMs: number;
  readonly adoptedMs: number;
}

const MINIMUM = {
  "moved keys with calls before and after": 500,
  "calls that straddle a move": 100,
  "buckets of several ranges": 100,
  "scans through a move": 50,
};

/** `rangesOf`: in how many ranges a key space lay at a time. */
export function throughMoves(
  history: History,
  moves: readonly MadeMove[],
  rangesOf: (keySpace: string, atMs: number) => number,
  minimum: Readonly<Record<string, number>> = MINIMUM,
): Verdict {
  const findings = new Findings("reads and writes go on through moves", minimum);
  const seen = moves.map(() => new Map<string, number>());
  for (const attempt of history.attempts) {
    const { operation, callMs, returnMs, outcome } = attempt;
    if (outcome?.kind !== "ok" || returnMs === null) continue;
    const read = manyReadOf(attempt);
    if (read !== null && !read.operation.ephemeral) {
      const { kind, prefix } = read.operation;
      const isWhole = kind === "kv-bucket" || kind === "kv-range";
      if (isWhole && rangesOf(prefix, callMs) > 1) findings.count("buckets of several ranges");
      const isMoving = moves.some(
        ({ keySpace, frozenMs, adoptedMs }) =>
          keySpace.startsWith(prefix) && callMs < adoptedMs && returnMs > frozenMs,
      );
      if (isMoving) findings.count("scans through a move");
    }
    if (!("key" in operation) || operation.ephemeral) continue;
    for (const [at, move] of moves.entries()) {
      if (!holds(move, operation.key)) continue;
      if (callMs < move.adoptedMs && returnMs > move.frozenMs) {
        findings.count("calls that straddle a move");
      }
      noteSide(seen[at] as Map<string, number>, operation.key, returnMs, callMs, move);
    }
  }
  for (const keys of seen) {
    const both = [...keys.values()].filter((sides) => sides === BEFORE + AFTER).length;
    findings.count("moved keys with calls before and after", both);
  }
  return findings.verdict();
}

const BEFORE = 1;
const AFTER = 2;

function noteSide(
  keys: Map<string, number>,
  key: string,
  returnMs: number,
  callMs: number,
  { frozenMs, adoptedMs }: MadeMove,
): void {
  let sides = keys.get(key) ?? 0;
  if (returnMs <= frozenMs) sides |= BEFORE;
  if (callMs >= adoptedMs) sides |= AFTER;
  keys.set(key, sides);
}
