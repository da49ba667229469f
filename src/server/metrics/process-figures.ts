/**
 * What the process is at: event loop, collections of garbage, memory, descriptors.
 *
 * Owns a timer and an observer. Invariants: 1. Neither keeps the process alive. 2. Descriptors are
 * counted some at a time.
 */
import { opendirSync } from "node:fs";
import { totalmem } from "node:os";
import {
  PerformanceObserver,
  type PerformanceNodeTiming,
  constants,
  performance,
} from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { Distribution } from "../../host/requests/distribution.js";
import { untilEchoMs } from "../../net/echo-times.js";
import { family, histogramLines, scalar } from "./exposition.js";

/**
 * Pause between two looks at the loop. The 200 samples of the window of recent load are enough for
 * its worst percent.
 */
const LOOP_EVERY_MS = 50;
/**
 * While the loop has nothing to do nine tenths of the time: it cannot have been late by much, and a
 * node at rest is not to be awake for this, each time costs it 50 us and more.
 */
const LOOP_REST_EVERY_MS = 200;
const REST_SHARE = 0.1;
const LOOP_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const GC_BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1];
const GC_KINDS = new Map<number, string>([
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weak"],
]);
/** Directory entries that are read at a time. */
const ENTRIES_AT_ONCE = 128;

export class ProcessFigures {
  private readonly loop = new Distribution(LOOP_BOUNDS_SECONDS);
  private readonly collections = new Map<string, Distribution>();
  private timer: NodeJS.Timeout | null = null;
  /** What the loop had to do until the last look. */
  private use = performance.eventLoopUtilization();
  private readonly observer: PerformanceObserver;
  private dueMs = 0;
  private readonly startedSeconds = Date.now() / 1000 - process.uptime();

  /** `cameRound` is told how late the event loop was (ms). */
  constructor(private readonly cameRound: (lateMs: number) => void) {
    for (const kind of GC_KINDS.values()) {
      this.collections.set(kind, new Distribution(GC_BOUNDS_SECONDS));
    }
    this.comeIn(LOOP_EVERY_MS, performance.now());
    this.observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        // The declared type leaves out what is told of a collection.
        const { kind } = (entry as unknown as { readonly detail: { readonly kind: number } })
          .detail;
        this.collections.get(GC_KINDS.get(kind) ?? "")?.observe(entry.duration / 1000);
      }
    });
    this.observer.observe({ entryTypes: ["gc"] });
  }

  close(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.observer.disconnect();
  }

  *lines(lines: string[], descriptorsMax: number | null): Generator<void> {
    const delay = "svc_event_loop_delay_seconds";
    family(lines, delay, "histogram", "How late a timer was called");
    histogramLines(lines, delay, "", this.loop.bounds, this.loop.counts, this.loop.sum);
    const gc = "nodejs_gc_duration_seconds";
    family(lines, gc, "histogram", "Collections of garbage, by kind");
    for (const [kind, { bounds, counts, sum }] of this.collections) {
      histogramLines(lines, gc, `kind="${kind}"`, bounds, counts, sum);
    }
    yield;
    const { user, system } = process.cpuUsage();
    const cpu = (user + system) / 1e6;
    scalar(lines, "process_cpu_seconds_total", "counter", "Processor time of the process", cpu);
    // Node 20 tells it from 20.18 on.
    const turns = (performance.nodeTiming as Partial<PerformanceNodeTiming>).uvMetricsInfo;
    const loop = "nodejs_event_loop_turns_total";
    scalar(lines, loop, "counter", "Turns of the event loop", turns?.loopCount ?? 0);
    const gauge = (name: string, help: string, value: number): void =>
      scalar(lines, name, "gauge", help, value);
    gauge("process_resident_memory_bytes", "Resident memory", process.memoryUsage.rss());
    gauge("nodejs_heap_used_bytes", "Heap in use", getHeapStatistics().used_heap_size);
    gauge("svc_memory_limit_bytes", "What the process may use of memory", memoryLimit());
    gauge("process_start_time_seconds", "Start, in seconds since 1970", this.startedSeconds);
    const open = yield* openDescriptors();
    if (open !== null) gauge("process_open_fds", "Open file descriptors", open);
    if (descriptorsMax !== null && descriptorsMax < Infinity) {
      gauge("process_max_fds", "Limit of open file descriptors", descriptorsMax);
    }
  }

  private came(): void {
    const nowMs = performance.now();
    const lateMs = Math.max(0, nowMs - this.dueMs);
    this.loop.observe(lateMs / 1000);
    this.cameRound(lateMs);
    const use = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(use, this.use);
    this.use = use;
    this.comeIn(utilization < REST_SHARE ? LOOP_REST_EVERY_MS : LOOP_EVERY_MS, nowMs);
  }

  /** When the echoes of links are due, too. */
  private comeIn(everyMs: number, nowMs: number): void {
    const pauseMs = untilEchoMs(nowMs, everyMs);
    this.dueMs = nowMs + pauseMs;
    this.timer = setTimeout(() => this.came(), Math.ceil(pauseMs)).unref();
  }
}

/** The limit of the control group, else the machine's memory. */
function memoryLimit(): number {
  const limit = process.constrainedMemory();
  const machine = totalmem();
  return limit > 0 && limit < machine ? limit : machine;
}

/** null where the system does not tell. */
function* openDescriptors(): Generator<void, number | null> {
  try {
    const directory = opendirSync("/proc/self/fd", { bufferSize: ENTRIES_AT_ONCE });
    let count = 0;
    try {
      while (directory.readSync() !== null) {
        count++;
        if (count % ENTRIES_AT_ONCE === 0) yield;
      }
    } finally {
      directory.closeSync();
    }
    // The one that this was read by.
    return count - 1;
  } catch {
    return null;
  }
}
