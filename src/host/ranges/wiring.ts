/** Joins the moves of key ranges with the parts of the node that they need. */
import type { PartitionId } from "../../base/ids.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { ActiveGroups } from "../group/active-groups.js";
import type { Replica } from "../group/replica.js";
import type { ClusterChanges } from "../cluster/cluster-changes.js";
import type { GroupRegistry } from "../cluster/group-registry.js";
import type { NodeReports } from "../reports/node-reports.js";
import type { HostPorts, HostSettings } from "../settings.js";
import { Ranges } from "./ranges.js";

/** The parts of a node, as far as ranges need them. */
interface Parts {
  readonly settings: HostSettings;
  readonly registry: GroupRegistry;
  readonly activeGroups: ActiveGroups;
  readonly changes: ClusterChanges;
  readonly reports: NodeReports;
  readonly scheduler: { wakeAt(atMs: number): void };
}

/** What the node does for them. */
interface Doings {
  metaReads(): MetaReads | null;
  wake(replica: Replica): void;
  tickSoon(): void;
}

export function wireRanges(parts: Parts, ports: HostPorts, doings: Doings): Ranges {
  const { settings, registry } = parts;
  return new Ranges({
    nodeId: settings.nodeId,
    settings: settings.ranges,
    logger: ports.logger,
    nowMs: () => ports.clock.monotonicMs(),
    soon: (callback) => ports.timer.soon(callback),
    metaReads: () => doings.metaReads(),
    hosted: (partition) => registry.find(partition),
    reportedLeader: (partition) => parts.reports.leaderOf(partition),
    activeGroups: () => parts.activeGroups.all(),
    proposeOnMeta: parts.changes.metaAccess.proposeOnMeta,
    send: (to, lane, bytes) => ports.peers?.send(to, lane, bytes) ?? false,
    wake: (partition: PartitionId) => {
      const replica = registry.find(partition)?.replica;
      if (replica === undefined) return;
      replica.peers.unquiesce();
      doings.wake(replica);
    },
    wakeAt: (atMs) => parts.scheduler.wakeAt(atMs),
    mapVersion: () => registry.mapVersion,
    tickSoon: () => doings.tickSoon(),
  });
}
