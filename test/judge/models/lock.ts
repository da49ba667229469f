/**
 * One lock by rules L1 to L19 and Q13 of the contract, as a model for the linearizability checker; persistent and ephemeral.
 *
 * The token of a grant that nobody was told about is not known: only a lower bound of it is. Invariants: 1. `floor` is a
 * token that the lock's last grant has reached at least: every new grant is above it, across everything. 2. A lease may be
 * over only when its time can have passed on the lease clock. 3. An ephemeral lock may be lost with a leadership, its
 * tokens still rise (L15).
 */
import type { Attempt, LockOperation, LockResult, Operation } from "../history.js";
import type { Model, Need, Step } from "../linear/model.js";
import {
  type Lease,
  type LeaseTime,
  leaseKey,
  mayBeOver,
  mayBePast,
  mayRemain,
  mayRun,
} from "./lease-time.js";

export interface LockState {
  /** The last grant; null when there was none or its record was dropped. */
  readonly grant: {
    readonly owner: string;
    /** null: not known, at least `floor`. */
    readonly token: bigint | null;
    readonly lease: Lease;
    readonly released: boolean;
  } | null;
  readonly floor: bigint;
  /** Term in which an ephemeral lock was last seen; null = not known. */
  readonly term: number | null;
}

export interface LockModelOptions {
  readonly time: LeaseTime;
  readonly ephemeral: boolean;
  /** --lock-record-retention (L17). */
  readonly recordRetentionMs: number;
  /** --lock-max-lease. */
  readonly maxLeaseMs: number;
}

const NAME_BYTES_MAX = 1024;
const DAY_MS = 86_400_000;
const NOTHING: readonly Need[] = [];
/** No operation brings a token back. */
const NEVER: readonly Need[] = [{ kinds: 1, steps: 0, isAnew: false }];

/** Answers that tell the token of a grant. */
const SHOWS_GRANT: ReadonlySet<string> = new Set(["Locked", "Extended", "Unlocked", "Got"]);

export const LOCK_OPTIONS: Omit<LockModelOptions, "time" | "ephemeral"> = {
  recordRetentionMs: 3_600_000,
  maxLeaseMs: DAY_MS,
};

/** Whether a change may be meant for the grant with `token` (null: not known, at least `floor`). */
function mayMean(operation: LockOperation, token: bigint | null, floor: bigint): boolean {
  if (operation.fencingToken === undefined) return true;
  const meant = BigInt(operation.fencingToken);
  return token === null ? meant >= floor : meant === token;
}

/** Whether the holder of an open grant may be another one than the one that is meant. */
function mustRefuse({ grant }: LockState, operation: LockOperation): boolean {
  if (grant === null || grant.owner !== operation.owner) return true;
  if (operation.fencingToken === undefined) return false;
  return grant.token === null || grant.token !== BigInt(operation.fencingToken);
}

function isName(text: string): boolean {
  const bytes = new TextEncoder().encode(text).length;
  return bytes >= 1 && bytes <= NAME_BYTES_MAX;
}

export class LockModel implements Model<LockState> {
  readonly initial: LockState;

  /** `first`: what a restore left of it; null: nothing. */
  constructor(
    private readonly options: LockModelOptions,
    first: LockState | null = null,
  ) {
    this.initial = first ?? { grant: null, floor: -1n, term: null };
  }

  step(state: LockState, step: Step): readonly LockState[] {
    const operation = step.operation as LockOperation;
    const result = step.result as LockResult | null;
    if (!this.isAcceptable(operation)) {
      return result !== null && result.type === "InvalidInput" && result.token === 0n
        ? [state]
        : [];
    }
    const reached: LockState[] = [];
    for (const base of this.bases(state, step)) {
      if (result === null) reached.push(...this.possible(base, operation, step));
      else reached.push(...this.answered(base, operation, result, step));
    }
    return reached;
  }

  key(state: LockState): string {
    const { grant, floor, term } = state;
    if (grant === null) return `- ${floor} ${term}`;
    const token = grant.token ?? "?";
    return `${grant.owner} ${token} ${grant.released} ${leaseKey(grant.lease)} ${floor} ${term}`;
  }

  isRead(operation: Operation): boolean {
    return operation.kind === "get-lock";
  }

  signature(attempt: Attempt): string {
    return JSON.stringify(attempt.operation);
  }

