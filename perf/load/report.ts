/**
 * Tables and medians for the load measurements, and the facts of the machine that belong beside
 * every figure.
 */
import { cpus, loadavg, totalmem } from "node:os";

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Prints rows as a table with one header row; numbers to the right. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((cell, column) =>
    Math.max(cell.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ");
  console.log(line(header));
  console.log(widths.map((width) => "-".repeat(width)).join("  "));
  for (const row of rows) console.log(line(row));
}

export function printMachine(): void {
  const processor = cpus()[0]?.model.trim() ?? "unknown processor";
  console.log(
    `machine: ${cpus().length} x ${processor}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Node ${process.version}, ` +
      `load ${loadavg()
        .map((value) => value.toFixed(2))
        .join(" ")}`,
  );
}

export function thousands(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** Durations of the load phases, shortened by SVC_PERF_SECONDS. */
export function phaseSeconds(usual: number): number {
  const wanted = Number(process.env["SVC_PERF_SECONDS"] ?? usual);
  return Number.isFinite(wanted) && wanted > 0 ? wanted : usual;
}
