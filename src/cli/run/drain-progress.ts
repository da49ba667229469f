/**
 * Says while a leave drains how many replicas the node still has, to whoever waits at a terminal.
 *
 * Invariant: it tells and ends as meanwhile.ts says.
 */
import type { Membership, Placement, SvcClient } from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";
import { tellMeanwhile, type Looking } from "../terminal/meanwhile.js";

/** Replicas that the records still list on the node at `endpoint`. */
export function replicasOn({ partitions }: Placement, endpoint: string): number {
  let count = 0;
  for (const { replicas } of partitions) {
    for (const replica of replicas) if (replica.endpoint === endpoint) count++;
  }
  return count;
}

/** The peer endpoint of who leaves: the answering node, or that member; null = none is listed. */
export function leaverAt(
  placement: Placement,
  membership: Membership,
  member: number | null,
): string | null {
  if (member === null) return placement.localEndpoint;
  return membership.members.find(({ nodeId }) => nodeId === member)?.endpoint ?? null;
}

export function drainText(left: number): string {
  if (left === 0) return "waiting for the removal from the member list";
  return `draining: ${left} ${left === 1 ? "replica" : "replicas"} left`;
}

async function look(client: SvcClient, member: number | null, calling: Looking): Promise<string> {
  const placement = await client.cluster.placement(calling);
  const membership = await client.cluster.membership(calling);
  const endpoint = leaverAt(placement, membership, member);
  return drainText(endpoint === null ? 0 : replicasOn(placement, endpoint));
}

/** Carries `leave` out, and tells meanwhile how far it is. */
export function whileDraining<Value>(
  context: Pick<RunContext, "show">,
  client: SvcClient,
  member: number | null,
  leave: () => Promise<Value>,
): Promise<Value> {
  return tellMeanwhile(context, (calling) => look(client, member, calling), leave);
}
