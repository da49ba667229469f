/**
 * What the answers of the nodes say about their cluster as a whole.
 *
 * Pure. Invariants: 1. A node counts as leader of a partition only when it says so itself, or when
 * it could not be asked and others say so. 2. What is not known is null and no problem; what is
 * wrong is a sentence in `problems`. 3. A cluster with a voter that nobody saw is not called
 * healthy.
 */
import type { ClusterMember, Overview, Placement } from "../../client/mod.js";
import type { NodeReport } from "./status-gather.js";
import { levelFacts, type LevelFacts } from "./status-level.js";
import { readEndpoint } from "../commands/values.js";

/** Partitions that a sentence names. */
const NUMBERS_SHOWN = 12;

export type NodeState = "ready" | "not-ready" | "unreachable" | "failed" | "not-asked";

export interface NodeFacts {
  /** Peer endpoint, as the roster has it. */
  readonly endpoint: string | null;
  readonly clientEndpoint: string | null;
  readonly nodeId: number | null;
  readonly role: string | null;
  readonly state: NodeState;
  /** Why it is not ready or did not answer. */
  readonly reason: string | null;
  readonly version: string | null;
  readonly uptimeMs: bigint | null;
  readonly membershipVersion: bigint | null;
  readonly hostedPartitions: number | null;
  leaderships: number;
}

export interface PartitionFacts {
  readonly total: number;
  readonly withoutLeader: readonly number[];
  /** Two nodes say that they lead it. */
  readonly disputed: readonly number[];
  /** Fewer voters than wanted that can be reached. */
  readonly underReplicated: readonly number[];
  /** A replica comes or goes. */
  readonly moving: readonly number[];
  /** So many voters cannot be reached that the rest is no majority. */
  readonly withoutMajority: readonly number[];
}

export interface ClusterFacts {
  readonly isInitialized: boolean;
  readonly membershipVersion: bigint;
  readonly replicationFactor: number;
  readonly rebalancerEnabled: boolean;
  readonly voters: number;
  readonly nodes: readonly NodeFacts[];
  readonly partitions: PartitionFacts;
  /** Voters of which nobody said whether they live, by name. */
  readonly unseen: readonly string[];
  readonly problems: readonly string[];
  readonly level: LevelFacts;
  /** What the node with the newest map tells of the others, most urgent first. */
  readonly alarms: readonly string[];
}

/** True when everything that counts was seen, and is right. */
export function isHealthy({ problems, unseen }: ClusterFacts): boolean {
  return problems.length === 0 && unseen.length === 0;
}

type Answered = NodeReport & { readonly answers: NonNullable<NodeReport["answers"]> };

function isAnswered(report: NodeReport): report is Answered {
  return report.answers !== null;
}

function hostOf(address: string): string {
  const url = address.includes("://") ? address : `http://${address}`;
  return URL.canParse(url) ? new URL(url).hostname : address;
}

/** Over gRPC health alone is a yes or no. */
function reasonOf(own: Overview["nodes"][number] | undefined): string | null {
  return own === undefined || own.reason === "" ? null : own.reason;
}

function nodeOf(member: ClusterMember | null, report: NodeReport | null): NodeFacts {
  const base = {
    endpoint: member?.endpoint ?? null,
    clientEndpoint: report?.url ?? null,
    nodeId: member?.nodeId ?? null,
    role: member?.role ?? null,
    version: null,
    uptimeMs: null,
    membershipVersion: null,
    hostedPartitions: null,
    leaderships: 0,
  };
  if (report === null) return { ...base, state: "not-asked", reason: null };
  if (!isAnswered(report)) {
    const state = report.isUnreachable ? "unreachable" : "failed";
    return { ...base, state, reason: report.problem };
  }
  const { health, membership, placement, overview } = report.answers;
  const own = overview?.nodes.find(({ nodeId }) => nodeId === overview.localNodeId);
  return {
    ...base,
    endpoint: member?.endpoint ?? placement.localEndpoint,
    role: member?.role ?? membership.localRole,
    state: health.ready ? "ready" : "not-ready",
    reason: health.ready ? null : (health.details?.reason ?? reasonOf(own)),
    version: health.details?.version ?? own?.version ?? null,
    uptimeMs: health.details?.uptimeMs ?? own?.uptimeMs ?? null,
    membershipVersion: membership.membershipVersion,
    hostedPartitions: placement.hostedPartitionCount,
  };
}

interface Pairing {
  readonly nodes: NodeFacts[];
  /** The node of each endpoint that was asked or that a node calls its own. */
  readonly byUrl: ReadonlyMap<string, NodeFacts>;
  /** Endpoints that do not answer, of members that are in `nodes` without an endpoint. */
  readonly strays: readonly NodeReport[];
}

