/**
 * A backup of a chaos run comes to life: it is restored by a node that runs, its directory becomes a new cluster of real
 * processes, everything that was ever used is read there, clients go on with it, and all of that is judged as one history
 * with what the old clients saw.
 *
 * Invariants: 1. Everything is read before anything is written. 2. Only processes of this run are touched.
 */
import { join } from "node:path";
import type { Prng } from "../../../src/base/prng.js";
import { checkAboveBefore } from "../../judge/checkers/backups/above-before.js";
import { type Restored, carriedOn } from "../../judge/checkers/backups/carried-on.js";
import { checkCausalCut } from "../../judge/checkers/backups/causal-cut.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";
import { type History, HistoryRecorder } from "../../judge/history.js";
import { ServerProcess, freePorts, serverMain, sleep } from "../cluster/server-process.js";
import type { ChaosBackups, RestoredPlace, Taken } from "./backups.js";
import { BLOCK_SIZE, type NodePorts, REQUEST_TIMEOUT_MS } from "./nodes.js";
import { type Asked, ChaosWorkload } from "./workload.js";

const NODES = 3;
const CLIENTS = 12;

/** What a run has that is restored from. */
export interface RestoreOrder {
  readonly backups: ChaosBackups;
  /** Nodes of the old cluster that run. */
  readonly running: readonly number[];
  readonly history: History;
  readonly prng: Prng;
  /** Which objects the old clients used at a time. */
  eraAt(nowMs: number): number;
  /** All checkers over a history. */
  judge(history: History): readonly Verdict[];
  /** Backups that are restored at most. */
  readonly restores: number;
  /** For how long clients go on. */
  readonly goOnMs: number;
  say(text: string): void;
}

/** A cluster that grows out of a restored directory. */
class RestoredNodes implements Asked {
  readonly ports = new Map<number, NodePorts>();
  readonly disturbances = new Map<number, number>();
  readonly processes: ServerProcess[] = [];

  constructor(private readonly place: RestoredPlace) {}

  get count(): number {
    return this.processes.length;
  }

  get all(): readonly number[] {
    return this.processes.map((_, at) => at + 1);
  }

  /** Starts one more, and waits until it is ready. */
  async start(): Promise<void> {
    const node = this.count + 1;
    if (node === 1) {
      const drawn = await freePorts(3 * NODES);
      for (let at = 0; at < NODES; at++) {
        const [grpc, http, peer] = drawn.slice(3 * at) as [number, number, number];
        this.ports.set(at + 1, { grpc, http, peer });
      }
    }
    const ports = this.ports.get(node) as NodePorts;
    const path = node === 1 ? this.place.directory : join(this.place.others, `node${node}`);
    const process_ = new ServerProcess(
      [
        ...[`--raft-nodeid=${node}`, `--grpc-port=${ports.grpc}`, `--http-port=${ports.http}`],
        ...["--https-port=off", `--peer-port=${ports.peer}`, `--storage-path=${path}`],
        ...(node === 1 ? [] : [`--join=127.0.0.1:${this.ports.get(1)?.peer}`]),
        ...[`--request-timeout=${REQUEST_TIMEOUT_MS}ms`, `--sequencer-block-size=${BLOCK_SIZE}`],
        ...["--sequencer-block-lease=1s", "--log-level=warn"],
      ],
      [process.execPath, serverMain],
    );
    this.processes.push(process_);
    await process_.ready();
  }

  async end(): Promise<void> {
    await Promise.all(this.processes.map((each) => each.kill()));
  }
}

/** Restores `taken` into a cluster of its own. `before`: histories of clusters that were restored before. */
async function comeToLife(
  order: RestoreOrder,
  taken: Taken,
  label: string,
): Promise<Restored | string> {
  const { backups, running, prng, history: old } = order;
  const place = await backups.restore(running, taken, label);
  if (typeof place === "string") return `not restored: ${place}`;
  const nodes = new RestoredNodes(place);
  try {
    const beganMs = performance.now();
    const recorder = new HistoryRecorder();
    await nodes.start();
    const successors = { label: `${label}-`, era: order.eraAt(taken.calledMs) };
    const alone = new ChaosWorkload(nodes, recorder, prng, 0, undefined, successors);
    const unserved = await alone.sweep(old);
    alone.close();
    while (nodes.count < NODES) await nodes.start();
    const workload = new ChaosWorkload(nodes, recorder, prng, 0, undefined, successors);
    const clients = workload.run(CLIENTS);
    await sleep(order.goOnMs);
    workload.stop();
    await clients;
    const missing = unserved + (await workload.sweep());
    workload.close();
    if (missing > 0) return `${missing} objects of the restored cluster could not be read`;
    return { history: recorder.history(performance.now()), beganMs };
  } catch (error) {
    const logs = nodes.processes.map(({ log }) => log.slice(-1000)).join("\n");
    return `the restored cluster does not serve: ${String(error)}\n${logs}`;
  } finally {
    await nodes.end();
  }
}

/** Restores the last backups of a run, one after the other, and judges what becomes of each. */
export async function judgeRestored(order: RestoreOrder): Promise<readonly Verdict[]> {
  const verdicts: Verdict[] = [];
  const findings = new Findings("what was taken comes to life", { restored: 1 });
  const before: History[] = [order.history];
  for (const [at, taken] of order.backups.last.slice(0, order.restores).entries()) {
    const what = taken.isCut ? "coordinated" : "incremental";
    order.say(`restored: ${what}, taken in ${Math.round(taken.answeredMs - taken.calledMs)} ms`);
    const restored = await comeToLife(order, taken, `r${at + 1}`);
    if (typeof restored === "string") {
      findings.violation(`${what} ${taken.id}: ${restored}`);
      continue;
    }
    findings.count("restored");
    order.say(`${restored.history.attempts.length} attempts at the restored cluster`);
    findings.count("attempts there", restored.history.attempts.length);
    const own = [
      ...order.judge(carriedOn(order.history, taken, restored)),
      checkAboveBefore(before, restored.history),
      ...(taken.isCut ? [checkCausalCut(order.history, taken, restored.history)] : []),
    ];
    verdicts.push(...own.map((each) => ({ ...each, property: `${what}: ${each.property}` })));
    before.push(restored.history);
  }
  return [findings.verdict(), ...verdicts];
}
