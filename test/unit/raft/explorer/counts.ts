/**
 * What happened in a run, counted: the evidence that a run without a violation was not an idle one.
 */
export interface Counts {
  steps: number;
  elections: number;
  leaderChanges: number;
  committed: number;
  priorTermCommits: number;
  truncations: number;
  lostWrites: number;
  staleReceipts: number;
  crashes: number;
  snapshots: number;
  compactions: number;
  changesApplied: number;
  jointEntered: number;
  stepDownsOnRemoval: number;
  readsAsked: number;
  readsAnswered: number;
  readsDropped: number;
  transfersOrdered: number;
  transferCampaigns: number;
  delivered: number;
  duplicated: number;
  dropped: number;
  refusedAppends: number;
  recoveries: number;
  renewals: number;
  snapshotsNeeded: number;
  strays: number;
}

export function noCounts(): Counts {
  return {
    steps: 0,
    elections: 0,
    leaderChanges: 0,
    committed: 0,
    priorTermCommits: 0,
    truncations: 0,
    lostWrites: 0,
    staleReceipts: 0,
    crashes: 0,
    snapshots: 0,
    compactions: 0,
    changesApplied: 0,
    jointEntered: 0,
    stepDownsOnRemoval: 0,
    readsAsked: 0,
    readsAnswered: 0,
    readsDropped: 0,
    transfersOrdered: 0,
    transferCampaigns: 0,
    delivered: 0,
    duplicated: 0,
    dropped: 0,
    refusedAppends: 0,
    recoveries: 0,
    renewals: 0,
    snapshotsNeeded: 0,
    strays: 0,
  };
}

export function addCounts(sum: Counts, more: Counts): void {
  for (const key of Object.keys(sum) as (keyof Counts)[]) sum[key] += more[key];
}

/** The names of the counts that are below what `least` asks for. */
export function vacuous(counts: Counts, least: Partial<Counts>): string[] {
  const names = Object.keys(least) as (keyof Counts)[];
  return names
    .filter((name) => counts[name] < (least[name] ?? 0))
    .map((name) => `${name}: ${counts[name]} of at least ${least[name]}`);
}
