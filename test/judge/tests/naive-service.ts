/**
 * Histories of a service that is correct by being one plain object with no replication at all, at which many clients
 * ask at the same time, some answers are lost, and faults are planted on request.
 *
 * Each operation takes effect at one instant between its call and its answer. Invariant: the same options give the same
 * history.
 */
import { Prng } from "../../../src/base/prng.js";
import { type History, HistoryRecorder, type Operation, type OperationResult } from "../history.js";

export type PlantedFault =
  "stale read" | "value twice" | "token back" | "lost write" | "two holders";

export interface NaiveOptions {
  readonly seed: number;
  readonly operations: number;
  readonly objects: number;
  readonly unknownPerMille: number;
  readonly fault?: PlantedFault;
}

const CLIENTS = 64;
const LEASE_MS = 400;
const BLOCK = 1000n;

interface Lock {
  owner: string;
  token: bigint;
  endMs: number;
  released: boolean;
}
interface Sequence {
  served: bigint;
  blockEnd: bigint;
  revision: bigint;
  readonly keys: Map<string, OperationResult>;
}
interface Key {
  revision: bigint;
  value: string | null;
  deleted: boolean;
  previous: { readonly revision: bigint; readonly value: string | null } | null;
}

class NaiveService {
  private readonly locks = new Map<string, Lock>();
  private readonly sequences = new Map<string, Sequence>();
  private readonly keys = new Map<string, Key>();
  private effects = 0;

  constructor(private readonly fault: PlantedFault | null) {}

  /** The leader changes: open blocks are lost. */
  failOver(): void {
    for (const sequence of this.sequences.values()) sequence.served = sequence.blockEnd;
  }

  apply(operation: Operation, nowMs: number): OperationResult {
    this.effects++;
    switch (operation.kind) {
      case "try-lock":
      case "try-unlock":
      case "try-extend":
      case "get-lock":
        return this.lock(operation.kind, operation.resource, operation.owner, nowMs);
      case "allocate":
        return this.allocate(operation.name, operation.count, operation.idempotencyKey);
      case "create-sequence":
        return this.create(operation.name);
      case "kv-set":
        return this.set(operation.key, operation.value);
      case "kv-get":
        return this.get(operation.key);
      case "kv-delete":
        return this.remove(operation.key);
      default:
        throw new Error(`not made here: ${operation.kind}`);
    }
  }

  private isFaulty(fault: PlantedFault, every: number): boolean {
    return this.fault === fault && this.effects % every === 0;
  }

  private lock(kind: string, resource: string, owner: string, nowMs: number): OperationResult {
    const none = { token: 0n, owner: null, expiresInMs: 0 };
    const lock = this.locks.get(resource);
    const held = lock !== undefined && !lock.released && lock.endMs > nowMs;
    if (kind === "try-lock") {
      if (held && !this.isFaulty("two holders", 37)) {
        return lock.owner === owner
          ? { ...none, type: "Locked", token: lock.token }
          : { ...none, type: "Busy" };
      }
      let token = lock === undefined ? 0n : lock.token + 1n;
      if (this.isFaulty("token back", 31) && token > 0n) token -= 1n;
      this.locks.set(resource, { owner, token, endMs: nowMs + LEASE_MS, released: false });
      return { ...none, type: "Locked", token };
    }
    if (kind === "get-lock") {
      if (!held) return { ...none, type: "LockDoesNotExist" };
      const expiresInMs = Math.ceil(lock.endMs - nowMs);
      return { type: "Got", token: lock.token, owner: lock.owner, expiresInMs };
    }
    if (kind === "try-extend") {
      if (!held) return { ...none, type: "LockDoesNotExist" };
      if (lock.owner !== owner) return { ...none, type: "InvalidOwner" };
      lock.endMs = nowMs + LEASE_MS;
      return { ...none, type: "Extended", token: lock.token };
    }
    if (lock === undefined || lock.released) return { ...none, type: "LockDoesNotExist" };
    if (lock.owner !== owner) return { ...none, type: "InvalidOwner" };
    lock.released = true;
    return { ...none, type: "Unlocked", token: lock.token };
  }

