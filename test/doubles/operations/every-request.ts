/**
 * One acceptable request of every kind (but local scans, which no client asks for), with what a
 * client sends for it: what tests walk through that must hold for every data call.
 *
 * Invariants: 1. A new data call has its row here; whatever walks through the rows tests it then.
 */
import { Int64 } from "../../../src/base/int64.js";
import type { Operation } from "../../../src/client/call/operation.js";
import {
  deleteMany,
  existsMany,
  getMany,
  setMany,
} from "../../../src/client/kv/kv-many-operations.js";
import {
  deleteKey,
  existsKey,
  extendKey,
  getKey,
  setKey,
} from "../../../src/client/kv/kv-operations.js";
import { rangePage, readBucket, scanPage } from "../../../src/client/kv/kv-page-operations.js";
import { forceUnlock, listAudit, listLocks } from "../../../src/client/locks/lock-admin.js";
import {
  getLock,
  tryExtend,
  tryLock,
  unlock as release,
} from "../../../src/client/locks/lock-operations.js";
import { nextValue, reserveRange } from "../../../src/client/sequences/allocate-operation.js";
import * as sequences from "../../../src/client/sequences/sequence-operations.js";
import type { DataRequest, ForceUnlockRequest } from "../../../src/operations/api/requests.js";
import {
  create,
  deleteSequence,
  get,
  getSequence,
  info,
  lock,
  next,
  range,
  reserve,
  scanAll,
  set,
  unlock,
  update,
} from "./fixture.js";

export interface SampleCall {
  readonly request: DataRequest;
  /** The client's operation and what it is asked for. */
  readonly operation: Operation<unknown, unknown, unknown>;
  readonly asks: unknown;
}

function call<Request, Answer, Result>(
  request: DataRequest,
  operation: Operation<Request, Answer, Result>,
  asks: Request,
): SampleCall {
  return { request, operation: operation as Operation<unknown, unknown, unknown>, asks };
}

const wire = (durability: number): 0 | 1 => (durability === 0 ? 0 : 1);

/** Members of requests that the client says in its own way, or not at all. */
const OWN = ["kind", "durability", "plain"] as const;

/** The members that client and operation have in common. */
function shared<R extends object>(request: R): Omit<R, (typeof OWN)[number]> {
  const members = Object.entries(request).filter(([name]) => !OWN.includes(name as "kind"));
  return Object.fromEntries(members) as Omit<R, (typeof OWN)[number]>;
}

/** In an order in which they mean something: what is read was written before. */
export function everyCall(name: string, durable = 1): readonly SampleCall[] {
  const durability = wire(durable);
  const taken = lock(name, "o", 1000, durability);
  const { resource, owner, expiresMs } = taken;
  const held = { resource, owner, expiresMs, durability };
  const noWait = { waitMs: 0, waitId: Int64.ZERO, tryNumber: Int64.ZERO };
  const page = { limit: 0, cursor: null };
  const listed = { kind: "list-locks" as const, prefix: name, durability, heldOnly: true, ...page };
  const forcedAsk = { resource, durability, fencingToken: 0n, reason: "why", dropWaiters: true };
  const forced: ForceUnlockRequest = {
    ...{ ...forcedAsk, kind: "force-unlock", fencingToken: Int64.ZERO },
    ...{ actor: "", nodeId: 0 },
  };
  const audited = { kind: "list-lock-audit" as const, prefix: name, limit: 7, cursor: null };
  const made = create(name);
  const updated = update(name, { increment: 2n });
  const keyed = { name, count: 1, key: "key", repeatKey: null };
  const put = set(name, "v", { durability, expiresMs: 60_000 });
  const puts = [set(name, "v", { durability }), set(`${name}2`, "v")];
  const latest = { key: name, revision: -1n, durability } as const;
  const remove = { kind: "kv-delete" as const, key: name, durability, plain: true };
  const exists = { ...get(name, -1n, durability), kind: "kv-exists" as const };
  const ranged = range(name, { startInclusive: true, durability });
  const scanned = { prefixKey: name, limit: 0, cursor: null, durability } as const;
  return [
    call({ ...taken, ...noWait, note: null }, tryLock, held),
    call({ ...taken, kind: "try-extend", fencingToken: null, note: null }, tryExtend, held),
    call({ ...info(name, durability), owner: null }, getLock, { resource: name, durability }),
    call({ ...unlock(name, "o", durability), fencingToken: null }, release, held),
    call(listed, listLocks, { ...shared(listed), durability }),
    call(forced, forceUnlock, forcedAsk),
    call(audited, listAudit, { prefix: name, limit: 7, cursor: null }),
    call(made, sequences.createSequence, shared(made)),
    call(updated, sequences.updateSequence, shared(updated)),
    call(getSequence(name), sequences.getSequence, { name }),
    call(next(name), nextValue, { ...keyed, key: null }),
    call(next(name, "key"), nextValue, keyed),
    call(reserve(name, 3), reserveRange, { ...keyed, key: null, count: 3 }),
    call(deleteSequence(name), sequences.deleteSequence, { name }),
    call(put, setKey, { ...shared(put), durability }),
    call({ kind: "kv-extend", key: name, expiresMs: 50_000, durability, plain: true }, extendKey, {
      key: name,
      expiresMs: 50_000,
      durability,
    }),
    call(get(name, -1n, durability), getKey, latest),
    call(exists, existsKey, latest),
    call(
      { kind: "kv-set-many", items: puts },
      setMany,
      puts.map((item) => ({ ...shared(item), durability: wire(item.durability) })),
    ),
    call(
      { kind: "kv-get-many", items: [get(name, -1n, durability), get(`${name}2`)], plain: true },
      getMany,
      [latest, { ...latest, key: `${name}2`, durability: 1 }],
    ),
    call({ kind: "kv-exists-many", items: [exists], plain: true }, existsMany, [latest]),
    call({ kind: "kv-bucket", bucket: name, durability, plain: true }, readBucket, {
      prefixKey: name,
      durability,
    }),
    call(ranged, rangePage, { ...shared(ranged), durability }),
    call(scanAll(name, { durability }), scanPage, scanned),
    call({ kind: "kv-delete-many", items: [remove], plain: true }, deleteMany, [
      { key: name, durability },
    ]),
    call(remove, deleteKey, { key: name, durability }),
  ];
}

export function everyRequest(name: string, durability = 1): readonly DataRequest[] {
  return everyCall(name, durability).map(({ request }) => request);
}
