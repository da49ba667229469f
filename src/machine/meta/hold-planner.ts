/**
 * The command by which who takes a backup asks that replicas and key ranges are not moved without
 * need meanwhile.
 *
 * Pure decision over the rows of the context. Invariants: 1. A hold is over PLANNER_HOLD_MAX_MS
 * after it was renewed last at the latest. 2. Holders are PLANNER_HOLDS_MAX at most; those that are
 * over go with the next command. 3. No decision of apply rests on a hold: only planners look at it.
 */
import { PLANNER_HOLDS_MAX, PLANNER_HOLD_MAX_MS } from "../../base/limits.js";
import type { HoldPlannerCommand, MetaOutcome } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { ended, leaseEnd } from "../decision/lease.js";
import { RowKind, nameKey, type ByteKey } from "../store/keys.js";
import { isText, outcome } from "./meta-members.js";
import { decodePlannerHold, encodePlannerHold } from "./planner-holds.js";

/** Drops holds that are over; the number of others that stay. */
function dropEnded(context: DecisionContext, but: ByteKey): number {
  const { rows, nowMs } = context;
  const over: ByteKey[] = [];
  let others = 0;
  rows.scan(RowKind.plannerHold, "", null, (holder, value) => {
    if (ended(decodePlannerHold(value) ?? 0, nowMs)) over.push(holder);
    else if (holder !== but) others++;
    return true;
  });
  for (const holder of over) rows.delete(RowKind.plannerHold, holder);
  return others;
}

/** Begins, renews or ends a hold. "busy": there are as many as there may be. */
export function holdPlanner(context: DecisionContext, command: HoldPlannerCommand): MetaOutcome {
  const { holder, forMs } = command;
  const key = isText(holder) ? nameKey(holder) : null;
  const isDuration = Number.isInteger(forMs) && forMs >= 0 && forMs <= PLANNER_HOLD_MAX_MS;
  if (key === null || !isDuration) return outcome("invalid");
  const others = dropEnded(context, key);
  const { rows } = context;
  if (forMs === 0) {
    if (rows.get(RowKind.plannerHold, key) === null) return outcome("unchanged");
    rows.delete(RowKind.plannerHold, key);
    return outcome("done");
  }
  if (others >= PLANNER_HOLDS_MAX) return outcome("busy");
  rows.put(RowKind.plannerHold, key, encodePlannerHold(leaseEnd(context.nowMs, forMs)));
  return outcome("done");
}
