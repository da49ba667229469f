/**
 * The metrics of key ranges that are read at each scrape: how many there are, and what became of
 * moves.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its HELP and TYPE before its samples.
 */
import { FROZEN_SECONDS_BOUNDS, type RangeFacts } from "../../host/requests/range-tally.js";
import { family } from "./metric-lines.js";

/** Ranges of all key spaces, by the mode in which this node routes their key space. */
export type RangesByMode = Readonly<Record<"Hash" | "KeyRange", number>>;

function frozenLines(lines: string[], facts: RangeFacts): void {
  const name = "svc_range_frozen_seconds";
  family(lines, name, "histogram", "How long keys were served by nobody in a move from here");
  let total = 0;
  for (const [at, count] of facts.frozenCounts.entries()) {
    total += count;
    lines.push(`${name}_bucket{le="${FROZEN_SECONDS_BOUNDS[at] ?? "+Inf"}"} ${total}`);
  }
  lines.push(`${name}_sum ${facts.frozenSecondsSum}`, `${name}_count ${total}`);
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
