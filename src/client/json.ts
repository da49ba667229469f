/**
 * JSON of the REST interface with exact 64-bit integers.
 *
 * Owns no state. Invariants: 1. No digit of an integer is lost in either direction. 2. A member of
 * an unexpected type throws ServerError `protocol`; unknown members are ignored.
 */
import { randomUUID } from "node:crypto";
import { ServerError } from "./errors.js";

export type JsonValue = null | boolean | number | string | bigint | JsonObject | JsonValue[];
export interface JsonObject {
  readonly [name: string]: JsonValue | undefined;
}

/** Texts, or integers too long to be safe as doubles. */
const TEXT_OR_LONG_INTEGER = /"(?:[^"\\]|\\.)*"|(?<![\d.])-?\d{16,}(?![\d.eE])/g;
/** Marks a long integer while JSON.parse runs; drawn at start, so that no answer can hold it. */
const MARK = `int64-${randomUUID()}:`;

/** Parses an answer. Integers beyond 15 digits become bigint. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  let long = false;
  const marked = text.replace(TEXT_OR_LONG_INTEGER, (found) => {
    if (found.startsWith('"')) return found;
    long = true;
    return `"${MARK}${found}"`;
  });
  if (!long) return JSON.parse(text) as JsonValue;
  return JSON.parse(marked, (_name, value: JsonValue) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  ) as JsonValue;
}

/** Writes a request body: bigint as a plain number, undefined members left out. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    // A text holding an integer literal is read as the same int64.
    return typeof member === "bigint" ? member.toString() : member;
  });
}

function wrong(name: string): ServerError {
  return new ServerError(`the answer's member "${name}" is not as described`, {}, "protocol");
}

export function asObject(value: JsonValue | undefined, name: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(name);
  return value;
}

export function textOf(body: JsonObject, name: string): string {
  const value = body[name];
  if (typeof value !== "string") throw wrong(name);
  return value;
}

export function textOrNull(body: JsonObject, name: string): string | null {
  const value = body[name];
  return value === null || value === undefined ? null : textOf(body, name);
}

export function boolOf(body: JsonObject, name: string): boolean {
  const value = body[name];
  if (typeof value !== "boolean") throw wrong(name);
  return value;
}

export function bigintOf(body: JsonObject, name: string): bigint {
  const value = body[name];
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  throw wrong(name);
}

export function bigintOrNull(body: JsonObject, name: string): bigint | null {
  const value = body[name];
  return value === null || value === undefined ? null : bigintOf(body, name);
}

export function intOf(body: JsonObject, name: string): number {
  const value = body[name];
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw wrong(name);
}

export function intOrNull(body: JsonObject, name: string): number | null {
  const value = body[name];
  return value === null || value === undefined ? null : intOf(body, name);
}

export function listOf(body: JsonObject, name: string): JsonObject[] {
  const value = body[name];
  if (!Array.isArray(value)) throw wrong(name);
  return value.map((item) => asObject(item, name));
}

export function bytesOrNull(body: JsonObject, name: string): Uint8Array | null {
  const text = textOrNull(body, name);
  return text === null ? null : Buffer.from(text, "base64");
}
