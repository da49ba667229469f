/**
 * What is wrong with a cluster, in sentences.
 *
 * Owns nothing; pure. Invariants: 1. A sentence names the node or the partitions that it is about.
 */
import type { NodeFacts, PartitionFacts } from "./status-facts.js";

const NUMBERS_SHOWN = 12;

/** "partition 5", "partitions 1, 2, 3 and 20 more" */
function partitionsText(numbers: readonly number[]): string {
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
export function silentProblem(url: string, why: string): string {
  return `the node at ${url} cannot be reached: ${why}`;
}

/** `version`: the newest version of the roster that a node knows. */
export function nodeProblems(nodes: readonly NodeFacts[], version: bigint): string[] {
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
export function unseenVoters(nodes: readonly NodeFacts[]): string[] {
  return nodes
    .filter(({ state, role }) => state === "not-asked" && (role === "Voter" || role === "Leaving"))
    .map(nodeName);
}

export function partitionProblems(facts: PartitionFacts): string[] {
  const sentences: readonly (readonly [string, readonly number[]])[] = [
    ["no leader", facts.withoutLeader],
    ["no majority of voters that can be reached", facts.withoutMajority],
    ["two nodes that say they lead", facts.disputed],
    ["fewer replicas than wanted", facts.underReplicated],
  ];
  return sentences
    .filter(([, numbers]) => numbers.length > 0)
    .map(([what, numbers]) => {
      const verb = numbers.length === 1 ? "has" : "have";
      return `${partitionsText(numbers)} ${verb} ${what}`;
    });
}
