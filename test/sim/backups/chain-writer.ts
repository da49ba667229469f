/**
 * A client that writes one key after the other, each in another partition, and each after the answer
 * to the one before: whoever sees one of its writes knows that all before it were there.
 *
 * Invariant: every write is an attempt of the history, and its value is nobody else's.
 */
import { hashPartition, keyHashText } from "../../../src/base/routing.js";
import type { Prng } from "../../../src/base/prng.js";
import { Call } from "../clients/call.js";
import { setRequest } from "../clients/kv-requests.js";
import type { Ask } from "../clients/workload.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { KvSetOperation } from "../../judge/operation.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

export class ChainWriter {
  private readonly prng: Prng;
  private isStopped = false;
  private isOpen = false;
  private count = 0;
  /** Values in the order in which they were asked for. */
  readonly values: string[] = [];

  constructor(
    private readonly world: World,
    private readonly number: number,
    private readonly partitions: number,
    private readonly timeoutMs: number,
    private readonly thinkMs: number,
    private readonly servers: readonly Server[],
    private readonly history: HistoryRecorder,
  ) {
    this.prng = world.prng(`chain ${number}`);
  }

  get isWaiting(): boolean {
    return this.isOpen;
  }

  start(): void {
    this.later(200 + this.prng.below(500));
  }

  stop(): void {
    this.isStopped = true;
  }

  private later(delayMs: number): void {
    this.world.schedule(delayMs, () => this.write());
  }

  /** A key of the partition whose turn it is. */
  private keyFor(partition: number): string {
    for (let at = 0; ; at++) {
      // Keys of one key space lie together.
      const key = `chain-${this.number}-${at}/${this.count}`;
      if (hashPartition(keyHashText(key), this.partitions) === partition) return key;
    }
  }

  private write(): void {
    if (this.isStopped || this.history.isFull()) return;
    this.count++;
    const { world, history, prng, number } = this;
    const key = this.keyFor(1 + (this.count % this.partitions));
    const value = `c${number}-${this.count}`;
    this.values.push(value);
    const operation: KvSetOperation = {
      ...{ kind: "kv-set", key, ephemeral: false, value, compareValue: null },
      ...{ compareRevision: 0n, expiresMs: 0, flags: 0 },
    };
    const ask: Ask = { kind: "set", request: setRequest(operation), operations: [operation] };
    const server = this.servers[prng.below(this.servers.length)] as Server;
    const manner = { timeoutMs: this.timeoutMs, forwardHops: 0, vanishAfterMs: null };
    const parts = { world, history, server, name: `chain-${number}` };
    this.isOpen = true;
    new Call(parts, ask, manner, prng, (outcomes) => {
      this.isOpen = false;
      const isDone = outcomes[0]?.kind === "ok";
      this.later(isDone ? prng.below(2 * this.thinkMs + 1) : 200 + prng.below(300));
    });
  }
}