  private create(name: string): OperationResult {
    if (this.sequences.has(name)) return { type: "AlreadyExists", sequence: null, revision: -1n };
    this.sequences.set(name, { served: 0n, blockEnd: 0n, revision: 0n, keys: new Map() });
    const sequence = {
      currentValue: 0n,
      initialValue: 0n,
      increment: 1n,
      maxValue: null,
      blockSize: null,
      incarnation: 0n,
      revision: 0n,
    };
    return { type: "Success", sequence, revision: 0n };
  }

  private allocate(name: string, count: number, key: string | null): OperationResult {
    const sequence = this.sequences.get(name);
    if (sequence === undefined) {
      return { type: "NotFound", start: 0n, end: 0n, count: 0, revision: 0n };
    }
    const known = key === null ? undefined : sequence.keys.get(key);
    if (known !== undefined) return known;
    if (this.isFaulty("value twice", 53) && sequence.served > 0n) sequence.served -= 1n;
    const start = sequence.served + 1n;
    const end = sequence.served + BigInt(count);
    if (key !== null || end > sequence.blockEnd) {
      sequence.revision += 1n;
      const size = BigInt(count) > BLOCK ? BigInt(count) : BLOCK;
      sequence.blockEnd = key === null ? sequence.served + size : end;
    }
    sequence.served = end;
    const { revision } = sequence;
    const result: OperationResult = { type: "Success", start, end, count, revision };
    if (key !== null) sequence.keys.set(key, result);
    return result;
  }

  private set(name: string, value: string | null): OperationResult {
    const key = this.keys.get(name);
    const revision = (key?.revision ?? -1n) + 1n;
    if (this.isFaulty("lost write", 41)) return { type: "Set", value: null, revision };
    const previous = key === undefined ? null : { revision: key.revision, value: key.value };
    this.keys.set(name, { revision, value, deleted: false, previous });
    return { type: "Set", value: null, revision };
  }

  private get(name: string): OperationResult {
    const key = this.keys.get(name);
    if (key === undefined || key.deleted)
      return { type: "DoesNotExist", value: null, revision: 0n };
    if (this.isFaulty("stale read", 29) && key.previous !== null) {
      return { type: "Got", ...key.previous };
    }
    return { type: "Got", value: key.value, revision: key.revision };
  }

  private remove(name: string): OperationResult {
    const key = this.keys.get(name);
    const revision = key === undefined ? 0n : key.revision;
    if (key === undefined || key.deleted) {
      return { type: "DoesNotExist", value: null, revision: key === undefined ? 0n : revision };
    }
    this.keys.set(name, { revision: revision + 1n, value: null, deleted: true, previous: null });
    return { type: "Deleted", value: null, revision: revision + 1n };
  }
}

interface Client {
  readonly name: string;
  holds: string | null;
  wasKey: Operation | null;
}

class Generator {
  private readonly prng: Prng;
  private readonly service: NaiveService;
  private readonly recorder: HistoryRecorder;
  private serial = 0;
  private readonly clients: Client[];

  constructor(private readonly options: NaiveOptions) {
    this.prng = new Prng(options.seed);
    this.service = new NaiveService(options.fault ?? null);
    this.recorder = new HistoryRecorder(options.operations + CLIENTS);
    this.clients = Array.from({ length: CLIENTS }, (_, at) => ({
      name: `c${at}`,
      holds: null,
      wasKey: null,
    }));
  }

