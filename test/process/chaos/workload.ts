/**
 * The clients of a chaos run: each asks one node after the other for operations on locks, sequences and keys, through
 * REST or gRPC, and records every attempt. Objects are changed for new ones every few seconds, so that the history of
 * each stays short enough to be decided.
 *
 * Invariants: 1. Every value, owner and idempotency key is unique. 2. A client has one attempt at a time. 3. What cannot
 * be answered any more, because the node that was asked was disturbed since, is recorded as lost.
 */
import { Prng } from "../../../src/base/prng.js";
import { FencedStore } from "../../judge/checkers/clients/fenced-store.js";
import { FLAG } from "../../judge/models/kv.js";
import {
  type History,
  type HistoryRecorder,
  type KvResult,
  type LockResult,
  type Operation,
  type Outcome,
} from "../../judge/history.js";
import { sleep } from "../cluster/server-process.js";
import { type NodePorts, REQUEST_TIMEOUT_MS } from "./nodes.js";
import { RangeClients, RangeSpaces } from "./range-clients.js";
import { type Endpoint, grpcEndpoint, restEndpoint } from "./wire.js";

/** A client waits this long for an answer. */
const PATIENCE_MS = REQUEST_TIMEOUT_MS + 15_000;
/** An answer is due this long after its call: handling time, and slack for a busy machine. */
const BOUND_MS = REQUEST_TIMEOUT_MS + 12_000;
const ERA_MS = 5000;
const LOCKS = 4;
const SEQUENCES = 5;
const KEYS = 6;
/** In the end a read that no node serves is given up: it is seen in the counts. */
const SWEEP_TRIES_MAX = 50;
const LEASES_MS = [300, 1500, 20_000];

/** The nodes that are asked: 1 to `count`. */
export interface Asked {
  readonly count: number;
  readonly all: readonly number[];
  readonly ports: ReadonlyMap<number, NodePorts>;
  /** How often each was disturbed. */
  readonly disturbances: ReadonlyMap<number, number>;
  /** Absent: REST and gRPC at the ports of the node. */
  readonly endpoint?: (node: number, wire: "rest" | "grpc") => Endpoint;
}

function endpointOf({ http, grpc }: NodePorts, wire: "rest" | "grpc"): Endpoint {
  return wire === "rest" ? restEndpoint(http, PATIENCE_MS) : grpcEndpoint(grpc, PATIENCE_MS);
}

/** Clients that go on where others were: names that nobody had, and objects that somebody used. */
export interface Successors {
  /** Before every name of a client and every value. */
  readonly label: string;
  /** The era of the others that is begun with. */
  readonly era: number;
}

const NOBODY_BEFORE: Successors = { label: "", era: 0 };

export class ChaosWorkload {
  readonly store = new FencedStore({ accepted: 10, refused: 1 });
  private readonly endpoints = new Map<string, Endpoint>();
  private readonly created = new Set<string>();
  private serial = 0;
  private isStopped = false;
  private readonly beganMs = performance.now();
  readonly outcomes = { ok: 0, refused: 0, unknown: 0 };
  readonly unknownReasons = new Map<string, number>();
  readonly refusedReasons = new Map<string, number>();
  private readonly ranged: RangeClients;

  constructor(
    private readonly nodes: Asked,
    private readonly history: HistoryRecorder,
    private readonly prng: Prng,
    /** Of ten things that a client does so many are done in key spaces of ranges. */
    private readonly rangeShare = 0,
    readonly spaces = new RangeSpaces(),
    private readonly successors = NOBODY_BEFORE,
  ) {
    this.ranged = new RangeClients(spaces);
    const { endpoint = (node, wire) => endpointOf(nodes.ports.get(node) as NodePorts, wire) } =
      nodes;
    for (const node of nodes.all) {
      for (const wire of ["rest", "grpc"] as const) {
        this.endpoints.set(`${wire} ${node}`, endpoint(node, wire));
      }
    }
  }

