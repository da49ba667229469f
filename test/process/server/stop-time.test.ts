/** How long a stop may take in all. */
import t from "tap";
import { systemClock } from "../../../src/sys.js";
import { Assembled, type Parts } from "../../../src/server/running.js";
import type { ServerConfig } from "../../../src/server/flags/config.js";
import type { Metrics } from "../../../src/server/metrics/metrics.js";

const ignore = (): void => undefined;

interface Stopped {
  /** When the stop was asked for, and when the call returned (ms). */
  readonly beganMs: number;
  readonly calledMs: number;
  /** What the parts were told. */
  readonly log: readonly string[];
  readonly stopByMs: number;
  readonly leave: { readonly deadlineMs: number; readonly drainMs: number } | null;
}

/** Stops a node whose leave takes so long; `hasHeirs`: leaderships that nobody ever takes. */
async function stopped(
  config: Partial<ServerConfig>,
  hasHeirs: boolean,
  leaveTakesMs = 0,
): Promise<Stopped> {
  const log: string[] = [];
  let stopByMs = 0;
  let leave: Stopped["leave"] = null;
  const parts = {
    node: {
      withdraw: () => void log.push("withdraw"),
      hasHeirs,
      leave: (deadlineMs: number, drainMs: number, done: (outcome: string) => void) => {
        log.push("leave");
        leave = { deadlineMs, drainMs };
        setTimeout(() => {
          log.push("left");
          done("DrainTimedOut");
        }, leaveTakesMs);
      },
      stop: (atMs: number, done: () => void) => {
        log.push("stop");
        stopByMs = atMs;
        done();
      },
    },
    operations: {
      endWaits: ignore,
      endBackups: ignore,
      finish: (_atMs: number, done: () => void) => done(),
    },
    peers: { close: (done: () => void) => done() },
    disk: { close: (done: () => void) => done() },
    listeners: { drain: ignore, close: () => Promise.resolve() },
    audit: { happened: ignore, close: ignore },
    tokens: null,
    live: { close: ignore },
    health: null,
  };
  const server = new Assembled(
    config as ServerConfig,
    parts as unknown as Parts,
    { close: ignore } as unknown as Metrics,
    { log: ignore },
    { fatal: ignore },
  );
  const beganMs = systemClock.monotonicMs();
  const ended = new Promise<void>((resolve) => server.stop(resolve));
  const calledMs = systemClock.monotonicMs();
  await ended;
  return { beganMs, calledMs, log, stopByMs, leave };
}

t.test("9.5 handing leaderships over is part of the shutdown timeout", async (t) => {
  const config = { shutdownDelayMs: 100, shutdownTimeoutMs: 1000, gracefulLeave: false };
  const { beganMs, calledMs, stopByMs, log } = await stopped(config, true);
  t.ok(stopByMs >= beganMs + 1100, "the whole timeout, behind the delay");
  t.ok(stopByMs <= calledMs + 1100, "and no more");
  t.same(log, ["withdraw", "stop"]);
});

t.test("9.5 5.3 a leave at the stop comes first, within its own bound", async (t) => {
  const config = { shutdownDelayMs: 0, shutdownTimeoutMs: 1000, gracefulLeave: true };
  const drainTimeoutMs = 60_000;
  const leaveTakesMs = 300;
  const end = await stopped({ ...config, drainTimeoutMs }, false, leaveTakesMs);
  t.same(end.log, ["withdraw", "leave", "left", "stop"]);
  t.equal(end.leave?.drainMs, drainTimeoutMs);
  const boundMs = (end.leave?.deadlineMs ?? 0) - drainTimeoutMs - 30_000;
  t.ok(boundMs >= end.beganMs && boundMs <= end.calledMs, "the drain and 30 s");
  const leftMs = end.beganMs + leaveTakesMs;
  t.ok(end.stopByMs >= leftMs + 1000 - 5, "then the shutdown timeout begins");
});
