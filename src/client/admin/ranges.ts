/**
 * Administration of key ranges.
 *
 * Invariants: 1. A refusal of the service is a result.
 */
import type { ReadOf } from "../../api/members.js";
import type {
  KEY_SPACE_RANGES,
  MERGED,
  RANGE,
  RANGE_MOVE,
  RANGES,
  REGISTERED,
  SPLIT,
  UNREGISTERED,
} from "../../api/ranges.js";
import { CALL_OPERATIONS } from "../metadata/calls.js";
import { textOf } from "../values/arguments.js";
import type { Caller } from "../call/operation.js";
import type { CallOptions } from "../values/options.js";

export type RangeDescriptor = ReadOf<typeof RANGE>;
export type RangeMove = ReadOf<typeof RANGE_MOVE>;
export type KeySpaceRanges = ReadOf<typeof KEY_SPACE_RANGES>;
export type RangeMap = ReadOf<typeof RANGES>;
export type RegisterResult = ReadOf<typeof REGISTERED>;
export type UnregisterResult = ReadOf<typeof UNREGISTERED>;
export type SplitResult = ReadOf<typeof SPLIT>;
export type MergeResult = ReadOf<typeof MERGED>;

/**
 * Key spaces that are split by key order instead of by hash. A refusal comes as `success` false
 * with `status`; with `determinate` false the map may still change.
 *
 * @example
 * const { success, status } = await client.ranges.register("users");
 */
export class RangesAdmin {
  private readonly caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.caller = caller;
  }

  /**
   * The ranges of one key space, or of all (""), and what moves, as the answering node has applied
   * it. `keys` are known where that node leads the range and has counted them.
   *
   * @example
   * const { keySpaces } = await client.ranges.list();
   */
  async list(keySpace = "", options?: CallOptions): Promise<RangeMap> {
    return this.caller.call(
      CALL_OPERATIONS["ranges.list"],
      { keySpace: textOf("keySpace", keySpace) },
      options,
    );
  }

  /**
   * Makes a key space split by key order, on the answering node (send it to every node).
   *
   * @example
   * await client.ranges.register("users");
   */
  async register(keySpace: string, options?: CallOptions): Promise<RegisterResult> {
    return this.caller.call(
      CALL_OPERATIONS["ranges.register"],
      { keySpace: textOf("keySpace", keySpace) },
      options,
    );
  }

  /**
   * Takes that back.
   *
   * @example
   * await client.ranges.unregister("users");
   */
  async unregister(keySpace: string, options?: CallOptions): Promise<UnregisterResult> {
    return this.caller.call(
      CALL_OPERATIONS["ranges.unregister"],
      { keySpace: textOf("keySpace", keySpace) },
      options,
    );
  }

  /**
   * Splits the range that covers `splitKey`. Not repeated after a lost answer.
   *
   * @example
   * await client.ranges.split("users", "users/m");
   */
  async split(keySpace: string, splitKey: string, options?: CallOptions): Promise<SplitResult> {
    const request = {
      keySpace: textOf("keySpace", keySpace),
      splitKey: textOf("splitKey", splitKey),
    };
    return this.caller.call(CALL_OPERATIONS["ranges.split"], request, options);
  }

  /**
   * One pass that folds small neighbours. Not repeated after a lost answer.
   *
   * @example
   * const { merges } = await client.ranges.merge();
   */
  merge(options?: CallOptions): Promise<MergeResult> {
    return this.caller.call(CALL_OPERATIONS["ranges.merge"], {}, options);
  }
}
