/**
 * Asks every node of a cluster how it is: those that were named, and those that the answers name as
 * leaders.
 *
 * Invariants: 1. Every node is asked once, all at the same time, each in bounded time: a dead one
 * delays nobody. 2. An endpoint that was learned from an answer is asked only when that is no less
 * safe than what the person named. 3. A node that answers under two addresses is reported once.
 */
import type {
  CallOptions,
  Health,
  Membership,
  Overview,
  Placement,
  RoutingMetadata,
  SvcClient,
} from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";
import { EXIT_UNREACHABLE } from "../invocation/exit-codes.js";
import { CliError, describeFailure } from "../invocation/failures.js";
import { probe } from "../invocation/probe.js";
import { isLoopback, type Settings } from "../invocation/settings.js";
import { readEndpoint } from "../commands/values.js";

/** Longest time for one node (ms). */
const NODE_MS = 3000;
/** A failed connection ends the wait for a node's answers after this time (ms). */
const GRACE_MS = 200;
const NODES_MAX = 64;

export interface NodeAnswers {
  readonly health: Health;
  readonly membership: Membership;
  readonly placement: Placement;
  readonly routing: RoutingMetadata;
  /** null: the node is of an older version. */
  readonly overview: Overview | null;
}

/** What came of asking one node. */
export interface Asked<Answers> {
  /** Where it was asked. */
  readonly url: string;
  readonly answers: Answers | null;
  /** Why there is no answer, for people. */
  readonly problem: string;
  /** True when it could not be reached, false when it answered with a failure. */
  readonly isUnreachable: boolean;
  readonly error: unknown;
}

export type NodeReport = Asked<NodeAnswers>;

/** True when a node may be asked at `url` although the person did not name it. */
function isAsSafe(url: string, from: string, settings: Settings): boolean {
  if (url.startsWith("https:")) return !settings.insecure || isLoopback(url);
  return from.startsWith("http:");
}

/**
 * Health with all its members where the endpoint speaks REST too (https): over gRPC it is a yes or
 * no, which is enough when the rest cannot be had.
 */
async function healthOf(
  url: string,
  client: SvcClient,
  context: RunContext,
  calling: CallOptions,
): Promise<Health> {
  const inFull = async (): Promise<Health | null> => {
    if (!url.startsWith("https:")) return null;
    const rest = await context.clients.openRest(url);
    return rest.health(calling);
  };
  const [full, short] = await Promise.all([inFull().catch(() => null), client.health(calling)]);
  return full ?? short;
}

async function answersOf(
  url: string,
  context: RunContext,
  calling: CallOptions,
): Promise<NodeAnswers> {
  const client = await context.clientOf(url);
  const [health, membership, placement, routing, overview] = await Promise.all([
    healthOf(url, client, context, calling),
    client.cluster.membership(calling),
    client.cluster.placement(calling),
    client.cluster.routing("", calling),
    client.cluster.overview(calling).catch(() => null),
  ]);
  return { health, membership, placement, routing, overview };
}

/**
 * Asks the node at `url` for what `work` calls, for `longestMs` at most; a node that cannot be
 * reached is given up as soon as that is known. Never rejects.
 */
export async function askNode<Answers>(
  url: string,
  context: RunContext,
  longestMs: number,
  work: (calling: CallOptions) => Promise<Answers>,
): Promise<Asked<Answers>> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort();
  if (context.signal.aborted) onAbort();
  context.signal.addEventListener("abort", onAbort, { once: true });
  let reason: string | null = null;
  const limitMs = Math.min(context.leftMs(), longestMs);
  const probeMs = Math.min(limitMs, NODE_MS);
  const looked = probe(url, context.clients.tls(), probeMs).then((found) => {
    reason = found;
    if (found !== null) setTimeout(onAbort, GRACE_MS).unref();
  });
  try {
    const answers = await work({ signal: stop.signal, deadlineMs: limitMs });
    return { url, answers, problem: "", isUnreachable: false, error: null };
  } catch (error) {
    await looked;
    const { code, exit, message } = describeFailure(error, url);
    const isUnreachable = reason !== null || exit === 3;
    const why = code === "timeout" ? `no answer within ${Math.round(limitMs)} ms` : message;
    return { url, answers: null, problem: reason ?? why, isUnreachable, error };
  } finally {
    context.signal.removeEventListener("abort", onAbort);
  }
}

/** Reports of all nodes that could be found, the named ones first. */
export async function gather(context: RunContext): Promise<readonly NodeReport[]> {
  const { settings, endpoints } = context;
  const asked = new Map<string, Promise<NodeReport>>();
  const known = new Set<string>();
  const begin = (url: string): void => {
    if (asked.has(url) || known.has(url) || asked.size >= NODES_MAX) return;
    const asking = askNode(url, context, NODE_MS, (calling) => answersOf(url, context, calling));
    asked.set(url, asking.then(follow));
  };
  const follow = (report: NodeReport): NodeReport => {
    const { answers, url } = report;
    if (answers === null) return report;
    known.add(readEndpoint(answers.routing.localEndpoint) ?? "");
    if (settings.node !== null) return report;
    // Who leads nothing is found by what the nodes know of each other.
    const named = answers.routing.leaders.map(({ endpoint }) => endpoint);
    const listed = (answers.overview?.nodes ?? []).map(({ clientEndpoint }) => clientEndpoint);
    for (const endpoint of new Set([...named, ...listed])) {
      const learned = readEndpoint(endpoint);
      if (learned !== null && isAsSafe(learned, url, settings)) begin(learned);
    }
    return report;
  };
  for (const url of endpoints) begin(url);
  for (let seen = -1; seen !== asked.size;) {
    seen = asked.size;
    await Promise.all(asked.values());
  }
  return withoutDoubles(await Promise.all(asked.values()));
}

/** Why nobody answered: what a node refused, before that none could be reached. */
export function noAnswer(reports: readonly Asked<unknown>[], context: RunContext): unknown {
  const refused = reports.find((report) => !report.isUnreachable);
  if (refused !== undefined) return refused.error;
  if (context.signal.aborted) return reports[0]?.error;
  const reasons = reports.map(({ url, problem }) => `${url}: ${problem}`).join("; ");
  return new CliError(EXIT_UNREACHABLE, "unreachable", `no node can be reached: ${reasons}`);
}

function withoutDoubles(reports: readonly NodeReport[]): NodeReport[] {
  const seen = new Set<string>();
  return reports.filter(({ answers }) => {
    const peer = answers?.placement.localEndpoint ?? "";
    if (peer === "") return true;
    if (seen.has(peer)) return false;
    seen.add(peer);
    return true;
  });
}
