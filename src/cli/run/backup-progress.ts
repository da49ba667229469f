/**
 * Says while a backup or a restore runs how far it is, to whoever waits at a terminal: the node is
 * asked what it does, with a call of its own.
 *
 * Invariant: it tells and ends as meanwhile.ts says. A rate is that between two looks; the time
 * left is told only where it is known how much there is.
 */
import type { RunningBackup, SvcClient } from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";
import { tellMeanwhile } from "../terminal/meanwhile.js";

/** The kinds that take their turn; what reads the catalogue beside them is left out. */
const TAKES_TURNS = ["full", "coordinated", "incremental", "restore", "gc"];

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** With at most one digit behind the point. */
function bytesText(bytes: number): string {
  let value = bytes;
  let at = 0;
  while (value >= 1024 && at < UNITS.length - 1) {
    value /= 1024;
    at++;
  }
  const digits = value >= 10 || at === 0 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[at]}`;
}

/** `1 h 2 min`, `3 min 4 s`, `5 s`. */
function durationText(durationMs: number): string {
  const seconds = Math.ceil(durationMs / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

type Seen = Pick<RunningBackup, "operation" | "bytesDone" | "elapsedMs">;

/** What is told of an operation; `before`: what was seen of it the last time. */
export function progressText(now: RunningBackup, before: Seen | null): string {
  const { kind, phase, partitionsDone, partitionsTotal, bytesDone, bytesTotal } = now;
  const parts = [`${kind}: ${phase}`];
  if (partitionsTotal > 0) parts.push(`${partitionsDone} of ${partitionsTotal} partitions`);
  if (bytesDone > 0n) {
    const of = bytesTotal > 0n ? ` of ${bytesText(Number(bytesTotal))}` : "";
    parts.push(`${bytesText(Number(bytesDone))}${of}`);
  }
  const perMs = rateOf(now, before);
  if (perMs > 0) {
    parts.push(`${bytesText(perMs * 1000)}/s`);
    const leftBytes = Number(bytesTotal - bytesDone);
    if (leftBytes > 0) parts.push(`${durationText(leftBytes / perMs)} left`);
  }
  return parts.join(", ");
}

/** Bytes per millisecond since the last look; 0 = not known. */
function rateOf(now: RunningBackup, before: Seen | null): number {
  if (before === null || before.operation !== now.operation) return 0;
  const passedMs = Number(now.elapsedMs - before.elapsedMs);
  return passedMs <= 0 ? 0 : Number(now.bytesDone - before.bytesDone) / passedMs;
}

/** Carries `work` out, and tells meanwhile how far the node is with it. */
export function whileRunning<Value>(
  context: Pick<RunContext, "show">,
  client: SvcClient,
  work: () => Promise<Value>,
): Promise<Value> {
  let before: Seen | null = null;
  return tellMeanwhile(
    context,
    async (calling) => {
      const running = await client.backups.running(calling);
      const now = running.find(({ kind }) => TAKES_TURNS.includes(kind));
      if (now === undefined) return null;
      const text = progressText(now, before);
      before = now;
      return text;
    },
    work,
  );
}
