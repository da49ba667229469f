/**
 * Key/value entries: small pieces of shared state.
 *
 * Invariants: 1. Values are bytes; text goes out as UTF-8. 2. Scans and range reads are iterated to
 * their end, one page at a time.
 */
import {
  durabilityOf,
  eachOf,
  flagOf,
  membersOf,
  optionalText,
  optionsOf,
  textOf,
} from "../values/arguments.js";
import {
  deleteKey,
  existsKey,
  extendKey,
  getKey,
  setKey,
  settleDelete,
  settleEntry,
  settleExistence,
  settleWrite,
  isConditional,
} from "./kv-operations.js";
import { deleteMany, existsMany, getMany, setMany } from "./kv-many-operations.js";
import { readBucket, rangePage, scanPage } from "./kv-page-operations.js";
import { manyResults } from "./kv-many.js";
import { keyRequest, readItem, readRequest, setRequest } from "./kv-requests.js";
import type {
  BucketRange,
  KvCallOptions,
  KvDelete,
  KvEntry,
  KvExistence,
  KvGetOptions,
  KvItemKey,
  KvIterateOptions,
  KvManyResult,
  KvPage,
  KvPageOptions,
  KvRangeOptions,
  KvSetItem,
  KvSetOptions,
  KvWrite,
} from "./kv-shapes.js";
import { int32Of } from "../values/numbers.js";
import { TimeBudget } from "../time/time-budget.js";
import type { Caller } from "../call/operation.js";

const RANGE_LIMIT_DEFAULT = 1000;
/** A scan without a limit would have to fit one answer; with this one its pages end by size. */
const SCAN_LIMIT_DEFAULT = 10_000;

/**
 * Key/value entries.
 *
 * @example
 * await client.kv.set("config/color", "blue");
 * const entry = await client.kv.get("config/color");
 * console.log(entry?.text, entry?.revision); // "blue" 0n
 */
