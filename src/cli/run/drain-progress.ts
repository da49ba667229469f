/**
 * Says while a leave drains how many replicas the node still has, to whoever waits at a terminal.
 *
 * Invariants: 1. Nothing is asked where nobody sees it. 2. What cannot be told leaves the last
 * words as they are: the leave itself says how it ends. 3. It ends with the leave, and never
 * outlives it.
 */
import type { Membership, Placement, SvcClient } from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";

/** Pause between two looks (ms), and the bound of each. */
const STEP_MS = 1000;
const LOOK_MS = 3000;

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

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, STEP_MS);
    signal.addEventListener("abort", end, { once: true });
  });
}

async function look(
  client: SvcClient,
  member: number | null,
  signal: AbortSignal,
): Promise<string> {
  const calling = { signal, deadlineMs: LOOK_MS };
  const placement = await client.cluster.placement(calling);
  const membership = await client.cluster.membership(calling);
  const endpoint = leaverAt(placement, membership, member);
  return drainText(endpoint === null ? 0 : replicasOn(placement, endpoint));
}

/** Carries `leave` out, and tells meanwhile how far it is. */
export async function whileDraining<Value>(
  context: Pick<RunContext, "show">,
  client: SvcClient,
  member: number | null,
  leave: () => Promise<Value>,
): Promise<Value> {
  const { show } = context;
  if (show === null) return leave();
  const over = new AbortController();
  const tell = async (): Promise<void> => {
    for (;;) {
      await pause(over.signal);
      if (over.signal.aborted) return;
      const text = await look(client, member, over.signal).catch(() => null);
      if (text !== null) show(text);
    }
  };
  const telling = tell();
  try {
    return await leave();
  } finally {
    over.abort();
    await telling;
  }
}
