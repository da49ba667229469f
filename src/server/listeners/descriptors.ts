/**
 * How many client connections the process has file descriptors for.
 *
 * Invariants: 1. Log, state store, links and files always have descriptors left, whatever clients
 * open: a log that cannot open its next segment takes no writes (P-199). 2. What cannot be found
 * out does not stop a start.
 */
import { readFileSync } from "node:fs";
import { ConnectionCount } from "../../base/connections.js";
import { CONNECTIONS_MAX } from "../../base/limits.js";
import type { LoggerPort } from "../../ports.js";

/** Descriptors that are kept for everything but client connections. */
export const DESCRIPTORS_KEPT = 256;
/** A node that hardly has descriptors still lets its operator in. */
const CONNECTIONS_MIN = 16;

/**
 * The limit of open files that holds for the process, from the text of /proc/self/limits; Infinity
 * when there is none, null when the text does not say.
 */
export function openFilesLimit(text: string): number | null {
  const soft = /^Max open files\s+(\d+|unlimited)\s/m.exec(text)?.[1];
  if (soft === undefined) return null;
  return soft === "unlimited" ? Infinity : Number(soft);
}

/** The limit of this process; null where the system does not tell. */
export function descriptorLimit(): number | null {
  try {
    return openFilesLimit(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return null;
  }
}

/** Client connections that a node with so many descriptors may have (contract 11). */
export function connectionsFor(limit: number | null): number {
  const room = (limit ?? Infinity) - DESCRIPTORS_KEPT;
  return Math.max(CONNECTIONS_MIN, Math.min(CONNECTIONS_MAX, room));
}

/** The count of the client connections of this process, bounded by its descriptors. */
export function connectionCount(logger: LoggerPort): ConnectionCount {
  const limit = descriptorLimit();
  const connectionsMax = connectionsFor(limit);
  if (connectionsMax < CONNECTIONS_MAX) {
    logger.log("warn", "the limit of open files bounds the client connections", {
      openFiles: limit ?? 0,
      connections: connectionsMax,
    });
  }
  return new ConnectionCount(connectionsMax);
}
