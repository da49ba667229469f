/**
 * The administrative calls as this floor takes them, and the names of their answers. What each
 * holds is described in `api/`.
 *
 * Types only.
 */
import type { AnswerNamed, CallName, EndNamed, RequestNamed } from "../../api/calls.js";
import type { HEALTH, ROUTING_KEY_SPACE } from "../../api/cluster.js";
import type { GivenOf } from "../../api/members.js";
import type { RequestContext } from "./context.js";

/**
 * Every administrative call by its name. `done` is called exactly once, within the context's
 * deadline, and never in the turn of the call; calls that are answered from what this node has
 * applied (membership, placement, routing, the list of ranges) are answered at once.
 */
export type Administration = {
  readonly [N in CallName]: (
    request: RequestNamed<N>,
    context: RequestContext,
    done: (end: EndNamed<N>) => void,
  ) => void;
};

export type HealthAnswer = GivenOf<typeof HEALTH>;
export type LocalRole = HealthAnswer["localRole"];
export type MembershipAnswer = AnswerNamed<"cluster.membership">;
export type LeaveAnswer = AnswerNamed<"cluster.leave">;
export type PlacementAnswer = AnswerNamed<"cluster.placement">;
export type OverviewAnswer = AnswerNamed<"cluster.overview">;
export type ReplicationFactorAnswer = AnswerNamed<"cluster.setReplicationFactor">;
export type RoutingAnswer = AnswerNamed<"cluster.routing">;
export type KeySpaceView = GivenOf<typeof ROUTING_KEY_SPACE>;
export type RangesAnswer = AnswerNamed<"ranges.list">;
export type RegisterRangeAnswer = AnswerNamed<"ranges.register">;
export type SplitRangeAnswer = AnswerNamed<"ranges.split">;
export type MergeRangesAnswer = AnswerNamed<"ranges.merge">;
export type { BackupOutcome, BackupRefusal } from "../../api/backups.js";

/** A check of readiness. */
export interface HealthCheck {
  readonly name: "initialized" | "membership" | "leaders" | "applied" | "storage" | "shutdown";
  readonly failure: string | null;
  /** What an operator wants to know although the check is passed. */
  readonly detail?: string;
}
