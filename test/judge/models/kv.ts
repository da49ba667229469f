/**
 * One key by rules K1 to K10, K18 and K19 of the contract, as a model for the linearizability checker; persistent and
 * ephemeral.
 *
 * Invariants: 1. Absent, deleted, expired, null and empty differ. 2. Revisions go on through delete and expiry while the
 * tombstone is kept. 3. An expiry may have passed only when its time can have passed on the lease clock.
 */
import type { Attempt, KvKeyOperation, KvResult, KvSetOperation, Operation } from "../history.js";
import type { Model, Step } from "../linear/model.js";
import { type KeptRevision, KeptRevisions, findRevision } from "./kept-revisions.js";
import {
  type Lease,
  type LeaseTime,
  leaseKey,
  mayBeOver,
  mayBePast,
  mayRun,
} from "./lease-time.js";

export interface KvState {
  /** -1: never set, or its tombstone was dropped. */
  readonly revision: bigint;
  readonly isTombstone: boolean;
  readonly value: string | null;
  readonly isPassing: boolean;
  /** Until its expiry, or since its deletion; null for a value without expiry. */
  readonly lease: Lease | null;
  readonly older: KeptRevision | null;
  readonly term: number | null;
}

export interface KvModelOptions {
  readonly time: LeaseTime;
  readonly ephemeral: boolean;
  /** --kv-revisions-retained. */
  readonly revisionsRetained: number;
  /** --kv-tombstone-retention; 0 = for ever. */
  readonly tombstoneRetentionMs: number;
  /** --kv-max-value-bytes. */
  readonly maxValueBytes: number;
  /** Values that any read or condition of the history names; others are not told apart. */
  readonly valuesNamed: ReadonlySet<string | null>;
  /** Whether any read asks for an exact revision: only then are older ones remembered. */
  readonly readsRevisions: boolean;
}

export const FLAG = {
  set: 1,
  noRevision: 2,
  ifExists: 4,
  ifNotExists: 8,
  ifEqualToValue: 16,
  ifEqualToRevision: 32,
} as const;
const FLAGS_ALL = 63;

const NAME_BYTES_MAX = 1024;
const EXPIRES_MAX_MS = 2 ** 31 - 1;

export const KV_OPTIONS = {
  revisionsRetained: 16,
  tombstoneRetentionMs: 86_400_000,
  maxValueBytes: 1_048_576,
} as const;

const NEVER: Omit<KvState, "term"> = {
  revision: -1n,
  isTombstone: false,
  value: null,
  isPassing: false,
  lease: null,
  older: null,
};

export class KvModel implements Model<KvState> {
  readonly initial: KvState;
  private readonly kept = new KeptRevisions();

  /** `first`: what a restore left of it; null: nothing. */
  constructor(
    private readonly options: KvModelOptions,
    first: (kept: KeptRevisions) => KvState | null = () => null,
  ) {
    this.initial = first(this.kept) ?? { ...NEVER, term: null };
  }

  step(state: KvState, step: Step): readonly KvState[] {
    const operation = step.operation as KvSetOperation | KvKeyOperation;
    const result = step.result as KvResult | null;
    if (!isAcceptable(operation, this.options.maxValueBytes)) {
      return result !== null && result.type === "InvalidInput" && result.revision === 0n
        ? [state]
        : [];
    }
    const reached: KvState[] = [];
    for (const base of this.bases(state, step)) {
      if (this.mayLive(base, step))
        reached.push(...this.decided(base, true, operation, result, step));
      if (this.mayBeGone(base, step)) {
        reached.push(...this.decided(seenOver(base), false, operation, result, step));
      }
    }
    return reached;
  }

  key(state: KvState): string {
    const { revision, isTombstone, value, isPassing, lease, older, term } = state;
    const place = `${revision} ${isTombstone} ${isPassing} ${term} ${older?.number ?? 0}`;
    return `${place} ${leaseKey(lease)} ${value === null ? "null" : `=${value}`}`;
  }

  isRead(operation: Operation): boolean {
    return operation.kind === "kv-get" || operation.kind === "kv-exists";
  }

