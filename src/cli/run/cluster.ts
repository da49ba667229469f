/** Membership and placement, carried out. */
import type { LeaveResult, PartitionPlacement, Placement } from "../../client/mod.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { whileDraining } from "./drain-progress.js";
import { tableLines } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";

async function members(_values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const answer = await client.cluster.membership(context.calling());
  const rows = answer.members.map((member) => [
    member.endpoint,
    String(member.nodeId),
    member.role,
    String(member.joinedVersion),
  ]);
  const lines = [
    `Membership version ${answer.membershipVersion}  Local role ${answer.localRole}  ` +
      `Initialized ${answer.initialized}`,
    "",
    ...tableLines(["Endpoint", "Node ID", "Role", "Joined Version"], rows, context.columns),
  ];
  return outcome(true, lines, answer);
}

function leaveLines(who: string, isOther: boolean, answer: LeaveResult): string[] {
  const lines = [
    `${who}  Outcome ${answer.outcome}  Membership version ${answer.membershipVersion}`,
    answer.reason,
    answer.drained
      ? "Its replicas were evacuated to other nodes."
      : "Its replicas were not evacuated.",
  ];
  if (answer.left && !isOther) lines.push("The process may now be stopped.");
  if (answer.retryable) {
    lines.push(
      answer.outcome === "DrainTimedOut"
        ? "The node stays a member. Try again later, or raise --raft-decommission-drain-timeout."
        : "The command can be repeated.",
    );
  }
  return lines.filter((line) => line !== "");
}

/** The node that is asked leaves, or a member that is gone is removed by whoever is asked. */
async function leave(values: OptionValues, context: RunContext): Promise<Outcome> {
  const member = values.number("--member");
  const endpoint = context.endpoints[0] as string;
  const client = await (member === null ? context.clientOf(endpoint) : context.client());
  const answer = await whileDraining(context, client, member, () =>
    member === null
      ? client.cluster.leave(context.calling())
      : client.cluster.removeMember(member, context.calling()),
  );
  const who = member === null ? `Node ${endpoint}` : `Member ${member}`;
  return outcome(answer.left, leaveLines(who, member !== null, answer), answer);
}

async function finalize(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const answer = await client.cluster.finalize(values.number("--level") ?? 0, context.calling());
  const { success, status, level, reason, blockers } = answer;
  const done = status === "Finalized" ? "Finalized" : "Already finalized";
  const line = success ? `${done}: level ${level}.` : `Refused: status ${status} — ${reason}`;
  if (blockers.length === 0) return outcome(success, [line], answer);
  const rows = blockers.map(({ nodeId, endpoint, version, levelMin, levelMax }) => {
    const levels = levelMin === levelMax ? `${levelMin}` : `${levelMin} to ${levelMax}`;
    return [String(nodeId), endpoint, version === "" ? "unknown" : version, levels];
  });
  const titles = ["Node ID", "Endpoint", "Version", "Levels"];
  return outcome(success, [line, "", ...tableLines(titles, rows, context.columns)], answer);
}

function partitionRow(partition: PartitionPlacement): string[] {
  const replicas = partition.replicas.map(({ endpoint, role }) => `${endpoint} (${role})`);
  return [
    String(partition.partitionId),
    partition.state,
    String(partition.generation),
    String(partition.effectiveReplicationFactor),
    partition.hostedLocally ? "yes" : "no",
    replicas.length === 0 ? unlistedText(partition) : replicas.join(", "),
  ];
}

function unlistedText({ state }: PartitionPlacement): string {
  return state === "Removed" ? "none" : "all voters (full replication)";
}

/** How many replicas each node has; nothing where every voter has all. */
function nodeLines({ partitions }: Placement, columns: number | null): string[] {
  const roles = ["Voter", "Learner", "Removing"] as const;
  const counts = new Map<string, Map<string, number>>();
  for (const { replicas } of partitions) {
    for (const { endpoint, role } of replicas) {
      const byRole = counts.get(endpoint) ?? new Map<string, number>();
      byRole.set(role, (byRole.get(role) ?? 0) + 1);
      counts.set(endpoint, byRole);
    }
  }
  if (counts.size === 0) return [];
  const rows = [...counts].map(([endpoint, byRole]) => {
    const numbers = roles.map((role) => byRole.get(role) ?? 0);
    const total = numbers.reduce((sum, count) => sum + count, 0);
    return [endpoint === "" ? "(removed)" : endpoint, String(total), ...numbers.map(String)];
  });
  rows.sort(([one = ""], [other = ""]) => (one < other ? -1 : 1));
  const titles = ["Node", "Replicas", "Voters", "Learners", "Removing"];
  return ["", ...tableLines(titles, rows, columns)];
}

function placementLines(answer: Placement, columns: number | null): string[] {
  const kind = answer.replicationFactor === 0 ? "full replication" : "per-partition placement";
  return [
    `Replication factor ${answer.replicationFactor} (${kind})  ` +
      `Rebalancer ${answer.rebalancerEnabled ? "enabled" : "disabled"}  ` +
      `Node ${answer.localEndpoint} hosts ${answer.hostedPartitionCount} of ` +
      `${answer.partitions.length} partitions`,
    "",
    ...tableLines(
      ["Partition", "State", "Generation", "Effective RF", "Hosted here", "Replicas"],
      answer.partitions.map(partitionRow),
      columns,
    ),
    ...nodeLines(answer, columns),
  ];
}

async function placement(_values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const answer = await client.cluster.placement(context.calling());
  return outcome(true, placementLines(answer, context.columns), answer);
}

/** Only the leader of the meta partition accepts: endpoints are asked until one does. */
async function setFactor(values: OptionValues, context: RunContext): Promise<Outcome> {
  const factor = values.requiredNumber("--set-replication-factor");
  const partition = values.requiredNumber("--partition");
  const answer = await firstAccepted(context, async (endpoint, among) => {
    const client = await context.clientOf(endpoint);
    return client.cluster.setReplicationFactor(partition, factor, context.calling(among));
  });
  const cleared = factor === 0 ? " (cleared; inherits the global factor)" : "";
  const line = answer.success
    ? `Committed: partition ${partition} replication factor override set to ${factor}${cleared} ` +
      `(generation ${answer.generation}).`
    : `Refused: status ${answer.status} — ${answer.reason}`;
  return outcome(answer.success, [line], answer);
}

/** Asks endpoint after endpoint while the answer is "Refused" or a node cannot be reached. */
async function firstAccepted<T extends { readonly status: string }>(
  context: RunContext,
  ask: (endpoint: string, among: number) => Promise<T>,
): Promise<T> {
  let refusal: T | null = null;
  let failure: unknown = null;
  for (const [at, endpoint] of context.endpoints.entries()) {
    try {
      const answer = await ask(endpoint, context.endpoints.length - at);
      if (answer.status !== "Refused") return answer;
      refusal = answer;
    } catch (error) {
      failure = error;
    }
  }
  if (refusal !== null) return refusal;
  throw failure;
}

export const CLUSTER_RUN: RunTable = {
  "--cluster-members": members,
  "--cluster-leave": leave,
  "--cluster-finalize": finalize,
  "--cluster-placement": placement,
  "--set-replication-factor": setFactor,
};
