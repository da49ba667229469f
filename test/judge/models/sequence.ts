/**
 * One sequence by rules S1 to S17 of the contract, as a model for the linearizability checker.
 *
 * Invariants: 1. A value is handed out from the open block in order, or from a new reservation of one revision more that
 * goes on from the last value (the leader knew it) or from the block's end (it did not: the rest is skipped, S8).
 * 2. A block holds max(block size, count) values at least; requests that overlapped may share a larger one. 3. A
 * remembered key answers identically while it must be remembered (S11).
 */
import type {
  AllocateOperation,
  AllocationResult,
  Attempt,
  CreateOperation,
  Operation,
  SequenceResult,
  UpdateOperation,
} from "../history.js";
import type { Model, Step } from "../linear/model.js";
import { ROUNDING_MS } from "./lease-time.js";
import { isAllocated, isAnsweredAs, isReplay, refusedAs, unallocated } from "./sequence-answers.js";
import { isAllocation, isCreate, isUpdate } from "./sequence-input.js";
import { helpOfAttempt, missingFor, showsLast } from "./sequence-outlook.js";
import type { SequenceModelOptions } from "./sequence-options.js";
import {
  LOST_TRIES_MAX,
  type RememberedKey,
  RememberedKeys,
  type SequenceState,
  findKey,
  isSeenAs,
  limitOf,
  merged,
  roomAbove,
} from "./sequence-state.js";

export { SEQUENCE_OPTIONS, type SequenceModelOptions } from "./sequence-options.js";

/** null: there is no such sequence. */
type State = SequenceState | null;

const NAMELESS = { key: "", count: 0, start: 0n, end: 0n, revision: 0n, fromMs: 0, toMs: 0 };

export class SequenceModel implements Model<State> {
  readonly initial: State;
  private readonly remembered = new RememberedKeys();

  /** `first`: what a restore left of it; null: nothing. */
  constructor(
    private readonly options: SequenceModelOptions,
    first: (remembered: RememberedKeys) => State = () => null,
  ) {
    this.initial = first(this.remembered);
  }

  step(state: State, step: Step): readonly State[] {
    const { operation, result } = step;
    switch (operation.kind) {
      case "create-sequence":
        return this.create(state, operation, result as SequenceResult | null);
      case "update-sequence":
        return this.update(state, operation, result as SequenceResult | null);
      case "get-sequence":
        return this.get(state, result as SequenceResult | null);
      case "delete-sequence":
        return this.remove(state, result as SequenceResult | null);
      case "allocate":
        return this.allocate(state, operation, result as AllocationResult | null, step);
      default:
        return [];
    }
  }

  key(state: State): string {
    if (state === null) return "-";
    const { initialValue, increment, maxValue, blockSize, incarnation, revision } = state;
    const { served, blockEnd, blockSharedUntil, keys } = state;
    const shape = `${initialValue} ${increment} ${maxValue} ${blockSize}`;
    const place = `${incarnation} ${revision} ${served} ${blockEnd} ${blockSharedUntil}`;
    return `${shape} ${place} ${keys?.number ?? 0}`;
  }

  isRead(operation: Operation): boolean {
    return operation.kind === "get-sequence";
  }