/**
 * Joins roster and reports. A node that did not answer cannot say which member it is: it is taken
 * for the only one left on its host, or for the only one left at all.
 */
function pair(members: readonly ClusterMember[], reports: readonly NodeReport[]): Pairing {
  const nodes: NodeFacts[] = [];
  const byUrl = new Map<string, NodeFacts>();
  const left = new Set(members);
  const open = new Set(reports);
  const join = (member: ClusterMember | null, report: NodeReport | null): void => {
    const node = nodeOf(member, report);
    nodes.push(node);
    if (member !== null) left.delete(member);
    if (report === null) return;
    open.delete(report);
    byUrl.set(report.url, node);
    const own = readEndpoint(report.answers?.routing.localEndpoint ?? "");
    if (own !== null) byUrl.set(own, node);
  };
  for (const report of reports.filter(isAnswered)) {
    const peer = report.answers.placement.localEndpoint;
    join(members.find((member) => member.endpoint === peer) ?? null, report);
  }
  for (const report of [...open]) {
    const isHere = (address: string): boolean => hostOf(address) === hostOf(report.url);
    const [candidate, second] = [...left].filter((member) => isHere(member.endpoint));
    const rivals = [...open].filter((other) => isHere(other.url));
    if (candidate !== undefined && second === undefined && rivals.length === 1) {
      join(candidate, report);
    }
  }
  const [member] = left;
  const [report] = open;
  if (left.size === 1 && open.size === 1 && member !== undefined && report !== undefined) {
    join(member, report);
  }
  // As many members as silent endpoints: none of them answers, nobody can say which is which.
  const isAllOut = [...open].every((one) => one.isUnreachable);
  if (left.size > 1 && left.size === open.size && isAllOut) {
    const silent = [...left].map((one) => ({
      ...nodeOf(one, null),
      state: "unreachable" as const,
    }));
    return { nodes: [...nodes, ...silent], byUrl, strays: [...open] };
  }
  for (const one of [...open]) join(null, one);
  for (const one of [...left]) join(one, null);
  return { nodes, byUrl, strays: [] };
}

interface Leaders {
  readonly ids: readonly number[];
  readonly withoutLeader: number[];
  readonly disputed: number[];
}

/** Counts the leaderships of each node, and finds partitions that nobody or two nodes lead. */
function countLeaders(answered: readonly Answered[], { byUrl }: Pairing): Leaders {
  const claims = new Map<number, { readonly own: NodeFacts[]; readonly told: string[] }>();
  for (const { answers, url } of answered) {
    const own = readEndpoint(answers.routing.localEndpoint);
    for (const { partitionId, endpoint } of answers.routing.leaders) {
      const claim = claims.get(partitionId) ?? { own: [], told: [] };
      claims.set(partitionId, claim);
      const leader = readEndpoint(endpoint);
      if (leader === null) continue;
      const node = byUrl.get(url);
      if (leader === own && node !== undefined) claim.own.push(node);
      else claim.told.push(leader);
    }
  }
  const withoutLeader: number[] = [];
  const disputed: number[] = [];
  for (const [id, { own, told }] of claims) {
    for (const node of own) node.leaderships += 1;
    if (own.length > 1) disputed.push(id);
    if (own.length > 0) continue;
    const url = mostFrequent(told);
    const node = url === null ? undefined : byUrl.get(url);
    // A node that was asked and does not claim it leads it no more.
    const isDenied = node !== undefined && node.membershipVersion !== null;
    if (url === null || isDenied) withoutLeader.push(id);
    else if (node !== undefined) node.leaderships += 1;
  }
  return { ids: [...claims.keys()], withoutLeader, disputed };
}

function mostFrequent(texts: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const [best] = [...counts].sort(([, one], [, other]) => other - one);
  return best?.[0] ?? null;
}

function replication(
  placement: Placement,
  nodes: readonly NodeFacts[],
): Pick<PartitionFacts, "underReplicated" | "withoutMajority" | "moving"> {
  const allVoters = nodes.filter((node) => node.role === "Voter" || node.role === "Leaving");
  const out = new Set(
    nodes.filter((node) => node.state === "unreachable").map((node) => node.endpoint),
  );
  const underReplicated: number[] = [];
  const withoutMajority: number[] = [];
  const moving: number[] = [];
  for (const partition of placement.partitions) {
    if (partition.state === "Removed") continue;
    const isFull = partition.replicas.length === 0;
    const voters = isFull
      ? allVoters.map((node) => node.endpoint ?? "")
      : partition.replicas.filter(({ role }) => role === "Voter").map(({ endpoint }) => endpoint);
    const wanted = isFull ? 0 : partition.effectiveReplicationFactor;
    const here = voters.filter((endpoint) => !out.has(endpoint)).length;
    if (here < wanted) underReplicated.push(partition.partitionId);
    if (voters.length < partition.replicas.length) moving.push(partition.partitionId);
    if (here * 2 <= voters.length) withoutMajority.push(partition.partitionId);
  }
  return { underReplicated, withoutMajority, moving };
}

