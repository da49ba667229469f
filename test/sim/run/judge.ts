/**
 * Runs a plan with everything that judges it: the checkers of nodes while it runs, those of the
 * history after it.
 *
 * Invariants: 1. A checker that saw too little says so; whether that fails is decided over many
 * seeds, never over one. 2. What could not be decided is told, and is no pass.
 */
import { boundsOf } from "../../judge/checkers/nodes/bounded-size.js";
import {
  HISTORY_CHECKS,
  type HistoryCheckOptions,
  checkHistory,
  withDrift,
} from "../../judge/checkers/history-checks.js";
import { checkNothingGranted } from "../../judge/checkers/clients/nothing-granted.js";
import { throughMoves } from "../../judge/checkers/ranges/through-moves.js";
import { splitSpaces, withLeaderships } from "../../judge/checkers/clients/leaderships.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";
import { hashPartition, keyHashText } from "../../../src/base/routing.js";
import { BUCKETS } from "../clients/kv-requests.js";
import { BackupChecks } from "../backups/backup-checks.js";
import { BackupJudge } from "../backups/backup-judge.js";
import { hostSettingsOf, operationsSettingsOf, type Plan } from "../plan/plan.js";
import type { HostSettings } from "../../../src/host/settings.js";
import { NodeChecks } from "../world/nodechecks.js";
import type { RangeSetting } from "../world/range-checks.js";
import type { ReplicaWorld } from "../world/replica-checks.js";
import { type Profile, PROFILES } from "../plan/profiles.js";
import { CLOCK_DRIFT, type RunOptions, type RunResult, runPlan, lookEveryMs } from "./run.js";

export interface Judged {
  readonly result: RunResult;
  /** Of the run and of all checkers. */
  readonly violations: readonly string[];
  /** What the checkers saw, by checker and kind of evidence. */
  readonly evidence: Readonly<Record<string, number>>;
  /** How much of it there must be, over a whole sweep at least. */
  readonly minimum: Readonly<Record<string, number>>;
  /** Checkers that saw too little in this run. */
  readonly vacuous: readonly string[];
  readonly undecided: readonly string[];
  /** Processor time of the checkers of the history (ms). */
  readonly checkMs: number;
}

/** Operations with a result that each kind of object must have had, over a whole sweep. */
const MINIMUM = {
  lock: 50,
  "ephemeral-lock": 20,
  sequence: 50,
  key: 50,
  "ephemeral-key": 20,
  "key-space": 5,
} as const;

const NO_MINIMUM: HistoryCheckOptions["minimum"] = {
  ...{ answers: 0, allocations: 0, orders: 0, replays: 0, tokens: 0, beliefs: 0, reads: 0 },
  scans: { pages: 0, rows: 0, untouched: 0 },
};

export function historyOptions(plan: Plan): HistoryCheckOptions {
  const base = withDrift(CLOCK_DRIFT, HISTORY_CHECKS);
  const host = hostSettingsOf(plan, 1, "");
  const operations = operationsSettingsOf(plan, 1);
  const { linearizability } = base;
  // What a profile does not ask for is nothing that it could have seen.
  const isSpecial = PROFILES[plan.profile]?.operations !== undefined;
  return {
    ...base,
    minimum: isSpecial
      ? { ...NO_MINIMUM, answers: 100 }
      : { ...base.minimum, scans: { pages: 20, rows: 50, untouched: 20 } },
    linearizability: {
      ...linearizability,
      minimum: isSpecial ? { key: 50 } : MINIMUM,
      lock: {
        ...linearizability.lock,
        recordRetentionMs: host.lockRecordRetentionMs,
        maxLeaseMs: operations.lockMaxLeaseMs,
      },
      sequence: {
        ...linearizability.sequence,
        defaultBlockSize: operations.sequencerBlockSize,
        keysRetainedMax: operations.keysRetainedMax,
        keysRetainedMs: operations.keysRetainedMs,
      },
      kv: {
        ...linearizability.kv,
        revisionsRetained: operations.revisionsRetained,
        tombstoneRetentionMs: host.tombstoneRetentionMs,
        maxValueBytes: operations.valueMaxBytes,
      },
      // A history that needs more is told as undecided.
      budget: { ...linearizability.budget, stepsMax: 300_000, memoryMax: 100_000 },
    },
  };
}

function collect(verdicts: readonly Verdict[]): Omit<Judged, "result" | "checkMs"> {
  const violations: string[] = [];
  const evidence: Record<string, number> = {};
  const minimum: Record<string, number> = {};
  const vacuous: string[] = [];
  const undecided: string[] = [];
  for (const verdict of verdicts) {
    const { property, kind, seen } = verdict;
    for (const [name, least] of Object.entries(verdict.minimum)) {
      minimum[`${property}: ${name}`] = least;
    }
    for (const [name, count] of Object.entries(seen)) evidence[`${property}: ${name}`] = count;
    for (const violation of verdict.violations) violations.push(`${property}: ${violation}`);
    if (kind === "vacuous") vacuous.push(property);
    for (const open of verdict.open) undecided.push(`${property}: ${open}`);
  }
  return { violations, evidence, minimum, vacuous, undecided };
}

