/**
 * The state of the whole cluster, carried out.
 *
 * Invariants: 1. One node that answers is enough for a view; none is an error. 2. The exit code is
 * 1 when something is wrong, or a voter was not seen, so that a script can ask.
 */
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { clusterFacts, isHealthy } from "../status/status-facts.js";
import { gather, noAnswer } from "../status/status-gather.js";
import { paintStatus, statusDocument, statusLines } from "../status/status-view.js";
import type { OptionValues } from "../commands/values.js";

async function status(_values: OptionValues, context: RunContext): Promise<Outcome> {
  const reports = await gather(context);
  if (reports.every((report) => report.answers === null)) throw noAnswer(reports, context);
  const facts = clusterFacts(reports);
  const answer = outcome(
    isHealthy(facts),
    statusLines(facts, context.columns),
    statusDocument(facts),
  );
  return { ...answer, paint: paintStatus };
}

export const STATUS_RUN: RunTable = { "--cluster-status": status };
