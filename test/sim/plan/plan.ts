/**
 * What a seed decides before anything runs: how large the cluster is, how it is set, which
 * operations and faults occur and how often. Swarm testing: each seed leaves some out and draws the
 * rates of the others, because a rare mix finds what an even one never meets.
 *
 * Pure. Invariants: 1. The plan is a function of seed, profile and overrides. 2. An override changes
 * nothing else of the plan, so that a shortened run resembles the whole one.
 */
import { VOTERS_MAX } from "../../../src/base/limits.js";
import { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { OperationsSettings } from "../../../src/operations/api/settings.js";
import {
  type WorkloadKind,
  type WorkSettings,
  laterWeights,
  weights,
  workSettings,
} from "./workplan.js";
import { type BackupPlan, backupPlan } from "./backup-plan.js";
import { type DisasterPlan, disasterPlan } from "../faults/disaster.js";
import type { FaultKind } from "../faults/kinds.js";
import { type HeirWorld, NO_HEIRS, heirWorld } from "../waiting/heirworld.js";
import { type WaitPlan, waitPlan } from "../waiting/waitplan.js";
import { NOTHING_ELSE, type WatchedWorld, watchedWorld } from "../watching/watchedworld.js";
import { type WatchPlan, watchPlan } from "../watching/watchplan.js";
import { type MemberPlan, memberPlan } from "../members/memberplan.js";
import { RAISED_PERMITS, type UpgradePlan, upgradePlan } from "../members/upgradeplan.js";
import {
  type RangePlan,
  SWINGING,
  fewRangesPlan,
  rangePlan,
  spreadRanges,
} from "../members/rangeplan.js";
import { type PlacedPlan, type PlacerPlan, SPREAD, placedPlan } from "../members/placementplan.js";
import { type Profile, PROFILES } from "./profiles.js";
import { fewOf, snapshotSettings, sleepSettings, tailSettings } from "../faults/swarm.js";
import {
  DEFAULT_HOST_SETTINGS,
  DEFAULT_OPERATIONS_SETTINGS,
} from "../../doubles/default-settings.js";

export interface Plan {
  readonly seed: number;
  readonly profile: string;
  /** That the cluster is founded with. */
  readonly nodes: number;
  /** Nodes that join right after the start. */
  readonly joiners: number;
  /** Simulated milliseconds with faults. */
  readonly ticks: number;
  readonly clients: number;
  readonly thinkMs: number;
  readonly operations: Readonly<Record<WorkloadKind, number>>;
  readonly faults: readonly FaultKind[];
  /** Mean time between two faults (ms). */
  readonly faultEveryMs: number;
  readonly host: Partial<HostSettings>;
  readonly segmentBytes: number;
  readonly locks: number;
  readonly sequences: number;
  readonly keys: number;
  readonly requestTimeoutMs: number;
  readonly blockSize: number;
  /** What a row costs that a read of many keys looks at (ms). */
  readonly visitMs: number;
  /** null: nobody joins or leaves. */
  readonly members: MemberPlan | null;
  /** null: all nodes run the same program. */
  readonly upgrades: UpgradePlan | null;
  /** null: nobody moves replicas. */
  readonly placer: PlacerPlan | null;
  /** null: nobody moves key ranges. */
  readonly ranges: RangePlan | null;
  /** null: nobody takes backups. */
  readonly backups: BackupPlan | null;
  /** null: nobody waits for locks. */
  readonly waits: WaitPlan | null;
  /** null: nobody watches. */
  readonly watches: WatchPlan | null;
  /** null: the disks of a majority stay. */
  readonly disaster: DisasterPlan | null;
  readonly work: WorkSettings;
  readonly network: {
    readonly baseMs: number;
    readonly jitterMs: number;
    readonly slowPerMillion: number;
  };
  readonly disk: { readonly readMs: number; readonly writeMs: number };
  /** Numbers of faults of the schedule that are left out. */
  readonly without: readonly number[];
}

type Weights = Readonly<Partial<Record<WorkloadKind, number>>>;

export interface PlanOverrides {
  readonly ticks?: number;
  readonly clients?: number;
  /** Founders and joiners. */
  readonly nodes?: number;
  /** Data partitions. */
  readonly groups?: number;
  readonly faults?: readonly FaultKind[];
  /** Mean time between two of them. */
  readonly faultEveryMs?: number;
  readonly without?: readonly number[];
  readonly members?: MemberPlan | null;
  /** Settings of all nodes instead of those drawn. */
  readonly host?: Partial<HostSettings>;
  /** Instead of what is drawn of backups, as far as it is given. */
  readonly backups?: Partial<BackupPlan>;
  /** Instead of what is drawn of key ranges, as far as it is given. */
  readonly ranges?: Partial<RangePlan>;
  /** Instead of what is drawn of those who wait, as far as it is given. */
  readonly waits?: Partial<WaitPlan>;
  /** Instead of what is drawn of those who watch, as far as it is given. */
  readonly watches?: Partial<WatchPlan>;
  /** Weights instead of the drawn ones; kinds that are not named are off. */
  readonly operations?: Weights;
  readonly locks?: number;
  readonly sequences?: number;
  readonly keys?: number;
  readonly thinkMs?: number;
  readonly requestTimeoutMs?: number;
  readonly blockSize?: number;
}

export const CLUSTER_ID = "simulated";

export function endpointOf(nodeId: number): string {
  return `node-${nodeId}:8084`;
}

/** The node that is meant by an endpoint, of peers or of clients. */
export function nodeAt(endpoint: string): number {
  return Number(/^(?:http:\/\/)?node-(\d+):/.exec(endpoint)?.[1]);
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

function hostSettings(prng: Prng): Partial<HostSettings> {
  const heartbeatMs = pick(prng, [100, 100, 200]);
  const flushRows = pick(prng, [20, 200, 2000]);
  return {
    initialPartitions: pick(prng, [1, 2, 3, 5]),
    heartbeatMs,
    electionMs: heartbeatMs * pick(prng, [5, 10, 10]),
    batchEntriesMax: pick(prng, [4, 64, 256]),
    batchBytesMax: 16 << 10,
    lingerMs: pick(prng, [0, 0, 5]),
    queuedCommandsMax: pick(prng, [256, 2048]),
    inFlightEntriesMax: pick(prng, [1, 4, 16]),
    compactEveryEntries: pick(prng, [10, 100, 1000]),
    compactKeepEntries: pick(prng, [0, 5, 50]),
    flushAgeMs: pick(prng, [500, 5000, 30_000]),
    flushRows,
    unflushedRowsMax: flushRows * 5,
    logKeepBytesMax: 256 << 10,
    unwrittenBytesMax: 256 << 10,
    applySliceCommands: pick(prng, [5, 100, 4096]),
    lockRecordRetentionMs: pick(prng, [5000, 60_000, 3_600_000]),
    tombstoneRetentionMs: pick(prng, [5000, 60_000, 86_400_000]),
    collectEveryMs: pick(prng, [1000, 10_000]),
    collectLimit: pick(prng, [3, 256]),
  };
}

/** A cluster is founded by as many as may vote. */
function foundersAmong(nodes: number): Pick<Plan, "nodes" | "joiners"> {
  const founders = Math.min(nodes, VOTERS_MAX);
  return { nodes: founders, joiners: nodes - founders };
}

function weightsOf(chosen: Weights | undefined, drawn: Plan["operations"]): Plan["operations"] {
  if (chosen === undefined) return drawn;
  const kinds = Object.keys(drawn) as WorkloadKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, chosen[kind] ?? 0])) as Plan["operations"];
}

