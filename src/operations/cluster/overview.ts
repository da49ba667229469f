/**
 * All members at a glance, as this node heard of them, and what an operator should look at
 * (contract 5.7).
 *
 * Invariants: 1. Nobody is asked: what another node is like it said itself, and the answer says
 * how long ago. 2. Of a node that said nothing in this life of the process nothing is claimed. 3.
 * Before there are records, the asked node stands alone. 4. The most urgent alarm comes first, and
 * there are at most ALARMS_MAX.
 */
import { META_PARTITION } from "../../base/ids.js";
import { FINALIZE_WITHIN_MS } from "../../host/cluster/finalizing.js";
import { ALARMS_MAX, NODE_REPORT_VALID_MS } from "../../base/limits.js";
import type { NodeReport } from "../../host/reports/node-report.js";
import type { HeardReport } from "../../host/reports/node-reports.js";
import type { Member } from "../../machine/commands/command.js";
import type { LocalRole, OverviewAnswer } from "../api/administration.js";
import type { Serving } from "../serving/serving.js";
import { type Replicas, named } from "./replicas.js";

type OverviewNode = OverviewAnswer["nodes"][number];

const SECOND_MS = 1000;

/** A line of the overview: who it is, and what it said. */
interface Seen {
  readonly nodeId: number;
  readonly endpoint: string;
  readonly role: LocalRole;
  readonly program: Pick<Member, "version" | "levelMin" | "levelMax"> | null;
  readonly heard: HeardReport | null;
}

function membersSeen({ node, settings }: Serving): readonly Seen[] {
  const members = node.closing ? [] : node.metaGroup().machine.meta.members();
  if (members.length > 0) {
    return members.map((member) => {
      const { nodeId, endpoint, role } = member;
      return { nodeId, endpoint, role, program: member, heard: node.lastReport(nodeId) };
    });
  }
  const { nodeId, peerEndpoint: endpoint } = settings;
  return [{ nodeId, endpoint, role: "not-member", program: null, heard: node.lastReport(nodeId) }];
}

function lineOf(serving: Serving, seen: Seen): OverviewNode {
  const { leaders, settings } = serving;
  const { nodeId, endpoint, role, program, heard } = seen;
  const report: NodeReport | null = heard?.report ?? null;
  const isOwn = nodeId === settings.nodeId;
  const told = heard === null ? null : program;
  return {
    nodeId,
    endpoint,
    clientEndpoint: isOwn || heard !== null ? leaders.endpointOf(nodeId) : "",
    role,
    ready: report?.isReady ?? false,
    reason: report?.reason ?? "",
    version: isOwn ? settings.version : (told?.version ?? ""),
    levelMin: told?.levelMin ?? 0,
    levelMax: told?.levelMax ?? 0,
    uptimeMs: report?.uptimeMs ?? 0,
    ageMs: heard === null ? null : Math.max(0, Math.round(heard.ageMs)),
    // The meta partition is on every node.
    hostedPartitions: report === null ? 0 : report.replicas + 1,
    leadingPartitions: report?.leading.length ?? 0,
    requestsPerSecond: Math.round(report?.requestsPerSecond ?? 0),
    failedPerSecond: Math.round(report?.failedPerSecond ?? 0),
  };
}

function nodeAlarms(seen: readonly Seen[]): string[] {
  return seen.flatMap(({ nodeId, endpoint, heard }) => {
    const name = `Node ${nodeId} (${endpoint})`;
    if (heard === null) return [`${name} has not been heard.`];
    const { ageMs, report } = heard;
    if (ageMs > NODE_REPORT_VALID_MS)
      return [`${name} was heard ${Math.floor(ageMs / SECOND_MS)} s ago.`];
    const full = report.isFull ? [`${name} takes no writes: its log or store is full.`] : [];
    return report.isReady ? full : [`${name} is not ready: ${report.reason}.`, ...full];
  });
}

function levelAlarms({ node }: Serving): string[] {
  const { levelMax, pendingMs } = node.levels();
  if (pendingMs < FINALIZE_WITHIN_MS) return [];
  return [`All members support level ${levelMax}: finalize the upgrade.`];
}

/** What the node knows of all members, at once. */
export function overview(serving: Serving, replicas: Replicas): OverviewAnswer {
  const { node, leaders, settings } = serving;
  const meta = node.closing ? null : node.metaGroup().machine.meta;
  const cluster = meta?.cluster() ?? null;
  const seen = membersSeen(serving);
  const nodes = seen.map((one) => lineOf(serving, one));
  const partitions =
    cluster === null ? [] : [META_PARTITION, ...serving.placement.dataPartitions()];
  const leaderless = partitions.filter((id) => leaders.of(id) === 0);
  const facts = replicas.facts();
  const { under, withoutMajority } = facts;
  const alarms: string[] = [];
  const add = (ids: readonly number[], what: string): void => {
    if (ids.length > 0) alarms.push(`${named(ids)} ${ids.length === 1 ? "has" : "have"} ${what}.`);
  };
  add(leaderless, "no leader that this node knows of");
  add(withoutMajority, "no majority of live voters");
  alarms.push(...nodeAlarms(seen));
  add(under, "fewer live voters than the replication factor");
  for (const { partition, why } of replicas.waits(facts)) {
    alarms.push(`Partition ${partition} waits: ${why}.`);
  }
  alarms.push(...levelAlarms(serving));
  return {
    initialized: cluster !== null && node.initialized,
    membershipVersion: cluster?.membershipVersion ?? 0,
    level: cluster?.level ?? 0,
    localNodeId: settings.nodeId,
    metaLeaderNodeId: leaders.of(META_PARTITION),
    partitions: partitions.length,
    partitionsWithoutLeader: leaderless.length,
    partitionsUnderReplicated: under.length,
    nodes,
    alarms: alarms.slice(0, ALARMS_MAX),
  };
}
