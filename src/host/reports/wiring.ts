/** Joins what nodes tell of themselves with the parts of the node that know it. */
import { META_PARTITION, type PartitionId } from "../../base/ids.js";
import { isRebalancing } from "../../control/placement.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { PeerOutbox } from "../replication/peer-outbox.js";
import type { Budget } from "../requests/batcher.js";
import type { HealthFacts } from "../requests/results.js";
import type { HostPorts, HostSettings } from "../settings.js";
import type { Snapshots } from "../snapshots/snapshots.js";
import type { Flusher } from "../storage/flusher.js";
import type { PartitionWait } from "./node-report.js";
import { NodeReports } from "./node-reports.js";
import { OwnReport, type ReportedGroup } from "./own-report.js";

interface HostedGroup {
  readonly replica: ReportedGroup & { readonly machine: { readonly appliedIndex: number } };
}

/** The parts of a node, as far as reports need them; all are there before one is made. */
interface Parts {
  readonly settings: HostSettings;
  readonly peers: PeerOutbox;
  readonly registry: {
    readonly all: readonly HostedGroup[];
    find(partition: PartitionId): HostedGroup | null;
  };
  readonly activeGroups: { all(): Iterable<ReportedGroup> };
  readonly links: {
    readonly bootNumber: number;
    readonly isSole: boolean;
    protocolWith(node: number): number;
  };
  readonly snapshots: Snapshots;
  readonly flusher: Flusher;
  readonly budget: Budget;
  readonly stopping: { readonly isClosing: boolean };
  /** Writes find room on the disk. */
  readonly hasSpace: boolean;
}

/** What the node knows of itself. */
interface Doings {
  metaReads(): MetaReads | null;
  health(): HealthFacts;
  /** What partitions wait for, as this node knows. */
  waits(): readonly PartitionWait[];
}

export interface WiredReports {
  readonly own: OwnReport;
  readonly reports: NodeReports;
}

export function wireReports(parts: Parts, ports: HostPorts, doings: Doings): WiredReports {
  const own = ownReport(parts, ports, doings);
  const reports = new NodeReports({
    nodeId: parts.settings.nodeId,
    nowMs: () => ports.clock.monotonicMs(),
    linked: () => parts.peers.linked(),
    protocolWith: (node) => parts.links.protocolWith(node),
    isSole: () => parts.links.isSole,
    own: (nowMs) => own.make(nowMs),
    ownWaits: () => doings.waits(),
    send: (to, bytes) => void ports.peers?.send(to, "control", bytes),
  });
  return { own, reports };
}

function ownReport(parts: Parts, ports: HostPorts, doings: Doings): OwnReport {
  const { settings, registry } = parts;
  const startedMs = ports.clock.monotonicMs();
  return new OwnReport({
    nodeId: settings.nodeId,
    rebalances: () => {
      return isRebalancing(settings.rebalancerEnabled, doings.metaReads()?.cluster() ?? null);
    },
    bootNumber: () => parts.links.bootNumber,
    metaIndex: () => registry.find(META_PARTITION)?.replica.machine.appliedIndex ?? 0,
    wallMs: () => ports.clock.wallMs(),
    groups: () => registry.all.map(({ replica }) => replica),
    activeGroups: () => parts.activeGroups.all(),
    members: () => (doings.metaReads()?.members() ?? []).map(({ nodeId }) => nodeId),
    isLinked: (node) => parts.peers.isUp(node),
    unlinkedMs: (node, nowMs) => parts.peers.unlinkedMs(node, nowMs),
    transfers: () => parts.snapshots.facts(),
    transferCount: () => parts.snapshots.transferCount,
    waits: () => doings.waits(),
    isFull: () => parts.flusher.storeFull || !parts.hasSpace,
    health: () => {
      const { ready: isReady, reason } = doings.health();
      const uptimeMs = Math.floor(ports.clock.monotonicMs() - startedMs);
      return { isReady, reason: reason ?? "", uptimeMs };
    },
    load: () => ({
      logBytes: ports.log.sizeBytes(),
      storeBytes: parts.stopping.isClosing ? 0 : ports.store.sizeBytes(),
      storeMaxBytes: settings.storeMaxBytes,
      loopLagP99Ms: ports.load?.loopLagP99Ms() ?? 0,
      logSyncP99Ms: ports.load?.logSyncP99Ms() ?? 0,
      requestsPerSecond: ports.load?.requestsPerSecond() ?? 0,
      failedPerSecond: ports.load?.failedPerSecond() ?? 0,
      commands: parts.budget.commands,
    }),
  });
}
