/**
 * Requests of the world of tombstones: stretches of one bucket that are set and deleted again and
 * again, and many readers of it at once.
 *
 * Invariants: 1. A churn is a function of its draws, and ends after a bounded number of steps,
 * whatever the answers are. 2. Every value is unique.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { Ask, SharedWork } from "./workload.js";
import { EPHEMERAL, PERSISTENT, leaseMs, pick } from "./workload.js";
import type { Task, TaskStep } from "./tasks.js";
import type { Outcome } from "../../judge/history.js";
import { keyRequest, setRequest, uniqueValue } from "./kv-requests.js";
import { askPage } from "./many-requests.js";
import {
  type KvKeyOperation,
  type KvManyReadOperation,
  type KvSetOperation,
  toldValue,
} from "../../judge/operation.js";
import type { Plan } from "../plan/plan.js";

/** The one bucket that holds most of the keys. */
const BUCKET = "bucket-0";
const KEYS_MIN = 50;
const KEYS_MAX = 200;
const ROUNDS_MAX = 3;
const PAIRS_MAX = 20;
const READERS_MAX = 12;

/** Sets a stretch of keys and deletes nearly all of them, some times. */
export class ChurnTask implements Task {
  private readonly ephemeral: boolean;
  private readonly keys: readonly string[];
  private stepsLeft: number;

  constructor(
    private readonly plan: Plan,
    private readonly prng: Prng,
    private readonly shared: SharedWork,
  ) {
    this.ephemeral = prng.chance(1, 10);
    this.stepsLeft = 2 * (1 + prng.below(ROUNDS_MAX));
    const first = prng.below(plan.keys);
    const count = KEYS_MIN + prng.below(KEYS_MAX - KEYS_MIN);
    this.keys = Array.from({ length: count }, (_, at) => keyAt((first + at) % plan.keys));
  }

  next(): TaskStep | null {
    if (this.stepsLeft-- <= 0) return null;
    const ask = this.stepsLeft % 2 === 1 ? this.askSet() : this.askDelete();
    return { ask, afterMs: this.prng.below(30) };
  }

  private askSet(): Ask {
    const { plan, prng, shared, ephemeral } = this;
    const isLeased = prng.chance(1, 8);
    const operations = this.keys.map((key) => {
      const value = uniqueValue(plan, prng, shared);
      return setOf(key, value, ephemeral, isLeased ? leaseMs(prng) : 0);
    });
    const items = operations.map(setRequest);
    const told = operations.map((set) => ({ ...set, value: toldValue(set.value) }));
    return { kind: "churn", request: { kind: "kv-set-many", items }, operations: told };
  }

  private askDelete(): Ask {
    const { prng, ephemeral } = this;
    const both = { ephemeral, expiresMs: 0, revision: -1n };
    const operations = this.keys
      .filter((_, at) => at === 0 || !prng.chance(1, 20))
      .map((key): KvKeyOperation => ({ kind: "kv-delete", key, ...both }));
    const items = operations.map((one) => ({ ...keyRequest(one), kind: "kv-delete" }) as const);
    return { kind: "churn", request: { kind: "kv-delete-many", items, plain: true }, operations };
  }
}

/**
 * Writes a key in front of all others of the bucket and one behind them in turn: who reads both saw
 * one instant.
 */
export class EndsTask implements Task {
  private stepsLeft: number;

  constructor(
    private readonly plan: Plan,
    private readonly prng: Prng,
    private readonly shared: SharedWork,
    private readonly owner: string,
  ) {
    this.stepsLeft = 2 * (1 + prng.below(PAIRS_MAX));
  }

  next(last: Outcome | null): TaskStep | null {
    if (this.stepsLeft-- <= 0 || (last !== null && last.kind !== "ok")) return null;
    const end = this.stepsLeft % 2 === 1 ? "a" : "z";
    const value = uniqueValue(this.plan, this.prng, this.shared);
    const operation = setOf(`${BUCKET}/${end}-${this.owner}`, value, false, 0);
    const told = { ...operation, value: toldValue(value) };
    return {
      ask: { kind: "ends", request: setRequest(operation), operations: [told] },
      afterMs: 0,
    };
  }
}

function setOf(
  key: string,
  value: string | null,
  ephemeral: boolean,
  expiresMs: number,
): KvSetOperation {
  const unconditional = { compareValue: null, compareRevision: 0n, flags: 0 };
  return { kind: "kv-set", key, ephemeral, value, expiresMs, ...unconditional };
}

function keyAt(number: number): string {
  return `${BUCKET}/key-${number}`;
}

/** Reads of the whole bucket, of ranges of it and of its prefix, all at once. */
export function drawReaders(plan: Plan, prng: Prng, shared: SharedWork): Ask[] {
  const count = 2 + prng.below(READERS_MAX - 1);
  return Array.from({ length: count }, () => {
    const ephemeral = prng.chance(1, 10);
    return prng.chance(1, 4) ? askBucket(ephemeral) : askSome(plan, prng, shared, ephemeral);
  });
}

function askBucket(ephemeral: boolean): Ask {
  const durability = ephemeral ? EPHEMERAL : PERSISTENT;
  return {
    kind: "readers",
    request: { kind: "kv-bucket", bucket: BUCKET, durability, plain: true },
    operations: [{ kind: "kv-bucket", prefix: BUCKET, ephemeral }],
  };
}

function askSome(plan: Plan, prng: Prng, shared: SharedWork, ephemeral: boolean): Ask {
  const kind = pick(prng, ["kv-range", "kv-range", "kv-scan", "kv-scan-local"] as const);
  const isOpen = kind !== "kv-range" || prng.chance(1, 2);
  const page = {
    scan: shared.unique++,
    number: 0,
    limit: pick(prng, [0, 3, 100]),
    startKey: isOpen ? null : keyAt(prng.below(plan.keys)),
    startInclusive: isOpen || prng.chance(1, 2),
    endKey: isOpen ? null : keyAt(prng.below(plan.keys)),
    endInclusive: prng.chance(1, 2),
  };
  const prefix = kind === "kv-range" ? BUCKET : `${BUCKET}/`;
  const operation: KvManyReadOperation = { kind, prefix, ephemeral, page };
  return askPage("readers", operation, null);
}