  signature(attempt: Attempt): string {
    let { operation } = attempt;
    if (operation.kind === "allocate" && operation.idempotencyKey !== null) {
      const isRepeated = this.options.keysRepeated.has(operation.idempotencyKey.trim());
      if (!isRepeated) operation = { ...operation, idempotencyKey: "any" };
    }
    return JSON.stringify(operation, (_name, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
  }

  readonly missing = missingFor;
  readonly shows = showsLast;
  readonly helpOf = helpOfAttempt;

  describe(state: State): string {
    if (state === null) return "no such sequence";
    const { served, blockEnd, revision, incarnation, increment, maxValue, blockSize } = state;
    const block = `last value ${served}, reserved to ${blockEnd}`;
    const shape = `increment ${increment}, max ${maxValue}, block size ${blockSize}`;
    return `${block}, revision ${revision}, incarnation ${incarnation}, ${shape}`;
  }

  /** S2. */
  private create(
    state: State,
    operation: CreateOperation,
    result: SequenceResult | null,
  ): readonly State[] {
    if (!isCreate(operation)) return refusedAs(state, result, "InvalidInput");
    if (state !== null) return refusedAs(state, result, "AlreadyExists");
    const { initialValue, increment, maxValue, blockSize } = operation;
    const made: SequenceState = {
      initialValue,
      increment,
      maxValue,
      blockSize,
      incarnation: 0n,
      revision: 0n,
      served: initialValue,
      blockEnd: initialValue,
      blockSharedUntil: Number.POSITIVE_INFINITY,
      keys: null,
    };
    return result === null || isAnsweredAs(made, result, initialValue) ? [made] : [];
  }

  /** S12, S13. */
  private update(
    state: State,
    operation: UpdateOperation,
    result: SequenceResult | null,
  ): readonly State[] {
    const refused = refusedAs(state, result, "InvalidInput");
    if (!isUpdate(operation)) return refused;
    if (state === null) return refusedAs(state, result, "NotFound");
    const currents = new Set([operation.currentValue ?? state.served]);
    if (operation.currentValue === null) currents.add(state.blockEnd);
    const reached = new Set<State>();
    for (const current of currents) {
      const next = merged(state, operation, current);
      if (next === null) for (const same of refused) reached.add(same);
      else if (result === null || isAnsweredAs(next, result, current)) reached.add(next);
    }
    return [...reached];
  }

  /** S9, S15. */
  private get(state: State, result: SequenceResult | null): readonly State[] {
    if (result === null) return [];
    if (state === null) return refusedAs(state, result, "NotFound");
    if (result.type !== "Success" || result.sequence === null) return [];
    if (result.revision !== state.revision) return [];
    const { sequence } = result;
    if (isSeenAs(state, sequence, state.served)) return [state];
    if (!isSeenAs(state, sequence, state.blockEnd)) return [];
    return [{ ...state, served: state.blockEnd }];
  }

  /** S16. */
  private remove(state: State, result: SequenceResult | null): readonly State[] {
    if (state === null) return refusedAs(state, result, "NotFound", 0n);
    if (result === null || (result.type === "Success" && result.revision === 0n)) return [null];
    return [];
  }

  private allocate(
    state: State,
    operation: AllocateOperation,
    result: AllocationResult | null,
    step: Step,
  ): readonly State[] {
    const { count } = operation;
    const key = operation.idempotencyKey?.trim() ?? "";
    if (!isAllocation(operation, key)) return unallocated(state, result, "InvalidInput");
    if (state === null) return unallocated(state, result, "NotFound");
    if (key === "") return this.allocateNew(state, operation, null, result, step);
    const reached: State[] = [];
    const { entry, newer } = findKey(state.keys, key);
    if (entry !== null) {
      if (result !== null && entry.count !== count) {
        reached.push(...unallocated(state, result, "InvalidInput"));
      } else if (result !== null && isReplay(entry, result)) {
        // Made anew where the sequence may begin again meanwhile: then the same answer may be an allocation there.
        reached.push(
          this.options.mayBegin(step.callOrder, step.returnOrder) ? { ...state } : state,
        );
      }
      if (this.mustRemember(entry, newer, step)) return reached;
    }
    reached.push(...this.allocateNew(state, operation, key, result, step));
    return reached;
  }

  /** S11: no newer entries enough to push it out, and not so old on the lease clock. */
  private mustRemember(entry: RememberedKey, newer: number, step: Step): boolean {
    const { keysRetainedMax, keysRetainedMs, time } = this.options;
    if (keysRetainedMax > 0 && newer >= keysRetainedMax) return false;
    if (keysRetainedMs === 0) return true;
    return time.elapsedMaxMs(entry.fromMs, step.toMs) + ROUNDING_MS < keysRetainedMs;
  }

  private allocateNew(
    state: SequenceState,
    operation: AllocateOperation,
    key: string | null,
    result: AllocationResult | null,
    step: Step,
  ): readonly State[] {
    const count = BigInt(operation.count);
    if (result !== null && result.type !== "Success") {
      const room = roomAbove(state, state.blockEnd);
      return room < count ? unallocated(state, result, "MaxValueExceeded") : [];
    }
    const reached: State[] = [];
    if (key === null) reached.push(...this.fromBlock(state, operation.count, result, step));
    const bases = state.served === state.blockEnd ? [state.served] : [state.served, state.blockEnd];
    for (const base of bases) {
      let from = state;
      let at = base;
      for (let lost = 0; lost <= LOST_TRIES_MAX && roomAbove(from, at) >= count; lost++) {
        const next = this.reserved(from, at, operation.count, key, step);
        const end = at + count * state.increment;
        const start = at + state.increment;
        if (result === null) {
          reached.push(next);
          // Reserved, but whoever it was for had gone: the block serves others.
          if (key === null) reached.push({ ...next, served: at });
        } else if (isAllocated(result, start, end, operation.count, next.revision)) {
          reached.push(next);
        }
        if (key !== null || result === null) break;
        // Its leader went before it could answer, and the call was carried to the next one: a keyless
        // allocation may skip a whole block (S8).
        from = { ...next, served: at };
        at = next.blockEnd;
      }
    }
    return reached;
  }

  /** The next values of the open block (S14: they carry its revision). */
  private fromBlock(
    state: SequenceState,
    count: number,
    result: AllocationResult | null,
    step: Step,
  ): readonly State[] {
    if (state.revision === 0n) return [];
    const start = state.served + state.increment;
    const end = state.served + BigInt(count) * state.increment;
    if (end > limitOf(state)) return [];
    if (end > state.blockEnd && !this.mayShare(state, step)) return [];
    if (result !== null && !isAllocated(result, start, end, count, state.revision)) return [];
    const blockEnd = end > state.blockEnd ? end : state.blockEnd;
    const blockSharedUntil = Math.min(state.blockSharedUntil, step.returnOrder);
    return [{ ...state, served: end, blockEnd, blockSharedUntil }];
  }

  /** One reservation serves all that waited together. */
  private mayShare(state: SequenceState, step: Step): boolean {
    if (state.blockSharedUntil === Number.NEGATIVE_INFINITY) return false;
    return this.options.hasUnknownAllocations || step.callOrder < state.blockSharedUntil;
  }

  private reserved(
    state: SequenceState,
    base: bigint,
    count: number,
    key: string | null,
    step: Step,
  ): SequenceState {
    const { increment } = state;
    const end = base + BigInt(count) * increment;
    const revision = state.revision + 1n;
    if (key !== null) {
      const { fromMs, toMs } = step;
      // Of a key that is never replayed it only counts that it takes a place.
      const entry = this.options.keysRepeated.has(key)
        ? { key, count, start: base + increment, end, revision, fromMs, toMs }
        : NAMELESS;
      const keys = this.remembered.add(state.keys, entry);
      // A keyed allocation is no block: nobody shares it.
      const blockSharedUntil = Number.NEGATIVE_INFINITY;
      return { ...state, revision, served: end, blockEnd: end, blockSharedUntil, keys };
    }
    const wanted = BigInt(Math.max(state.blockSize ?? this.options.defaultBlockSize, count));
    const room = roomAbove(state, base);
    const blockEnd = base + (room < wanted ? room : wanted) * increment;
    return { ...state, revision, served: end, blockEnd, blockSharedUntil: step.returnOrder };
  }
}
