/**
 * The level of one group: what its entries may hold from here on.
 *
 * Pure. Invariant: it is raised by an entry of the group's own log alone, at the same index on every
 * replica, and never falls; neither the cluster's record nor the program has a say in apply (P-030).
 */
import { LEVEL_NUMBER_MAX } from "../../base/limits.js";
import { TELLING_FROM_LEVEL } from "../commands/group-record.js";
import type { LevelOutcome, SetLevelCommand } from "../commands/command.js";
import type { DecisionContext } from "./context.js";

export function setLevel(context: DecisionContext, command: SetLevelCommand): LevelOutcome {
  const { level } = command;
  const isLevel = level >= 1 && level <= LEVEL_NUMBER_MAX;
  const status = !isLevel ? "invalid" : level <= context.level ? "unchanged" : "done";
  if (status === "done") {
    // From here on records tell it: what replicas know of before differs.
    if (context.level < TELLING_FROM_LEVEL && level >= TELLING_FROM_LEVEL) {
      context.collectedKeysMs = context.nowMs;
      context.collectedLocksMs = context.nowMs;
    }
    context.level = level;
  }
  return { kind: "level", status, level: context.level };
}
