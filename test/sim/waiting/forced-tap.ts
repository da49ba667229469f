/**
 * What the checkers of forced releases look at in a world whose locks have heirs: who was asked to
 * end which grant, what was granted as applied, what holders asked of their grants, and the audit.
 *
 * Invariants: 1. What is looked at goes on as it would: no draw, no ask. 2. Only what was applied
 * counts as granted: an heir that is told ahead of it may follow a holder that is ended by force
 * (Q15, F4). 3. The audit is read in peace, of the leaders' own rows.
 */
import type { Group } from "../../../src/host/group/group.js";
import { checkAuditExact } from "../../judge/checkers/locks/audit-exact.js";
import { checkForceCompares } from "../../judge/checkers/locks/force-compares.js";
import type {
  AuditRow,
  Change,
  Forced,
  Grant,
  LockEvent,
} from "../../judge/checkers/locks/forced.js";
import type { Verdict } from "../../judge/checkers/verdict.js";
import type { Attempt, History, LockResult } from "../../judge/history.js";
import { PERSISTENT } from "../clients/workload.js";
import type { Server } from "../world/server.js";
import { textOf } from "./seen-deeds.js";

/** More than any world writes. */
const ROWS_MAX = 1_000_000;

type AskedForce = Pick<Forced, "resource" | "token" | "reason" | "sentMs">;

export class ForcedTap {
  private readonly grants: Grant[] = [];
  private readonly forced: Forced[] = [];
  /** null: not read yet. */
  private rows: readonly AuditRow[] | null = null;

  /** Somebody is asked to end a grant; returns what notes the answer. */
  asked(ask: AskedForce): (told: Pick<Forced, "atMs" | "end" | "owner" | "auditId">) => void {
    const open = { kind: "forced", ...ask, durability: PERSISTENT, atMs: null } as const;
    const at = this.forced.push({ ...open, end: "unknown", owner: null, auditId: 0 }) - 1;
    return (told) => {
      this.forced[at] = { ...open, ...told };
    };
  }

  /** The row of the lock has that holder from now on. */
  granted(resource: string, owner: string, token: bigint, atMs: number): void {
    const lock = { resource, durability: PERSISTENT };
    this.grants.push({ kind: "grant", ...lock, owner, token, sentMs: atMs, atMs });
  }

  /** Peace: nothing is on its way any more. */
  read(servers: readonly Server[]): void {
    const leaders = new Map<number, Group>();
    for (const group of servers.flatMap(({ running }) => [...(running?.node.groups() ?? [])])) {
      if (group.isServing()) leaders.set(group.partition, group);
    }
    if (leaders.size === 0) return;
    const rows = [...leaders.values()].flatMap(rowsOf);
    // Those of each partition come the newest first already, and stay as they are.
    this.rows = rows.sort((one, other) => other.stampMs - one.stampMs);
  }

  judge({ attempts }: History): Verdict[] {
    const events: LockEvent[] = [...this.grants, ...this.forced, ...attempts.flatMap(changeOf)];
    return [checkForceCompares(events, {}), checkAuditExact(events, this.rows, {})];
  }
}

function rowsOf({ partition: partitionId, machine }: Group): AuditRow[] {
  const { items } = machine.reads.lockAudit("", null, ROWS_MAX, ROWS_MAX);
  return items.map(({ id: auditId, resource, isEphemeral, owner, token, reason, stamp }) => {
    const row = { auditId, partitionId, resource, durability: isEphemeral ? 0 : PERSISTENT };
    return { ...row, owner: textOf(owner), token, reason, stampMs: stamp.l };
  });
}

/** Extends and unlocks of holders that named their grant. */
function changeOf({ operation, outcome, callMs, returnMs }: Attempt): Change[] {
  if (operation.kind !== "try-extend" && operation.kind !== "try-unlock") return [];
  const { resource, ephemeral, fencingToken, isForced = false } = operation;
  if (ephemeral || isForced || fencingToken === undefined || outcome?.kind !== "ok") return [];
  const { type } = outcome.result as LockResult;
  const isDone = type === "Extended" || type === "Unlocked";
  const lock = { resource, durability: PERSISTENT, token: BigInt(fencingToken) };
  return [{ kind: "change", ...lock, isDone, sentMs: callMs, atMs: returnMs }];
}
