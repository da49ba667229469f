/**
 * Sequences: numbers that are never handed out twice.
 *
 * Invariants: 1. A value leaves exact or not at all. 2. A key is given to an allocation by the rule
 * of `SvcClientOptions.idempotency`.
 */
import { randomUUID } from "node:crypto";
import { nextRange, nextValue, reserveRange, type AllocateRequest } from "./allocate-operation.js";
import { optionalText, optionsOf, textOf } from "../values/arguments.js";
import {
  AlreadyExistsError,
  doubted,
  localFailure,
  NotFoundError,
  SequenceMismatchError,
  TimeoutError,
} from "../values/errors.js";
import { int32Of, toSafeNumber } from "../values/numbers.js";
import type { Caller } from "../call/operation.js";
import { checkIdempotency, type CallOptions, type Idempotency } from "../values/options.js";
import { SequencePrefetch, type PrefetchOptions } from "./prefetch.js";
import { createRequest, updateRequest } from "./sequence-requests.js";
import { TimeBudget } from "../time/time-budget.js";
import {
  createSequence,
  deleteSequence,
  getSequence,
  updateSequence,
} from "./sequence-operations.js";
import type {
  SequenceDelete,
  SequenceInfo,
  SequenceParameters,
  SequenceRange,
  SequenceUpdate,
} from "./sequence-shapes.js";

/** Options of allocations. */
export interface AllocateOptions extends CallOptions {
  /** The same key and count give the identical allocation again. Overrides `idempotency`. */
  readonly idempotencyKey?: string | undefined;
  /** Overrides the client's `idempotency` for this call. */
  readonly idempotency?: Idempotency | undefined;
}

const newKey = (): string => randomUUID();

/**
 * All sequences of the service, by name. `client.sequence(name)` is the same with the name given.
 *
 * @example
 * await client.sequences.create("orders", { initialValue: 1000 });
 * const value = await client.sequences.next("orders"); // 1001n
 */
export class Sequences {
  private readonly caller: Caller;
  private readonly idempotency: Idempotency;

  /** @internal */
  constructor(caller: Caller, idempotency: Idempotency) {
    this.caller = caller;
    this.idempotency = idempotency;
  }

  /**
   * Creates a sequence. Rejects with AlreadyExistsError (its `outcome` is `unknown` when an earlier
   * try of this call may have created it), InvalidInputError, TimeoutError.
   *
   * @example
   * await client.sequences.create("invoices", { initialValue: 0, blockSize: 1 });
   */
  async create(
    name: string,
    parameters: SequenceParameters = {},
    options?: CallOptions,
  ): Promise<SequenceInfo> {
    const request = createRequest(name, parameters);
    return this.caller.call(createSequence, request, options);
  }

  /**
   * Changes parameters and starts a new incarnation. Waits until no node can allocate from the old
   * one. Repeated after a lost answer only with `currentValue`. Rejects with NotFoundError,
   * InvalidInputError, TimeoutError.
   *
   * @example
   * await client.sequences.update("orders", { currentValue: 5000n, increment: 10 });
   */
  async update(
    name: string,
    changes: SequenceUpdate,
    options?: CallOptions,
  ): Promise<SequenceInfo> {
    const request = updateRequest(name, changes);
    return this.caller.call(updateSequence, request, options);
  }

  /**
   * Describes a sequence; null when there is none.
   *
   * @example
   * const info = await client.sequences.get("orders");
   */
  async get(name: string, options?: CallOptions): Promise<SequenceInfo | null> {
    return this.caller.call(getSequence, { name: textOf("name", name) }, options);
  }

  /**
   * Deletes a sequence; whatever the answer, there is none now.
   *
   * @example
   * const { deleted } = await client.sequences.delete("orders");
   */
  async delete(name: string, options?: CallOptions): Promise<SequenceDelete> {
    return this.caller.call(deleteSequence, { name: textOf("name", name) }, options);
  }

  /**
   * The next value. Rejects with NotFoundError, MaxValueExceededError, TimeoutError.
   *
   * @example
   * const id: bigint = await client.sequences.next("orders");
   */
  next(name: string, options?: AllocateOptions): Promise<bigint> {
    // No `async` here: one promise per value is enough.
    let request: AllocateRequest;
    try {
      request = this.request(name, 1, options, false);
    } catch (error) {
      return Promise.reject(localFailure(error));
    }
    return this.caller.call(nextValue, request, options);
  }

  /**
   * The next value as a number. Rejects with SvcRangeError (outcome `done`, `value` exact) when it
   * is beyond 2^53.
   *
   * @example
   * const id: number = await client.sequences.nextNumber("orders");
   */
  async nextNumber(name: string, options?: AllocateOptions): Promise<number> {
    return toSafeNumber(await this.next(name, options), "done");
  }

  /**
   * The next value with the revision that covers it.
   *
   * @example
   * const { start, revision } = await client.sequences.nextRange("orders");
   */
  async nextRange(name: string, options?: AllocateOptions): Promise<SequenceRange> {
    return this.caller.call(nextRange, this.request(name, 1, options, false), options);
  }

  /**
   * Reserves `count` (1 to 2^31 - 1) contiguous values. Rejects as `next`.
   *
   * @example
   * const { start, end } = await client.sequences.reserve("orders", 100);
   */
  async reserve(name: string, count: number, options?: AllocateOptions): Promise<SequenceRange> {
    const request = this.request(name, int32Of("count", count, 1), options, true);
    return this.caller.call(reserveRange, request, options);
  }

