/**
 * Whether this node is ready, and why not (contract 5.1): facts of the groups in, one answer out.
 *
 * Pure. Invariants: 1. The reason is the first that applies, in the order of the contract. 2.
 * Nothing here waits or asks anybody.
 */
import type { MemberRole } from "../machine/commands/command.js";
import type { GroupHealth, HealthFacts, ReadyCheck } from "./requests/results.js";

export interface HealthInput {
  readonly fatalFault: string | null;
  readonly stopping: boolean;
  readonly initialized: boolean;
  /** This node's role in the member list; null when it is not listed. */
  readonly role: MemberRole | null;
  readonly groups: readonly GroupHealth[];
  /** Groups that the partition map places here and that are still to be made. */
  readonly comingGroups: number;
  readonly logFull: boolean;
  readonly storeFull: boolean;
  /** So little is free on a volume that no writes are taken. */
  readonly volumeShort: boolean;
  /** Groups whose apply waits until the store has taken what is in memory. */
  readonly heldGroups: number;
  /** Age of the oldest proposed entry that is not applied yet (ms). */
  readonly oldestEntryMs: number;
  /** Above this age the disk or the applier counts as stuck (P-017). */
  readonly stuckAfterMs: number;
}

const ROLE_NAMES = { voter: "Voter", learner: "Learner", leaving: "Leaving" } as const;

function isCaughtUp(group: GroupHealth): boolean {
  return group.leading ? group.serving : group.leaderNode !== 0 && group.caughtUp;
}

/** Groups that do not have yet what they are to have. */
function behind({ groups, comingGroups }: HealthInput): number {
  return groups.filter((group) => !isCaughtUp(group)).length + comingGroups;
}

function reasonOf(input: HealthInput): string | null {
  if (input.fatalFault !== null) return `fatal-fault: ${input.fatalFault}`;
  if (input.stopping) return "shutting-down";
  if (!input.initialized) return "not-initialized";
  if (input.role === null) return "not-a-member";
  if (input.role === "leaving") return "leaving";
  if (input.groups.some((group) => group.leaderNode === 0)) return "partitions-without-leader";
  if (behind(input) > 0) return "catching-up";
  return null;
}

export function healthFacts(input: HealthInput): HealthFacts {
  const reason = reasonOf(input);
  return {
    ready: reason === null,
    initialized: input.initialized,
    reason,
    localRole: input.role === null ? "None" : ROLE_NAMES[input.role],
    hostedPartitions: input.groups.length,
    partitionsWithoutLeader: input.groups.filter((group) => group.leaderNode === 0).length,
  };
}

/** Also of the pod that comes back with the claim of one that left. */
const NOT_LISTED = "not listed: it left or was removed; with an empty data directory it joins anew";

/** The single checks behind it, and those that do not make a node unready but an operator wants. */
export function readyChecks(input: HealthInput): readonly ReadyCheck[] {
  const leaderless = input.groups.filter((group) => group.leaderNode === 0).length;
  const missing = behind(input);
  const total = input.groups.length + input.comingGroups;
  const stuck = input.oldestEntryMs > input.stuckAfterMs;
  const age = `oldest unapplied entry: ${Math.round(input.oldestEntryMs)} ms`;
  const check = (name: string, ok: boolean, detail: string): ReadyCheck => ({ name, ok, detail });
  return [
    check("fatal-fault", input.fatalFault === null, input.fatalFault ?? "none"),
    check("accepting", !input.stopping, input.stopping ? "shutting down" : "yes"),
    check("initialized", input.initialized, input.initialized ? "yes" : "no roster yet"),
    check("member", input.role !== null && input.role !== "leaving", input.role ?? NOT_LISTED),
    check("leaders", leaderless === 0, `${leaderless} of ${input.groups.length} without leader`),
    check("caught-up", missing === 0, `${missing} of ${total} behind`),
    check("log-space", !input.logFull, input.logFull ? "full: writes are refused" : "available"),
    check("store-space", !input.storeFull, input.storeFull ? "full: writes refused" : "available"),
    check(
      "volume-space",
      !input.volumeShort,
      input.volumeShort ? "too little is free: writes are refused" : "available",
    ),
    check("apply-room", input.heldGroups === 0, `${input.heldGroups} groups wait for the store`),
    check("progress", !stuck, age),
  ];
}
