/**
 * Schemas of answers for the OpenAPI document: which members an answer holds and of which kind.
 *
 * Invariants: 1. Every member of an answer is always written, so every one is
 * required. 2. Schemas of administrative answers follow from their descriptions; the writers of the
 * data routes write exactly these members in this order, and the tests hold the two against each
 * other.
 */
import type { Member, Message } from "../../api/members.js";
import { present } from "../../base/assert.js";

export type Schema =
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
  | { readonly list: Schema }
  | { readonly object: Members; readonly orNull?: true };
export interface Members {
  readonly [name: string]: Schema;
}

export const ROUTE: Schema = {
  object: { partitionId: "int32", endpoint: "text", provenance: "int32", generation: "int64" },
  orNull: true,
};

export const SERVED = { servedFrom: "text-or-null", route: ROUTE } as const;

function memberSchema({ kind, nulls, choice, items }: Member): Schema {
  switch (kind) {
    case "bool":
      return "bool";
    case "text":
      return nulls === null ? "text" : "text-or-null";
    case "int32":
      return nulls === null ? "int32" : "int32-or-null";
    case "uint32":
    case "int64":
      return nulls === null ? "int64" : "int64-or-null";
    case "choice":
      return choice?.numberOn === "json" ? "int32" : "text";
    case "texts":
      return { list: "text" };
    case "list":
      return { list: schemaOf(present(items, "a list has items")) };
  }
}

/** The schema of a described answer. */
export function schemaOf({ members, bare }: Message): Schema {
  const object: Record<string, Schema> = {};
  for (const [name, member] of Object.entries(members)) object[name] = memberSchema(member);
  const [only] = Object.values(object);
  return bare ? present(only, "a bare message has its member") : { object };
}
