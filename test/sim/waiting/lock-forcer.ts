/**
 * Somebody who looks at a hot lock now and then and ends the grant that he finds by force, through
 * any node.
 *
 * Invariants: 1. What he does is recorded as a release by its holder that names the grant (F4). 2.
 * What he draws is drawn from a generator of his own.
 */
import { decodeText } from "../../../src/base/bytes.js";
import { Int64 } from "../../../src/base/int64.js";
import type { Prng } from "../../../src/base/prng.js";
import { LockType } from "../../../src/machine/commands/command.js";
import type { DataAnswer, DataRequest } from "../../../src/operations/api/requests.js";
import type { Forced } from "../../judge/checkers/locks/forced.js";
import type { HistoryRecorder, Outcome } from "../../judge/history.js";
import type { LockOperation, LockResult } from "../../judge/operation.js";
import { PERSISTENT } from "../clients/workload.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { ForcedTap } from "./forced-tap.js";

export interface ForcerParts {
  readonly world: World;
  readonly servers: readonly Server[];
  readonly history: HistoryRecorder;
  readonly locks: number;
  /** What was applied last of who holds a lock. */
  readonly baseOf: (resource: string) => { readonly owner: string; readonly token: bigint } | null;
  readonly timeoutMs: number;
  readonly everyMs: number;
  readonly tap: ForcedTap;
  /** All who wait are sent away; what is returned is told when that is over. */
  readonly drops: (resource: string) => () => void;
  readonly count: (name: string) => void;
}

export class LockForcer {
  private readonly prng: Prng;
  private isStopped = false;
  private forced = 0;

  constructor(private readonly parts: ForcerParts) {
    this.prng = parts.world.prng("lock forcer");
  }

  start(): void {
    this.parts.world.schedule(1 + this.prng.below(2 * this.parts.everyMs), () => {
      if (this.isStopped || this.parts.history.isFull()) return;
      this.act();
      this.start();
    });
  }

  stop(): void {
    this.isStopped = true;
  }

  private act(): void {
    const resource = `hot-${this.prng.below(this.parts.locks)}`;
    const request = { kind: "get-lock", resource, durability: PERSISTENT, owner: null } as const;
    this.ask(request, (answer) => {
      if (answer.kind !== "lock") return;
      // Who holds it nobody says while a list outlives its leader (Q15): he goes by what he knew.
      const base = answer.type === LockType.mustRetry ? this.parts.baseOf(resource) : null;
      const token = base === null ? answer.fencingToken : Int64.fromBigInt(base.token);
      const owner = base?.owner ?? (answer.owner && decodeText(answer.owner)) ?? "";
      if (base === null && answer.type !== LockType.got) return;
      // Now and then a grant that is gone meanwhile.
      const delayMs = this.prng.chance(1, 4) ? this.prng.below(50) : 0;
      this.parts.world.schedule(delayMs, () => {
        if (!this.isStopped) this.force(resource, owner, token);
      });
    });
  }

  private force(resource: string, owner: string, token: Int64): void {
    const { world, history, count, tap, drops } = this.parts;
    count("forced");
    const fencingToken = `${token.toBigInt()}`;
    const release = {
      kind: "try-unlock",
      resource,
      ephemeral: false,
      owner,
      expiresMs: 0,
    } as const;
    const operation: LockOperation = { ...release, fencingToken, isForced: true };
    const id = history.call("forcer", 0, operation, world.nowMs);
    // No two have the same, and all have the same length.
    const reason = (this.forced++).toString(36).padStart(3, "0");
    const asked = { resource, durability: PERSISTENT, reason, actor: "", nodeId: 0 };
    const told = tap.asked({ resource, token: token.toBigInt(), reason, sentMs: world.nowMs });
    const dropWaiters = this.prng.chance(1, 5);
    const request = { kind: "force-unlock", ...asked, dropWaiters, fencingToken: token };
    const dropped = dropWaiters ? drops(resource) : null;
    const isAsked = this.ask(request as DataRequest, (answer) => {
      dropped?.();
      const outcome = forcedOutcome(answer);
      history.answered(id, outcome, world.nowMs);
      const owner = answer.kind === "forced" && answer.owner ? decodeText(answer.owner) : null;
      const auditId = answer.kind === "forced" ? answer.auditId : 0;
      told({ atMs: world.nowMs, end: endOf(outcome), owner, auditId });
    });
    if (isAsked) return;
    history.answered(id, { kind: "refused", reason: "no connection" }, world.nowMs);
    told({ atMs: world.nowMs, end: "refused", owner: null, auditId: 0 });
  }

  /** False: nobody is there to be asked. */
  private ask(request: DataRequest, told: (answer: DataAnswer) => void): boolean {
    const { servers, timeoutMs } = this.parts;
    const server = servers[this.prng.below(servers.length)] as Server;
    const { running } = server;
    if (running === null) return false;
    const { life, operations } = running;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + timeoutMs;
      operations.execute(request, { deadlineMs, forwardHops: 0, requestId: "forcer" }, told);
    });
    return true;
  }
}

function forcedOutcome(answer: DataAnswer): Outcome {
  if (answer.refusal !== null) return { kind: "refused", reason: answer.refusal };
  if (answer.kind !== "forced") return { kind: "unknown", reason: "no answer of its kind" };
  const type = TYPES.get(answer.type);
  if (answer.type === LockType.aborted) return { kind: "refused", reason: "aborted" };
  if (type === undefined) return { kind: "unknown", reason: `type ${answer.type}` };
  const token = type === "Unlocked" ? answer.fencingToken.toBigInt() : 0n;
  return { kind: "ok", result: { type, token, owner: null, expiresInMs: null } };
}

function endOf(outcome: Outcome): Forced["end"] {
  if (outcome.kind !== "ok") return outcome.kind;
  return (outcome.result as LockResult).type === "Unlocked" ? "unlocked" : "refused";
}

const TYPES: ReadonlyMap<number, LockResult["type"]> = new Map([
  [LockType.unlocked, "Unlocked"],
  [LockType.doesNotExist, "LockDoesNotExist"],
  [LockType.invalidOwner, "InvalidOwner"],
]);
