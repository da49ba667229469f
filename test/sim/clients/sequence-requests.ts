/**
 * Requests on sequences: numbering up to the edges of int64, allocations with and without keys, and
 * such that must be refused.
 */
import { UNCHANGED_SEQUENCE } from "../../doubles/machine/bench.js";
import { INT64_MAX } from "../../../src/base/int64.js";
import type { Prng } from "../../../src/base/prng.js";
import { type Ask, OVERLONG, PERSISTENT, type SharedWork, pick, wholeNumber } from "./workload.js";
import type { AllocateOperation, CreateOperation, UpdateOperation } from "../../judge/operation.js";
import type { Plan } from "../plan/plan.js";
import type { WorkloadKind } from "../plan/workplan.js";

const COUNT_MAX = 2 ** 31 - 1;

function sequenceName(plan: Plan, prng: Prng): string {
  // The first is hot: half of all operations on sequences go there.
  const name = `seq-${prng.chance(1, 2) ? 0 : prng.below(plan.sequences)}`;
  return prng.chance(1, 30) ? `  ${name} ` : name;
}

function increment(prng: Prng): bigint {
  if (prng.chance(1, 12)) return pick(prng, [1000n, 2n ** 40n, 2n ** 61n, INT64_MAX]);
  return BigInt(1 + prng.below(3));
}

export function askCreate(kind: WorkloadKind, operation: CreateOperation): Ask {
  const request = { ...operation, durability: PERSISTENT };
  return { kind, request, operations: [operation] };
}

function askUpdate(kind: WorkloadKind, operation: UpdateOperation): Ask {
  const request = { ...operation, durability: PERSISTENT };
  return { kind, request, operations: [operation] };
}

/** One allocation; `isNext`: asked for as the next value, not as a range of one. */
export function askAllocate(
  kind: WorkloadKind,
  operation: AllocateOperation,
  isNext: boolean,
): Ask {
  const { name, count, idempotencyKey } = operation;
  const both = { name, idempotencyKey, durability: PERSISTENT };
  const request = isNext
    ? ({ kind: "next-sequence", ...both } as const)
    : ({ kind: "reserve-sequence", count, ...both } as const);
  return { kind, request, operations: [operation] };
}

export function drawAllocation(
  kind: WorkloadKind,
  plan: Plan,
  prng: Prng,
  shared: SharedWork,
): Ask {
  const name = sequenceName(plan, prng);
  let count = kind === "reserve" ? 1 + prng.below(30) : 1;
  if (kind === "reserve" && prng.chance(1, 40)) count = COUNT_MAX - prng.below(2);
  const keyed = kind === "next-keyed" || (kind === "reserve" && prng.chance(1, 3));
  const idempotencyKey = keyed ? `key-${shared.unique++}` : null;
  const operation = { kind: "allocate", name, count, idempotencyKey } as const;
  return askAllocate(kind, operation, kind !== "reserve");
}

export function drawSequence(kind: WorkloadKind, plan: Plan, prng: Prng): Ask {
  const name = sequenceName(plan, prng);
  if (kind === "delete" || kind === "get-sequence") {
    const both = kind === "delete" ? "delete-sequence" : "get-sequence";
    const request = { kind: both, name, durability: PERSISTENT } as const;
    return { kind, request, operations: [{ kind: both, name }] };
  }
  const step = increment(prng);
  const blockSize = prng.chance(1, 2) ? null : 1 + prng.below(20);
  if (kind === "create") {
    const initialValue = wholeNumber(prng);
    let maxValue: bigint | null = null;
    if (prng.chance(1, 6) && initialValue < INT64_MAX - 1000n) {
      maxValue = initialValue + BigInt(prng.below(200));
    } else if (prng.chance(1, 30)) maxValue = INT64_MAX;
    const increments = { increment: step, maxValue, blockSize };
    return askCreate(kind, { kind: "create-sequence", name, initialValue, ...increments });
  }
  const maxValue = prng.chance(1, 5) ? wholeNumber(prng) : null;
  const givesSize = prng.chance(1, 3);
  return askUpdate(kind, {
    kind: "update-sequence",
    name,
    currentValue: prng.chance(1, 3) ? wholeNumber(prng) : null,
    increment: prng.chance(1, 3) ? step : null,
    initialValue: prng.chance(1, 12) ? wholeNumber(prng) : null,
    maxValue,
    removeMaxValue: maxValue === null && prng.chance(1, 5),
    blockSize: givesSize ? blockSize : null,
    removeBlockSize: !givesSize && prng.chance(1, 8),
  });
}

/** A request that breaks S1, S2, S4, S10 or S12. */
export function drawOddSequence(plan: Plan, prng: Prng, shared: SharedWork): Ask {
  const name = sequenceName(plan, prng);
  const kind = "odd";
  const made = { initialValue: 5n, increment: 1n, maxValue: null, blockSize: null };
  const create = { kind: "create-sequence", name, ...made } as const;
  const update = {
    kind: "update-sequence",
    name,
    ...UNCHANGED_SEQUENCE,
  } as const;
  const allocate = { kind: "allocate", name, count: 1, idempotencyKey: null } as const;
  switch (prng.below(10)) {
    case 0:
      return askCreate(kind, { ...create, name: pick(prng, ["", "  ", OVERLONG, "__svc:x"]) });
    case 1:
      return askCreate(kind, { ...create, increment: pick(prng, [0n, -1n]) });
    case 2:
      return askCreate(kind, { ...create, maxValue: 4n });
    case 3:
      return askCreate(kind, { ...create, blockSize: pick(prng, [0, -1]) });
    case 4:
      return askUpdate(kind, update);
    case 5:
      return askUpdate(kind, { ...update, maxValue: 7n, removeMaxValue: true });
    case 6:
      return askUpdate(kind, { ...update, increment: pick(prng, [0n, -3n]) });
    case 7:
      return askUpdate(kind, { ...update, blockSize: 3, removeBlockSize: true });
    case 8:
      return askAllocate(kind, { ...allocate, count: pick(prng, [0, -1]) }, false);
    default: {
      const idempotencyKey = pick(prng, [OVERLONG, ` key-${shared.unique++} `, "  "]);
      return askAllocate(kind, { ...allocate, idempotencyKey }, true);
    }
  }
}
