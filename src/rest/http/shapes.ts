/**
 * Shapes of answers for the OpenAPI document: which members an answer holds and of which kind.
 *
 * Types and constants only. Invariants: 1. Every member of an answer is always written, so every
 * one is required. 2. The writers of the routes write exactly these members in this order; the
 * tests hold the two against each other.
 */

export type Shape =
  | "text"
  | "text-or-null"
  | "bool"
  | "int32"
  | "int32-or-null"
  | "int64"
  | "int64-or-null"
  | "base64-or-null"
  | "text-or-int32"
  | "stamp"
  | { readonly list: Shape }
  | { readonly object: Members; readonly orNull?: true };
export interface Members {
  readonly [name: string]: Shape;
}

export const ROUTE: Shape = {
  object: { partitionId: "int32", endpoint: "text", provenance: "int32", generation: "int64" },
  orNull: true,
};

export const SERVED = { servedFrom: "text-or-null", route: ROUTE } as const;
