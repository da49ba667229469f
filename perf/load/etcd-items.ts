/**
 * What the load driver says to an etcd node, and what it reads from the answers: put, linearizable
 * range, a counter by compare-and-swap, lock and unlock under a lease, watches.
 *
 * Owns the state of its slots. Bodies are written by hand from the field numbers of etcd's public
 * rpc.proto, kv.proto and v3lock.proto. Invariants: 1. Each does what its counterpart of svc does,
 * in the way that is cheapest for etcd: a failed swap reads in the same call what the next one needs.
 * 2. An operation is counted when its effect is confirmed, with all the calls that it took.
 */
import { prefixed, sharedName } from "./grpc-items.js";

export const ETCD_KINDS = [
  "etcd-put",
  "etcd-get",
  "etcd-counter",
  "etcd-lock",
  "etcd-handoff",
] as const;
export type EtcdKind = (typeof ETCD_KINDS)[number];

/** One call: its path and its body with the prefix of gRPC. */
export interface EtcdCall {
  readonly path: string;
  readonly body: Buffer;
}

/** What one slot does, over and over. */
export interface EtcdSlot {
  /** Of slots that hand one lock on: whether this one has it. */
  readonly isHolder?: boolean;
  next(): EtcdCall;
  /** The outcome of the operation; null: it goes on with `next`. Throws on what is no answer. */
  answered(message: Buffer): number | null;
}

/** Outcomes that the tally counts. */
const DONE = 0;
const NOT_FOUND = 1;

const LEASE_SECONDS = 600n;

const Field = {
  header: 1,
  headerRevision: 3,
  rangeKey: 1,
  rangeKvs: 2,
  kvModRevision: 3,
  kvValue: 5,
  putKey: 1,
  putValue: 2,
  operationRange: 1,
  operationPut: 2,
  compareTarget: 2,
  compareKey: 3,
  compareModRevision: 6,
  txnCompare: 1,
  txnSuccess: 2,
  txnFailure: 3,
  txnSucceeded: 2,
  txnResponses: 3,
  leaseTtl: 1,
  leaseId: 2,
  lockName: 1,
  lockLease: 2,
  lockKey: 2,
  unlockKey: 1,
  watchCreate: 1,
  watchKey: 1,
  watchEnd: 2,
} as const;
/** Compare.CompareTarget MOD; its result EQUAL is 0, which is not written. */
const TARGET_MOD = 2n;

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function number(field: number, value: bigint): Buffer {
  return value === 0n
    ? Buffer.alloc(0)
    : Buffer.concat([varint(BigInt(field << 3)), varint(value)]);
}

function bytes(field: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const tag = varint(BigInt((field << 3) | 2));
  return Buffer.concat([tag, varint(BigInt(content.length)), content]);
}

/** The fields of a message: varints as numbers, the rest as bytes. */
class Fields {
  private readonly numbers = new Map<number, bigint>();
  private readonly contents = new Map<number, Buffer>();
  private at = 0;

  constructor(private readonly message: Buffer) {
    while (this.at < message.length) {
      const tag = Number(this.varint());
      if ((tag & 7) === 0) this.numbers.set(tag >>> 3, this.varint());
      else if ((tag & 7) === 2) this.take(tag >>> 3);
      else throw new Error(`an answer of etcd has a field of wire type ${tag & 7}`);
    }
  }

  number(field: number): bigint {
    return this.numbers.get(field) ?? 0n;
  }

  /** The last one of that number; null when there is none. */
  content(field: number): Buffer | null {
    return this.contents.get(field) ?? null;
  }

  inner(field: number): Fields {
    return new Fields(this.content(field) ?? Buffer.alloc(0));
  }

  private take(field: number): void {
    const size = Number(this.varint());
    if (this.at + size > this.message.length) throw new Error("an answer of etcd is cut off");
    this.contents.set(field, this.message.subarray(this.at, this.at + size));
    this.at += size;
  }

  private varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.message[this.at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error("an answer of etcd is malformed");
  }
}

function rangeBody(key: Buffer): Buffer {
  // Not serializable: linearizable, as by default.
  return bytes(Field.rangeKey, key);
}

function putBody(key: Buffer, value: Buffer): Buffer {
  return Buffer.concat([bytes(Field.putKey, key), bytes(Field.putValue, value)]);
}

/** A linearizable read of one key. */
export function rangeCall(key: string): EtcdCall {
  return { path: "/etcdserverpb.KV/Range", body: prefixed(rangeBody(Buffer.from(key))) };
}

export function putCall(key: string, value: Buffer): EtcdCall {
  return { path: "/etcdserverpb.KV/Put", body: prefixed(putBody(Buffer.from(key), value)) };
}

