/**
 * Operations of the history through the client library, as a program would ask them: the library chooses the node, follows
 * routes and repeats what it may.
 *
 * Invariants: 1. What the library rejects with is no result: "refused" where nothing can have been done, else "unknown".
 * 2. A call of which an earlier try may have taken effect is remembered, and counts as two attempts (P-169).
 */
import { Engine } from "../../../src/client/engine.js";
import { KeyValues } from "../../../src/client/kv/kv.js";
import { Locks } from "../../../src/client/locks/locks.js";
import { type SvcClientOptions, SvcError } from "../../../src/client/mod.js";
import { type Caller, newTrace } from "../../../src/client/call/operation.js";
import { Sequences } from "../../../src/client/sequences/sequences.js";
import { SystemClock } from "../../../src/client/time/clock.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { clientSettings } from "../../../src/client/values/options.js";
import type {
  AllocationResult,
  Attempt,
  History,
  KvResult,
  LockOperation,
  LockResult,
  Operation,
  OperationResult,
  Outcome,
  SequenceResult,
} from "../../judge/history.js";
import { FLAG } from "../../judge/models/kv.js";
import type { Endpoint } from "./wire.js";

/** Errors that are answers of the service, by their codes. */
const REFUSALS: Readonly<Record<string, SequenceResult["type"]>> = {
  "not-found": "NotFound",
  "already-exists": "AlreadyExists",
  "max-value-exceeded": "MaxValueExceeded",
};
const NOT_ALLOCATED = { start: 0n, end: 0n, count: 0, revision: 0n };

/** One client of the library, and what it could not be sure of. */
export class LibraryEndpoint implements Endpoint {
  private readonly engine: Engine;
  private readonly repeated = new WeakSet<Operation>();

  constructor(options: SvcClientOptions) {
    const clock = new SystemClock(systemPlatform);
    this.engine = new Engine(systemPlatform, clientSettings(options), clock);
  }

  async call(operation: Operation): Promise<Outcome> {
    const trace = newTrace();
    const { engine } = this;
    const caller: Caller = {
      platform: engine.platform,
      deadlineMs: engine.deadlineMs,
      pause: (ms, signal) => engine.pause(ms, signal),
      call: (asked, request, calling) => engine.call(asked, request, { ...calling, trace }),
    };
    try {
      return { kind: "ok", result: await ask(caller, operation) };
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const kind = error.outcome === "none" ? "refused" : "unknown";
      return { kind, reason: `${error.code}: ${error.message}` };
    } finally {
      if (trace.doubtfulSentMs >= 0) this.repeated.add(operation);
    }
  }

  close(): void {
    void this.engine.close();
  }

  /** Whether an earlier try of it may have taken effect. */
  wasRepeated(operation: Operation): boolean {
    return this.repeated.has(operation);
  }
}

/** The history with an attempt of its own for each call that was repeated: its effect may come late, too. */
export function withEarlierTries(
  { attempts, endMs }: History,
  wasRepeated: (operation: Operation) => boolean,
): History {
  let id = attempts.length;
  const told = attempts.flatMap((attempt): readonly Attempt[] => {
    if (!wasRepeated(attempt.operation)) return [attempt];
    const reason = "an earlier try of the library";
    const open = { answers: 0, lost: reason, returnOrder: null, returnMs: null };
    const earlier = {
      ...attempt,
      ...open,
      id: id++,
      outcome: { kind: "unknown", reason } as const,
    };
    return [attempt, earlier];
  });
  return { attempts: told, endMs };
}

function ask(caller: Caller, operation: Operation): Promise<OperationResult> {
  if ("resource" in operation) return askLock(caller, operation);
  return "name" in operation ? askSequence(caller, operation) : askKey(caller, operation);
}

