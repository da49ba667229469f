/**
 * Why nothing is done about a partition that is not as it should be: two closed lists of codes, one
 * of the leader of meta and one of the leaders of the groups, each with a sentence for operators
 * (P-093).
 *
 * Pure. Invariant: codes are labels of metrics and part of what nodes tell each other: one that was
 * released keeps its meaning.
 */

/** What the leader of meta waits for before it orders the next step of a partition. */
export const PLACEMENT_REASONS = {
  "replica-on-its-way": "a replica is on its way in or out",
  "not-listed": "the leader of the partition has not listed its replicas yet",
  disabled: "the placement rebalancer is off on the leader of the meta partition",
  "no-leader": "no live leader of the partition is known",
  "no-majority": "no majority of the partition's voters is live",
  "majority-at-risk": "without the replica no majority of the rest would be live",
  "no-node": "every node that may hold replicas has one already",
  "nodes-not-ready": "the nodes that could take the replica are silent, back too shortly or untold",
  "nodes-full": "disk or store of the nodes that could take the replica are nearly full",
  resting: "the nodes that could take the replica failed to lately",
  "nodes-busy": "as many replicas as may be are on their way to the nodes that could take it",
  "leader-busy": "the node that leads the partition feeds as many new replicas as it may",
  "cluster-busy": "as many replicas as may be are on their way in the cluster",
  "others-first": "balance waits for repairs, drains and other orders",
  held: "a backup is taken, and the step is not urgent",
  "balance-busy": "as many replicas as may be are on their way for balance",
  "nodes-lagging": "a node that would give or take a replica for balance is behind with its work",
  "groups-not-ready": "no partition that could be moved for balance has all its voters live",
} as const;

export type PlacementReason = keyof typeof PLACEMENT_REASONS;

/** What the leader of a placed group waits for before its next step. */
export const GROUP_WAITS = {
  "older-record": "a newer record of the partition has not arrived here",
  "not-told": "the leader of meta has not heard of the last step",
  joint: "a change of the configuration is under way",
  paused: "the partition is paused for a range or a backup",
  "no-majority": "no majority of the voters is live",
  "majority-at-risk": "no majority of the rest would be live",
  "replica-silent": "the new replica does not answer",
  "replica-behind": "the new replica has not caught up",
  "no-heir": "nobody can take over from the leader, whose replica goes",
  "members-full": "the group has as many members as it may have",
  "voters-full": "the group has as many voters as it may have",
} as const;

export type GroupWait = keyof typeof GROUP_WAITS;
