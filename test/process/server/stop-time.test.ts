/** How long a stop may take in all. */
import t from "tap";
import { systemClock } from "../../../src/sys.js";
import { Assembled, type Parts } from "../../../src/server/running.js";
import type { ServerConfig } from "../../../src/server/flags/config.js";
import type { Metrics } from "../../../src/server/metrics/metrics.js";

t.test("9.5 handing leaderships over is part of the shutdown timeout", async (t) => {
  const ignore = (): void => undefined;
  let deadlineMs = 0;
  const parts = {
    node: {
      withdraw: ignore,
      // Nobody ever takes the leaderships.
      hasHeirs: true,
      stop: (atMs: number, done: () => void) => {
        deadlineMs = atMs;
        done();
      },
    },
    operations: { finish: (_atMs: number, done: () => void) => done() },
    peers: { close: (done: () => void) => done() },
    disk: { close: (done: () => void) => done() },
    listeners: { drain: ignore, close: () => Promise.resolve() },
    audit: { happened: ignore, close: ignore },
    tokens: null,
    health: null,
  };
  const config = { shutdownDelayMs: 100, shutdownTimeoutMs: 1000, gracefulLeave: false };
  const server = new Assembled(
    config as ServerConfig,
    parts as unknown as Parts,
    { close: ignore } as unknown as Metrics,
    { log: ignore },
    { fatal: ignore },
  );
  const beganMs = systemClock.monotonicMs();
  const stopped = new Promise<void>((resolve) => server.stop(resolve));
  const calledMs = systemClock.monotonicMs();
  await stopped;
  t.ok(deadlineMs >= beganMs + 1100, "the whole timeout, behind the delay");
  t.ok(deadlineMs <= calledMs + 1100, "and no more");
});