async function askLock(caller: Caller, operation: LockOperation): Promise<LockResult> {
  const { kind, resource, owner, expiresMs: leaseMs, ephemeral } = operation;
  const durability = ephemeral ? "ephemeral" : "persistent";
  const locks = new Locks({ caller, clock: new SystemClock(systemPlatform), watches: null });
  const none = { owner: null, expiresInMs: null };
  const refused = (refusal: "not-held" | "other-owner" | null): LockResult => {
    const type = refusal === "not-held" ? "LockDoesNotExist" : "InvalidOwner";
    return { type, token: 0n, ...none };
  };
  switch (kind) {
    case "try-lock": {
      const { acquired, fencingToken } = await locks.tryLock(resource, {
        ...{ owner, leaseMs, durability },
      });
      return { type: acquired ? "Locked" : "Busy", token: fencingToken, ...none };
    }
    case "try-extend": {
      const step = { owner, leaseMs, durability } as const;
      const { extended, refusal, fencingToken } = await locks.tryExtend(resource, step);
      return extended ? { type: "Extended", token: fencingToken, ...none } : refused(refusal);
    }
    case "try-unlock": {
      const { refusal } = await locks.unlock(resource, { owner, durability });
      return refusal === null ? { type: "Unlocked", token: null, ...none } : refused(refusal);
    }
    case "get-lock": {
      const info = await locks.info(resource, { durability });
      if (info === null) return refused("not-held");
      return { type: "Got", token: info.fencingToken, owner: info.ownerText, expiresInMs: null };
    }
  }
}

async function askSequence(
  caller: Caller,
  operation: Extract<Operation, { readonly name: string }>,
): Promise<SequenceResult | AllocationResult> {
  const sequences = new Sequences(caller, "auto");
  const { kind, name } = operation;
  try {
    switch (kind) {
      case "create-sequence": {
        const sequence = await sequences.create(name, operation);
        return { type: "Success", sequence, revision: sequence.revision };
      }
      case "get-sequence": {
        const sequence = await sequences.get(name);
        if (sequence === null) return { type: "NotFound", sequence, revision: -1n };
        return { type: "Success", sequence, revision: sequence.revision };
      }
      case "allocate": {
        const { count, idempotencyKey } = operation;
        const given = idempotencyKey === null ? {} : { idempotencyKey };
        const { start, end, revision } =
          count === 1
            ? await sequences.nextRange(name, given)
            : await sequences.reserve(name, count, given);
        return { type: "Success", start, end, count, revision };
      }
      default:
        throw new Error(`not asked in these runs: ${kind}`);
    }
  } catch (error) {
    const type = error instanceof SvcError ? REFUSALS[error.code] : undefined;
    if (type === undefined) throw error;
    if (kind === "allocate") return { type, ...NOT_ALLOCATED };
    return { type, sequence: null, revision: -1n };
  }
}

async function askKey(caller: Caller, operation: Operation): Promise<KvResult> {
  const kv = new KeyValues(caller);
  switch (operation.kind) {
    case "kv-set": {
      const { key, value, flags, compareRevision, expiresMs } = operation;
      const { applied, revision } = await kv.set(key, value, {
        ...((flags & FLAG.ifNotExists) !== 0 ? { ifNotExists: true } : {}),
        ...((flags & FLAG.ifEqualToRevision) !== 0 ? { ifRevision: compareRevision } : {}),
        ...(expiresMs > 0 ? { expiresMs } : {}),
      });
      return { type: applied ? "Set" : "NotSet", value: null, revision };
    }
    case "kv-get": {
      const entry = await kv.get(operation.key);
      if (entry === null) return { type: "DoesNotExist", value: null, revision: 0n };
      return { type: "Got", value: entry.text, revision: entry.revision };
    }
    case "kv-delete": {
      const { deleted, revision } = await kv.delete(operation.key);
      return { type: deleted ? "Deleted" : "DoesNotExist", value: null, revision };
    }
    default:
      throw new Error(`not asked in these runs: ${operation.kind}`);
  }
}