/** Of some seeds; the others have what is lost one by one. */
function disasterOf(seed: number, profile: Profile, founders: number): DisasterPlan | null {
  if (profile.losesMajorities !== true) return null;
  const prng = new Prng(seed).fork("majority");
  return prng.chance(1, 2) ? disasterPlan(prng, founders) : null;
}

function placedPlanOf(seed: number, { hasPlacer, isSpread }: Profile): PlacedPlan | null {
  if (isSpread === true) return SPREAD;
  return hasPlacer === true ? placedPlan(new Prng(seed).fork("placer")) : null;
}

function rangePlanOf(
  seed: number,
  { hasRanges, isSwinging, hasRangesAtTimes }: Profile,
  nodes: number,
): RangePlan | null {
  if (isSwinging === true) return SWINGING;
  if (hasRangesAtTimes === true) {
    const prng = new Prng(seed).fork("ranges at times");
    return prng.chance(1, 3) ? fewRangesPlan(prng, nodes) : null;
  }
  if (hasRanges !== true) return null;
  const drawn = rangePlan(new Prng(seed).fork("ranges"));
  return spreadRanges(drawn, new Prng(seed).fork("ranges are spread"));
}

function backupPlanOf(seed: number, profile: Profile, nodes: number): BackupPlan | null {
  if (profile.hasBackups !== true) return null;
  return backupPlan(new Prng(seed).fork("backups"), nodes);
}

