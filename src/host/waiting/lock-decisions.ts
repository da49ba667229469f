/**
 * Decisions about locks on behalf of who waits: persistent ones through the log, ephemeral ones in
 * the leader's table in the turn of a confirmed round (L16), both with the same ends.
 *
 * Invariants: 1. A call ends once, never in the turn in which it was made. 2. What goes right
 * behind another call is decided with it: in the same entry, or in the same turn.
 */
import { assert } from "../../base/assert.js";
import {
  LockType,
  type ForcedOutcome,
  type HeirListCommand,
  type LockCommand,
  type Outcome,
} from "../../machine/commands/command.js";
import type { DataReads } from "../../machine/data-reads.js";
import { own } from "../../machine/locks/heirs.js";
import type { LockReading } from "../../machine/decision/reading.js";
import type { Group } from "../group/group.js";
import type { ProposalMarks, ProposalResult, RefusalReason } from "../requests/results.js";
import type { Held, Queue } from "./queue.js";
import type { ListedRow } from "./succession.js";
import { type WaitedCommand, listBytes } from "./waiting.js";

export type WaitingGroup = Pick<
  Group,
  | "propose"
  | "read"
  | "leaseNowMs"
  | "machine"
  | "ephemeral"
  | "nextStamp"
  | "term"
  | "isServing"
  | "isHandingOver"
>;

export type Decision =
  | {
      readonly kind: "decided";
      readonly type: number;
      readonly token: bigint;
      /** Of the owner's lease (ms); null: that is not known any more. */
      readonly leaseLeftMs: number | null;
      /** When it was decided (lease clock, ms). */
      readonly leaseAtMs: number;
      /** Of a forced release. */
      readonly forced?: ForcedOutcome;
    }
  | { readonly kind: "refused"; readonly reason: Exclude<RefusalReason, "not-leader"> }
  | { readonly kind: "aborted" }
  | { readonly kind: "moved" }
  | { readonly kind: "unknown" };

export interface LockCall {
  readonly command: WaitedCommand;
  readonly sizeBytes: number;
  readonly deadlineMs: number;
  readonly marks?: ProposalMarks | null;
  readonly then: (decision: Decision) => void;
}

const MOVED: Decision = { kind: "moved" };
const ABORTED: Decision = { kind: "aborted" };
const UNKNOWN: Decision = { kind: "unknown" };

/** Where ephemeral or persistent locks of the group are read; undefined: there is no table. */
export function lockReads(
  { machine, ephemeral }: Pick<Group, "machine" | "ephemeral">,
  isEphemeral: boolean,
): DataReads | undefined {
  return isEphemeral ? ephemeral?.reads : machine.reads;
}

export class LockDecisions {
  constructor(private readonly group: WaitingGroup) {}

  /** Makes the decision of `call`, and right behind it that of `next`. */
  make(isEphemeral: boolean, call: LockCall, next: LockCall | null): void {
    if (isEphemeral) return this.makeEphemeral(call, next);
    const { command, sizeBytes, deadlineMs, marks = null } = call;
    const joined =
      next === null
        ? null
        : {
            command: next.command,
            sizeBytes: next.sizeBytes,
            deadlineMs: next.deadlineMs,
            done: (result: ProposalResult) => next.then(this.ofProposal(next.command, result)),
          };
    const done = (result: ProposalResult): void => call.then(this.ofProposal(command, result));
    this.group.propose(command, sizeBytes, deadlineMs, done, joined, marks);
  }

  /** As `make`, of a release in the log; returns false if it was refused. */
  release({ command, sizeBytes, deadlineMs, then, marks = null }: LockCall): boolean {
    const done = (result: ProposalResult): void => then(this.ofProposal(command, result));
    return this.group.propose(command, sizeBytes, deadlineMs, done, null, marks);
  }

  /** Writes heirs of a lock; `done` hears whether it was decided. */
  write(command: HeirListCommand, done: (isDecided: boolean) => void): void {
    this.group.propose(command, listBytes(command), Infinity, ({ status }) => {
      done(status === "applied");
    });
  }

  /** The lock has heirs, as the state says now. */
  isListed({ resource }: Queue): boolean {
    return (this.group.machine.reads.succession(resource)?.heirs.length ?? 0) > 0;
  }