  /** Runs `count` clients until `stop`; resolves when the last of them has its answer. */
  async run(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: count }, (_, at) =>
        this.client(`${this.successors.label}c${at}`, this.prng.fork(`client ${at}`)),
      ),
    );
  }

  stop(): void {
    this.isStopped = true;
  }

  /** Which objects are used at a time. */
  eraAt(nowMs: number): number {
    return this.successors.era + Math.floor((nowMs - this.beganMs) / ERA_MS);
  }

  /**
   * Reads everything that was ever used once more, through any node that serves: nothing acknowledged may be missing.
   * Returns how many reads nobody served. `used`: whose objects; those of this history.
   */
  async sweep(used: History = this.history.history()): Promise<number> {
    let unserved = 0;
    const names = { lock: new Set<string>(), sequence: new Set<string>(), key: new Set<string>() };
    for (const { operation } of used.attempts) {
      if ("resource" in operation && !operation.ephemeral) names.lock.add(operation.resource);
      if ("name" in operation) names.sequence.add(operation.name);
      if ("key" in operation && !operation.ephemeral) names.key.add(operation.key);
    }
    const reads: Operation[] = [];
    for (const resource of names.lock) {
      const none = { owner: "", expiresMs: 0, ephemeral: false };
      reads.push({ kind: "get-lock", resource, ...none });
    }
    for (const name of names.sequence) reads.push({ kind: "get-sequence", name });
    for (const key of names.key) {
      reads.push({ kind: "kv-get", key, ephemeral: false, expiresMs: 0, revision: -1n });
    }
    const readers = Array.from({ length: 8 }, async (_, at) => {
      for (let read = reads.pop(); read !== undefined; read = reads.pop()) {
        let tries = 0;
        const process = `${this.successors.label}sweep${at}`;
        while ((await this.attempt(process, this.prng, read)).kind !== "ok") {
          if (++tries < SWEEP_TRIES_MAX) await sleep(20);
          else break;
        }
        if (tries === SWEEP_TRIES_MAX) unserved++;
      }
    });
    await Promise.all(readers);
    return unserved;
  }

  close(): void {
    for (const endpoint of this.endpoints.values()) endpoint.close();
  }

  private async attempt(
    process: string,
    prng: Prng,
    operation: Operation,
    cursor: string | null = null,
  ): Promise<Outcome> {
    const node = 1 + prng.below(this.nodes.count);
    const isRest = operation.kind === "kv-range" || prng.chance(1, 2);
    const endpoint = this.endpoints.get(`${isRest ? "rest" : "grpc"} ${node}`) as Endpoint;
    const { history } = this;
    const before = this.nodes.disturbances.get(node) ?? 0;
    const beganMs = performance.now();
    const id = history.call(process, node, operation, beganMs, BOUND_MS);
    const outcome = await endpoint.call(operation, cursor);
    const nowMs = performance.now();
    const isLost = outcome.kind === "unknown" && outcome.reason.startsWith("lost");
    const wasDisturbed = (this.nodes.disturbances.get(node) ?? 0) !== before;
    if (isLost && wasDisturbed) history.lost(id, outcome.reason, nowMs);
    else history.answered(id, outcome, nowMs);
    this.outcomes[outcome.kind]++;
    if (outcome.kind !== "ok") {
      const tookSeconds = Math.round((nowMs - beganMs) / 1000);
      const reason = `${operation.kind}: ${outcome.reason.slice(0, 40)} after ${tookSeconds} s`;
      const reasons = outcome.kind === "unknown" ? this.unknownReasons : this.refusedReasons;
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    return outcome;
  }

  private async client(process: string, prng: Prng): Promise<void> {
    while (!this.isStopped && !this.history.isFull()) {
      const era = this.eraAt(performance.now());
      const choice = prng.below(10);
      if (prng.chance(this.rangeShare, 10)) {
        await this.ranged.use(prng, (operation, cursor) =>
          this.attempt(process, prng, operation, cursor),
        );
      } else if (choice < 3) await this.useLock(process, prng, `e${era}/lock-${prng.below(LOCKS)}`);
      else if (choice < 7) await this.useSequence(process, prng, era);
      else await this.useKey(process, prng, `e${era}/key-${prng.below(KEYS)}`);
      await sleep(5 + prng.below(60));
    }
  }

  private async useLock(process: string, prng: Prng, resource: string): Promise<void> {
    const owner = `${process}-${this.serial++}`;
    const ephemeral = prng.chance(1, 6);
    const leaseMs = LEASES_MS[prng.below(LEASES_MS.length)] as number;
    const of = (kind: "try-lock" | "try-extend" | "try-unlock" | "get-lock"): Operation => ({
      kind,
      resource,
      ephemeral,
      owner: kind === "get-lock" ? "" : owner,
      expiresMs: kind === "try-lock" || kind === "try-extend" ? leaseMs : 0,
    });
    const outcome = await this.attempt(process, prng, of("try-lock"));
    if (outcome.kind === "unknown") {
      await this.attempt(process, prng, of("try-unlock"));
      return;
    }
    if (outcome.kind !== "ok") return;
    const { type, token } = outcome.result as LockResult;
    if (type !== "Locked" || token === null) {
      if (prng.chance(1, 3)) await this.attempt(process, prng, of("get-lock"));
      return;
    }
    if (!ephemeral) this.store.write(resource, owner, token);
    if (prng.chance(1, 3)) await this.attempt(process, prng, of("try-extend"));
    if (!ephemeral && leaseMs <= 1500 && prng.chance(1, 8)) {
      // A holder that was away for longer than its lease and writes late: the store decides.
      await sleep(leaseMs * 2);
      this.store.write(resource, owner, token);
    }
    // Some are forgotten and expire.
    if (leaseMs > 1500 || prng.chance(1, 2)) await this.attempt(process, prng, of("try-unlock"));
  }

  private async useSequence(process: string, prng: Prng, era: number): Promise<void> {
    const name = `e${era}/seq-${prng.below(SEQUENCES)}`;
    if (!this.created.has(name)) {
      const shape = { initialValue: 0n, increment: 1n, maxValue: null, blockSize: null };
      const made = await this.attempt(process, prng, { kind: "create-sequence", name, ...shape });
      if (made.kind === "ok") this.created.add(name);
      return;
    }
    const choice = prng.below(24);
    if (choice === 0) {
      await this.attempt(process, prng, { kind: "get-sequence", name });
      return;
    }
    const count = prng.chance(1, 5) ? 2 + prng.below(3) : 1;
    const isKeyed = prng.chance(1, 5);
    const idempotencyKey = isKeyed ? `${this.successors.label}key-${this.serial++}` : null;
    const allocate: Operation = { kind: "allocate", name, count, idempotencyKey };
    let outcome = await this.attempt(process, prng, allocate);
    for (let again = 0; isKeyed && again < 3; again++) {
      if (outcome.kind === "ok" && !prng.chance(1, 2)) break;
      outcome = await this.attempt(process, prng, allocate);
    }
  }

  private async useKey(process: string, prng: Prng, key: string): Promise<void> {
    const plain = { key, ephemeral: false };
    const read: Operation = { kind: "kv-get", ...plain, expiresMs: 0, revision: -1n };
    const write = (flags: number, compareRevision: bigint, expiresMs = 0): Operation => ({
      kind: "kv-set",
      ...plain,
      value: `${this.successors.label}v${this.serial++}`,
      compareValue: null,
      compareRevision,
      expiresMs,
      flags,
    });
    const choice = prng.below(12);
    if (choice < 5) await this.attempt(process, prng, read);
    else if (choice < 8) await this.attempt(process, prng, write(0, 0n));
    else if (choice === 8) await this.attempt(process, prng, write(0, 0n, 300));
    else if (choice === 9) {
      const remove: Operation = { kind: "kv-delete", ...plain, expiresMs: 0, revision: -1n };
      await this.attempt(process, prng, remove);
    } else {
      const seen = await this.attempt(process, prng, read);
      if (seen.kind !== "ok") return;
      const { type, revision } = seen.result as KvResult;
      if (type === "Got") {
        await this.attempt(process, prng, write(FLAG.ifEqualToRevision, revision));
      } else {
        await this.attempt(process, prng, write(FLAG.ifNotExists, 0n));
      }
    }
  }
}
