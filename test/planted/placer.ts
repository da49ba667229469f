/**
 * Planted bugs of the node that runs the allocator, and of leaves and removals where partitions are placed, each caught
 * by a test of `test/unit/` that is run on a copy of the tree with the bug, as those of the records are.
 */
import { edit } from "./edits.js";
import type { RecordBug } from "./records.js";

function placing(
  pitfall: string,
  name: string,
  test: string,
  ...[path, from, to]: readonly [path: string, from: string, to: string]
): RecordBug {
  const edits = [edit(`src/host/cluster/${path}.ts`, from, to)];
  return { name, pitfall, edits, file: "host/hosting/placer.test", test };
}

export const placerBugs: readonly RecordBug[] = [
  placing(
    "P-106",
    "whoever is linked now was always live",
    "P-096 a drain that takes too long",
    "placer",
    "this.linkedSinceMs.set(node, nowMs)",
    "this.linkedSinceMs.set(node, -Infinity)",
  ),
  placing(
    "P-093",
    "the rebalancer moves replicas although it is off",
    "a node whose rebalancer is off",
    "placer",
    "isEnabled: isRebalancing(deps.isEnabled, records.cluster)",
    "isEnabled: true",
  ),
  placing(
    "P-093",
    "whoever was told nothing of factors moves nothing",
    "5.4 a node that was told nothing",
    "placer",
    "isEnabled: isRebalancing(deps.isEnabled, records.cluster)",
    "isEnabled: deps.isEnabled ?? false",
  ),
  placing(
    "P-132",
    "a hold of the planners is not looked at",
    "P-132 while a backup holds the planners",
    "placer",
    "isHeld: this.isHeld(nowMs)",
    "isHeld: false",
  ),
  placing(
    "P-092",
    "members change while keys are frozen",
    "while keys of a group are frozen",
    "reconcile",
    "group.machine.ownership.hasFrozen,",
    "this.open.size < 0,",
  ),
  placing(
    "P-093",
    "passes are made where nothing is placed",
    "P-094 a partition on every node",
    "placer",
    "isNeeded: isPermitted && isNeeded }",
    "isNeeded: isPermitted || isNeeded }",
  ),
  placing(
    "P-083",
    "a placed replica that can move keeps its node from leaving",
    "P-083 a node that leaves hands all its replicas over, factor 1",
    "cluster-changes",
    "return this.common().map(({ replica }) => replica.members.membership);",
    "return registry.all.map(({ replica }) => replica.members.membership);",
  ),
  placing(
    "P-096",
    "whoever leaves says by its own flag whether it is a drain",
    "5.3 the leader of meta says whether it is a drain: rebalancer on",
    "cluster-changes",
    "if (leader === settings.nodeId) return this.isRebalancing();",
    "if (leader >= 0) return this.isRebalancing();",
  ),
  placing(
    "P-094",
    "a new leader of meta begins to hear the nodes anew",
    "P-094 a drain goes on at once",
    "placer",
    "return this.linkedSinceMs.get(node) ?? nowMs;",
    "return Math.max(this.linkedSinceMs.get(node) ?? nowMs, this.reign?.sinceMs ?? nowMs);",
  ),
  placing(
    "P-096",
    "whom a leaving node called in still comes when the node stays",
    "P-096 whoever hears that its drain",
    "called-in",
    "if (left.length === 0) return true;",
    "if (left.length >= 0) return true;",
  ),
  placing(
    "P-095",
    "a member is removed by force whose vote a placed partition needs",
    "P-095 nobody is removed whose vote",
    "member-removal",
    "...partitionsAtRisk(metaReads?.partitions() ?? [], member, isLive),",
    "...partitionsAtRisk([], member, isLive),",
  ),
];