/** The verdict, without a least evidence. */
function unmeasured(verdict: Verdict): Verdict {
  return { ...verdict, minimum: {}, kind: verdict.kind === "vacuous" ? "pass" : verdict.kind };
}

/** Whether what the profile is for was there. */
function worldOf(profile: Profile, result: RunResult, verdicts: readonly Verdict[]): Verdict {
  const { name, needs = {} } = profile;
  const { faults, effects } = result;
  const { evidence } = collect(verdicts);
  const findings = new Findings(`the world of ${name}`, needs);
  for (const need of Object.keys(needs)) {
    const fault = need.startsWith("fault ") ? faults[need.slice(6)] : undefined;
    findings.count(need, fault ?? effects[need] ?? evidence[need] ?? 0);
  }
  return findings.verdict();
}

/** null: replicas are on all nodes. */
function replicaWorldOf({ placer }: Plan, host: HostSettings): ReplicaWorld | null {
  if (placer === null) return null;
  return {
    hasAllocator: host.rebalancerEnabled === true,
    receiversMax: host.snapshots.receiversMax,
    sendersMax: host.snapshots.sendersMax,
  };
}

/** Keys of each key space that are looked at for who accepts them. */
const PROBES = 16;

/** null: nobody moves key ranges. */
function rangeSettingOf({ ranges, keys }: Plan, host: HostSettings): RangeSetting | null {
  if (ranges === null) return null;
  const { initialPartitions, electionEndMs } = host;
  const spaces = BUCKETS.slice(0, ranges.spaces);
  // The same few hundred keys are asked for all the time.
  const homes = new Map<string, number>();
  const homeOf = (key: string): number => {
    const known = homes.get(key);
    if (known !== undefined) return known;
    const home = hashPartition(keyHashText(key), initialPartitions);
    homes.set(key, home);
    return home;
  };
  return {
    probes: spaces.flatMap((space) => {
      return Array.from({ length: PROBES }, (_, at) => {
        return `${space}/key-${Math.floor((at * keys) / PROBES)}`;
      });
    }),
    homeOf,
    isAutomatic: ranges.isAutomatic,
    drift: CLOCK_DRIFT,
    slackMs: 2 * electionEndMs + 2000,
  };
}

export function judge(plan: Plan, options: RunOptions = {}): Judged {
  let violate: (text: string) => void = () => undefined;
  const host = hostSettingsOf(plan, 1, "");
  const bounds = boundsOf(host, operationsSettingsOf(plan, 1), plan.segmentBytes);
  const profile = PROFILES[plan.profile] as Profile;
  const hasOperators = plan.members !== null;
  const tell = (text: string): void => violate(text);
  const snapshotsMax = (profile.snapshotsMax ?? Infinity) * (host.initialPartitions + 1);
  const { electionEndMs } = host;
  const checks = new NodeChecks(
    tell,
    bounds,
    plan.nodes,
    hasOperators,
    snapshotsMax,
    electionEndMs,
    lookEveryMs(plan),
    plan.upgrades !== null,
    replicaWorldOf(plan, host),
    rangeSettingOf(plan, host),
  );
  const backups = plan.backups === null ? null : new BackupChecks();
  if (backups !== null) checks.backups = backups;
  const result = runPlan(plan, {
    ...options,
    checks,
    onViolate: (report) => {
      violate = report;
    },
  });
  const before = process.cpuUsage();
  const partitions = host.initialPartitions;
  const { ranges } = checks;
  const moved = ranges?.movedSpaces ?? splitSpaces(result.history);
  const history = withLeaderships(result.history, checks.leaderships, partitions, moved);
  const isAside = profile.hasRangesAtTimes === true || profile.hasWatches === true;
  const ofMoves = ranges === null ? [] : [throughMoves(history, ranges.made, ranges.rangesOf)];
  if (result.backups !== null && result.violations.length === 0) {
    const { simulatedMs } = result;
    new BackupJudge(result.backups, historyOptions(plan), partitions, simulatedMs).judge();
  }
  const ofBackups = backups === null ? [] : backups.all.map((checker) => checker.verdict());
  const effective = result.waits?.tap.effective(history) ?? history;
  const ofHistory = [...checkHistory(effective, historyOptions(plan)), ...ofMoves];
  const fenced = profile.operations === undefined ? result.fenced : unmeasured(result.fenced);
  const ofWaits = result.waits?.judge(history, checks.leaderships) ?? [];
  const ofWatches = result.watches?.verdicts() ?? [];
  const granted = checkNothingGranted(history, result.lostAtMs);
  const ofNodes = [...checks.verdicts(), ...ofBackups, ...ofWaits, ...ofWatches, fenced, granted];
  const all = [...ofNodes, ...ofHistory, worldOf(profile, result, ofNodes)];
  // What others are for has no least evidence here.
  const others = isAside ? [...ofMoves, ...(ranges?.all.map((one) => one.verdict()) ?? [])] : [];
  const aside = new Set(others.map(({ property }) => property));
  const verdicts = all.map((each) => (aside.has(each.property) ? unmeasured(each) : each));
  const collected = collect(verdicts);
  const own = result.violations.filter((text) => !collected.violations.includes(text));
  const { user, system } = process.cpuUsage(before);
  const checkMs = (user + system) / 1000;
  return { result, ...collected, violations: [...own, ...collected.violations], checkMs };
}
