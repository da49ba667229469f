/**
 * The OpenAPI 3.1 document, made from the routes: what it says is what the decoder accepts and the
 * writers write.
 *
 * Invariants: 1. Nothing is described here that is not in a route's tables. 2. The document is made
 * once per server.
 */
import { Kind, type Member, type MemberTable } from "../json/members.js";
import { PROBLEM_TITLES } from "./problems.js";
import type { Route } from "./route.js";
import type { Schema } from "./schemas.js";
import { EVENT_STREAM_TYPE } from "./exchange.js";

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };
type JsonObject = { readonly [name: string]: Json };

const INT32_LIMITS = { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };

function strict(properties: JsonObject, required: readonly string[]): JsonObject {
  return { type: "object", properties, required, additionalProperties: false };
}

const STAMP: JsonObject = {
  type: "object",
  description: "hybrid timestamp: node, Unix milliseconds, counter; all zero = none",
  properties: {
    n: { type: "integer", format: "int32" },
    l: { type: "integer", format: "int64" },
    c: { type: "integer", format: "uint32" },
  },
  required: ["n", "l", "c"],
};

function schemaJson(schema: Schema): JsonObject {
  if (typeof schema === "object") {
    if ("list" in schema) return { type: "array", items: schemaJson(schema.list) };
    const properties: Record<string, Json> = {};
    for (const [name, member] of Object.entries(schema.object))
      properties[name] = schemaJson(member);
    const type: Json = schema.orNull === true ? ["object", "null"] : "object";
    return { type, properties, required: Object.keys(properties) };
  }
  switch (schema) {
    case "text":
      return { type: "string" };
    case "text-or-null":
      return { type: ["string", "null"] };
    case "bool":
      return { type: "boolean" };
    case "int32":
    case "int64":
      return { type: "integer", format: schema };
    case "int32-or-null":
      return { type: ["integer", "null"], format: "int32" };
    case "int64-or-null":
      return { type: ["integer", "null"], format: "int64" };
    case "base64-or-null":
      return { type: ["string", "null"], contentEncoding: "base64" };
    case "text-or-int32":
      return { type: ["string", "integer"] };
    case "stamp":
      return { $ref: "#/components/schemas/Timestamp" };
  }
}

function memberSchema(member: Member<unknown>): JsonObject {
  const description = member.note;
  const digits = { type: "string", pattern: "^-?[0-9]+$" };
  switch (member.kind) {
    case Kind.text:
    case Kind.owner:
    case Kind.emptyText:
      return { type: ["string", "null"], description };
    case Kind.uint64:
    case Kind.int64:
    case Kind.emptyInteger: {
      const number = { type: ["integer", "null"], format: "int64" };
      return { anyOf: [number, digits], description };
    }
    case Kind.int32:
    case Kind.emptyPolicy:
      return { type: ["integer", "null"], format: "int32", ...INT32_LIMITS, description };
    case Kind.bool:
      return { type: ["boolean", "null"], description };
    case Kind.base64:
      return { type: ["string", "null"], contentEncoding: "base64", description };
    case Kind.durability:
      return { enum: [0, 1, "Ephemeral", "Persistent", null], description };
    case Kind.texts:
      return { type: ["array", "null"], items: { type: "string" }, description };
    case Kind.items: {
      const source = member.items;
      const items = source === null ? {} : tableSchema(source.table);
      return { type: ["array", "null"], items, description };
    }
    default:
      return { anyOf: [{ $ref: "#/components/schemas/Timestamp" }, { type: "null" }], description };
  }
}

function tableSchema(table: MemberTable): JsonObject {
  const properties: Record<string, Json> = {};
  for (const member of table.members) properties[member.name] = memberSchema(member);
  return strict(properties, []);
}

function parameters(route: Route): Json[] {
  const list: Json[] = route.query.map((parameter) => ({
    name: parameter.name,
    in: "query",
    required: false,
    description: parameter.note,
    ...(parameter.kind === "flag" ? { allowEmptyValue: true } : {}),
    schema: { type: parameter.kind === "bool" ? "boolean" : "string" },
  }));
  for (const match of route.path.matchAll(/\{([a-z]+)\}/gi)) {
    list.push({ name: match[1] as string, in: "path", required: true, schema: { type: "string" } });
  }
  return list;
}

/** Statuses that any route of its sort can give, beyond its own. */
function commonStatuses(route: Route): number[] {
  const statuses: number[] = [...route.statuses, 500];
  if (route.access !== "nobody") statuses.push(401, 403, 421);
  if (route.method === "POST") statuses.push(400, 408, 413, 415);
  if (route.kind !== null) statuses.push(503);
  return [...new Set(statuses)].sort((a, b) => a - b);
}

function responses(route: Route): JsonObject {
  const content: JsonObject =
    route.answer === null
      ? {
          [route.lasts === true ? EVENT_STREAM_TYPE : "text/plain"]: { schema: { type: "string" } },
        }
      : { "application/json": { schema: schemaJson(route.answer) } };
  const map: Record<string, Json> = { "200": { description: "the answer", content } };
  for (const status of commonStatuses(route)) {
    const own = status === 503 && route.access === "nobody";
    map[String(status)] = own
      ? { description: "the same body, when the answer is no", content }
      : { $ref: "#/components/responses/Problem" };
  }
  return map;
}

function operation(route: Route): JsonObject {
  const words = `${route.method.toLowerCase()}${route.path}`
    .split(/[^A-Za-z0-9.]+/)
    .filter(Boolean);
  const body: JsonObject =
    route.method === "GET"
      ? {}
      : {
          requestBody: {
            required: route.body !== null,
            content: {
              "application/json": {
                schema: route.body === null ? strict({}, []) : tableSchema(route.body),
              },
            },
          },
        };
  return {
    operationId: words.join("-"),
    summary: route.summary,
    tags: [route.tag],
    parameters: parameters(route),
    ...body,
    responses: responses(route),
    security: route.access === "nobody" ? [] : [{ bearer: [] }],
    "x-svc-role": route.access,
  };
}

/** The document as JSON text. */
export function openApiText(routes: readonly Route[], version: string): string {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  const problem = {
    type: "object",
    description: "RFC 9457; members of the endpoint's own answer are added and win a name clash",
    properties: {
      type: { type: ["string", "integer"] },
      title: { type: "string" },
      status: { type: ["integer", "string"] },
      detail: { type: "string" },
      code: { type: "string", enum: Object.keys(PROBLEM_TITLES) },
    },
    required: ["type", "title", "status", "detail", "code"],
  };
  return JSON.stringify({
    openapi: "3.1.0",
    info: { title: "svc", version, summary: "Clustered sequences, fenced locks and key/value" },
    paths,
    components: {
      schemas: { Timestamp: STAMP, Problem: problem },
      responses: {
        Problem: {
          description: "the request was not carried out; `code` says why",
          content: {
            "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
          },
        },
      },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  });
}
