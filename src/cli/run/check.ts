/**
 * The check of a cluster, carried out.
 *
 * Invariants: 1. The exit code is 1 when a check has failed; a warning alone, and what could not be
 * seen, ends with 0. 2. One node that answers is enough; none is an error.
 */
import { catalogueFrom, sampleNode } from "../check/check-gather.js";
import { checksOf, verdictOf, type CheckLimits } from "../check/check-rules.js";
import { checkDocument, checkLines, paintCheck } from "../check/check-view.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { usageError } from "../invocation/failures.js";
import { clusterFacts } from "../status/status-facts.js";
import { gather, noAnswer } from "../status/status-gather.js";
import type { OptionValues } from "../commands/values.js";
import { CHECK_DEFAULTS } from "../commands/options.js";

const READS_MAX = 10_000;

function numberOf(values: OptionValues, name: keyof typeof CHECK_DEFAULTS, least: number): number {
  const value = values.number(name) ?? CHECK_DEFAULTS[name];
  if (value < least) throw usageError(`${name}: ${value} is below ${least}`);
  return value;
}

function limitsOf(values: OptionValues): CheckLimits {
  return {
    latencyMs: numberOf(values, "--max-latency", 1),
    logSyncMs: numberOf(values, "--max-log-sync", 1),
    clockMs: numberOf(values, "--max-clock-difference", 1),
    freeMib: numberOf(values, "--min-free", 0),
    certificateDays: numberOf(values, "--min-certificate-days", 0),
    backupHours: numberOf(values, "--max-backup-age", 1),
  };
}

async function check(values: OptionValues, context: RunContext): Promise<Outcome> {
  const limits = limitsOf(values);
  const reads = numberOf(values, "--reads", 1);
  if (reads > READS_MAX) throw usageError(`--reads: ${reads} is above ${READS_MAX}`);
  const reports = await gather(context);
  const answered = reports.filter(({ answers }) => answers !== null);
  const [seen] = answered;
  if (seen === undefined) throw noAnswer(reports, context);
  context.show?.(`check: ${answered.length} nodes are being looked at`);
  const [samples, catalogue] = await Promise.all([
    Promise.all(answered.map(({ url }) => sampleNode(url, context, reads))),
    catalogueFrom(seen.url, context),
  ]);
  const checks = checksOf(clusterFacts(reports), samples, catalogue, limits, Date.now());
  const isGood = verdictOf(checks) !== "failed";
  const answer = outcome(isGood, checkLines(checks, context.columns), checkDocument(checks));
  return { ...answer, paint: paintCheck };
}

export const CHECK_RUN: RunTable = { "--check": check };