  /**
   * Tokens only grow (L12): what shows one that later grants have passed has lost its place. Many who
   * wait together have but one order, that of their tokens, and every other one is left at once.
   */
  missing(
    state: LockState,
    operation: Operation,
    { type, token, owner }: LockResult,
  ): readonly Need[] {
    if (token === null || !SHOWS_GRANT.has(type)) return NOTHING;
    if (token < state.floor) return NEVER;
    const { grant } = state;
    if (grant === null || grant.token !== token) return NOTHING;
    const holder = operation.kind === "get-lock" ? owner : (operation as LockOperation).owner;
    return grant.owner === holder ? NOTHING : NEVER;
  }

  describe(state: LockState): string {
    const { grant, floor } = state;
    if (grant === null) return `never granted, tokens above ${floor}`;
    const { owner, token, released, lease } = grant;
    const what = released ? "released by" : lease.seenOver ? "over, last held by" : "held by";
    const since = `lease ${lease.leaseMs} ms since ${lease.startMinMs}..${lease.startMaxMs}`;
    return `${what} ${owner}, token ${token ?? `>= ${floor}`}, ${since}`;
  }

  /** L18. */
  private isAcceptable(operation: LockOperation): boolean {
    if (!isName(operation.resource)) return false;
    if (operation.kind === "get-lock") return true;
    if (!isName(operation.owner)) return false;
    if (operation.kind === "try-unlock" || operation.isPresumed === true) return true;
    return operation.expiresMs >= 1 && operation.expiresMs <= this.options.maxLeaseMs;
  }

  /** The states in which the operation may find the lock: its leadership may have ended before. */
  private bases(state: LockState, step: Step): readonly LockState[] {
    if (!this.options.ephemeral) return [state];
    // Whatever is found lost was lost to a leadership that is known only if the answer's is.
    const lost = { ...state, grant: null, term: step.term };
    if (step.term === null) return state.grant === null ? [lost] : [state, lost];
    const kept = step.term === state.term ? state : { ...state, term: step.term };
    if (state.term === null) return state.grant === null ? [kept] : [kept, lost];
    if (step.term < state.term) return [];
    return step.term === state.term ? [kept] : [lost];
  }

  private isFree(state: LockState, step: Step): boolean {
    const { grant } = state;
    if (grant === null || grant.released) return true;
    return mayBeOver(grant.lease, this.options.time, step.toMs);
  }

  private isHeld(state: LockState, step: Step): boolean {
    const { grant } = state;
    if (grant === null || grant.released) return false;
    return mayRun(grant.lease, this.options.time, step.fromMs);
  }

  private lease(operation: LockOperation, step: Step): Lease {
    const { fromMs, toMs } = step;
    const leaseMs = operation.expiresMs;
    return { leaseMs, startMinMs: step.askedMs ?? fromMs, startMaxMs: toMs, seenOver: false };
  }

  private granted(
    state: LockState,
    operation: LockOperation,
    step: Step,
    token: bigint | null,
  ): LockState {
    const lease = this.lease(operation, step);
    const grant = { owner: operation.owner, token, lease, released: false };
    return { ...state, grant, floor: token ?? state.floor + 1n };
  }

  /** Every change that the operation may have made when its answer is not known. */
  private possible(state: LockState, operation: LockOperation, step: Step): readonly LockState[] {
    const { grant } = state;
    if (operation.kind === "try-lock") {
      const { knownToken } = operation;
      const token = knownToken === undefined ? null : BigInt(knownToken);
      const isAbove = token === null || token > state.floor;
      return isAbove && this.isFree(state, step)
        ? [this.granted(state, operation, step, token)]
        : [];
    }
    if (grant === null || grant.released || grant.owner !== operation.owner) return [];
    if (!mayMean(operation, grant.token, state.floor)) return [];
    if (operation.kind === "try-unlock") return [{ ...state, grant: { ...grant, released: true } }];
    if (operation.kind !== "try-extend" || !this.isHeld(state, step)) return [];
    return [{ ...state, grant: { ...grant, lease: this.lease(operation, step) } }];
  }

  private answered(
    state: LockState,
    operation: LockOperation,
    result: LockResult,
    step: Step,
  ): readonly LockState[] {
    const { type, token } = result;
    const described =
      type === "Locked" || type === "Extended" || type === "Unlocked" || type === "Got";
    if (!described && token !== 0n) return [];
    if (token === null && type !== "Unlocked") return [];
    switch (operation.kind) {
      case "try-lock":
        if (type === "Locked") return this.locked(state, operation, token, step);
        return type === "Busy" ? this.refusedToOther(state, operation, step) : [];
      case "try-extend":
        if (type === "Extended") return this.extended(state, operation, token, step);
        if (type === "InvalidOwner") return this.refusedChange(state, operation, step);
        return type === "LockDoesNotExist" ? this.seenFree(state, step) : [];
      case "try-unlock":
        return this.unlocked(state, operation, result, step);
      case "get-lock":
        if (type === "Got") return this.got(state, result, step);
        return type === "LockDoesNotExist" ? this.seenFree(state, step) : [];
    }
  }

