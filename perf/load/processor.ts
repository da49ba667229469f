/** Processor time and memory of other processes, as the system counts them. */
import { readFileSync } from "node:fs";

/** A unit of /proc/<pid>/stat. */
const CLOCK_TICK_MS = 10;
const PAGE_BYTES = 4096;

function statOf(pid: number): readonly string[] {
  const [, rest = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  return rest.split(" ");
}

/** User and system time of these processes and their threads together (ms). */
export function processorMs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const fields = statOf(pid);
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * CLOCK_TICK_MS;
}

/** Resident memory of the largest of these processes (MiB). */
export function largestResidentMiB(pids: readonly number[]): number {
  const pages = pids.map((pid) => Number(statOf(pid)[21]));
  return (Math.max(...pages) * PAGE_BYTES) / 1024 ** 2;
}

/** Resident memory of these processes together (bytes). */
export function residentBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + Number(statOf(pid)[21]) * PAGE_BYTES, 0);
}