function ascending(numbers: readonly number[]): number[] {
  return [...numbers].sort((one, other) => one - other);
}

function newest<T extends Answered>(reports: readonly T[], by: (report: T) => bigint): T {
  return reports.reduce((best, report) => (by(report) > by(best) ? report : best));
}

/** The facts of a cluster of which at least one node answered. */
export function clusterFacts(reports: readonly NodeReport[]): ClusterFacts {
  const answered = reports.filter(isAnswered);
  const roster = newest(answered, ({ answers }) => answers.membership.membershipVersion);
  const map = newest(answered, ({ answers }) => answers.routing.snapshotVersion);
  const { membership } = roster.answers;
  const { placement } = map.answers;
  const pairing = pair(membership.members, reports);
  const leaders = countLeaders(answered, pairing);
  const { nodes } = pairing;
  nodes.sort((one, other) => (one.nodeId ?? Infinity) - (other.nodeId ?? Infinity));
  const partitions: PartitionFacts = {
    total: leaders.ids.length,
    withoutLeader: ascending(leaders.withoutLeader),
    disputed: ascending(leaders.disputed),
    ...replication(placement, nodes),
  };
  const isInitialized = answered.some(({ answers }) => answers.membership.initialized);
  return {
    isInitialized,
    membershipVersion: membership.membershipVersion,
    replicationFactor: placement.replicationFactor,
    rebalancerEnabled: placement.rebalancerEnabled,
    voters: nodes.filter((node) => node.role === "Voter").length,
    nodes,
    partitions,
    unseen: unseenVoters(nodes),
    level: levelFacts(map.answers.overview),
    alarms: map.answers.overview?.alarms ?? [],
    problems: [
      ...(isInitialized ? [] : ["the cluster is not initialized"]),
      ...nodeProblems(nodes, membership.membershipVersion),
      ...pairing.strays.map(({ url, problem }) => silentProblem(url, problem)),
      ...partitionProblems(partitions),
    ],
  };
}

/** "partition 5", "partitions 1, 2, 3 and 20 more" */
export function partitionsText(numbers: readonly number[]): string {
  const shown = numbers.slice(0, NUMBERS_SHOWN).join(", ");
  const more = numbers.length - NUMBERS_SHOWN;
  const rest = more > 0 ? ` and ${more} more` : "";
  return `${numbers.length === 1 ? "partition" : "partitions"} ${shown}${rest}`;
}

function nodeName(node: NodeFacts): string {
  const place = node.clientEndpoint ?? node.endpoint ?? "";
  return node.nodeId === null ? `the node at ${place}` : `node ${node.nodeId} (${place})`;
}

/** An endpoint that does not answer, of nobody knows which member. */
function silentProblem(url: string, why: string): string {
  return `the node at ${url} cannot be reached: ${why}`;
}

/** `version`: the newest version of the roster that a node knows. */
function nodeProblems(nodes: readonly NodeFacts[], version: bigint): string[] {
  // One without an endpoint is told by the endpoint that is silent.
  const known = nodes.filter(
    (node) => node.state !== "unreachable" || node.clientEndpoint !== null,
  );
  return known.flatMap((node) => {
    const name = nodeName(node);
    const because = node.reason === null ? "" : `: ${node.reason}`;
    if (node.state === "unreachable") return [`${name} cannot be reached${because}`];
    if (node.state === "failed") return [`${name} could not say how it is${because}`];
    if (node.state === "not-ready") return [`${name} is not ready${because}`];
    const seen = node.membershipVersion;
    if (seen === null || seen === version) return [];
    return [`${name} knows membership version ${seen}, the newest is ${version}`];
  });
}

/** The voters that were not asked: one of them may be dead. */
function unseenVoters(nodes: readonly NodeFacts[]): string[] {
  return nodes
    .filter(({ state, role }) => state === "not-asked" && (role === "Voter" || role === "Leaving"))
    .map(nodeName);
}

function partitionProblems(facts: PartitionFacts): string[] {
  const sentences: readonly (readonly [string, readonly number[]])[] = [
    ["no leader", facts.withoutLeader],
    ["no majority of voters that can be reached", facts.withoutMajority],
    ["two nodes that say they lead", facts.disputed],
    ["fewer replicas than wanted that can be reached", facts.underReplicated],
  ];
  return sentences
    .filter(([, numbers]) => numbers.length > 0)
    .map(([what, numbers]) => {
      const verb = numbers.length === 1 ? "has" : "have";
      return `${partitionsText(numbers)} ${verb} ${what}`;
    });
}
