/**
 * Lines of the log, and spans of traces, as figures.
 *
 * Invariants: 1. Counts only grow.
 */
import type { LogLevel } from "../../ports.js";
import { family, scalar } from "./exposition.js";

/** How many lines were made, by level, and how many of them were dropped. */
export class LogLines {
  readonly made: Record<LogLevel, number> = { debug: 0, info: 0, warn: 0, error: 0 };
  dropped = 0;
}

/** Their metrics. */
export function logLines(lines: string[], { made, dropped }: LogLines): void {
  const name = "svc_log_lines_total";
  family(lines, name, "counter", "Lines of the log, by level");
  for (const [level, count] of Object.entries(made))
    lines.push(`${name}{level="${level}"} ${count}`);
  const lost = "Lines that were dropped because nobody took them";
  scalar(lines, "svc_log_lines_dropped_total", "counter", lost, dropped);
}

/** Of the spans that were recorded here. */
export function traceLines(
  lines: string[],
  { sent, dropped }: { readonly sent: number; readonly dropped: number },
): void {
  const name = "svc_trace_spans_total";
  family(lines, name, "counter", "Spans of traced requests, by what became of them");
  lines.push(`${name}{result="sent"} ${sent}`, `${name}{result="dropped"} ${dropped}`);
}
