/**
 * Requests on locks: persistent and ephemeral, and such that must be refused.
 */
import { encodeText } from "../../../src/base/bytes.js";
import { Int64 } from "../../../src/base/int64.js";
import type { Prng } from "../../../src/base/prng.js";
import {
  type Ask,
  type ClientMemory,
  EPHEMERAL,
  OVERLONG,
  PERSISTENT,
  leaseMs,
  pick,
} from "./workload.js";
import type { LockOperation } from "../../judge/operation.js";
import type { Plan } from "../plan/plan.js";
import type { WorkloadKind } from "../plan/workplan.js";

export function lockName(plan: Plan, prng: Prng): string {
  return `lock-${prng.below(plan.locks)}`;
}

function int64Of(digits: string): Int64 {
  return Int64.fromBigInt(BigInt(digits));
}

/** One request on a lock in its two forms. */
export function askLock(kind: WorkloadKind, operation: LockOperation): Ask {
  const { resource, expiresMs, ephemeral } = operation;
  const durability = ephemeral ? EPHEMERAL : PERSISTENT;
  const owner = encodeText(operation.owner);
  const operations = [operation];
  const { fencingToken } = operation;
  const meant = fencingToken === undefined ? {} : { fencingToken: int64Of(fencingToken) };
  switch (operation.kind) {
    case "try-lock":
    case "try-extend": {
      const request = { kind: operation.kind, resource, owner, expiresMs, durability, ...meant };
      return { kind, request, operations };
    }
    case "try-unlock": {
      const request = { kind: operation.kind, resource, owner, durability, ...meant };
      return { kind, request, operations };
    }
    case "get-lock":
      return { kind, request: { kind: "get-lock", resource, durability }, operations };
  }
}

/** A request of `kind` on some lock. */
export function drawLock(kind: WorkloadKind, plan: Plan, prng: Prng, memory: ClientMemory): Ask {
  const ephemeralOn = plan.operations["ephemeral-lock"] > 0;
  const isPlain = kind === "lock" || !ephemeralOn;
  const ephemeral = kind === "ephemeral-lock" || (!isPlain && prng.chance(1, 3));
  const resource = lockName(plan, prng);
  const { owner } = memory;
  switch (kind) {
    case "extend": {
      const expiresMs = leaseMs(prng);
      return askLock(kind, { kind: "try-extend", resource, ephemeral, owner, expiresMs });
    }
    case "unlock":
      return askLock(kind, { kind: "try-unlock", resource, ephemeral, owner, expiresMs: 0 });
    case "get-lock":
      return askLock(kind, { kind: "get-lock", resource, ephemeral, owner: "", expiresMs: 0 });
    default: {
      const expiresMs = leaseMs(prng);
      return askLock(kind, { kind: "try-lock", resource, ephemeral, owner, expiresMs });
    }
  }
}

/** A request that breaks L18, or is at its edge. */
export function drawOddLock(plan: Plan, prng: Prng, memory: ClientMemory): Ask {
  const kind = pick(prng, ["try-lock", "try-extend", "try-unlock"] as const);
  const hasLease = kind !== "try-unlock";
  const good = {
    kind,
    resource: lockName(plan, prng),
    ephemeral: prng.chance(1, 3),
    owner: memory.owner,
    expiresMs: hasLease ? leaseMs(prng) : 0,
  };
  switch (prng.below(6)) {
    case 0:
      return askLock("odd", { ...good, resource: "" });
    case 1:
      return askLock("odd", { ...good, resource: OVERLONG });
    case 2:
      return askLock("odd", { ...good, owner: "" });
    case 3:
      return askLock("odd", { ...good, owner: OVERLONG });
    case 4:
      return askLock("odd", { ...good, expiresMs: hasLease ? -prng.below(2) : 0 });
    default: {
      const edgeMs = plan.work.lockMaxLeaseMs + prng.below(2);
      return askLock("odd", { ...good, expiresMs: hasLease ? edgeMs : 0 });
    }
  }
}
