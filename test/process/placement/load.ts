/**
 * Writers at the running nodes of a placed cluster, over REST and gRPC, that check each answer, and a look at all that was
 * acknowledged.
 *
 * Invariants: 1. A writer has one call at a time; a call without an answer stays open until a read decides it. 2. A node
 * that goes away is asked no more.
 */
import { Prng } from "../../../src/base/prng.js";
import {
  type Call,
  type CallResult,
  type Client,
  grpcClient,
  restClient,
} from "../cluster/clients.js";
import {
  type Objects,
  createSequences,
  makeObjects,
  step,
  verifyAll,
} from "../cluster/crash-objects.js";
import { Findings } from "../cluster/crash-workload.js";
import { sleep } from "../cluster/server-process.js";
import type { PlacedNodes } from "./placed-nodes.js";

/** Between two steps of a writer (ms): the machine has other things to do. */
const PAUSE_MS = 20;

export class Load {
  readonly findings = new Findings();
  private readonly objects: Objects;
  private readonly clients = new Map<number, readonly Client[]>();
  private readonly workers: Promise<void>[] = [];
  private isStopped = false;
  /** Writers in the middle of a step, and what holds them back before the next one. */
  private busy = 0;
  private pause: Promise<void> | null = null;

  private constructor(count: number) {
    this.objects = makeObjects(count, this.findings);
  }

  /** `count` writers at the nodes that run. */
  static async start(nodes: PlacedNodes, count: number, seed: number): Promise<Load> {
    const load = new Load(count);
    for (const id of nodes.running) await load.open(nodes, id);
    await createSequences(load.objects, load.sender(0));
    const draw = new Prng(seed);
    for (let worker = 0; worker < count; worker++) {
      load.workers.push(load.work(worker, draw.fork(`worker ${worker}`)));
    }
    return load;
  }

  /** A node came: it is asked too. */
  async open(nodes: PlacedNodes, id: number): Promise<void> {
    const { http, grpc } = await nodes.addresses(id);
    this.clients.set(id, [restClient(http), grpcClient(grpc)]);
  }

  /** A node is about to go, or is gone. */
  leave(id: number): void {
    const clients = this.clients.get(id) ?? [];
    this.clients.delete(id);
    for (const client of clients) client.close();
  }

  /** Waits until so many more steps were answered or given up. */
  async goesOn(operations: number): Promise<void> {
    const enough = this.findings.operations + operations;
    while (this.findings.operations < enough) await sleep(20);
  }

  /** Lets the writers end their steps, looks at everything, and lets them go on; what was wrong so far. */
  async look(): Promise<readonly string[]> {
    let goOn = (): void => undefined;
    this.pause = new Promise((resolve) => (goOn = resolve));
    while (this.busy > 0) await sleep(10);
    await verifyAll(this.objects, this.sender(0));
    this.pause = null;
    goOn();
    return this.findings.violations;
  }

  /** Ends the writers and looks at everything, through each node that is left; what was wrong. */
  async judge(): Promise<readonly string[]> {
    this.isStopped = true;
    await Promise.all(this.workers);
    const nodes = [...this.clients.keys()];
    for (let at = 0; at < nodes.length; at++) await verifyAll(this.objects, this.sender(at));
    for (const id of nodes) this.leave(id);
    return this.findings.violations;
  }

  private sender(at: number): (call: Call) => Promise<CallResult> {
    let turn = at;
    return (call) => {
      const all = [...this.clients.values()].flat();
      const client = all[turn++ % all.length];
      return client === undefined ? Promise.resolve({ kind: "unknown" }) : client.call(call);
    };
  }

  private async work(worker: number, draw: Prng): Promise<void> {
    const send = this.sender(worker);
    for (let serial = 0; !this.isStopped; serial++) {
      await this.pause;
      this.busy++;
      await step(worker, serial, draw, this.objects, send);
      this.busy--;
      await sleep(PAUSE_MS);
    }
  }
}
