/**
 * The requests that clients of the world make: drawn by the plan's weights, each in two forms, as
 * the service takes it and as the history records it; and answers as the history records them.
 *
 * Pure but for the generator and the counters that make values unique. Invariants: 1. Every value
 * ever written is unique, so that a read names its write. 2. What is drawn is a function of the
 * generator and of what the client saw before.
 */
import { decodeText, encodeText } from "../../src/base/bytes.js";
import { INT64_MAX, INT64_MIN } from "../../src/base/int64.js";
import type { Prng } from "../../src/base/prng.js";
import { KvFlag, KvType, LockType, SequenceType } from "../../src/machine/command.js";
import type {
  AllocationAnswer,
  DataAnswer,
  KvAnswer,
  KvPageAnswer,
  LockAnswer,
  SequenceAnswer,
} from "../../src/operations/answers.js";
import type { DataRequest } from "../../src/operations/requests.js";
import type {
  AllocationResult,
  KvManyReadResult,
  KvResult,
  LockResult,
  Operation,
  Outcome,
  SequenceResult,
} from "./history.js";
import { OPERATION_KINDS, type Plan, type WorkloadKind } from "./plan.js";

/** One operation in its two forms. */
export interface Ask {
  readonly kind: WorkloadKind;
  readonly request: DataRequest;
  readonly operation: Operation;
}

/** What a client remembers, so that its next operations make sense. */
export interface ClientMemory {
  readonly owner: string;
  /** Keys of allocations that ended unknown, to be tried again. */
  readonly unfinished: Ask[];
  lastValue: string | null;
  lastRevision: bigint;
}

const LEASES_MS = [50, 300, 1000, 5000, 60_000];
const PERSISTENT = 1;
const EPHEMERAL = 0;

type Cursor = { unique: number };

export class RequestSource {
  private readonly kinds: readonly WorkloadKind[];
  private readonly total: number;

  constructor(
    private readonly plan: Plan,
    private readonly prng: Prng,
    private readonly cursor: Cursor,
  ) {
    this.kinds = OPERATION_KINDS.filter((kind) => plan.operations[kind] > 0);
    this.total = this.kinds.reduce((sum, kind) => sum + plan.operations[kind], 0);
  }

  next(memory: ClientMemory): Ask {
    let at = this.prng.below(this.total);
    for (const kind of this.kinds) {
      at -= this.plan.operations[kind];
      if (at < 0) return this.make(kind, memory);
    }
    throw new Error("the weights add up");
  }

  private make(kind: WorkloadKind, memory: ClientMemory): Ask {
    switch (kind) {
      case "lock":
      case "ephemeral-lock":
      case "extend":
      case "unlock":
      case "get-lock":
        return this.lock(kind, memory);
      case "create":
      case "update":
      case "delete":
      case "get-sequence":
        return this.sequence(kind);
      case "next":
      case "next-keyed":
      case "reserve":
        return this.allocate(kind);
      case "set":
      case "set-conditional":
      case "set-expiring":
      case "ephemeral-set":
        return this.set(kind, memory);
      case "bucket":
        return this.bucket();
      default:
        return this.key(kind);
    }
  }

  private leaseMs(): number {
    return LEASES_MS[this.prng.below(LEASES_MS.length)] as number;
  }

