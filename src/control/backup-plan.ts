/**
 * Plans of a backup: who ships a partition, whether a parent can be continued, and where a
 * coordinated cut goes through.
 *
 * Pure. Invariants: 1. Whoever keeps the backup ships what it has; else a follower, the least
 * loaded first; the leader last (P-133). 2. The stamp of a cut is above every stamp and clock that
 * was told, by more than the slowest answer took fourfold. 3. A parent is continued only where
 * cluster, storage and topology are those that it was taken of.
 */
import { COUNTER_MAX, type Hlc } from "../base/hlc.js";
import { CUT_AHEAD_LEAST_MS, CUT_SKEW_MAX_MS, CUT_SKEW_TOLD_MS } from "../base/limits.js";
import type { PartitionRecord } from "../machine/commands/command.js";

export interface ShipperView {
  readonly self: number;
  /** Nodes with a replica. */
  readonly hosts: readonly number[];
  /** 0 = unknown. */
  readonly leader: number;
  /** Nodes that are not to be asked, or cannot be. */
  isOut(node: number): boolean;
  /** How many partitions a node ships already. */
  load(node: number): number;
}

/** The nodes that may ship a partition, the best first. */
export function shippersInOrder(view: ShipperView): number[] {
  const { self, leader, hosts } = view;
  const rank = (node: number): number => {
    if (node === self) return 0;
    return node === leader ? 2 : 1;
  };
  const fit = hosts.filter((node) => !view.isOut(node));
  return fit.sort((a, b) => rank(a) - rank(b) || view.load(a) - view.load(b) || a - b);
}

/** Who has a replica of a partition, by its record; null: there is none, as of meta itself. */
export function hostsOf(
  record: PartitionRecord | null,
  members: readonly number[],
): readonly number[] {
  if (record?.mode !== "placed") return members;
  return record.replicas.filter(({ role }) => role !== "learner").map(({ nodeId }) => nodeId);
}

/** Of the manifest of a parent. */
export interface ParentFacts {
  readonly clusterId: string;
  readonly storageType: string;
  readonly storageRevision: string;
  readonly topologyGeneration: number;
  /** Ascending. */
  readonly coveredPartitions: readonly number[];
}

/** What the cluster is now. */
export interface ParentView {
  readonly clusterId: string;
  readonly storageType: string;
  readonly storageRevision: string;
  readonly topologyVersion: number;
  /** Ascending. */
  readonly partitions: readonly number[];
}

export type ParentVerdict = "continues" | "needs-full" | "topology-changed";

export function judgeParent(parent: ParentFacts, now: ParentView): ParentVerdict {
  const isSame =
    parent.clusterId === now.clusterId &&
    parent.storageType === now.storageType &&
    parent.storageRevision === now.storageRevision;
  if (!isSame) return "needs-full";
  const { coveredPartitions: covered } = parent;
  const isWhole =
    covered.length === now.partitions.length &&
    covered.every((partition, at) => partition === now.partitions[at]);
  const isTopology = parent.topologyGeneration === now.topologyVersion;
  return isTopology && isWhole ? "continues" : "topology-changed";
}

/** What the leaders told. */
export interface CutView {
  /** Whoever makes the cut. */
  readonly node: number;
  readonly wallMs: number;
  /** Last stamps and wall clocks of all leaders. */
  readonly toldMs: readonly number[];
  readonly slowestAnswerMs: number;
}

export interface CutChoice {
  readonly at: Hlc;
  /** How far it is ahead of the wall clock here. */
  readonly aheadMs: number;
  readonly verdict: "fits" | "is-ahead" | "too-far-ahead";
}

/** Where a cut goes through. */
export function chooseCut({ node, wallMs, toldMs, slowestAnswerMs }: CutView): CutChoice {
  const delta = Math.max(CUT_AHEAD_LEAST_MS, Math.ceil(4 * slowestAnswerMs));
  const l = Math.max(0, ...toldMs) + delta;
  const aheadMs = l - Math.floor(wallMs);
  const at = { n: node, l, c: COUNTER_MAX };
  if (aheadMs > CUT_SKEW_MAX_MS) return { at, aheadMs, verdict: "too-far-ahead" };
  return { at, aheadMs, verdict: aheadMs > CUT_SKEW_TOLD_MS ? "is-ahead" : "fits" };
}
