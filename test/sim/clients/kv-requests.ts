/**
 * Requests on single keys: sets with every condition, expiry, reads of the latest and of older
 * revisions, and such that must be refused.
 */
import { encodeText } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";
import { KvFlag } from "../../../src/machine/commands/command.js";
import type {
  KvDeleteRequest,
  KvExtendRequest,
  KvGetRequest,
  KvSetRequest,
} from "../../../src/operations/api/requests.js";
import {
  type Ask,
  type ClientMemory,
  EPHEMERAL,
  OVERLONG,
  PERSISTENT,
  type SharedWork,
  leaseMs,
  pick,
} from "./workload.js";
import { type KvKeyOperation, type KvSetOperation, toldValue } from "../../judge/operation.js";
import type { Plan } from "../plan/plan.js";
import type { WorkloadKind } from "../plan/workplan.js";

/** Key spaces of the workload: a bucket below another, and two in one placement group. */
export const BUCKETS = ["bucket-0", "bucket-1", "bucket-2", "bucket-2/deep", "bucket-2|a"] as const;

function bytesOf(text: string | null): Uint8Array | null {
  return text === null ? null : encodeText(text);
}

export function keyName(plan: Plan, prng: Prng): string {
  // A key may also bear the name of a bucket.
  if (prng.chance(1, 40)) return pick(prng, BUCKETS);
  const bucket = prng.chance(1, 8) ? pick(prng, BUCKETS) : `bucket-${prng.below(3)}`;
  return `${bucket}/key-${prng.below(plan.keys)}`;
}

export function setRequest(operation: KvSetOperation): KvSetRequest {
  const { key, compareRevision, expiresMs, flags } = operation;
  return {
    kind: "kv-set",
    key,
    value: bytesOf(operation.value),
    compareValue: bytesOf(operation.compareValue),
    compareRevision,
    expiresMs,
    flags,
    durability: operation.ephemeral ? EPHEMERAL : PERSISTENT,
    plain: true,
  };
}

export function keyRequest(
  operation: KvKeyOperation,
): KvExtendRequest | KvDeleteRequest | KvGetRequest {
  const { kind, key, expiresMs, revision } = operation;
  const both = { key, durability: operation.ephemeral ? EPHEMERAL : PERSISTENT, plain: true };
  if (kind === "kv-extend") return { kind, expiresMs, ...both };
  if (kind === "kv-delete") return { kind, ...both };
  return { kind, revision, ...both };
}

function askSet(kind: WorkloadKind, operation: KvSetOperation): Ask {
  const told = { ...operation, value: toldValue(operation.value) };
  return { kind, request: setRequest(operation), operations: [told] };
}

function askKey(kind: WorkloadKind, operation: KvKeyOperation): Ask {
  return { kind, request: keyRequest(operation), operations: [operation] };
}

/** Large values come in a row: so that a node that is away misses many of them. */
const LARGE_EVERY = 200;

/** A value that nobody else writes. */
export function uniqueValue(plan: Plan, prng: Prng, shared: SharedWork): string | null {
  const { largeValues, largeBytes } = plan.work;
  if (shared.unique % LARGE_EVERY < largeValues) {
    shared.large++;
    return `v${shared.unique++}${"x".repeat(largeBytes)}`;
  }
  if (prng.chance(1, 20)) return null;
  const padding = prng.chance(1, 15) ? "x".repeat(prng.below(3000)) : "";
  return `v${shared.unique++}${padding}`;
}

