/**
 * What clients saw: every attempt of every operation with its call and its end. The simulator and the tests with real
 * processes both record into this, and the checkers read nothing else about clients.
 *
 * Invariants: 1. Every attempt is an event of its own; a repeat is another attempt (P-169). 2. An attempt that was not
 * answered with a result stays open to the end of the history: it may have happened at any time after its call, or
 * never. 3. `order` numbers are a total order of all calls and returns in real time; `ms` is true time (of the simulated
 * universe, or the monotonic clock that the recording process shares with the clients). 4. int64 values are bigint.
 * 5. The history is bounded by its capacity: when it is full the workload has to stop, nothing is dropped silently.
 */

export interface LockOperation {
  readonly kind: "try-lock" | "try-extend" | "try-unlock" | "get-lock";
  readonly resource: string;
  readonly ephemeral: boolean;
  /** "" for get-lock. */
  readonly owner: string;
  /** 0 for try-unlock and get-lock. */
  readonly expiresMs: number;
}
export interface CreateOperation {
  readonly kind: "create-sequence";
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
}
export interface UpdateOperation {
  readonly kind: "update-sequence";
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
}
export interface SequenceOperation {
  readonly kind: "get-sequence" | "delete-sequence";
  readonly name: string;
}
export interface AllocateOperation {
  /** next is reserve with count 1. */
  readonly kind: "allocate";
  readonly name: string;
  readonly count: number;
  /** null = none. */
  readonly idempotencyKey: string | null;
}
export interface KvSetOperation {
  readonly kind: "kv-set";
  readonly key: string;
  readonly ephemeral: boolean;
  /** null = "exists, holds nothing". */
  readonly value: string | null;
  readonly compareValue: string | null;
  readonly compareRevision: bigint;
  /** 0 = none. */
  readonly expiresMs: number;
  /** Bits of the contract (FLAG in models/kv.ts); 0 = unconditional. */
  readonly flags: number;
}
export interface KvKeyOperation {
  readonly kind: "kv-extend" | "kv-delete" | "kv-get" | "kv-exists";
  readonly key: string;
  readonly ephemeral: boolean;
  /** Of extend, else 0. */
  readonly expiresMs: number;
  /** Of get and exists: -1 latest; else -1. */
  readonly revision: bigint;
}
/** A bucket, prefix or range read of persistent or ephemeral keys that was answered whole (not a page of many). */
export interface KvManyReadOperation {
  readonly kind: "kv-bucket" | "kv-scan";
  /** The bucket or the prefix. */
  readonly prefix: string;
  readonly ephemeral: boolean;
}
export type Operation =
  | LockOperation
  | CreateOperation
  | UpdateOperation
  | SequenceOperation
  | AllocateOperation
  | KvSetOperation
  | KvKeyOperation
  | KvManyReadOperation;
export type OperationKind = Operation["kind"];

export type LockResultType =
  | "Locked"
  | "Busy"
  | "Extended"
  | "Unlocked"
  | "Got"
  | "LockDoesNotExist"
  | "InvalidOwner"
  | "InvalidInput";
export interface LockResult {
  readonly type: LockResultType;
  /** null: the front end does not show it (unlock over gRPC). */
  readonly token: bigint | null;
  /** Of get-lock that found one. */
  readonly owner: string | null;
  /** null: the front end does not show it. */
  readonly expiresInMs: number | null;
}
export type SequenceResultType =
  "Success" | "NotFound" | "AlreadyExists" | "InvalidInput" | "MaxValueExceeded";
export interface SequenceSeen {
  readonly currentValue: bigint;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly incarnation: bigint;
  readonly revision: bigint;
}
export interface SequenceResult {
  readonly type: SequenceResultType;
  readonly sequence: SequenceSeen | null;
  readonly revision: bigint;
}
export interface AllocationResult {
  readonly type: SequenceResultType;
  /** Zeros when nothing was allocated. */
  readonly start: bigint;
  readonly end: bigint;
  readonly count: number;
  readonly revision: bigint;
}
export type KvResultType =
  "Set" | "NotSet" | "Extended" | "Got" | "Deleted" | "Exists" | "DoesNotExist" | "InvalidInput";