  signature(attempt: Attempt): string {
    let { operation } = attempt;
    if (operation.kind === "kv-set" && !this.options.valuesNamed.has(operation.value)) {
      operation = { ...operation, value: "any" };
    }
    return JSON.stringify(operation, (_name, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
  }

  describe(state: KvState): string {
    const { revision, isTombstone, value, lease } = state;
    if (revision === -1n) return "never set";
    if (isTombstone) return `deleted at revision ${revision}`;
    const expiry = lease === null ? "" : `, expires: ${leaseKey(lease)}`;
    return `revision ${revision}, value ${JSON.stringify(value)}${expiry}`;
  }

  /** What the operation may find: leaderships end (K19), tombstones and expired values are dropped (K1). */
  private bases(state: KvState, step: Step): readonly KvState[] {
    if (!this.options.ephemeral) {
      return this.mayBeDropped(state, step) ? [state, { ...NEVER, term: null }] : [state];
    }
    // Whatever is found lost was lost to a leadership that is known only if the answer's is.
    const lost = { ...NEVER, term: step.term };
    if (step.term !== null && state.term !== null && step.term < state.term) return [];
    if (state.revision === -1n) return [state.term === step.term ? state : lost];
    if (step.term === null) return [state, lost];
    if (state.term === null) return [{ ...state, term: step.term }, lost];
    if (step.term > state.term) return [lost];
    return this.mayBeDropped(state, step) ? [state, lost] : [state];
  }

  private mayBeDropped(state: KvState, step: Step): boolean {
    const { tombstoneRetentionMs, time, ephemeral } = this.options;
    if (state.lease === null || tombstoneRetentionMs === 0) return false;
    const retentionMs = ephemeral ? 0 : tombstoneRetentionMs;
    return mayBePast(state.lease, time, step.toMs, retentionMs);
  }

  private mayLive(state: KvState, step: Step): boolean {
    if (state.revision === -1n || state.isTombstone) return false;
    return state.lease === null || mayRun(state.lease, this.options.time, step.fromMs);
  }

  private mayBeGone(state: KvState, step: Step): boolean {
    if (state.revision === -1n || state.isTombstone) return true;
    return state.lease !== null && mayBeOver(state.lease, this.options.time, step.toMs);
  }

  private decided(
    state: KvState,
    live: boolean,
    operation: KvSetOperation | KvKeyOperation,
    result: KvResult | null,
    step: Step,
  ): readonly KvState[] {
    switch (operation.kind) {
      case "kv-set":
        return this.set(state, live, operation, result, step);
      case "kv-extend":
        return this.extend(state, live, operation, result, step);
      case "kv-delete":
        return this.remove(state, live, result, step);
      case "kv-get":
      case "kv-exists":
        return this.read(state, live, operation, result, step);
    }
  }

  private set(
    state: KvState,
    live: boolean,
    operation: KvSetOperation,
    result: KvResult | null,
    step: Step,
  ): readonly KvState[] {
    const revision = state.revision + 1n;
    if (!conditionsHold(state, live, operation)) {
      return isResult(result, "NotSet", state.revision) ? [state] : [];
    }
    if (result !== null && !isResult(result, "Set", revision)) return [];
    const { value, expiresMs, flags } = operation;
    return [
      {
        ...state,
        revision,
        isTombstone: false,
        value,
        isPassing: (flags & FLAG.noRevision) !== 0,
        lease: expiresMs === 0 ? null : leaseFrom(step, expiresMs),
        older: this.superseded(state, live, step),
      },
    ];
  }

  private extend(
    state: KvState,
    live: boolean,
    operation: KvKeyOperation,
    result: KvResult | null,
    step: Step,
  ): readonly KvState[] {
    if (!live) return isResult(result, "DoesNotExist", 0n) ? [state] : [];
    if (result !== null && !isResult(result, "Extended", state.revision)) return [];
    return [{ ...state, lease: leaseFrom(step, operation.expiresMs) }];
  }

  /** K9, K10. */
  private remove(
    state: KvState,
    live: boolean,
    result: KvResult | null,
    step: Step,
  ): readonly KvState[] {
    if (!live) {
      const shown = state.isTombstone ? state.revision : 0n;
      return isResult(result, "DoesNotExist", shown) ? [state] : [];
    }
    const revision = state.revision + 1n;
    if (result !== null && !isResult(result, "Deleted", revision)) return [];
    const lease = leaseFrom(step, 0);
    const older = this.superseded(state, live, step);
    return [{ ...state, revision, isTombstone: true, value: null, isPassing: true, lease, older }];
  }

  /** K2, K3. */
  private read(
    state: KvState,
    live: boolean,
    operation: KvKeyOperation,
    result: KvResult | null,
    step: Step,
  ): readonly KvState[] {
    if (result === null) return [];
    const isGet = operation.kind === "kv-get";
    const found = isGet ? "Got" : "Exists";
    const isNothing = isResult(result, "DoesNotExist", 0n) && result.value === null;
    if (operation.revision === -1n || operation.revision === state.revision) {
      if (!live) return isNothing ? [state] : [];
      const same = result.value === (isGet ? state.value : null);
      return same && isResult(result, found, state.revision) ? [state] : [];
    }
    const kept = findRevision(state.older, operation.revision);
    if (kept === null || operation.revision > state.revision) return isNothing ? [state] : [];
    const { entry, newer } = kept;
    if (isNothing) {
      const mustBeKept = entry.isSure && newer < this.options.revisionsRetained - 1;
      const mayHaveEnded =
        entry.lease !== null && mayBeOver(entry.lease, this.options.time, step.toMs);
      // What is past its retention is collected in parts: older revisions may go before the tombstone (K1, K2).
      const mayBeCollected = this.mayBeDropped(state, step);
      return !mustBeKept || mayHaveEnded || mayBeCollected ? [state] : [];
    }
    const same = result.value === (isGet ? entry.value : null);
    const runs = entry.lease === null || mayRun(entry.lease, this.options.time, step.fromMs);
    return same && runs && isResult(result, found, entry.revision) ? [state] : [];
  }

  /** What remains readable of the latest revision once it is superseded (K2, K6). */
  private superseded(state: KvState, live: boolean, step: Step): KeptRevision | null {
    const { revision, value, lease, isPassing, older } = state;
    if (!this.options.readsRevisions) return older;
    // Whoever sets a key that is past its retention may find it collected in part.
    if (!live && this.mayBeDropped(state, step)) return this.kept.unsure(older);
    if (!live || isPassing) return older;
    return this.kept.add(older, { revision, value, lease, isSure: lease === null });
  }
}

function seenOver(state: KvState): KvState {
  if (state.isTombstone || state.lease === null || state.lease.seenOver) return state;
  return { ...state, lease: { ...state.lease, seenOver: true } };
}

function leaseFrom(step: Step, leaseMs: number): Lease {
  return {
    leaseMs,
    startMinMs: step.askedMs ?? step.fromMs,
    startMaxMs: step.toMs,
    seenOver: false,
  };
}

function isResult(result: KvResult | null, type: KvResult["type"], revision: bigint): boolean {
  return result !== null && result.type === type && result.revision === revision;
}

/** K5. */
function conditionsHold(state: KvState, live: boolean, operation: KvSetOperation): boolean {
  const { flags, compareValue, compareRevision } = operation;
  if ((flags & FLAG.ifExists) !== 0 && !live) return false;
  if ((flags & FLAG.ifNotExists) !== 0 && live) return false;
  if ((flags & FLAG.ifEqualToRevision) !== 0 && compareRevision !== state.revision) return false;
  if ((flags & FLAG.ifEqualToValue) === 0) return true;
  return (live ? (state.value ?? "") : "") === (compareValue ?? "");
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** K3, K5, K8, K18: what a request on one key must be like. */
function isAcceptable(operation: KvSetOperation | KvKeyOperation, maxValueBytes: number): boolean {
  const { key, expiresMs } = operation;
  if (bytesOf(key) < 1 || bytesOf(key) > NAME_BYTES_MAX || key.startsWith("__svc:")) return false;
  if (operation.kind === "kv-extend") return expiresMs >= 1 && expiresMs <= EXPIRES_MAX_MS;
  if (operation.kind !== "kv-set") return operation.revision >= -1n;
  const { flags, value } = operation;
  if ((flags & ~FLAGS_ALL) !== 0 || expiresMs < 0 || expiresMs > EXPIRES_MAX_MS) return false;
  if (value !== null && bytesOf(value) > maxValueBytes) return false;
  return (flags & FLAG.ifExists) === 0 || (flags & FLAG.ifNotExists) === 0;
}