/** The message that begins a watch of a key, or of all that begin with it. */
export function watchBody(name: string, isPrefix: boolean): Buffer {
  const key = Buffer.from(name);
  const end = Buffer.from(key);
  // All names of the drivers end with a character that has a next one.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  const range = isPrefix ? bytes(Field.watchEnd, end) : Buffer.alloc(0);
  return bytes(Field.watchCreate, bytes(Field.watchKey, key), range);
}

function putSlot(key: string, valueBytes: number): EtcdSlot {
  const call = putCall(key, Buffer.alloc(valueBytes, 0x61));
  return { next: () => call, answered: (message) => (confirmed(message), DONE) };
}

function getSlot(key: string): EtcdSlot {
  const call = rangeCall(key);
  return {
    next: () => call,
    answered: (message) => (confirmed(message).content(Field.rangeKvs) ? DONE : NOT_FOUND),
  };
}

/** An answer as etcd gives it: with a header that names a revision. */
function confirmed(message: Buffer): Fields {
  const fields = new Fields(message);
  if (fields.inner(Field.header).number(Field.headerRevision) === 0n) {
    throw new Error("an answer of etcd has no revision");
  }
  return fields;
}

/** Counts one key up: swaps if nobody else did since it was read, else reads it and tries again. */
class CounterSlot implements EtcdSlot {
  private readonly key: Buffer;
  private modRevision = 0n;
  private value = 0n;

  constructor(key: string) {
    this.key = Buffer.from(key);
  }

  next(): EtcdCall {
    const value = Buffer.from(String(this.value + 1n));
    const body = Buffer.concat([
      bytes(
        Field.txnCompare,
        number(Field.compareTarget, TARGET_MOD),
        bytes(Field.compareKey, this.key),
        // A member of a oneof is written also when it is zero: a key that does not exist.
        varint(BigInt(Field.compareModRevision << 3)),
        varint(this.modRevision),
      ),
      bytes(Field.txnSuccess, bytes(Field.operationPut, putBody(this.key, value))),
      bytes(Field.txnFailure, bytes(Field.operationRange, rangeBody(this.key))),
    ]);
    return { path: "/etcdserverpb.KV/Txn", body: prefixed(body) };
  }

  answered(message: Buffer): number | null {
    const fields = confirmed(message);
    if (fields.number(Field.txnSucceeded) === 1n) {
      this.modRevision = fields.inner(Field.header).number(Field.headerRevision);
      this.value += 1n;
      return DONE;
    }
    const range = fields.inner(Field.txnResponses).inner(Field.operationRange);
    const found = range.inner(Field.rangeKvs);
    this.modRevision = found.number(Field.kvModRevision);
    this.value = BigInt(found.content(Field.kvValue)?.toString() ?? "0");
    return null;
  }
}

/** Takes and releases a lock of its own, in turns, under a lease of its own. */
class LockSlot implements EtcdSlot {
  private readonly name: Buffer;
  private lease = 0n;
  private held: Buffer | null = null;

  constructor(name: string) {
    this.name = Buffer.from(name);
  }

  get isHolder(): boolean {
    return this.held !== null;
  }

  next(): EtcdCall {
    if (this.lease === 0n) {
      const body = prefixed(number(Field.leaseTtl, LEASE_SECONDS));
      return { path: "/etcdserverpb.Lease/LeaseGrant", body };
    }
    if (this.held !== null) {
      const body = prefixed(bytes(Field.unlockKey, this.held));
      return { path: "/v3lockpb.Lock/Unlock", body };
    }
    const lease = number(Field.lockLease, this.lease);
    const body = prefixed(Buffer.concat([bytes(Field.lockName, this.name), lease]));
    return { path: "/v3lockpb.Lock/Lock", body };
  }

  answered(message: Buffer): number | null {
    const fields = confirmed(message);
    if (this.lease === 0n) {
      this.lease = fields.number(Field.leaseId);
      if (this.lease === 0n) throw new Error("etcd granted no lease");
      return null;
    }
    if (this.held === null) {
      this.held = fields.content(Field.lockKey);
      if (this.held === null) throw new Error("etcd did not name the key of a lock");
      // The buffer that it lies in is the connection's.
      this.held = Buffer.from(this.held);
    } else {
      this.held = null;
    }
    return DONE;
  }
}

/** `objects`: how many counters share the load; names and values as those of svc's own shapes. */
export function etcdSlot(
  kind: EtcdKind,
  slot: number,
  objects: number,
  prefix: string,
  valueBytes: number,
): EtcdSlot {
  switch (kind) {
    case "etcd-put":
      return putSlot(`${prefix}/${slot % 64}/key-${slot}`, valueBytes);
    case "etcd-get":
      return getSlot(`${prefix}/${slot % 64}/key-${slot}`);
    case "etcd-counter":
      return new CounterSlot(`perf/counter-${slot % objects}`);
    case "etcd-lock":
      return new LockSlot(`${prefix}/lock-${slot}`);
    case "etcd-handoff":
      return new LockSlot(sharedName(prefix));
  }
}
