/**
 * What the model of a sequence has to know of the service's settings and of the history.
 */
import type { LeaseTime } from "./lease-time.js";

export interface SequenceModelOptions {
  readonly time: LeaseTime;
  /** --sequencer-block-size. */
  readonly defaultBlockSize: number;
  /** --sequencer-idempotency-retention-max and -ttl; 0 = no bound. */
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
  /**
   * True when a request without an answer was among the allocations: what it reserved may serve others, so that a block
   * may be larger than anybody knows.
   */
  readonly hasUnknownAllocations: boolean;
  /** Whether the sequence may be created anew between two orders of the history. */
  readonly mayBegin: (fromOrder: number, toOrder: number) => boolean;
  /** Idempotency keys that an answer may replay: the others are not told apart. */
  readonly keysRepeated: ReadonlySet<string>;
}

export const SEQUENCE_OPTIONS: Omit<
  SequenceModelOptions,
  "time" | "hasUnknownAllocations" | "keysRepeated" | "mayBegin"
> = {
  defaultBlockSize: 1000,
  keysRetainedMax: 256,
  keysRetainedMs: 600_000,
};
