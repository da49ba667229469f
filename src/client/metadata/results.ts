/**
 * What the client itself reads of a cluster: health and routing metadata. Member names and texts
 * are those of the REST interface; the members are described in `api/`.
 *
 * Types only. Invariants: 1. 64-bit numbers are bigint.
 */
import type { HEALTH, ROUTING, ROUTING_KEY_SPACE, ROUTING_RANGE } from "../../api/cluster.js";
import type { ReadOf } from "../../api/members.js";

/** Readiness of the node that answered. */
export interface Health {
  readonly ready: boolean;
  /** The full body of the health path; null over gRPC, whose health service has none. */
  readonly details: HealthDetails | null;
}
export type HealthDetails = ReadOf<typeof HEALTH>;

export type RoutingRange = ReadOf<typeof ROUTING_RANGE>;
export type RoutingKeySpace = ReadOf<typeof ROUTING_KEY_SPACE>;
export type RoutingMetadata = ReadOf<typeof ROUTING>;

/**
 * What there is to find out what is wrong with the answering node: data that a program keeps or
 * shows, member by member; null is what could not be had, with its reason in `missing`. Numbers
 * beyond 15 digits are bigint.
 */
export type NodeDebug = Readonly<Record<string, unknown>>;
