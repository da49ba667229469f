/**
 * Applies the commands of an entry while somebody wants to know what each of them did.
 *
 * Pure but for the state that it changes. Invariants: 1. What is decided does not depend on whether
 * anybody looks. 2. Whoever looks is told in the order of the log, and changes nothing.
 */
import type { Hlc } from "../base/hlc.js";
import { applyCommand } from "./apply.js";
import type { Command, Outcome } from "./commands/command.js";
import type { AppliedCommand } from "./events.js";
import type { MetaContext } from "./meta/meta-context.js";
import type { StateDigest } from "./store/digest.js";

/** Who is told what is applied to one group. */
export interface ApplyTap {
  /** An entry is about to be decided; the lease clock stands where it puts it. */
  begin(stamp: Hlc, leaseMs: number): void;
  /** One of its commands is about to be decided: rows are to be read as they are before it. */
  deciding(command: Command): void;
  /** One of its commands was decided, and wrote rows; they are to be read as they are now. */
  changed(applied: AppliedCommand): void;
  /** Another state took the place of all. */
  replaced(): void;
  /** An entry came into the log, and is not applied. */
  appended(index: number): void;
}

export function applyTapped(
  context: MetaContext,
  effects: StateDigest,
  commands: readonly Command[],
  outcomes: Outcome[],
  tap: ApplyTap,
): void {
  const { stamp } = context;
  tap.begin(stamp, context.nowMs);
  for (const command of commands) {
    const { lapsedLocks } = context;
    const { low, high } = effects;
    tap.deciding(command);
    const outcome = applyCommand(context, command);
    outcomes.push(outcome);
    // Every row that is written moves the digest.
    if (effects.low === low && effects.high === high) continue;
    const isLapse = context.lapsedLocks !== lapsedLocks;
    tap.changed({ command, outcome, isLapse, stamp });
  }
}