/** Drawn apart: a world without watchers is as it was. */
function watchPlanOf(
  seed: number,
  { hasWatches }: Profile,
  { watches }: WatchedWorld,
): WatchPlan | null {
  if (hasWatches !== true) return null;
  return { ...watchPlan(new Prng(seed).fork("watches")), ...watches };
}

/** Drawn apart from what is drawn of those who watch. */
function watchedWorldOf(seed: number, { hasWatches, besideWatches }: Profile): WatchedWorld {
  if (hasWatches !== true) return NOTHING_ELSE;
  return watchedWorld(new Prng(seed).fork("what goes on beside watches"), besideWatches ?? null);
}

/** Drawn apart: a world without heirs is as it was. */
function heirWorldOf(seed: number, { hasWaits, hasHeirs }: Profile): HeirWorld {
  if (hasWaits !== true) return NO_HEIRS;
  return heirWorld(new Prng(seed).fork("heirs of locks"), hasHeirs === true);
}

function waitPlanOf(seed: number, { hasWaits }: Profile, { waits }: HeirWorld): WaitPlan | null {
  if (hasWaits !== true) return null;
  return { ...waitPlan(new Prng(seed).fork("waits")), ...waits };
}

function keysOf(profile: Profile, drawn: number): number {
  return profile.keys ?? drawn;
}

/** The plan of `seed`. Throws on an unknown profile. */
export function planOf(seed: number, profileName: string, overrides: PlanOverrides = {}): Plan {
  const profile = PROFILES[profileName];
  if (profile === undefined) {
    throw new Error(`no profile ${profileName}; there are: ${Object.keys(PROFILES).join(", ")}`);
  }
  const prng = new Prng(seed).fork("plan");
  const nodes = pick(prng, profile.nodes);
  const later = new Prng(seed).fork("later");
  const drawn = profile.faults.filter(() => prng.chance(1, 2));
  const chosen = fewOf(drawn, new Prng(seed).fork("few"));
  const hasOperators = profile.hasOperators === true;
  const members = hasOperators ? memberPlan(new Prng(seed).fork("members")) : null;
  const placed = placedPlanOf(seed, profile);
  const beside = watchedWorldOf(seed, profile);
  const ranges = rangePlanOf(seed, profile, nodes) ?? beside.ranges;
  const backups = backupPlanOf(seed, profile, nodes);
  const watches = watchPlanOf(seed, profile, beside);
  const succeeded = heirWorldOf(seed, profile);
  const plan: Plan = {
    seed,
    profile: profileName,
    ...foundersAmong(nodes),
    ticks: profile.ticks ?? 60_000,
    clients: pick(prng, profile.clients),
    thinkMs: pick(prng, profile.thinkMs),
    operations: {
      ...weightsOf(profile.operations, { ...laterWeights(later), ...weights(prng) }),
      // What others do about ranges is told to checkers of its own, and to no history.
      ...(ranges === null ? {} : { ranges: 0 }),
    },
    faults: profile.hasAllFaults === true ? profile.faults : chosen,
    faultEveryMs: pick(prng, profile.faultEveryMs ?? [500, 2000, 5000, 15_000]),
    host: {
      ...hostSettings(prng),
      ...tailSettings(new Prng(seed).fork("tail")),
      ...snapshotSettings(new Prng(seed).fork("image")),
      ...sleepSettings(new Prng(seed).fork("sleep")),
      ...profile.host,
      ...placed?.host,
      ...(placed === null ? ranges?.host : {}),
      ...backups?.host,
      ...watches?.host,
      ...beside.host,
      ...succeeded.host,
    },
    segmentBytes: pick(prng, [64, 128, 512]) << 10,
    locks: pick(prng, [1, 3, 20]),
    sequences: pick(prng, [1, 3, 10]),
    keys: keysOf(profile, pick(prng, [2, 10, 60])),
    requestTimeoutMs: pick(prng, [1000, 3000, 10_000]),
    blockSize: pick(prng, [1, 10, 1000]),
    visitMs: profile.visitMs ?? 0,
    work: { ...workSettings(later), ...profile.work },
    disk: { readMs: pick(prng, [0.1, 0.5]), writeMs: pick(prng, [0.3, 1, 5]) },
    network: {
      baseMs: pick(prng, [0.1, 0.5, 5]),
      jitterMs: pick(prng, [0.1, 1, 20]),
      slowPerMillion: pick(prng, [0, 1000, 20_000]),
    },
    members: placed === null ? (members ?? beside.members) : placed.members,
    upgrades: profile.hasUpgrades === true ? upgradePlan(new Prng(seed).fork("upgrades")) : null,
    placer: placed?.placer ?? beside.placer,
    ranges,
    backups,
    waits: waitPlanOf(seed, profile, succeeded),
    watches,
    disaster: disasterOf(seed, profile, nodes),
    ...(profile.segmentBytes === undefined ? {} : { segmentBytes: profile.segmentBytes }),
    ...beside.others,
    ...succeeded.others,
    without: [],
  };
  const {
    groups,
    nodes: wanted,
    operations,
    host: settings,
    ranges: moves,
    backups: taking,
    waits,
    watches: watching,
    ...others
  } = overrides;
  const pool = groups === undefined ? {} : { initialPartitions: groups };
  const host = { ...plan.host, ...pool, ...moves?.host, ...settings };
  const size = wanted === undefined ? {} : foundersAmong(wanted);
  const weighed = weightsOf(operations, plan.operations);
  const moving = ranges === null ? null : { ...ranges, ...moves };
  const taken = backups === null ? null : { ...backups, ...taking };
  const waiting = plan.waits === null ? null : { ...plan.waits, ...waits };
  const drawnOtherwise = { operations: weighed, ranges: moving, backups: taken, waits: waiting };
  const watched = plan.watches === null ? null : { ...plan.watches, ...watching };
  return { ...plan, ...others, ...size, host, ...drawnOtherwise, watches: watched };
}

