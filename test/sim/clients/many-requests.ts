/**
 * Requests on many keys: calls for many, buckets, scans, ranges, page by page; and changes of the
 * key ranges themselves.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { DataRequest, KvGetRequest } from "../../../src/operations/api/requests.js";
import { type Ask, EPHEMERAL, PERSISTENT, type SharedWork, leaseMs, pick } from "./workload.js";
import { BUCKETS, keyName, keyRequest, setRequest, uniqueValue } from "./kv-requests.js";
import {
  type KvKeyOperation,
  type KvManyReadOperation,
  type KvSetOperation,
  toldValue,
} from "../../judge/operation.js";
import type { Plan } from "../plan/plan.js";
import type { WorkloadKind } from "../plan/workplan.js";

const ITEMS_MAX = 12;

export function drawMany(kind: WorkloadKind, plan: Plan, prng: Prng, shared: SharedWork): Ask {
  const count = 1 + prng.below(ITEMS_MAX);
  const isEphemeral = (): boolean => prng.chance(1, 6);
  if (kind === "set-many") {
    const operations: KvSetOperation[] = [];
    for (let at = 0; at < count; at++) {
      operations.push({
        kind: "kv-set",
        key: keyName(plan, prng),
        ephemeral: isEphemeral(),
        value: uniqueValue(plan, prng, shared),
        compareValue: null,
        compareRevision: 0n,
        expiresMs: prng.chance(1, 6) ? leaseMs(prng) : 0,
        flags: pick(prng, [0, 0, 0, 4, 8]),
      });
    }
    const items = operations.map(setRequest);
    const told = operations.map((operation) => ({
      ...operation,
      value: toldValue(operation.value),
    }));
    return { kind, request: { kind: "kv-set-many", items }, operations: told };
  }
  const single = ({ "delete-many": "kv-delete", "get-many": "kv-get" } as const)[
    kind as "delete-many" | "get-many"
  ];
  const operations: KvKeyOperation[] = [];
  for (let at = 0; at < count; at++) {
    const key = keyName(plan, prng);
    const both = { key, ephemeral: isEphemeral(), expiresMs: 0, revision: -1n };
    operations.push({ kind: single ?? "kv-exists", ...both });
  }
  const items = operations.map(keyRequest);
  if (single === "kv-delete") {
    const deletes = items.map((item) => ({ ...item, kind: "kv-delete" }) as const);
    return { kind, request: { kind: "kv-delete-many", items: deletes, plain: true }, operations };
  }
  const gets = items as KvGetRequest[];
  const many = single === "kv-get" ? "kv-get-many" : "kv-exists-many";
  return { kind, request: { kind: many, items: gets, plain: true }, operations };
}

export function drawBucket(kind: WorkloadKind, prng: Prng): Ask {
  const bucket = prng.chance(1, 4) ? pick(prng, BUCKETS) : `bucket-${prng.below(3)}`;
  const ephemeral = prng.chance(1, 12);
  const durability = ephemeral ? EPHEMERAL : PERSISTENT;
  return {
    kind,
    request: { kind: "kv-bucket", bucket, durability, plain: true },
    operations: [{ kind: "kv-bucket", prefix: bucket, ephemeral }],
  };
}

/** The first page of a scan or range. */
export function drawPages(
  kind: "scan-all" | "scan-local" | "range",
  plan: Plan,
  prng: Prng,
  shared: SharedWork,
): KvManyReadOperation {
  const limit = pick(prng, [0, 1, 2, 5, 100]);
  const open = { startKey: null, startInclusive: true, endKey: null, endInclusive: false };
  const page = { scan: shared.unique++, number: 0, limit, ...open };
  const ephemeral = prng.chance(1, 10);
  if (kind !== "range") {
    const prefix = pick(prng, ["b", "bucket-", "bucket-0/", "bucket-2", "bucket-1/key-1"]);
    const many = kind === "scan-all" ? "kv-scan" : "kv-scan-local";
    return { kind: many, prefix, ephemeral, page };
  }
  const prefix = pick(prng, BUCKETS);
  const edge = (): string | null => {
    return prng.chance(1, 2) ? null : `${prefix}/key-${prng.below(plan.keys)}`;
  };
  const startKey = edge();
  const startInclusive = startKey === null || prng.chance(1, 2);
  const endInclusive = prng.chance(1, 2);
  const bounded = { ...page, startKey, startInclusive, endKey: edge(), endInclusive };
  return { kind: "kv-range", prefix, ephemeral, page: bounded };
}

/** One page of a scan, a range or a bucket, from `cursor` on. */
export function askPage(
  kind: WorkloadKind,
  operation: KvManyReadOperation,
  cursor: string | null,
): Ask {
  const { prefix, page } = operation;
  const durability = operation.ephemeral ? EPHEMERAL : PERSISTENT;
  const both = { prefix, cursor, limit: page?.limit ?? 0, durability, plain: true };
  let request: DataRequest;
  if (operation.kind === "kv-range" && page !== undefined) {
    const { startKey, startInclusive, endKey, endInclusive } = page;
    request = { kind: "kv-range", ...both, startKey, startInclusive, endKey, endInclusive };
  } else {
    const local = operation.kind === "kv-scan-local";
    const includeTombstones = local && (page?.scan ?? 0) % 2 === 0;
    request = { kind: local ? "kv-scan-local" : "kv-scan-all", ...both, includeTombstones };
  }
  return { kind, request, operations: [operation] };
}

/** A change of the key ranges. */
export function drawRangeChange(plan: Plan, prng: Prng): Ask {
  const keySpace = prng.chance(1, 10) ? pick(prng, ["", "x/meta", "__svc:x"]) : pick(prng, BUCKETS);
  const kind = pick(prng, ["register-range", "register-range", "unregister-range"] as const);
  if (prng.chance(1, 8)) {
    const splitKey = `${keySpace}/key-${prng.below(plan.keys)}`;
    const request = { kind: "split-range", keySpace, splitKey } as const;
    return { kind: "ranges", request, operations: [{ kind: "split-range", keySpace }] };
  }
  if (prng.chance(1, 12)) {
    const operations = [{ kind: "merge-ranges", keySpace: "" }] as const;
    return { kind: "ranges", request: { kind: "merge-ranges" }, operations };
  }
  return { kind: "ranges", request: { kind, keySpace }, operations: [{ kind, keySpace }] };
}
