/**
 * What the commands about key ranges write: descriptors, moves, and the versions of the map.
 *
 * Invariant: who writes one of these rows raises mapVersion in the same command, once.
 */
import { present } from "../../base/assert.js";
import { next, type MapVersion } from "../../base/ids.js";
import { RANGE_ATTEMPT_MS } from "../../base/limits.js";
import type { ClusterRecord, RangeDescriptor, RangeMove } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { leaseEnd } from "../decision/lease.js";
import { RowKind, nameKey, rangeKey, type ByteKey } from "../store/keys.js";
import { encodeCluster, encodeRange } from "./meta-rows.js";
import { encodeMove } from "./range-rows.js";

function rowKey(keySpace: string, startKey: string | null): ByteKey {
  const name = present(nameKey(keySpace), "a key space is a name");
  if (startKey === null || startKey === "") return rangeKey(name, startKey);
  return rangeKey(name, present(nameKey(startKey), "a bound is a key"));
}

/** `after` in place of `before`; what is in both is the same object and keeps its age. */
export function storeRanges(
  context: DecisionContext,
  keySpace: string,
  before: readonly RangeDescriptor[],
  after: readonly RangeDescriptor[],
): void {
  const { left, come } = differences(before, after);
  const starts = new Set(come.map(({ startKey }) => startKey));
  for (const { startKey } of left) {
    if (!starts.has(startKey)) context.rows.delete(RowKind.range, rowKey(keySpace, startKey));
  }
  for (const descriptor of come) {
    const row = encodeRange({ keySpace, descriptor, changedLeaseMs: context.nowMs });
    context.rows.put(RowKind.range, rowKey(keySpace, descriptor.startKey), row);
  }
}

interface Differences {
  readonly left: readonly RangeDescriptor[];
  readonly come: readonly RangeDescriptor[];
}

/** Between the parts at both ends that are the same. */
function differences(
  before: readonly RangeDescriptor[],
  after: readonly RangeDescriptor[],
): Differences {
  const least = Math.min(before.length, after.length);
  let first = 0;
  while (first < least && before[first] === after[first]) first++;
  let last = 0;
  while (last < least - first && before.at(-1 - last) === after.at(-1 - last)) last++;
  return {
    left: before.slice(first, before.length - last),
    come: after.slice(first, after.length - last),
  };
}

export function storeMove(context: DecisionContext, move: RangeMove): void {
  const name = present(nameKey(move.keySpace), "a key space is a name");
  context.rows.put(RowKind.rangeMove, name, encodeMove(move));
}

/** When an attempt that begins now is over (lease time of the meta partition). */
export function attemptEnd(context: DecisionContext): number {
  return leaseEnd(context.nowMs, RANGE_ATTEMPT_MS);
}

/** The next version of the map, stored; "topology": who holds which keys changes too. */
export function raiseMap(
  context: DecisionContext,
  cluster: ClusterRecord,
  what: "map" | "topology",
): MapVersion {
  const version = next(cluster.mapVersion);
  const { topologyVersion: topology } = cluster;
  const topologyVersion = what === "topology" ? next(topology) : topology;
  const raised = { ...cluster, mapVersion: version, topologyVersion };
  context.rows.put(RowKind.cluster, "", encodeCluster(raised));
  return version;
}