/** The host's settings of one node of a plan. */
export function hostSettingsOf(plan: Plan, nodeId: number, storageId: string): HostSettings {
  const founders = [];
  for (let id = 1; id <= plan.nodes; id++) {
    founders.push({ nodeId: id, endpoint: endpointOf(id), storageId: "" });
  }
  const { electionMs = DEFAULT_HOST_SETTINGS.electionMs } = plan.host;
  return {
    ...DEFAULT_HOST_SETTINGS,
    // Timeouts that are all the same would let all nodes stand for election at once, for ever.
    electionEndMs: 2 * electionMs,
    // Replicas are compared often enough for a short run.
    digestEveryEntries: 32,
    ...plan.host,
    ...(plan.upgrades === null ? {} : upgradeSettings(plan.upgrades)),
    ...(plan.ranges === null ? {} : { ranges: plan.ranges.thresholds }),
    nodeId,
    endpoint: endpointOf(nodeId),
    clusterId: CLUSTER_ID,
    storageId,
    founders,
  };
}

function upgradeSettings({ autoFinalizeMs }: UpgradePlan): Partial<HostSettings> {
  return { permits: RAISED_PERMITS, autoFinalizeMs };
}

/** As every node of the plan is told them, by whichever floor. */
function rangeSizes({ thresholds }: RangePlan): Partial<OperationsSettings> {
  const { splitMinSize, mergeMinSize } = thresholds;
  return { rangeSplitMinSize: splitMinSize, rangeMergeMinSize: mergeMinSize };
}

export function operationsSettingsOf(plan: Plan, nodeId: number): OperationsSettings {
  const { work } = plan;
  return {
    ...DEFAULT_OPERATIONS_SETTINGS,
    nodeId,
    peerEndpoint: endpointOf(nodeId),
    clientEndpoint: `http://node-${nodeId}:8083`,
    requestTimeoutMs: plan.requestTimeoutMs,
    sequencerBlockSize: plan.blockSize,
    ...(plan.members === null ? {} : { drainTimeoutMs: plan.members.drainMs }),
    ...(plan.upgrades === null ? {} : { permits: RAISED_PERMITS }),
    keysRetainedMax: work.keysRetainedMax,
    keysRetainedMs: work.keysRetainedMs,
    revisionsRetained: work.revisionsRetained,
    pageBytes: work.pageBytes,
    responseMaxBytes: work.responseMaxBytes,
    valueMaxBytes: work.valueMaxBytes,
    lockMaxLeaseMs: work.lockMaxLeaseMs,
    ...(plan.ranges === null ? {} : rangeSizes(plan.ranges)),
    ...plan.watches?.operations,
    lockSuccession: plan.waits !== null && plan.waits.heirs !== null,
  };
}
