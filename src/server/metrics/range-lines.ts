/**
 * The metrics of key ranges that are read at each scrape: how many there are, and what became of
 * moves.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its HELP and TYPE before its samples.
 */
import {
  FROZEN_SECONDS_BOUNDS,
  PHASE_SECONDS_BOUNDS,
  type RangeFacts,
} from "../../host/requests/range-tally.js";
import { family, histogramLines } from "./exposition.js";

/** Partitions whose keys are told at most, those with most keys: a series each. */
const PARTITIONS_MAX = 64;

/** Ranges of all key spaces, by the mode in which this node routes their key space. */
export type RangesByMode = Readonly<Record<"Hash" | "KeyRange", number>>;

function frozenLines(lines: string[], facts: RangeFacts): void {
  const name = "svc_range_frozen_seconds";
  family(lines, name, "histogram", "How long keys were served by nobody in a move from here");
  const { frozenCounts, frozenSecondsSum } = facts;
  histogramLines(lines, name, "", FROZEN_SECONDS_BOUNDS, frozenCounts, frozenSecondsSum);
}

function phaseLines(lines: string[], { phases }: RangeFacts): void {
  const name = "svc_range_move_phase_seconds";
  family(lines, name, "histogram", "How long the steps of moves from here took");
  for (const [phase, { counts, sum }] of phases) {
    histogramLines(lines, name, `phase="${phase}"`, PHASE_SECONDS_BOUNDS, counts, sum);
  }
}

function keyLines(lines: string[], { keys }: RangeFacts): void {
  const name = "svc_range_keys";
  family(lines, name, "gauge", "Live keys in ranges of partitions led here, as counted last");
  const most = [...keys].sort(([, a], [, b]) => b - a).slice(0, PARTITIONS_MAX);
  for (const [partition, count] of most) lines.push(`${name}{partition="${partition}"} ${count}`);
}

export function rangeLines(lines: string[], facts: RangeFacts, byMode: RangesByMode): void {
  const ranges = "svc_ranges";
  family(lines, ranges, "gauge", "Key ranges, by how this node routes their key space");
  for (const [mode, count] of Object.entries(byMode)) {
    lines.push(`${ranges}{key_space_mode="${mode}"} ${count}`);
  }
  const moves = "svc_range_moves_total";
  family(lines, moves, "counter", "Moves of key ranges that ended while this node led meta");
  for (const { kind, result, count } of facts.ended) {
    lines.push(`${moves}{kind="${kind}",result="${result}"} ${count}`);
  }
  const attempts = "svc_range_attempts_total";
  family(lines, attempts, "counter", "Attempts of moves that were given up here, by why");
  for (const [reason, count] of facts.attempts) {
    lines.push(`${attempts}{reason="${reason}"} ${count}`);
  }
  frozenLines(lines, facts);
  phaseLines(lines, facts);
  keyLines(lines, facts);
  const purges = "svc_range_purges_left";
  family(lines, purges, "gauge", "Intervals that left from here and are still being deleted");
  lines.push(`${purges} ${facts.purges}`);
  const counters = [
    [
      "svc_range_moved_keys_total",
      "Keys that moves from here copied, repeats too",
      facts.movedKeys,
    ],
    ["svc_range_moved_bytes_total", "Bytes of those copies", facts.movedBytes],
    [
      "svc_range_verify_failures_total",
      "Copies that differed from what was copied; an alarm",
      facts.verifyFailures,
    ],
  ] as const;
  for (const [name, help, value] of counters) {
    family(lines, name, "counter", help);
    lines.push(`${name} ${value}`);
  }
  const refused = "svc_range_splits_refused_total";
  family(lines, refused, "counter", "Splits that were due and not begun, at each look, by why");
  lines.push(`${refused}{reason="partitions"} ${facts.refusedSplits}`);
}
