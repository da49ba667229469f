/**
 * The state of a cluster as lines for people and as a document.
 *
 * Pure. Invariants: 1. Without colours nothing is lost: what is red is also a word.
 * 2. Only whole words that this file wrote are coloured, after the text was made safe.
 */
import { tableLines, type JsonValue } from "../terminal/format.js";
import {
  isHealthy,
  partitionsText,
  type ClusterFacts,
  type NodeFacts,
  type NodeState,
} from "./status-facts.js";
import { levelText } from "./status-level.js";

const STATE_WORDS: Readonly<Record<NodeState, string>> = {
  ready: "ready",
  "not-ready": "NOT READY",
  unreachable: "UNREACHABLE",
  failed: "FAILED",
  "not-asked": "not asked",
};

const HEADER = [
  "State",
  "Node",
  "Role",
  "Leads",
  "Hosts",
  "Peer endpoint",
  "Client endpoint",
  "Version",
  "Uptime",
];

const UNITS: readonly (readonly [string, bigint])[] = [
  ["d", 86_400n],
  ["h", 3600n],
  ["m", 60n],
  ["s", 1n],
];

/** The two largest units: "3d 4h", "12m 5s", "0s". */
export function uptimeText(milliseconds: bigint): string {
  let left = milliseconds / 1000n;
  const parts: string[] = [];
  for (const [name, seconds] of UNITS) {
    const count = left / seconds;
    left %= seconds;
    if (count === 0n && parts.length === 0 && name !== "s") continue;
    parts.push(`${count}${name}`);
  }
  return parts.slice(0, 2).join(" ");
}

function row(node: NodeFacts): string[] {
  const isSeen = node.membershipVersion !== null;
  return [
    STATE_WORDS[node.state],
    node.nodeId === null ? "-" : String(node.nodeId),
    node.role ?? "-",
    isSeen || node.leaderships > 0 ? String(node.leaderships) : "-",
    node.hostedPartitions === null ? "-" : String(node.hostedPartitions),
    node.endpoint ?? "-",
    node.clientEndpoint ?? "-",
    node.version ?? "-",
    node.uptimeMs === null ? "-" : uptimeText(node.uptimeMs),
  ];
}

/** "2 ready, 1 unreachable" */
function stateCounts(nodes: readonly NodeFacts[]): string {
  const states: readonly NodeState[] = ["ready", "not-ready", "unreachable", "failed", "not-asked"];
  return states
    .map((state) => [state, nodes.filter((node) => node.state === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${STATE_WORDS[state].toLowerCase()}`)
    .join(", ");
}

function replicationText(facts: ClusterFacts): string {
  const { replicationFactor, voters, rebalancerEnabled } = facts;
  const kind =
    replicationFactor === 0
      ? `full, every partition on ${voters === 1 ? "the one voter" : `all ${voters} voters`}`
      : `${replicationFactor} replicas of each partition`;
  return `${kind}; rebalancer ${rebalancerEnabled ? "enabled" : "disabled"}`;
}

/** The view; `columns`: width of the terminal, null = none. */
export function statusLines(facts: ClusterFacts, columns: number | null): string[] {
  const { nodes, partitions, problems } = facts;
  const { unseen } = facts;
  const verdict = problems.length > 0 ? "DEGRADED" : isHealthy(facts) ? "healthy" : "UNCLEAR";
  const led = partitions.total - partitions.withoutLeader.length;
  const lines = [
    `${verdict}: ${nodes.length} node(s), ${stateCounts(nodes)}; ` +
      `membership version ${facts.membershipVersion}`,
    ...problems.map((problem) => `! ${problem}`),
    "",
    ...tableLines(HEADER, nodes.map(row), columns),
    "",
    `Partitions: ${led} of ${partitions.total} have a leader`,
    `Replication: ${replicationText(facts)}`,
  ];
  const level = levelText(facts.level);
  if (level !== null) lines.push(level);
  if (partitions.moving.length > 0) {
    lines.push(`Moves: replicas of ${partitionsText(partitions.moving)} come or go`);
  }
  if (facts.alarms.length > 0) {
    lines.push("", "What the nodes tell each other:", ...facts.alarms.map((text) => `- ${text}`));
  }
  if (unseen.length > 0) {
    lines.push(
      `Nobody knows whether ${unseen.join(", ")} live: name their client endpoints with -c.`,
    );
  }
  return lines;
}

const RED = "\x1b[31m";
const GREEN = "\x1b[32m";
const YELLOW = "\x1b[33m";
const PLAIN = "\x1b[0m";

const COLOURS: readonly (readonly [RegExp, string])[] = [
  [/^(?:State: +)?ready(?= |$)/, GREEN],
  [/^healthy(?=:)/, GREEN],
  [/^UNCLEAR(?=:)/, YELLOW],
  [/^DEGRADED(?=:)/, RED],
  [/^(?:State: +)?(?:UNREACHABLE|FAILED)(?= |$)/, RED],
  [/^(?:State: +)?(?:NOT READY|not asked)(?= |$)/, YELLOW],
  [/^! .*/, RED],
];

/** One line of the view with colours. */
export function paintStatus(line: string): string {
  for (const [pattern, colour] of COLOURS) {
    if (pattern.test(line)) return line.replace(pattern, (word) => colour + word + PLAIN);
  }
  return line;
}

export function statusDocument(facts: ClusterFacts): JsonValue {
  return {
    healthy: isHealthy(facts),
    unseen: facts.unseen,
    problems: facts.problems,
    alarms: facts.alarms,
    initialized: facts.isInitialized,
    membershipVersion: facts.membershipVersion,
    replicationFactor: facts.replicationFactor,
    rebalancerEnabled: facts.rebalancerEnabled,
    level: { ...facts.level },
    nodes: facts.nodes.map((node) => ({
      nodeId: node.nodeId,
      endpoint: node.endpoint,
      clientEndpoint: node.clientEndpoint,
      role: node.role,
      state: node.state,
      reason: node.reason,
      leaderships: node.leaderships,
      hostedPartitions: node.hostedPartitions,
      membershipVersion: node.membershipVersion,
      version: node.version,
      uptimeMs: node.uptimeMs,
    })),
    partitions: { ...facts.partitions },
  };
}
