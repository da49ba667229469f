/**
 * What the cluster permits its groups: the command that raises the level.
 *
 * Pure decisions over the rows of the context; what a group really is at stands in its own record,
 * by an entry of its own log (P-030). Invariants: 1. The level never falls, and rises by one. 2. It
 * rises only to what every member supports, by the member list that was looked at.
 */
import type { MetaOutcome, RaiseLevelCommand } from "../commands/command.js";
import { LEVEL_NUMBER_MAX } from "../../base/limits.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind } from "../store/keys.js";
import { outcome, supports } from "./meta-members.js";
import { MetaReads } from "./meta-reads.js";
import { encodeCluster } from "./meta-rows.js";

export function raiseLevel(context: DecisionContext, command: RaiseLevelCommand): MetaOutcome {
  const { to, membershipVersion } = command;
  const reads = new MetaReads(context.rows);
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const { level } = cluster;
  if (to < 1 || to > LEVEL_NUMBER_MAX) return outcome("invalid", level);
  if (to <= level) return outcome("unchanged", level);
  if (to > level + 1) return outcome("invalid", level);
  if (membershipVersion !== cluster.membershipVersion) return outcome("stale", level);
  if (!reads.members().every((member) => supports(member, to))) {
    return outcome("level-unsupported", level);
  }
  context.rows.put(RowKind.cluster, "", encodeCluster({ ...cluster, level: to }));
  return outcome("done", to);
}