export class KeyValues {
  private readonly caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.caller = caller;
  }

  /**
   * Sets a value (null: the entry exists and holds nothing), if all conditions hold. Rejects with
   * UnknownOutcomeError when a conditional set was repeated after a lost answer and the condition
   * fails now; with InvalidInputError, TimeoutError.
   *
   * @example
   * const leader = { ifNotExists: true, expiresMs: 10_000 };
   * const { applied } = await client.kv.set("leader", "node-1", leader);
   */
  async set(
    key: string,
    value: string | Uint8Array | null,
    options: KvSetOptions = {},
  ): Promise<KvWrite> {
    const given = optionsOf(options);
    const request = setRequest(key, value, given, given.durability);
    return this.caller.call(setKey, request, options);
  }

  /**
   * Sets the lease of an entry to `expiresMs` (ms, at least 1) from now.
   *
   * @example
   * const { applied } = await client.kv.extend("leader", 10_000);
   */
  async extend(key: string, expiresMs: number, options: KvCallOptions = {}): Promise<KvWrite> {
    const request = { ...keyRequest(key, options), expiresMs: int32Of("expiresMs", expiresMs, 1) };
    return this.caller.call(extendKey, request, options);
  }

  /**
   * Deletes an entry.
   *
   * @example
   * const { deleted } = await client.kv.delete("config/color");
   */
  async delete(key: string, options: KvCallOptions = {}): Promise<KvDelete> {
    return this.caller.call(deleteKey, keyRequest(key, options), options);
  }

  /**
   * Reads an entry; null when there is none (or not at that revision).
   *
   * @example
   * const entry = await client.kv.get("config/color");
   */
  async get(key: string, options: KvGetOptions = {}): Promise<KvEntry | null> {
    const { revision, durability } = optionsOf(options);
    return this.caller.call(getKey, readRequest(key, revision, durability), options);
  }

  /**
   * Reads the revision of an entry without its value; null when there is none.
   *
   * @example
   * if ((await client.kv.exists("a")) === null) await client.kv.set("a", "red");
   */
  async exists(key: string, options: KvGetOptions = {}): Promise<KvExistence | null> {
    const { revision, durability } = optionsOf(options);
    return this.caller.call(existsKey, readRequest(key, revision, durability), options);
  }

  /**
   * Sets many entries, each on its own (not atomic together), in calls of at most 1024. Items that
   * the service asks to repeat are repeated if that is safe; every other failure is that item's
   * `error`, with what is known about that item: a part that got no answer in time is `unknown`, a
   * part that was not sent is `none`. Rejects only when the service answered for none of the items.
   *
   * @example
   * const results = await client.kv.setMany([{ key: "a", value: "1" }, { key: "b", value: "2" }]);
   */
  async setMany(
    items: readonly KvSetItem[],
    options: KvCallOptions = {},
  ): Promise<KvManyResult<KvWrite>[]> {
    const { durability } = optionsOf(options);
    const requests = eachOf("items", items, (item) => {
      const { key, value } = membersOf("an item", item);
      return setRequest(key, value, item, durability);
    });
    return manyResults(this.caller, setMany, requests, options, {
      settle: (answer, request, doubtful) =>
        settleWrite(answer, request.key, isConditional(request), doubtful),
      repeat: (request) => !isConditional(request),
    });
  }

  /**
   * Deletes many entries, each on its own.
   *
   * @example
   * await client.kv.deleteMany(["a", "b"]);
   */
  async deleteMany(
    keys: readonly string[],
    options: KvCallOptions = {},
  ): Promise<KvManyResult<KvDelete>[]> {
    const requests = eachOf("keys", keys, (key) => keyRequest(key, options));
    return manyResults(this.caller, deleteMany, requests, options, {
      settle: (answer, { key }, doubtful) => settleDelete(answer, key, doubtful),
      repeat: () => true,
    });
  }

  /**
   * Reads many entries; `result` is null for those that do not exist.
   *
   * @example
   * const [a, b] = await client.kv.getMany(["a", { key: "b", revision: 3n }]);
   */
  async getMany(
    keys: readonly (string | KvItemKey)[],
    options: KvCallOptions = {},
  ): Promise<KvManyResult<KvEntry | null>[]> {
    const { durability } = optionsOf(options);
    const requests = eachOf("keys", keys, (key) => readItem(key, durability));
    return manyResults(this.caller, getMany, requests, options, {
      settle: (answer, { key }) => settleEntry(answer, key),
      repeat: () => true,
    });
  }

  /**
   * As `getMany`, without values.
   *
   * @example
   * const present = await client.kv.existsMany(["a", "b"]);
   */
  async existsMany(
    keys: readonly (string | KvItemKey)[],
    options: KvCallOptions = {},
  ): Promise<KvManyResult<KvExistence | null>[]> {
    const { durability } = optionsOf(options);
    const requests = eachOf("keys", keys, (key) => readItem(key, durability));
    return manyResults(this.caller, existsMany, requests, options, {
      settle: (answer, { key }) => settleExistence(answer, key),
      repeat: () => true,
    });
  }

  /**
   * All entries of one bucket (keys up to their last `/`), sorted, as one consistent view. Rejects
   * with TooLargeError when they exceed the server's answer limit: then use `range`.
   *
   * @example
   * const entries = await client.kv.bucket("config");
   */
  async bucket(bucket: string, options: KvCallOptions = {}): Promise<readonly KvEntry[]> {
    const durability = durabilityOf(optionsOf(options).durability);
    const request = { prefixKey: textOf("bucket", bucket), durability };
    return this.caller.call(readBucket, request, options);
  }

  /**
   * One page of all entries whose key begins with `prefix`, over the whole cluster.
   *
   * @example
   * const page = await client.kv.scanPage("user/", { limit: 100 });
   */
  async scanPage(prefix: string, options: KvPageOptions = {}): Promise<KvPage> {
    const { limit = SCAN_LIMIT_DEFAULT, cursor, durability } = optionsOf(options);
    const request = {
      prefixKey: textOf("prefix", prefix),
      durability: durabilityOf(durability),
      limit: int32Of("limit", limit, 1),
      cursor: optionalText("cursor", cursor) ?? null,
    };
    return this.caller.call(scanPage, request, options);
  }

  /**
   * All entries whose key begins with `prefix`, sorted, page by page. `deadlineMs` counts per page,
   * `overallDeadlineMs` for the whole iteration, the time that its consumer takes included.
   *
   * @example
   * for await (const entry of client.kv.scan("user/")) console.log(entry.key, entry.text);
   */
  async *scan(
    prefix: string,
    options: KvPageOptions & KvIterateOptions = {},
  ): AsyncGenerator<KvEntry, void, void> {
    const { overallDeadlineMs = Infinity, deadlineMs: pageMs = this.caller.deadlineMs } =
      optionsOf(options);
    const budget = new TimeBudget(
      this.caller.platform,
      "kv.scan",
      overallDeadlineMs,
      "overallDeadlineMs",
    );
    let { cursor } = options;
    for (;;) {
      const page = await this.scanPage(prefix, { ...budget.rest(options, pageMs), cursor });
      yield* page.items;
      if (!page.hasMore || page.nextCursor === null) return;
      cursor = page.nextCursor;
    }
  }

  /**
   * One page of a range of one bucket. Continue with `start` = the last key and `startInclusive`
   * false.
   *
   * @example
   * const page = await client.kv.rangePage({ bucket: "log", start: "log/2024" }, { limit: 100 });
   */
  async rangePage(range: BucketRange, options: KvRangeOptions = {}): Promise<KvPage> {
    const { bucket, start, startInclusive, end, endInclusive } = membersOf("range", range);
    const { limit = RANGE_LIMIT_DEFAULT, durability } = optionsOf(options);
    const request = {
      prefix: textOf("bucket", bucket),
      startKey: optionalText("start", start) ?? null,
      startInclusive: flagOf("startInclusive", startInclusive, true),
      endKey: optionalText("end", end) ?? null,
      endInclusive: flagOf("endInclusive", endInclusive, false),
      limit: int32Of("limit", limit, 1),
      durability: durabilityOf(durability),
    };
    return this.caller.call(rangePage, request, options);
  }

  /**
   * The entries of a range of one bucket, sorted, page by page; deadlines as in `scan`.
   *
   * @example
   * for await (const entry of client.kv.range({ bucket: "log" })) console.log(entry.key);
   */
  async *range(
    range: BucketRange,
    options: KvRangeOptions & KvIterateOptions = {},
  ): AsyncGenerator<KvEntry, void, void> {
    const { overallDeadlineMs = Infinity, deadlineMs: pageMs = this.caller.deadlineMs } =
      optionsOf(options);
    const budget = new TimeBudget(
      this.caller.platform,
      "kv.range",
      overallDeadlineMs,
      "overallDeadlineMs",
    );
    let rest = range;
    for (;;) {
      const page = await this.rangePage(rest, budget.rest(options, pageMs));
      yield* page.items;
      const last = page.items.at(-1);
      if (!page.hasMore || last === undefined) return;
      rest = { ...rest, start: last.key, startInclusive: false };
    }
  }
}
