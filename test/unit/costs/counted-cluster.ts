/**
 * Three whole nodes, operations included, on a false network and false disks, under callers that
 * ask again as soon as they are answered: what each operation costs, counted.
 *
 * Invariants: 1. Time passes in steps of a millisecond, each of which takes as long as it takes, so
 * that a run is the same each time, on every machine. 2. Counts are of all three nodes together.
 */
import { inspect } from "node:util";
import { assert } from "../../../src/base/assert.js";
import { readRaftFrame } from "../../../src/host/replication/raft-frames.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { Operations } from "../../../src/operations/operations.js";
import { RequestTally } from "../../../src/operations/admission/tally.js";
import type { LogWrite, PeerLane } from "../../../src/ports.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { DEFAULT_OPERATIONS_SETTINGS } from "../../doubles/default-settings.js";
import { Cluster } from "../../doubles/host/peerworld.js";

const NODES = 3;
const PARTITIONS = 16;
/** A caller asks again after up to so long: 64 of them ask some 4,000 times a second. */
const PAUSES_MS = 31;
const WITHIN_MS = 60_000;

/** What is counted, by name. */
export type Counts = Map<string, number>;

/** What a caller asks for, the `own`th time, and whether the answer is what it should be. */
export interface Work {
  readonly request: (caller: number, own: number) => DataRequest;
  readonly isGood: (answer: DataAnswer) => boolean;
}

export class CountedCluster {
  /** Without the looks for old rows: one command of these is as much as what 20 reads may cost. */
  private readonly cluster = new Cluster(NODES, {
    initialPartitions: PARTITIONS,
    collectEveryMs: 3_600_000,
  });
  private readonly operations: Operations[] = [];
  private counts: Counts = new Map();

  constructor() {
    const kernels = createKernels({ mode: "wasm" });
    this.cluster.ready();
    for (let id = 1; id <= NODES; id++) this.operations.push(this.open(id, kernels));
    this.spread();
    for (let id = 1; id <= NODES; id++) this.countNode(id);
    this.cluster.network.filter = (_from, bytes, lane) => this.countFrame(lane, bytes);
  }

  /** `count` operations by `callers` at a time, each through a node of its own. */
  run(work: Work, callers: number, count: number): Counts {
    const { cluster } = this;
    this.counts = new Map();
    let asked = 0;
    let answered = 0;
    const next = (caller: number, own = 0): void => {
      if (asked === count) return;
      const turn = asked++;
      const at = caller % NODES;
      const context = { deadlineMs: cluster.nowMs + WITHIN_MS, forwardHops: 0, requestId: "" };
      this.operations[at]?.execute(work.request(caller, own), context, (answer) => {
        if (!work.isGood(answer)) throw new Error(`not as wanted: ${inspect(answer)}`);
        answered += 1;
        const pauseMs = callers === 1 ? 1 : 1 + ((7 * turn + 5 * caller) % PAUSES_MS);
        cluster.world(at + 1).timer.after(pauseMs, () => next(caller, own + 1));
      });
    };
    for (let caller = 0; caller < callers; caller++) next(caller);
    const endMs = cluster.nowMs + WITHIN_MS;
    while (answered < count) {
      assert(cluster.nowMs < endMs, "it goes on");
      // A disk takes a millisecond.
      for (const { log } of cluster.worlds.values()) log.sync();
      cluster.pass(1, 1);
    }
    return this.counts;
  }

  /** Lets the leaders spread, as they do in the first half minute. */
  private spread(): void {
    this.cluster.pass(60_000, 50);
    for (const { log } of this.cluster.worlds.values()) log.automatic = false;
  }

  private open(id: number, kernels: ReturnType<typeof createKernels>): Operations {
    const node = this.cluster.node(id);
    const endpoints = { clientEndpoint: `http://n${id}`, peerEndpoint: `n${id}:8084` };
    const settings = { ...DEFAULT_OPERATIONS_SETTINGS, ...endpoints, nodeId: id };
    const calls = {
      send: (to: number, bytes: Uint8Array) => node.links.sendCall(to, bytes),
      queuedBytes: () => 0,
    };
    const ports = { ...this.cluster.world(id).ports(), calls };
    const operations = new Operations(node, settings, ports, kernels, new RequestTally());
    node.links.listen(operations);
    node.links.handleCalls((from, bytes) => operations.callFrame(from, bytes));
    return operations;
  }

  private add(name: string, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
  }

  private countNode(id: number): void {
    const { log, timer } = this.cluster.world(id);
    const write = log.write.bind(log);
    log.write = (entry: LogWrite) => {
      if (log.pending.length === 0) this.add("durable writes");
      this.add("log entries", entry.entries.length);
      this.add("log records", entry.entries.length + (entry.hardState === null ? 0 : 1));
      write(entry);
    };
    const soon = timer.soon.bind(timer);
    timer.soon = (callback) => {
      this.add("callbacks");
      soon(callback);
    };
    const after = timer.after.bind(timer);
    timer.after = (delayMs, callback) => {
      this.add("timers");
      return after(delayMs, callback);
    };
  }

  private countFrame(lane: PeerLane, bytes: Uint8Array): Uint8Array {
    this.add("frames");
    this.add(`frames of ${lane}`);
    if (lane !== "control" && lane !== "log") return bytes;
    readRaftFrame(bytes, 1, 2, ({ message, entries }) => {
      this.add("messages");
      if (message.kind === "append") {
        this.add(entries.length > 0 ? "appends with entries" : "appends without");
      } else this.add(message.kind);
    });
    return bytes;
  }
}
