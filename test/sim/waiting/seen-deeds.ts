/**
 * Commands, outcomes and rows of persistent locks in the words of the checkers of heirs.
 *
 * Pure.
 */
import { decodeText } from "../../../src/base/bytes.js";
import { type Command, LockType, type Outcome } from "../../../src/machine/commands/command.js";
import type { NewHeir } from "../../../src/machine/commands/heir-commands.js";
import type { Machine } from "../../../src/machine/machine.js";
import type { Outcome as SeenOutcome, SeenRow } from "../../judge/checkers/heirs/list-forward.js";
import type { Deed, DeedEnd, SeenAsk } from "../../judge/checkers/heirs/naive-row.js";

export interface SeenDeed {
  readonly resource: string;
  readonly deed: Deed;
}

export function textOf(owner: Uint8Array): string {
  return decodeText(owner) ?? "";
}

/** Null: it is about no persistent lock. */
export function deedOf(command: Command): SeenDeed | null {
  switch (command.kind) {
    case "try-lock":
    case "lock-with-note": {
      const { resource, owner, expiresMs: leaseMs } = command;
      const ask = { owner: textOf(owner), waitId: 0n, attempt: 0n, leaseMs };
      return { resource, deed: { kind: "try", ...ask } };
    }
    case "try-extend":
    case "extend-grant": {
      const { resource, owner, expiresMs: leaseMs } = command;
      const token = command.kind === "try-extend" ? null : command.token;
      return { resource, deed: { kind: "extend", owner: textOf(owner), token, leaseMs } };
    }
    case "try-unlock":
    case "unlock-grant": {
      const { resource, owner } = command;
      const token = command.kind === "try-unlock" ? null : command.token;
      return { resource, deed: { kind: "unlock", owner: textOf(owner), token } };
    }
    case "force-unlock": {
      const { resource, owner, token } = command;
      return owner === null ? { resource, deed: { kind: "force", token } } : null;
    }
    case "lock-heir": {
      const { resource, owner, expiresMs: leaseMs, waitId, attempt } = command;
      return { resource, deed: { kind: "try", owner: textOf(owner), waitId, attempt, leaseMs } };
    }
    case "set-heirs": {
      const { resource, token, kept, added, horizonMs } = command;
      return { resource, deed: { kind: "set", token, kept, added: added.map(named), horizonMs } };
    }
    case "append-heirs": {
      const { resource, token, added, horizonMs } = command;
      return { resource, deed: { kind: "append", token, added: added.map(named), horizonMs } };
    }
    default:
      return null;
  }
}

function named({ owner, waitId, attempt, leaseMs }: NewHeir): SeenAsk {
  return { owner: textOf(owner), waitId, attempt, leaseMs };
}

const ENDS: ReadonlyMap<number, DeedEnd> = new Map([
  [LockType.locked, "locked"],
  [LockType.busy, "busy"],
  [LockType.extended, "extended"],
  [LockType.unlocked, "unlocked"],
  [LockType.doesNotExist, "not held"],
  [LockType.invalidOwner, "invalid owner"],
  [LockType.mustRetry, "must retry"],
]);

/** Null: it was not decided by the rules of locks. */
export function endOf(outcome: Outcome): SeenOutcome | null {
  if (outcome.kind === "heirs") {
    return outcome.status === "invalid" ? null : { end: outcome.status, token: 0n };
  }
  if (outcome.kind !== "lock" && outcome.kind !== "forced") return null;
  const end = ENDS.get(outcome.type);
  return end === undefined ? null : { end, token: outcome.token };
}

/** As the machine has it; null: there is none. What the lease of the holder was it does not tell. */
export function seenRowOf(machine: Machine, resource: string): SeenRow | null {
  const row = machine.reads.succession(resource);
  if (row === null) return null;
  const { base, heirs, isHeld, endMs, listTerm, untilMs, top } = row;
  return {
    ...{ isHeld, endMs, listTerm, untilMs, top },
    base: { ...named({ ...base, leaseMs: 0 }), token: base.token },
    heirs: heirs.map((heir) => ({ ...named(heir), token: heir.token })),
  };
}