export interface KvResult {
  readonly type: KvResultType;
  /** Of get; null elsewhere and for the null value. */
  readonly value: string | null;
  readonly revision: bigint;
}
export interface KvManyReadResult {
  readonly type: "Got" | "InvalidInput";
  readonly items: readonly {
    readonly key: string;
    readonly value: string | null;
    readonly revision: bigint;
  }[];
}
export type OperationResult =
  LockResult | SequenceResult | AllocationResult | KvResult | KvManyReadResult;

export type Outcome =
  /** The service decided; InvalidInput and NotFound included. */
  | { readonly kind: "ok"; readonly result: OperationResult }
  /** Certainly not executed: overload with 503, Aborted, a connection that could not be made. */
  | { readonly kind: "refused"; readonly reason: string }
  /** MustRetry, Errored, a timeout, a lost connection. */
  | { readonly kind: "unknown"; readonly reason: string };

export interface Attempt {
  readonly id: number;
  /** The client that made it. */
  readonly process: string;
  /** The node that was asked; 0 when that is not known. */
  readonly node: number;
  readonly operation: Operation;
  readonly callOrder: number;
  readonly callMs: number;
  /** The answer is due this long after the call (true time, with the tester's slack); null = not bounded. */
  readonly boundMs: number | null;
  /** When the client got an answer of any kind; null = never. */
  readonly returnOrder: number | null;
  readonly returnMs: number | null;
  /** null while nothing is known: counts as unknown. */
  readonly outcome: Outcome | null;
  /** The term in which the answering leader decided, where the recorder can know it; null = not known. */
  readonly term: number | null;
  /** How many answers the client received; more than one breaks a promise of the service. */
  readonly answers: number;
  /** Why no answer can come (asked node ended, connection broken, client gone); null = one is due. */
  readonly lost: string | null;
}

interface OpenAttempt extends Attempt {
  returnOrder: number | null;
  returnMs: number | null;
  outcome: Outcome | null;
  term: number | null;
  answers: number;
  lost: string | null;
}

export interface History {
  readonly attempts: readonly Attempt[];
  /** True time when recording ended. */
  readonly endMs: number;
}

export class HistoryRecorder {
  private readonly recorded: OpenAttempt[] = [];
  private readonly capacity: number;
  private order = 0;
  private latestMs = 0;

  /** `capacity`: attempts that are kept at most. */
  constructor(capacity = 1_000_000) {
    this.capacity = capacity;
  }

  get size(): number {
    return this.recorded.length;
  }

  isFull(): boolean {
    return this.recorded.length >= this.capacity;
  }

  /** Records a call and returns the attempt's id. Throws when the history is full. */
  call(
    process: string,
    node: number,
    operation: Operation,
    nowMs: number,
    boundMs: number | null = null,
  ): number {
    if (this.isFull()) throw new Error(`the history holds ${this.capacity} attempts and is full`);
    const id = this.recorded.length;
    this.recorded.push({
      id,
      process,
      node,
      operation,
      callOrder: this.tick(nowMs),
      callMs: nowMs,
      boundMs,
      returnOrder: null,
      returnMs: null,
      outcome: null,
      term: null,
      answers: 0,
      lost: null,
    });
    return id;
  }

  /** Records the answer of attempt `id`. A second answer is counted and changes nothing else. */
  answered(id: number, outcome: Outcome, nowMs: number, term: number | null = null): void {
    const attempt = this.at(id);
    const order = this.tick(nowMs);
    attempt.answers += 1;
    if (attempt.answers > 1) return;
    attempt.returnOrder = order;
    attempt.returnMs = nowMs;
    attempt.outcome = outcome;
    attempt.term = term;
  }

  /** Records that no answer can come any more: the attempt stays unknown. */
  lost(id: number, reason: string, nowMs: number): void {
    const attempt = this.at(id);
    this.tick(nowMs);
    if (attempt.answers > 0 || attempt.lost !== null) return;
    attempt.lost = reason;
    attempt.outcome = { kind: "unknown", reason };
  }