  /** The state in which the last grant is known to have this token; null when it cannot have. */
  private withToken(state: LockState, token: bigint | null): LockState | null {
    const { grant, floor } = state;
    if (grant === null) return null;
    if (token === null) return state;
    if (grant.token !== null) return grant.token === token ? state : null;
    if (token < floor) return null;
    return { ...state, grant: { ...grant, token }, floor: token };
  }

  /** L1, L2, L12. */
  private locked(
    state: LockState,
    operation: LockOperation,
    token: bigint | null,
    step: Step,
  ): readonly LockState[] {
    const reached: LockState[] = [];
    if (token !== null && token > state.floor && this.isFree(state, step)) {
      reached.push(this.granted(state, operation, step, token));
    }
    if (this.isHeld(state, step) && state.grant?.owner === operation.owner) {
      const same = this.withToken(state, token);
      if (same !== null) reached.push(same);
    }
    return reached;
  }

  /** L3, L5. */
  private refusedToOther(
    state: LockState,
    operation: LockOperation,
    step: Step,
  ): readonly LockState[] {
    return this.isHeld(state, step) && state.grant?.owner !== operation.owner ? [state] : [];
  }

  /** L5, Q13. */
  private refusedChange(
    state: LockState,
    operation: LockOperation,
    step: Step,
  ): readonly LockState[] {
    if (!this.isHeld(state, step)) return [];
    return mustRefuse(state, operation) ? [state] : [];
  }

  /** L4. */
  private extended(
    state: LockState,
    operation: LockOperation,
    token: bigint | null,
    step: Step,
  ): readonly LockState[] {
    if (!this.isHeld(state, step) || state.grant?.owner !== operation.owner) return [];
    const same = this.withToken(state, token);
    if (same === null || same.grant === null) return [];
    if (!mayMean(operation, same.grant.token, same.floor)) return [];
    return [{ ...same, grant: { ...same.grant, lease: this.lease(operation, step) } }];
  }

  /** L6, L11: not held; from now on everybody sees that. */
  private seenFree(state: LockState, step: Step): readonly LockState[] {
    const { grant } = state;
    if (!this.isFree(state, step)) return [];
    if (grant === null || grant.released) return [state];
    return [{ ...state, grant: { ...grant, lease: { ...grant.lease, seenOver: true } } }];
  }

  /** L7, L8, L9; L17 for a record that may have been dropped. */
  private unlocked(
    state: LockState,
    operation: LockOperation,
    result: LockResult,
    step: Step,
  ): readonly LockState[] {
    const { grant } = state;
    const isOpen = grant !== null && !grant.released;
    if (result.type === "Unlocked") {
      const same = isOpen && grant.owner === operation.owner && this.withToken(state, result.token);
      if (!same || same.grant === null) return [];
      if (!mayMean(operation, same.grant.token, same.floor)) return [];
      return [{ ...same, grant: { ...same.grant, released: true } }];
    }
    if (result.type === "InvalidOwner") {
      return isOpen && mustRefuse(state, operation) ? [state] : [];
    }
    if (result.type !== "LockDoesNotExist") return [];
    if (!isOpen) return [state];
    // Unlike a holder, who forces it compares with a lease that runs (F3).
    if (operation.isForced === true) return this.seenFree(state, step);
    const retentionMs = this.options.ephemeral ? 0 : this.options.recordRetentionMs;
    const dropped = mayBePast(grant.lease, this.options.time, step.toMs, retentionMs);
    return dropped ? [{ ...state, grant: null }] : [];
  }

  /** L10. */
  private got(state: LockState, result: LockResult, step: Step): readonly LockState[] {
    if (!this.isHeld(state, step) || state.grant?.owner !== result.owner) return [];
    const { lease } = state.grant;
    const { time } = this.options;
    const { expiresInMs, isAtLeast = false } = result;
    const { fromMs, toMs } = step;
    if (expiresInMs !== null && !mayRemain(lease, time, fromMs, toMs, expiresInMs, isAtLeast)) {
      return [];
    }
    const same = this.withToken(state, result.token);
    return same === null ? [] : [same];
  }
}
