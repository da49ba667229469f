/**
 * Counts the rows that reads of many keys look at, beneath whatever the code itself counts: where each row of a page is
 * judged.
 *
 * Owns two functions of `PageBuilder` during `metered`. Invariants: 1. Whatever happens in between, they are as before
 * afterwards. 2. What is counted is what was looked at, not what a read was told that it might.
 */
import type { ByteKey } from "../../../src/machine/store/keys.js";
import { PageBuilder } from "../../../src/machine/kv/page-builder.js";

type Offer = (this: PageBuilder, key: ByteKey, bytes: Uint8Array) => boolean;
type Pass = (this: PageBuilder, key: ByteKey, sizeBytes: number) => boolean;

/** What reads of many keys looked at since it was last cleared. */
export class ReadMeter {
  /** Rows, a large one counted once more for each KiB. */
  visits = 0;
  /** Those of the largest row. */
  largest = 0;
  /** Rows of deleted and expired keys that were passed over. */
  dead = 0;

  clear(): void {
    this.visits = 0;
    this.largest = 0;
    this.dead = 0;
  }

  passed(sizeBytes: number): void {
    const visits = 1 + Math.floor(sizeBytes / 1024);
    this.visits += visits;
    this.largest = Math.max(this.largest, visits);
  }
}

/** Runs `body`; what its reads look at is counted in `meter`. */
export function metered<T>(meter: ReadMeter, body: () => T): T {
  const { prototype } = PageBuilder;
  const offer = Reflect.get(prototype, "offer") as Offer;
  const pass = Reflect.get(prototype, "pass") as Pass;
  prototype.pass = function (this: PageBuilder, key, sizeBytes) {
    const isPassed = pass.call(this, key, sizeBytes);
    if (isPassed) meter.passed(sizeBytes);
    return isPassed;
  };
  prototype.offer = function (this: PageBuilder, key, bytes) {
    const { count } = this;
    const isTaken = offer.call(this, key, bytes);
    if (isTaken && this.count === count) meter.dead++;
    return isTaken;
  };
  try {
    return body();
  } finally {
    prototype.offer = offer;
    prototype.pass = pass;
  }
}
