/**
 * What the host costs by itself: commands and reads through batch, core, log, apply and answer,
 * over 16 groups, the real core and the real state machine, with a log and a store in memory.
 *
 * Owns its node. The event loop is a plain queue, so that only the host is measured: no timers, no
 * sockets, no disk. Each command is a lock or unlock, or a set of a key.
 */
import { assert } from "../../src/base/assert.js";
import { MemoryLog } from "../../src/disk/log/memorylog.js";
import { MemoryStore } from "../../src/disk/store/memorystore.js";
import type { Group } from "../../src/host/group/group.js";
import { Node } from "../../src/host/node.js";
import type { Command } from "../../src/machine/commands/command.js";
import type { TimerHandle, TimerPort } from "../../src/ports.js";
import { type Comparison, runAsProgram } from "./bench.js";
import { DEFAULT_HOST_SETTINGS } from "../../test/doubles/default-settings.js";

const IN_FLIGHT = 256;
const GROUPS = 16;

/** An event loop without anything around it. */
class QueueTimer implements TimerPort {
  private queue: (() => void)[] = [];
  private later: { atMs: number; callback: () => void }[] = [];

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
    if (!this.later.some((timer) => timer.atMs <= nowMs)) return;
    const due = this.later.filter((timer) => timer.atMs <= nowMs);
    this.later = this.later.filter((timer) => timer.atMs > nowMs);
    for (const timer of due) timer.callback();
  }
}

class Bench {
  readonly timer = new QueueTimer();
  readonly groups: readonly Group[];

  constructor() {
    const { timer } = this;
    let seed = 1;
    const none = (): void => undefined;
    const opened = Node.open(
      { ...DEFAULT_HOST_SETTINGS, initialPartitions: GROUPS },
      {
        clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
        timer,
        log: new MemoryLog(timer),
        store: new MemoryStore(timer, 2 ** 40),
        entropy: { uint32: () => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0) },
        logger: { log: none },
        fatal: { fatal: (reason) => assert(false, reason) },
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
      },
    );
    assert(opened.ok, "the node opens");
    while (!opened.value.health().ready) timer.round();
    this.groups = opened.value.groups().slice(1);
  }

  /**
   * `count` operations, `inFlight` at a time, spread over the groups. Returns how many ended well.
   */
  closedLoop(
    count: number,
    inFlight: number,
    start: (at: number, done: () => void) => void,
  ): number {
    let started = 0;
    let ended = 0;
    const next = (): void => {
      if (started < count) start(started++, end);
    };
    const end = (): void => {
      ended++;
      next();
    };
    for (let at = 0; at < inFlight; at++) next();
    while (ended < count) this.timer.round();
    return ended;
  }

  commands(count: number, make: (at: number) => Command, inFlight = IN_FLIGHT): number {
    let applied = 0;
    this.closedLoop(count, inFlight, (at, done) => {
      const group = this.groups[at % this.groups.length] as Group;
      group.propose(make(at), 80, performance.now() + 10_000, (result) => {
        if (result.status === "applied") applied++;
        done();
      });
    });
    return applied;
  }

  reads(count: number, inFlight = IN_FLIGHT): number {
    let confirmed = 0;
    this.closedLoop(count, inFlight, (at, done) => {
      const group = this.groups[at % this.groups.length] as Group;
      group.read(performance.now() + 10_000, (result) => {
        if (result.status === "confirmed") confirmed++;
        done();
      });
    });
    return confirmed;
  }
}

const owner = new Uint8Array(16).fill(7);

function lockOrUnlock(at: number): Command {
  const resource = `jobs/${(at >>> 1) % 4096}`;
  if (at % 2 === 0) return { kind: "try-lock", resource, owner, expiresMs: 30_000 };
  return { kind: "try-unlock", resource, owner };
}

const value = new Uint8Array(100).fill(1);

function setKey(at: number): Command {
  return {
    kind: "kv-set",
    key: `orders/${at % 65_536}`,
    value,
    compareValue: null,
    compareRevision: -1n,
    flags: 0,
    expiresMs: 0,
    revisionsRetained: 1,
  };
}

export function comparisons(tiny: boolean): Comparison[] {
  const bench = new Bench();
  const count = tiny ? 1000 : 20_000;
  const one = (name: string, run: () => number): Comparison => ({
    name,
    operations: count,
    rivals: [{ name: "host", run }],
  });
  return [
    one("lock + unlock, 256 in flight", () => bench.commands(count, lockOrUnlock)),
    one("set, 256 in flight", () => bench.commands(count, setKey)),
    one("set, 4096 in flight", () => bench.commands(count, setKey, 4096)),
    one("read proof, 256 in flight", () => bench.reads(count)),
    one("read proof, 4096 in flight", () => bench.reads(count, 4096)),
  ];
}

runAsProgram(import.meta.url, "Host", comparisons);