  /** Holder and heirs as the state says now; null: the lock was never granted. */
  listNow({ resource }: Queue): ListedRow | null {
    const row = this.group.machine.reads.succession(resource);
    return row === null ? null : { ...row, base: own(row.base), heirs: row.heirs.map(own) };
  }

  /** The holder as the state says now; undefined: the state is not to be read. */
  heldNow({ resource, isEphemeral }: Queue): Held | null | undefined {
    const reads = lockReads(this.group, isEphemeral);
    if (reads === undefined) return undefined;
    // At time 0 no lease has ended: what was granted last and not released.
    const { owner, leaseEndMs, token } = reads.getLock(resource, 0);
    return owner === null ? null : { owner: owner.slice(), endMs: leaseEndMs, token };
  }

  private makeEphemeral(call: LockCall, next: LockCall | null): void {
    this.group.read(call.deadlineMs, (result) => {
      const table = this.group.ephemeral;
      if (result.status !== "confirmed" || table === null) {
        const end = result.status === "aborted" ? ABORTED : MOVED;
        call.then(end);
        next?.then(end);
        return;
      }
      const first = this.applyEphemeral(call.command);
      const second = next === null ? null : this.applyEphemeral(next.command);
      call.then(first);
      if (second !== null) next?.then(second);
    });
  }

  private applyEphemeral(command: LockCall["command"]): Decision {
    assert(isOfTables(command), "the log alone knows forced releases and acquires by number");
    const { ephemeral: table } = this.group;
    if (table === null) return MOVED;
    const stamp = this.group.nextStamp();
    const outcome = table.apply(command, stamp);
    if (outcome === "full") return { kind: "refused", reason: "overloaded" };
    const reading = table.reads.getLock(command.resource, 0);
    return decided(outcome, reading, stamp.leaseMs);
  }

  private ofProposal(command: LockCall["command"], result: ProposalResult): Decision {
    switch (result.status) {
      case "applied": {
        const { reads } = this.group.machine;
        // Nothing is left of what was released.
        const reading = "expiresMs" in command ? reads.getLock(command.resource, 0) : null;
        const decision = decided(result.outcome, reading, result.leaseMs);
        return command.kind === "lock-heir" ? asAsked(decision, command.expiresMs) : decision;
      }
      case "refused":
        return result.reason === "not-leader" ? MOVED : { kind: "refused", reason: result.reason };
      case "aborted":
        return ABORTED;
      case "unknown":
        return UNKNOWN;
    }
  }
}

/** `reading`: of the lock, as it is now; `leaseMs`: when it was decided, on the lease clock. */
function decided(outcome: Outcome, reading: LockReading | null, leaseMs: number): Decision {
  if (outcome.kind === "forced") {
    const { type, token } = outcome;
    return { kind: "decided", type, token, leaseLeftMs: null, leaseAtMs: leaseMs, forced: outcome };
  }
  assert(outcome.kind === "lock", "a lock command has the outcome of one");
  const { type, token } = outcome;
  const leaseLeftMs = reading === null ? null : leaseLeft(outcome, reading, leaseMs);
  return { kind: "decided", type, token, leaseLeftMs, leaseAtMs: leaseMs };
}

/** Who comes back to a list that binds for longer is told of the lease that it asked for (Q6). */
function asAsked(decision: Decision, askedMs: number): Decision {
  if (decision.kind !== "decided" || decision.leaseLeftMs === null) return decision;
  return { ...decision, leaseLeftMs: Math.min(decision.leaseLeftMs, askedMs) };
}

function isOfTables(command: WaitedCommand): command is LockCommand {
  return command.kind !== "force-unlock" && command.kind !== "lock-heir";
}

/**
 * What was left at `leaseMs`, when it was decided, of a lease that was granted or confirmed: null
 * when another grant has its place. Counted from then it is never longer than the row says, an
 * extend that came meanwhile included (T4).
 */
export function leaseLeft(
  { type, token }: { readonly type: number; readonly token: bigint },
  reading: LockReading,
  leaseMs: number,
): number | null {
  if (type !== LockType.locked && type !== LockType.extended) return null;
  if (reading.owner === null || reading.token !== token) return null;
  return Math.max(0, Math.floor(reading.leaseEndMs - leaseMs));
}
