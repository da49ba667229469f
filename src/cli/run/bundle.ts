/**
 * The debug bundle, carried out.
 *
 * Invariants: 1. Every node is asked, all at the same time; one that does not answer is named, and
 * the exit code is then 1. 2. Nobody is asked when the file cannot be written. 3. When no node
 * answers nothing is written.
 */
import type { NodeDebug, RangeMap } from "../../client/mod.js";
import { PROFILE_MAX_SECONDS } from "../../base/limits.js";
import { checkPlace, BundleFile } from "../bundle/bundle-file.js";
import { clusterFiles, manifestFile, nodeFiles, type BundledNode } from "../bundle/bundle-files.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { usageError } from "../invocation/failures.js";
import { clusterFacts, type ClusterFacts, type NodeFacts } from "../status/status-facts.js";
import { askNode, gather, noAnswer, type Asked } from "../status/status-gather.js";
import { statusDocument } from "../status/status-view.js";
import type { OptionValues } from "../commands/values.js";

/** A node makes two scrapes ten seconds apart; somebody else may have asked it just before (ms). */
const NODE_MS = 40_000;
const RANGES_MS = 3000;

function secondsOf(values: OptionValues): number {
  const seconds = values.number("--profile");
  if (seconds === null) return 0;
  if (seconds >= 1 && seconds <= PROFILE_MAX_SECONDS) return seconds;
  throw usageError(`--profile: ${seconds} is not 1 to ${PROFILE_MAX_SECONDS}`);
}

/** Asks all of `urls` at the same time, and says how many have answered. */
async function debugAll(
  urls: readonly string[],
  context: RunContext,
  profileSeconds: number,
): Promise<readonly Asked<NodeDebug>[]> {
  const longestMs = NODE_MS + profileSeconds * 1000;
  let ended = 0;
  const told = (): void => context.show?.(`debug bundle: ${ended} of ${urls.length} nodes done`);
  const ask = async (url: string): Promise<Asked<NodeDebug>> => {
    const report = await askNode(url, context, longestMs, async (calling) => {
      const client = await context.clientOf(url);
      return client.cluster.nodeDebug({ ...calling, profileSeconds });
    });
    ended += 1;
    told();
    return report;
  };
  told();
  return Promise.all(urls.map(ask));
}

async function rangesFrom(url: string, context: RunContext): Promise<RangeMap | null> {
  const { answers } = await askNode(url, context, RANGES_MS, async (calling) => {
    const client = await context.clientOf(url);
    return client.ranges.list("", calling);
  });
  return answers;
}

/** Its own word for which node it is counts, before what the member list lets suppose. */
function ownIdOf(debug: NodeDebug | null): number | null {
  const config = debug?.["config"] as Readonly<Record<string, unknown>> | null | undefined;
  const id = config?.["nodeId"];
  return typeof id === "number" ? id : null;
}

function bundled({ url, answers, problem }: Asked<NodeDebug>, facts: ClusterFacts): BundledNode {
  const known = facts.nodes.find(({ clientEndpoint }) => clientEndpoint === url);
  const nodeId = ownIdOf(answers) ?? known?.nodeId ?? null;
  return { endpoint: url, nodeId, debug: answers, reason: answers === null ? problem : null };
}

/** A member of which nobody could say where its clients go. */
function unasked({ endpoint, nodeId }: NodeFacts): BundledNode {
  const reason = "nobody says where its clients go: name its endpoint with -c";
  return { endpoint, nodeId, debug: null, reason };
}

function missingLine({ endpoint, nodeId, reason }: BundledNode): string {
  const name = nodeId === null ? `the node at ${endpoint}` : `node ${nodeId} (${endpoint})`;
  return `${name}: ${reason}`;
}

async function bundle(values: OptionValues, context: RunContext): Promise<Outcome> {
  const path = values.requiredText("--debug-bundle");
  const profileSeconds = secondsOf(values);
  checkPlace(path);
  const beganMs = Date.now();
  const reports = await gather(context);
  const seen = reports.find(({ answers }) => answers !== null);
  if (seen === undefined) throw noAnswer(reports, context);
  const facts = clusterFacts(reports);
  const urls = reports.map(({ url }) => url);
  const [debugs, ranges] = await Promise.all([
    debugAll(urls, context, profileSeconds),
    rangesFrom(seen.url, context),
  ]);
  if (debugs.every(({ answers }) => answers === null)) throw noAnswer(debugs, context);
  const isAll = context.settings.node === null;
  const strangers = facts.nodes.filter(({ clientEndpoint }) => isAll && clientEndpoint === null);
  const nodes = [...debugs.map((one) => bundled(one, facts)), ...strangers.map(unasked)];
  const archive = new BundleFile(path, beganMs);
  await archive.add([manifestFile(nodes, new Date(beganMs).toISOString(), profileSeconds)]);
  await archive.add(clusterFiles({ status: statusDocument(facts), ranges }));
  for (const [at, node] of nodes.entries()) await archive.add(nodeFiles(node, at));
  const bytes = await archive.write();
  const missing = nodes.filter(({ debug }) => debug === null);
  const there = nodes.length - missing.length;
  return outcome(
    missing.length === 0,
    [
      `Wrote ${path}: ${there} of ${nodes.length} nodes, ${bytes} bytes`,
      ...missing.map(missingLine),
    ],
    {
      file: path,
      bytes,
      nodes: nodes.map(({ endpoint, nodeId, debug, reason }) => {
        return { endpoint, nodeId, ok: debug !== null, reason };
      }),
    },
  );
}

export const BUNDLE_RUN: RunTable = { "--debug-bundle": bundle };
