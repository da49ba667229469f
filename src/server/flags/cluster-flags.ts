/**
 * The flags that say which cluster a node belongs to: the list of first members and the seeds to
 * join through.
 *
 * Invariants: 1. A list is read whole or refused, naming what is wrong with it. 2. The same list in
 * any order and case gives the same cluster id.
 */
import { createHash } from "node:crypto";
import { NODE_ID_MAX, VOTERS_MAX } from "../../base/limits.js";
import { failure, ok, type Result } from "../../base/result.js";
import type { PeerAddress } from "../../ports.js";

/** `host:port` or `[address]:port`, as a pattern without anchors. */
const ENDPOINT = String.raw`(?:\[[0-9a-fA-F:.]+\]|[^\s,=:[\]]+):\d{1,5}`;
const MEMBER_PATTERN = new RegExp(`^(\\d{1,5})=(${ENDPOINT})$`);
const ENDPOINT_PATTERN = new RegExp(`^${ENDPOINT}$`);
const SEEDS_MAX = 64;

function portOf(endpoint: string): number {
  return Number(endpoint.slice(endpoint.lastIndexOf(":") + 1));
}

export function isEndpoint(text: string): boolean {
  return ENDPOINT_PATTERN.test(text) && portOf(text) <= 65_535;
}

/** Members of `id=host:port,…`, by ascending id; an empty text has none. */
export function parseMembers(text: string): Result<readonly PeerAddress[], "usage"> {
  const members: PeerAddress[] = [];
  if (text.trim() === "") return ok(members);
  for (const part of text.split(",")) {
    const match = MEMBER_PATTERN.exec(part.trim());
    const nodeId = Number(match?.[1]);
    const endpoint = match?.[2] ?? "";
    if (match === null || !isEndpoint(endpoint)) {
      return failure("usage", `--initial-cluster: "${part}" is not of the form id=host:port`);
    }
    if (nodeId < 1 || nodeId > NODE_ID_MAX) {
      return failure("usage", `--initial-cluster: node id ${nodeId} is not 1 to ${NODE_ID_MAX}`);
    }
    for (const other of members) {
      if (other.nodeId === nodeId || other.endpoint.toLowerCase() === endpoint.toLowerCase()) {
        const both = `${other.nodeId}=${other.endpoint} and ${nodeId}=${endpoint}`;
        return failure("usage", `--initial-cluster: ${both} name one node twice`);
      }
    }
    members.push({ nodeId, endpoint });
  }
  if (members.length > VOTERS_MAX) {
    const advice = `a cluster has at most ${VOTERS_MAX} voters; let the others --join`;
    return failure("usage", `--initial-cluster lists ${members.length} members: ${advice}`);
  }
  return ok(members.sort((a, b) => a.nodeId - b.nodeId));
}

/** Endpoints of `host:port,…`; an empty text has none. */
export function parseSeeds(text: string): Result<readonly string[], "usage"> {
  if (text.trim() === "") return ok([]);
  const seeds = text.split(",").map((part) => part.trim());
  const wrong = seeds.find((seed) => !isEndpoint(seed) || portOf(seed) === 0);
  if (wrong !== undefined) {
    return failure("usage", `--join: "${wrong}" is not of the form host:port`);
  }
  return seeds.length <= SEEDS_MAX
    ? ok(seeds)
    : failure("usage", `--join lists ${seeds.length} nodes; name at most ${SEEDS_MAX}`);
}

/**
 * The id of the cluster that `members` found together, with so many data partitions: the same on
 * each of them, and another one where a flag differs, so that they refuse each other (P-165).
 */
export function clusterIdOf(members: readonly PeerAddress[], partitions: number): string {
  const lines = [...members]
    .sort((a, b) => a.nodeId - b.nodeId)
    .map(({ nodeId, endpoint }) => `${nodeId}=${endpoint.toLowerCase()}`);
  return createHash("sha256")
    .update(`${partitions} ${lines.join(",")}`)
    .digest("hex")
    .slice(0, 32);
}

/** What is wrong with a member list beside its form; null when it fits this node. */
export function membershipMistake(
  members: readonly PeerAddress[],
  nodeId: number,
  advertised: string | null,
  peerPort: number,
): string | null {
  if (members.length === 0) return null;
  const own = members.find((member) => member.nodeId === nodeId);
  // Who is not listed joins the cluster that these founded.
  if (own === undefined) return null;
  if (advertised !== null) {
    return advertised.toLowerCase() === own.endpoint.toLowerCase()
      ? null
      : `--initial-cluster lists this node as ${own.endpoint}, but --advertised-peer-endpoint is ${advertised}: they must be the same`;
  }
  return portOf(own.endpoint) === peerPort
    ? null
    : `--initial-cluster lists this node at ${own.endpoint}, but --peer-port is ${peerPort}: give --peer-port ${portOf(own.endpoint)}, or --advertised-peer-endpoint ${own.endpoint} if something in between translates ports`;
}