  private lock(kind: WorkloadKind, memory: ClientMemory): Ask {
    const { prng, plan } = this;
    const ephemeralOn = plan.operations["ephemeral-lock"] > 0;
    const isPlain = kind === "lock" || !ephemeralOn;
    const ephemeral = kind === "ephemeral-lock" || (!isPlain && prng.chance(1, 3));
    const resource = `lock-${prng.below(plan.locks)}`;
    const expiresMs = kind === "unlock" || kind === "get-lock" ? 0 : this.leaseMs();
    const owner = kind === "get-lock" ? "" : memory.owner;
    const durability = ephemeral ? EPHEMERAL : PERSISTENT;
    const bytes = encodeText(owner);
    switch (kind) {
      case "extend":
        return {
          kind,
          request: { kind: "try-extend", resource, owner: bytes, expiresMs, durability },
          operation: { kind: "try-extend", resource, ephemeral, owner, expiresMs },
        };
      case "unlock":
        return {
          kind,
          request: { kind: "try-unlock", resource, owner: bytes, durability },
          operation: { kind: "try-unlock", resource, ephemeral, owner, expiresMs },
        };
      case "get-lock":
        return {
          kind,
          request: { kind: "get-lock", resource, durability },
          operation: { kind: "get-lock", resource, ephemeral, owner, expiresMs },
        };
      default:
        return {
          kind,
          request: { kind: "try-lock", resource, owner: bytes, expiresMs, durability },
          operation: { kind: "try-lock", resource, ephemeral, owner, expiresMs },
        };
    }
  }

  private sequenceName(): string {
    // The first is hot: half of all operations on sequences go there.
    const { prng, plan } = this;
    return `seq-${prng.chance(1, 2) ? 0 : prng.below(plan.sequences)}`;
  }

  /** Mostly small, now and then at the edge of int64. */
  private number(): bigint {
    const { prng } = this;
    if (prng.chance(1, 12)) return INT64_MAX - BigInt(prng.below(50));
    if (prng.chance(1, 24)) return INT64_MIN + BigInt(prng.below(50));
    return BigInt(prng.below(1000));
  }

  private sequence(kind: WorkloadKind): Ask {
    const { prng } = this;
    const name = this.sequenceName();
    const durability = PERSISTENT;
    if (kind === "delete" || kind === "get-sequence") {
      const both = kind === "delete" ? "delete-sequence" : "get-sequence";
      return { kind, request: { kind: both, name, durability }, operation: { kind: both, name } };
    }
    const increment = BigInt(1 + prng.below(3));
    const blockSize = prng.chance(1, 2) ? null : 1 + prng.below(20);
    if (kind === "create") {
      const initialValue = this.number();
      const bounded = prng.chance(1, 6) && initialValue < INT64_MAX - 1000n;
      const maxValue = bounded ? initialValue + BigInt(1 + prng.below(200)) : null;
      const both = {
        kind: "create-sequence",
        name,
        initialValue,
        increment,
        maxValue,
        blockSize,
      } as const;
      return { kind, request: { ...both, durability }, operation: both };
    }
    const both = {
      kind: "update-sequence",
      name,
      currentValue: prng.chance(1, 3) ? this.number() : null,
      increment: prng.chance(1, 3) ? increment : null,
      initialValue: null,
      maxValue: prng.chance(1, 5) ? this.number() : null,
      removeMaxValue: false,
      blockSize: prng.chance(1, 3) ? blockSize : null,
      removeBlockSize: false,
    } as const;
    const removeMaxValue = both.maxValue === null && prng.chance(1, 5);
    return {
      kind,
      request: { ...both, removeMaxValue, durability },
      operation: { ...both, removeMaxValue },
    };
  }

  private allocate(kind: WorkloadKind): Ask {
    const { prng } = this;
    const name = this.sequenceName();
    const count = kind === "reserve" ? 1 + prng.below(30) : 1;
    const keyed = kind === "next-keyed" || (kind === "reserve" && prng.chance(1, 3));
    const idempotencyKey = keyed ? `key-${this.cursor.unique++}` : null;
    const durability = PERSISTENT;
    const operation = { kind: "allocate", name, count, idempotencyKey } as const;
    if (kind !== "reserve") {
      return {
        kind,
        request: { kind: "next-sequence", name, idempotencyKey, durability },
        operation,
      };
    }
    const request = { kind: "reserve-sequence", name, count, idempotencyKey, durability } as const;
    return { kind, request, operation };
  }

  private keyName(): string {
    const { prng, plan } = this;
    return `bucket-${prng.below(3)}/key-${prng.below(plan.keys)}`;
  }

