/** Views of the planner of placement in short forms, and plans in words. */
import {
  NOT_BORN,
  NO_CONFIG,
  configIndex,
  incarnation,
  placementGeneration,
} from "../../../src/base/ids.js";
import type {
  MemberView,
  ReportedLoad,
  PlacedGroupView,
  PlacementPlan,
  PlacementStep,
  PlacementView,
} from "../../../src/control/placement-view.js";
import type {
  PartitionRecord,
  ReplicaChange,
  ReplicaRecord,
} from "../../../src/machine/commands/command.js";

/** The time of every view, unless told otherwise: late enough for all that has to have lasted. */
export const NOW_MS = 10_000_000;

const ROOM = { storeBytes: 10, storeMaxBytes: 100, isFull: false };

export function nodeReport(more: Partial<ReportedLoad> = {}): ReportedLoad {
  const idle = { snapshotsIn: 0, snapshotsOut: 0, loopLagP99Ms: 1 };
  return { receivedMs: NOW_MS - 1000, ...idle, ...ROOM, ...more };
}

/** A voter that has been live for long. */
export function line(nodeId: number, more: Partial<MemberView> = {}): MemberView {
  const known = { isCaughtUp: true, liveSinceMs: 0, isDead: false, report: nodeReport() };
  return { nodeId, role: "voter", evicted: false, ...known, ...more };
}

export const silent = { liveSinceMs: Infinity, report: null };
export const dead = { ...silent, isDead: true };
export const leaving = { role: "leaving" } as const;
export const evicted = { ...dead, role: "leaving", evicted: true } as const;

/** "3", "4 learner for 3", "3 removing", joined by commas, as the replicas of a record. */
export function replicasOf(text: string): ReplicaRecord[] {
  return text.split(", ").map((part): ReplicaRecord => {
    const [node, role = "voter", , replaces = "0"] = part.split(" ");
    const life = incarnation(role === "learner" ? 2 : 0);
    const kind = role as ReplicaRecord["role"];
    const since = placementGeneration({ voter: 0, learner: 2, removing: 4 }[kind]);
    const rest = { incarnation: life, since, replaces: Number(replaces) };
    return { nodeId: Number(node), role: kind, ...rest };
  });
}

/** A placed partition; without replicas one in full mode. */
export function placed(
  partitionId: number,
  replicas: string,
  more: Partial<PartitionRecord> = {},
): PartitionRecord {
  const rest = {
    state: "Active",
    replicationOverride: 0,
    founders: [],
    bornVersion: NOT_BORN,
  } as const;
  return {
    ...{ partitionId, generation: placementGeneration(5), ...rest },
    mode: replicas === "" ? "full" : "placed",
    replicas: replicas === "" ? [] : replicasOf(replicas),
    configIndex: replicas === "" ? NO_CONFIG : configIndex(9),
    ...more,
  };
}

export function group(leader: number, more: Partial<PlacedGroupView> = {}): PlacedGroupView {
  return { leader, sizeBytes: 1000, hasSnapshot: false, advancedMs: NOW_MS, ...more };
}

/** Each group is led by its first replica, unless told otherwise. */
export function viewOf(
  replicationFactor: number,
  members: readonly MemberView[],
  partitions: readonly PartitionRecord[],
  more: Partial<PlacementView> = {},
): PlacementView {
  const groups = new Map(
    partitions.map(({ partitionId, replicas }) => [partitionId, group(replicas[0]?.nodeId ?? 0)]),
  );
  for (const [id, one] of more.groups ?? []) groups.set(id, one);
  const rest = { nowMs: NOW_MS, isEnabled: true, isHeld: false, rests: new Map() };
  return { ...rest, replicationFactor, members, partitions, ...more, groups };
}

export function lines(count: number): MemberView[] {
  return Array.from({ length: count }, (_, at) => line(at + 1));
}

function changeInWords(change: ReplicaChange): string {
  if (change.kind === "add") {
    return `+${change.nodeId}${change.replaces === 0 ? "" : ` for ${change.replaces}`}`;
  }
  return `${{ cancel: "x", remove: "-", keep: "=" }[change.kind]}${change.nodeId}`;
}

export function stepInWords({ class: kind, order }: PlacementStep): string {
  return `${order.partitionId} ${kind} ${changeInWords(order.change)}`;
}

/** "1 repair +4 for 3": a step; "1 repair: no-node": why there is none; "balance: ...". */
export function inWords({ steps, waits, balance }: PlacementPlan): string[] {
  const words = steps.map(stepInWords);
  for (const one of waits) words.push(`${one.partitionId} ${one.class}: ${one.reason}`);
  if (balance !== null) words.push(`balance: ${balance}`);
  return words;
}
