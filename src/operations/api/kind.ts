/**
 * What is told of a kind of data requests beside the type of its requests.
 *
 * Types only.
 */
import type { KindMembers, Kinded } from "../../base/shape.js";
import type { DataAnswer } from "./answers.js";

/**
 * What the requests of a kind are about: one lock, one sequence, one key, one bucket, each in one
 * partition; or several keys ("many"), or partitions whichever they are, of keys ("scan") or of
 * locks ("list").
 */
export type Family = "lock" | "sequence" | "key" | "bucket" | "many" | "scan" | "list";

export interface KindRow {
  /** Stands for the kind between nodes: 1 to 99. */
  readonly wire: number;
  readonly family: Family;
  /** Kind of its answers. */
  readonly answer: DataAnswer["kind"];
  /** It changes nothing, however often it is carried out. */
  readonly reads: boolean;
  /** Labels in `svc_requests_total`. */
  readonly api: "locks" | "sequences" | "kv";
  readonly operation: string;
}

/** The rows of some kinds, each with the shapes of its members as they go between nodes. */
export type KindRows<Requests extends Kinded> = {
  readonly [Kind in Requests["kind"]]: KindRow & { readonly members: KindMembers<Requests>[Kind] };
};