  private set(kind: WorkloadKind, memory: ClientMemory): Ask {
    const { prng } = this;
    const key = this.keyName();
    const ephemeral = kind === "ephemeral-set";
    const isNull = prng.chance(1, 20);
    const padding = prng.chance(1, 15) ? "x".repeat(prng.below(3000)) : "";
    const value = isNull ? null : `v${this.cursor.unique++}${padding}`;
    const expiring = kind === "set-expiring" || (ephemeral && prng.chance(1, 2));
    let flags = 0;
    let compareValue: string | null = null;
    let compareRevision = -1n;
    if (kind === "set-conditional") {
      const choice = prng.below(4);
      if (choice === 0) flags = KvFlag.ifExists;
      else if (choice === 1) flags = KvFlag.ifNotExists;
      else if (choice === 2) {
        flags = KvFlag.ifEqualToValue;
        compareValue = memory.lastValue;
      } else {
        flags = KvFlag.ifEqualToRevision;
        compareRevision = memory.lastRevision < 0n ? 0n : memory.lastRevision;
      }
    }
    const expiresMs = expiring ? this.leaseMs() : 0;
    return {
      kind,
      request: {
        kind: "kv-set",
        key,
        value: value === null ? null : encodeText(value),
        compareValue: compareValue === null ? null : encodeText(compareValue),
        compareRevision,
        expiresMs,
        flags,
        durability: ephemeral ? EPHEMERAL : PERSISTENT,
        plain: true,
      },
      operation: {
        kind: "kv-set",
        key,
        ephemeral,
        value,
        compareValue,
        compareRevision,
        expiresMs,
        flags,
      },
    };
  }

  private key(kind: WorkloadKind): Ask {
    const key = this.keyName();
    const ephemeral = kind === "ephemeral-get";
    const durability = ephemeral ? EPHEMERAL : PERSISTENT;
    const revision = -1n;
    switch (kind) {
      case "kv-extend": {
        const expiresMs = this.leaseMs();
        return {
          kind,
          request: { kind: "kv-extend", key, expiresMs, durability, plain: true },
          operation: { kind: "kv-extend", key, ephemeral, expiresMs, revision },
        };
      }
      case "kv-delete":
        return {
          kind,
          request: { kind: "kv-delete", key, durability, plain: true },
          operation: { kind: "kv-delete", key, ephemeral, expiresMs: 0, revision },
        };
      default: {
        const both = kind === "exists" ? "kv-exists" : "kv-get";
        return {
          kind,
          request: { kind: both, key, revision, durability, plain: true },
          operation: { kind: both, key, ephemeral, expiresMs: 0, revision },
        };
      }
    }
  }

  private bucket(): Ask {
    const bucket = `bucket-${this.prng.below(3)}`;
    return {
      kind: "bucket",
      request: { kind: "kv-bucket", bucket, durability: PERSISTENT, plain: true },
      operation: { kind: "kv-bucket", prefix: bucket, ephemeral: false },
    };
  }
}

// Answers ----------------------------------------------------------------------------------------

const LOCK_NAMES: ReadonlyMap<number, LockResult["type"]> = new Map([
  [LockType.locked, "Locked"],
  [LockType.busy, "Busy"],
  [LockType.extended, "Extended"],
  [LockType.unlocked, "Unlocked"],
  [LockType.got, "Got"],
  [LockType.doesNotExist, "LockDoesNotExist"],
  [LockType.invalidOwner, "InvalidOwner"],
  [LockType.invalidInput, "InvalidInput"],
]);
const SEQUENCE_NAMES: ReadonlyMap<number, SequenceResult["type"]> = new Map([
  [SequenceType.success, "Success"],
  [SequenceType.notFound, "NotFound"],
  [SequenceType.alreadyExists, "AlreadyExists"],
  [SequenceType.invalidInput, "InvalidInput"],
  [SequenceType.maxValueExceeded, "MaxValueExceeded"],
]);
const KV_NAMES: ReadonlyMap<number, KvResult["type"]> = new Map([
  [KvType.set, "Set"],
  [KvType.notSet, "NotSet"],
  [KvType.extended, "Extended"],
  [KvType.got, "Got"],
  [KvType.deleted, "Deleted"],
  [KvType.exists, "Exists"],
  [KvType.doesNotExist, "DoesNotExist"],
  [KvType.invalidInput, "InvalidInput"],
]);