export function drawSet(
  kind: WorkloadKind,
  plan: Plan,
  prng: Prng,
  memory: ClientMemory,
  shared: SharedWork,
): Ask {
  const key = keyName(plan, prng);
  const ephemeral = kind === "ephemeral-set";
  const value = uniqueValue(plan, prng, shared);
  const expiring = kind === "set-expiring" || (ephemeral && prng.chance(1, 2));
  const known = memory.seen.get(key) ?? { value: null, revision: -1n };
  const guess = known.revision + BigInt(prng.chance(1, 4) ? 1 : 0);
  const plain = {
    kind: "kv-set",
    key,
    ephemeral,
    value,
    compareValue: null,
    compareRevision: 0n,
    expiresMs: expiring ? leaseMs(prng) : 0,
    flags: 0,
  } as const;
  if (kind === "set-flags") {
    // Any combination of conditions, also such as nobody may ask for.
    let flags = 0;
    for (const flag of Object.values(KvFlag)) if (prng.chance(1, 3)) flags |= flag;
    const compareValue = prng.chance(1, 2) ? known.value : null;
    const withBoth = { ...plain, flags, compareValue, compareRevision: guess };
    return askSet(kind, { ...withBoth, ephemeral: prng.chance(1, 8) });
  }
  if (kind !== "set-conditional") return askSet(kind, plain);
  switch (prng.below(4)) {
    case 0:
      return askSet(kind, { ...plain, flags: KvFlag.ifExists });
    case 1:
      return askSet(kind, { ...plain, flags: KvFlag.ifNotExists });
    case 2:
      return askSet(kind, { ...plain, flags: KvFlag.ifEqualToValue, compareValue: known.value });
    default:
      return askSet(kind, { ...plain, flags: KvFlag.ifEqualToRevision, compareRevision: guess });
  }
}

/** Reads, extends and deletes. */
export function drawKey(kind: WorkloadKind, plan: Plan, prng: Prng, memory: ClientMemory): Ask {
  const key = keyName(plan, prng);
  const ephemeral = kind === "ephemeral-get" || kind === "ephemeral-delete";
  const both = { key, ephemeral, expiresMs: 0, revision: -1n };
  switch (kind) {
    case "kv-extend":
      return askKey(kind, { kind: "kv-extend", ...both, expiresMs: leaseMs(prng) });
    case "kv-delete":
    case "ephemeral-delete":
      return askKey(kind, { kind: "kv-delete", ...both });
    case "get-revision": {
      const latest = memory.seen.get(key)?.revision ?? 0n;
      const back = BigInt(prng.below(20));
      const revision = latest > back ? latest - back : 0n;
      const read = prng.chance(1, 4) ? "kv-exists" : "kv-get";
      return askKey(kind, { kind: read, ...both, revision });
    }
    default:
      return askKey(kind, { kind: kind === "exists" ? "kv-exists" : "kv-get", ...both });
  }
}

/** A request that breaks K3, K5, K8 or K18. */
export function drawOddKey(plan: Plan, prng: Prng): Ask {
  const key = keyName(plan, prng);
  const plain = { key, ephemeral: prng.chance(1, 4), expiresMs: 0, revision: -1n } as const;
  const set = {
    kind: "kv-set",
    key,
    ephemeral: plain.ephemeral,
    value: "odd",
    compareValue: null,
    compareRevision: 0n,
    expiresMs: 0,
    flags: 0,
  } as const;
  const badKey = pick(prng, ["", OVERLONG, "__svc:x", "__svc:x/y"]);
  switch (prng.below(7)) {
    case 0:
      return askSet("odd", { ...set, key: badKey });
    case 1:
      return askKey("odd", { kind: "kv-get", ...plain, key: badKey });
    case 2:
      return askSet("odd", { ...set, expiresMs: -1 });
    case 3:
      return askSet("odd", { ...set, flags: pick(prng, [64, 12, -1]) });
    case 4:
      return askKey("odd", { kind: "kv-get", ...plain, revision: -2n });
    case 5:
      return askKey("odd", { kind: "kv-extend", ...plain, expiresMs: prng.below(2) - 1 });
    default: {
      const size = plan.work.valueMaxBytes + prng.below(2);
      return askSet("odd", { ...set, value: "y".repeat(size) });
    }
  }
}
