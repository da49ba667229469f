/**
 * Forced release (F3 to F5): an administrator ends one grant, named by its token.
 *
 * Pure decision over the rows of the context. Invariants: 1. Nothing is released but the grant
 * with that token, while its lease runs. 2. The row that tells of it is written with the effect,
 * or, of an ephemeral lock, before it. 3. A refusal writes nothing.
 */
import { textSizeBytes } from "../../base/bytes.js";
import { LOCK_NOTE_MAX_BYTES } from "../../base/limits.js";
import { LockType, type ForceUnlockCommand, type ForcedOutcome } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { isOwner, resourceKey } from "../store/names.js";
import { addLockAudit, isRetained } from "./lock-audit.js";
import { releaseGrant } from "./locks.js";

function refusal(type: number): ForcedOutcome {
  return { kind: "forced", type, token: 0n, owner: null, auditId: 0 };
}

export function forceUnlock(context: DecisionContext, command: ForceUnlockCommand): ForcedOutcome {
  const { resource, token, owner: noted, reason, retained } = command;
  const key = resourceKey(resource);
  const isReason = reason !== "" && textSizeBytes(reason) <= LOCK_NOTE_MAX_BYTES;
  if (key === null || !isReason || !isRetained(retained)) return refusal(LockType.invalidInput);
  if (noted !== null && !isOwner(noted)) return refusal(LockType.invalidInput);
  const freed =
    noted === null ? releaseGrant(context, key, token) : { owner: noted, handover: null };
  if (typeof freed === "number") return refusal(freed);
  const { owner, handover } = freed;
  const { actor, requestId, nodeId, waitersDropped } = command;
  const told = { actor, reason, requestId, nodeId, waitersDropped };
  const row = { resource, isEphemeral: noted !== null, owner, token, ...told };
  const auditId = addLockAudit(context, row, retained);
  const outcome = { kind: "forced", type: LockType.unlocked, token, owner, auditId } as const;
  return handover === null ? outcome : { ...outcome, handover };
}