const ABORTED: Readonly<Record<DataAnswer["kind"], number>> = {
  lock: LockType.aborted,
  sequence: SequenceType.aborted,
  allocation: SequenceType.aborted,
  kv: KvType.aborted,
  "kv-many": KvType.aborted,
  "kv-page": KvType.aborted,
};

function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : decodeText(bytes);
}

/** The answer as the history records it. */
export function outcomeOf(answer: DataAnswer): Outcome {
  if (answer.refusal !== null) return { kind: "refused", reason: answer.refusal };
  if (answer.type === ABORTED[answer.kind]) return { kind: "refused", reason: "aborted" };
  const result = resultOf(answer);
  if (result === null) return { kind: "unknown", reason: `type ${answer.type}` };
  return { kind: "ok", result };
}

function resultOf(
  answer: DataAnswer,
): LockResult | SequenceResult | AllocationResult | KvResult | KvManyReadResult | null {
  switch (answer.kind) {
    case "lock":
      return lockResult(answer);
    case "sequence":
      return sequenceResult(answer);
    case "allocation":
      return allocationResult(answer);
    case "kv":
      return kvResult(answer);
    case "kv-page":
      return pageResult(answer);
    case "kv-many":
      return null;
  }
}

function lockResult(answer: LockAnswer): LockResult | null {
  const type = LOCK_NAMES.get(answer.type);
  if (type === undefined) return null;
  const token = answer.fencingToken.toBigInt();
  return { type, token, owner: text(answer.owner), expiresInMs: answer.expiresInMs };
}

function sequenceResult(answer: SequenceAnswer): SequenceResult | null {
  const type = SEQUENCE_NAMES.get(answer.type);
  if (type === undefined) return null;
  const { sequence } = answer;
  if (sequence === null) return { type, sequence: null, revision: BigInt(answer.revision) };
  const seen = {
    currentValue: sequence.currentValue.toBigInt(),
    initialValue: sequence.initialValue.toBigInt(),
    increment: sequence.increment.toBigInt(),
    maxValue: sequence.maxValue?.toBigInt() ?? null,
    blockSize: sequence.blockSize,
    incarnation: BigInt(sequence.incarnation),
    revision: BigInt(sequence.revision),
  };
  return { type, sequence: seen, revision: BigInt(answer.revision) };
}

function allocationResult(answer: AllocationAnswer): AllocationResult | null {
  const type = SEQUENCE_NAMES.get(answer.type);
  if (type === undefined) return null;
  const { allocation } = answer;
  if (allocation === null) return { type, start: 0n, end: 0n, count: 0, revision: 0n };
  const { start, end, count, revision } = allocation;
  return { type, start: start.toBigInt(), end: end.toBigInt(), count, revision: BigInt(revision) };
}

function kvResult(answer: KvAnswer): KvResult | null {
  const type = KV_NAMES.get(answer.type);
  if (type === undefined) return null;
  return { type, value: text(answer.value), revision: BigInt(answer.revision) };
}

function pageResult(answer: KvPageAnswer): KvManyReadResult | null {
  if (answer.tooLarge) return null;
  if (answer.type === KvType.invalidInput) return { type: "InvalidInput", items: [] };
  if (answer.type !== KvType.got) return null;
  const items = answer.items.map((item) => {
    return { key: item.key, value: text(item.value), revision: BigInt(item.revision) };
  });
  return { type: "Got", items };
}