  history(endMs: number = this.latestMs): History {
    return { attempts: this.recorded, endMs: Math.max(endMs, this.latestMs) };
  }

  private at(id: number): OpenAttempt {
    const attempt = this.recorded[id];
    if (attempt === undefined) throw new Error(`no attempt ${id} was recorded`);
    return attempt;
  }

  private tick(nowMs: number): number {
    if (nowMs > this.latestMs) this.latestMs = nowMs;
    return ++this.order;
  }
}

/** Joins histories whose clocks agree (one machine): orders are given anew by time, calls first where times are equal. */
export function mergeHistories(parts: readonly History[]): History {
  const attempts: OpenAttempt[] = [];
  const ends: { ms: number; isReturn: boolean; order: number; attempt: OpenAttempt }[] = [];
  for (const part of parts) {
    for (const recorded of part.attempts) {
      const attempt: OpenAttempt = { ...recorded, id: attempts.length };
      attempts.push(attempt);
      ends.push({ ms: attempt.callMs, isReturn: false, order: attempt.callOrder, attempt });
      if (attempt.returnMs !== null && attempt.returnOrder !== null) {
        ends.push({ ms: attempt.returnMs, isReturn: true, order: attempt.returnOrder, attempt });
      }
    }
  }
  ends.sort((a, b) => a.ms - b.ms || Number(a.isReturn) - Number(b.isReturn) || a.order - b.order);
  const renumbered = new Map<OpenAttempt, { call: number; end: number | null }>();
  for (const [at, end] of ends.entries()) {
    const known = renumbered.get(end.attempt);
    if (known === undefined) renumbered.set(end.attempt, { call: at + 1, end: null });
    else known.end = at + 1;
  }
  return {
    attempts: attempts.map((attempt) => {
      const orders = renumbered.get(attempt) as { call: number; end: number | null };
      return { ...attempt, callOrder: orders.call, returnOrder: orders.end };
    }),
    endMs: Math.max(0, ...parts.map((part) => part.endMs)),
  };
}

const INT64_TAG = "int64:";
const TEXT_TAG = "text:";

/** One line of JSON: process, call, return, operation with its arguments, outcome; int64 as tagged decimal text. */
export function attemptLine(attempt: Attempt): string {
  return JSON.stringify(attempt, (_name, value: unknown) => {
    if (typeof value === "bigint") return INT64_TAG + value.toString();
    if (typeof value === "string" && (value.startsWith(INT64_TAG) || value.startsWith(TEXT_TAG))) {
      return TEXT_TAG + value;
    }
    return value;
  });
}

/** The inverse of attemptLine. Throws on a line that is no attempt. */
export function attemptOfLine(line: string): Attempt {
  const attempt = JSON.parse(line, (_name, value: unknown) => {
    if (typeof value !== "string") return value;
    if (value.startsWith(INT64_TAG)) return BigInt(value.slice(INT64_TAG.length));
    return value.startsWith(TEXT_TAG) ? value.slice(TEXT_TAG.length) : value;
  }) as Attempt;
  if (typeof attempt.id !== "number" || typeof attempt.operation?.kind !== "string") {
    throw new Error(`not an attempt: ${line.slice(0, 80)}`);
  }
  return attempt;
}

/** The object whose history an attempt belongs to; null for reads of many keys. */
export function objectOf(operation: Operation): string | null {
  switch (operation.kind) {
    case "try-lock":
    case "try-extend":
    case "try-unlock":
    case "get-lock":
      return `${operation.ephemeral ? "ephemeral-lock" : "lock"} ${operation.resource}`;
    case "create-sequence":
    case "update-sequence":
    case "get-sequence":
    case "delete-sequence":
    case "allocate":
      return `sequence ${operation.name}`;
    case "kv-set":
    case "kv-extend":
    case "kv-delete":
    case "kv-get":
    case "kv-exists":
      return `${operation.ephemeral ? "ephemeral-key" : "key"} ${operation.key}`;
    case "kv-bucket":
    case "kv-scan":
      return null;
  }
}