  run(): History {
    const { prng, recorder, service, options } = this;
    /** What comes next for each client: a call, an effect or an answer. */
    const queue = this.clients.map((client, at) => ({
      atMs: at * 0.01,
      run: () => this.call(client),
    }));
    const pending: { atMs: number; run: Next }[] = queue;
    let nowMs = 0;
    while (recorder.size < options.operations && pending.length > 0) {
      let first = 0;
      for (let at = 1; at < pending.length; at++) {
        if ((pending[at] as { atMs: number }).atMs < (pending[first] as { atMs: number }).atMs) {
          first = at;
        }
      }
      const due = pending[first] as { atMs: number; run: Next };
      nowMs = due.atMs;
      this.nowMs = nowMs;
      const next = due.run();
      pending[first] = { atMs: nowMs + 0.05 + prng.below(4000) / 1000, run: next };
      if (prng.chance(1, 20_000)) service.failOver();
    }
    return recorder.history(nowMs);
  }

  private nowMs = 0;

  private call(client: Client): Next {
    const operation = this.draw(client);
    const id = this.recorder.call(client.name, 1, operation, this.nowMs, 10_000);
    return () => {
      const isLost = this.prng.below(1000) < this.options.unknownPerMille;
      if (isLost && this.prng.chance(1, 2)) return this.lose(client, id);
      const result = this.service.apply(operation, this.nowMs);
      if (isLost) return this.lose(client, id);
      return () => {
        this.recorder.answered(id, { kind: "ok", result }, this.nowMs);
        this.note(client, operation, result);
        return () => this.call(client);
      };
    };
  }

  private lose(client: Client, id: number): Next {
    return () => {
      this.recorder.lost(id, "the answer was lost", this.nowMs);
      return () => this.call(client);
    };
  }

  private note(client: Client, operation: Operation, result: OperationResult): void {
    if (operation.kind === "try-lock" && result.type === "Locked")
      client.holds = operation.resource;
    if (operation.kind === "try-unlock") client.holds = null;
    const keyed = operation.kind === "allocate" && operation.idempotencyKey !== null;
    client.wasKey = keyed && client.wasKey !== operation ? operation : null;
  }

  private draw(client: Client): Operation {
    const { prng, options } = this;
    const third = Math.max(1, Math.floor(options.objects / 3));
    const object = prng.below(third);
    if (client.wasKey !== null) return client.wasKey;
    if (client.holds !== null && prng.chance(1, 2)) {
      const kind = prng.chance(1, 3) ? "try-extend" : "try-unlock";
      const expiresMs = kind === "try-extend" ? LEASE_MS : 0;
      const owner = `${client.name}`;
      return { kind, resource: client.holds, ephemeral: false, owner, expiresMs };
    }
    switch (prng.below(3)) {
      case 0: {
        const kind = prng.chance(1, 3) ? "get-lock" : "try-lock";
        const owner = kind === "get-lock" ? "" : client.name;
        const expiresMs = kind === "get-lock" ? 0 : LEASE_MS;
        return { kind, resource: `r${object}`, ephemeral: false, owner, expiresMs };
      }
      case 1:
        return this.drawSequence(object);
      default:
        return this.drawKey(object);
    }
  }

  private drawSequence(object: number): Operation {
    const { prng } = this;
    const name = `s${object}`;
    if (prng.chance(1, 20)) {
      const shape = { initialValue: 0n, increment: 1n, maxValue: null, blockSize: null };
      return { kind: "create-sequence", name, ...shape };
    }
    const count = prng.chance(1, 4) ? 1 + prng.below(50) : 1;
    const idempotencyKey = prng.chance(1, 5) ? `key-${this.serial++}` : null;
    return { kind: "allocate", name, count, idempotencyKey };
  }

  private drawKey(object: number): Operation {
    const { prng } = this;
    const key = `b/k${object}`;
    const shape = { key, ephemeral: false, expiresMs: 0 };
    if (prng.chance(1, 3)) {
      const value = `v${this.serial++}`;
      const condition = { compareValue: null, compareRevision: 0n, flags: 0 };
      return { kind: "kv-set", ...shape, value, ...condition };
    }
    const kind = prng.chance(1, 12) ? "kv-delete" : "kv-get";
    return { kind, ...shape, revision: -1n };
  }
}

type Next = () => Next;

export function naiveHistory(options: NaiveOptions): History {
  return new Generator(options).run();
}