  /**
   * Creates the sequence if there is none, and checks the parameters that were given if there is
   * one: rejects with SequenceMismatchError when they differ (initialValue is descriptive after an
   * update and is compared as it is now). The deadline covers all its steps.
   *
   * @example
   * await client.sequences.ensure("orders", { increment: 1, blockSize: 100 });
   */
  async ensure(
    name: string,
    parameters: SequenceParameters = {},
    options?: CallOptions,
  ): Promise<SequenceInfo> {
    const { deadlineMs = this.caller.deadlineMs } = optionsOf(options);
    const budget = new TimeBudget(this.caller.platform, "sequences.ensure", deadlineMs);
    createRequest(name, parameters);
    let doubtful = false;
    for (;;) {
      try {
        const existing = await this.get(name, budget.rest(options));
        if (existing !== null) return checked(existing, parameters);
        return await this.create(name, parameters, budget.rest(options));
      } catch (error) {
        if (error instanceof AlreadyExistsError) {
          // Read it; when others delete it in between, begin again.
          doubtful ||= error.outcome !== "none";
        } else {
          throw doubtful && error instanceof TimeoutError ? doubted(error) : error;
        }
      }
    }
  }

  private request(
    name: string,
    count: number,
    options: AllocateOptions | undefined,
    keyed: boolean,
  ): AllocateRequest {
    textOf("name", name);
    const { idempotencyKey, idempotency = this.idempotency } = optionsOf(options);
    const key = optionalText("idempotencyKey", idempotencyKey);
    if (key !== undefined && key.trim() !== "") return { name, count, key, repeatKey: null };
    const rule = checkIdempotency(idempotency);
    if (rule === "off") return { name, count, key: null, repeatKey: null };
    if (rule === "always" || keyed) return { name, count, key: newKey(), repeatKey: null };
    return { name, count, key: null, repeatKey: newKey };
  }
}

/**
 * One sequence: the methods of `Sequences` with the name given.
 *
 * @example
 * const orders = client.sequence("orders");
 * await orders.ensure({ increment: 1 });
 * const id = await orders.next();
 */
export class Sequence {
  readonly name: string;
  private readonly all: Sequences;

  /** @internal */
  constructor(all: Sequences, name: string) {
    this.all = all;
    this.name = name;
  }

  /** See `Sequences.next`. */
  next(options?: AllocateOptions): Promise<bigint> {
    return this.all.next(this.name, options);
  }

  /** See `Sequences.nextNumber`. */
  nextNumber(options?: AllocateOptions): Promise<number> {
    return this.all.nextNumber(this.name, options);
  }

  /** See `Sequences.reserve`. */
  reserve(count: number, options?: AllocateOptions): Promise<SequenceRange> {
    return this.all.reserve(this.name, count, options);
  }

  /**
   * A local supply of values, `count` at a time, reserved ahead: `next` of the supply costs no
   * round trip. Values reserved and not taken are gaps; see `SequencePrefetch`.
   *
   * @example
   * const supply = client.sequence("events").prefetch(10_000);
   * const id = await supply.next();
   * console.log(supply.close().unused); // values that nobody will ever get
   */
  prefetch(count: number, options?: PrefetchOptions): SequencePrefetch {
    return new SequencePrefetch(
      (size, inner) => this.all.reserve(this.name, size, inner),
      int32Of("count", count, 1),
      options,
    );
  }

  /** See `Sequences.ensure`. */
  ensure(parameters?: SequenceParameters, options?: CallOptions): Promise<SequenceInfo> {
    return this.all.ensure(this.name, parameters, options);
  }

  /** See `Sequences.get`. Rejects with NotFoundError when there is none. */
  async get(options?: CallOptions): Promise<SequenceInfo> {
    const info = await this.all.get(this.name, options);
    if (info === null) throw new NotFoundError(`there is no sequence "${this.name}"`);
    return info;
  }

  /** See `Sequences.update`. */
  update(changes: SequenceUpdate, options?: CallOptions): Promise<SequenceInfo> {
    return this.all.update(this.name, changes, options);
  }

  /** See `Sequences.delete`. */
  delete(options?: CallOptions): Promise<SequenceDelete> {
    return this.all.delete(this.name, options);
  }
}

/** `info` when it is as `wanted`; throws SequenceMismatchError otherwise. */
function checked(info: SequenceInfo, wanted: SequenceParameters): SequenceInfo {
  const differences: string[] = [];
  const compare = (label: string, is: bigint | number | null, want: unknown): void => {
    if (want === undefined) return;
    const exact = typeof want === "number" && typeof is === "bigint" ? BigInt(want) : want;
    if (is !== exact) differences.push(`${label} is ${String(is)}, not ${String(exact)}`);
  };
  const exact = (value: SequenceParameters["maxValue"]): unknown =>
    value === undefined || value === null ? value : BigInt(value);
  compare("initialValue", info.initialValue, exact(wanted.initialValue));
  compare("increment", info.increment, exact(wanted.increment));
  compare("maxValue", info.maxValue, exact(wanted.maxValue));
  compare("blockSize", info.blockSize, wanted.blockSize);
  if (differences.length === 0) return info;
  const message = `the sequence "${info.name}" has other parameters: ${differences.join("; ")}`;
  throw new SequenceMismatchError(message, differences);
}
