/**
 * What `next` costs from the door of the operations to its answer: admission, placement, gathering,
 * a confirmed round, and the sharing of a block, over the real host and machine with a log and a
 * store in memory.
 *
 * Owns its nodes, one per rival. The event loop is a plain queue: no timers, no sockets, no disk.
 * Rivals differ in the kernels that share a block out. Run: node dist/perf/micro/blocks.js [--tiny]
 */
import { assert } from "../../src/base/assert.js";
import { MemoryLog } from "../../src/disk/log/memorylog.js";
import { MemoryStore } from "../../src/disk/store/memorystore.js";
import { Node } from "../../src/host/node.js";
import { Operations } from "../../src/operations/operations.js";
import type { DataRequest } from "../../src/operations/api/requests.js";
import { RequestTally } from "../../src/operations/admission/tally.js";
import type { TimerHandle, TimerPort } from "../../src/ports.js";
import { createKernels } from "../../src/wasm/kernels.js";
import { type Comparison, runAsProgram } from "./bench.js";
import {
  DEFAULT_HOST_SETTINGS,
  DEFAULT_OPERATIONS_SETTINGS,
} from "../../test/doubles/default-settings.js";

/** An event loop without anything around it. */
class QueueTimer implements TimerPort {
  private queue: (() => void)[] = [];
  private later: { readonly atMs: number; readonly callback: () => void }[] = [];

  soon(callback: () => void): void {
    this.queue.push(callback);
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    const timer = { atMs: performance.now() + delayMs, callback };
    this.later.push(timer);
    return { cancel: () => void (this.later = this.later.filter((other) => other !== timer)) };
  }

  /** One round of the loop. */
  round(): void {
    const { queue } = this;
    this.queue = [];
    for (const callback of queue) callback();
    const nowMs = performance.now();
    const due = this.later.filter((timer) => timer.atMs <= nowMs);
    if (due.length === 0) return;
    this.later = this.later.filter((timer) => timer.atMs > nowMs);
    for (const timer of due) timer.callback();
  }
}

class Bench {
  private readonly timer = new QueueTimer();
  private readonly operations: Operations;

  constructor(mode: "wasm" | "twin") {
    const { timer } = this;
    const none = (): void => undefined;
    let seed = 1;
    const ports = {
      clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
      timer,
      log: new MemoryLog(timer),
      store: new MemoryStore(timer, 2 ** 40),
      entropy: { uint32: () => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0) },
      logger: { log: none },
      fatal: { fatal: (reason: string) => assert(false, reason) },
      meter: {
        batchEntries: none,
        logSyncMs: none,
        commitMs: none,
        flushMs: none,
        lockGranted: none,
        locksLapsed: none,
        sequenceValues: none,
        replicaDigestMismatch: none,
        stampHeldBack: none,
        leaderChanged: none,
        electionEnded: none,
        applyMs: none,
        readRound: none,
        sequenceBlock: none,
      },
    };
    const opened = Node.open(DEFAULT_HOST_SETTINGS, ports);
    assert(opened.ok, "the node opens");
    const settings = DEFAULT_OPERATIONS_SETTINGS;
    const kernels = createKernels({ mode });
    this.operations = new Operations(opened.value, settings, ports, kernels, new RequestTally());
    while (!opened.value.health().ready) timer.round();
  }

  /**
   * `count` requests, `inFlight` at a time. Returns the sum of the low halves of what was handed
   * out.
   */
  closedLoop(count: number, inFlight: number, make: (at: number) => DataRequest): number {
    let started = 0;
    let ended = 0;
    let sum = 0;
    const start = (): void => {
      const context = { deadlineMs: performance.now() + 10_000, forwardHops: 0, requestId: "b" };
      this.operations.execute(make(started++), context, (answer) => {
        ended++;
        assert(answer.type === 0, "every request succeeds");
        if (answer.kind === "allocation") sum += answer.allocation?.count ?? 0;
        if (started < count) start();
      });
    };
    for (let at = 0; at < inFlight; at++) start();
    while (ended < count) this.timer.round();
    return sum;
  }

  create(name: string, blockSize: number): void {
    const request = {
      kind: "create-sequence" as const,
      name,
      initialValue: 0n,
      increment: 1n,
      maxValue: null,
      blockSize,
      durability: 1,
    };
    this.closedLoop(1, 1, () => request);
  }
}

function nextComparison(
  benches: readonly { readonly mode: string; readonly bench: Bench }[],
  names: readonly string[],
  blockSize: number,
  inFlight: number,
  count: number,
): Comparison {
  const requests = names.map((name) => {
    const full = `${name}-${String(blockSize)}-${String(inFlight)}`;
    return { kind: "next-sequence" as const, name: full, idempotencyKey: null, durability: 1 };
  });
  for (const { bench } of benches) for (const { name } of requests) bench.create(name, blockSize);
  return {
    name: [
      `next, ${String(names.length)} seq`,
      `block ${String(blockSize)}`,
      `${String(inFlight)} in flight`,
    ].join(", "),
    operations: count,
    rivals: benches.map(({ mode, bench }) => ({
      name: mode,
      run: () =>
        bench.closedLoop(count, inFlight, (at) => requests[at % requests.length] as DataRequest),
    })),
  };
}

export function comparisons(tiny: boolean): Comparison[] {
  const benches = (["twin", "wasm"] as const).map((mode) => ({ mode, bench: new Bench(mode) }));
  const count = tiny ? 200 : 20_000;
  const many = Array.from({ length: 64 }, (_, at) => `orders/${String(at)}`);
  return [
    nextComparison(benches, ["orders"], 1000, 1, Math.min(count, 2000)),
    nextComparison(benches, ["orders"], 1000, 64, count),
    nextComparison(benches, ["orders"], 1000, 1024, count),
    nextComparison(benches, ["orders"], 100_000, 1024, count),
    nextComparison(benches, many, 1000, 1024, count),
    nextComparison(benches, ["orders"], 1, 1024, count),
  ];
}

runAsProgram(import.meta.url, "Sequence blocks", comparisons);
