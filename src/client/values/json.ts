/**
 * JSON of the REST interface with exact 64-bit integers.
 *
 * Invariants: 1. No digit of an integer is lost in either direction. 2. A member of an unexpected
 * type throws ServerError `protocol`; unknown members are ignored. 3. The time for reading is
 * proportional to the text, whatever it holds.
 */
import { randomUUID } from "node:crypto";
import { ServerError } from "./errors.js";

export type JsonValue = null | boolean | number | string | bigint | JsonObject | JsonValue[];
export interface JsonObject {
  readonly [name: string]: JsonValue | undefined;
}

/** Digits that a double cannot be trusted with: only a text that has them is read a second time. */
const LONG_DIGITS = /\d{16}/;
const LONG_INTEGER = /^-?\d{16,}$/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
/** Marks a long integer while JSON.parse runs; drawn at start, so that no answer can hold it. */
const MARK = `int64-${randomUUID()}:`;

/** Parses an answer. Integers beyond 15 digits become bigint. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  const parsed = JSON.parse(text) as JsonValue;
  if (!LONG_DIGITS.test(text)) return parsed;
  return JSON.parse(markLongIntegers(text), (_name, value: JsonValue) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  ) as JsonValue;
}

/** Valid JSON with its long integers as marked texts; one pass. */
function markLongIntegers(text: string): string {
  let marked = "";
  let copied = 0;
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = textEnd(text, at);
    } else if (code === MINUS || (code >= 0x30 && code <= 0x39)) {
      NUMBER.lastIndex = at;
      const number = NUMBER.exec(text)?.[0] ?? "";
      if (LONG_INTEGER.test(number)) {
        marked += `${text.slice(copied, at)}"${MARK}${number}"`;
        copied = at + number.length;
      }
      at += Math.max(1, number.length);
    } else {
      at += 1;
    }
  }
  return marked + text.slice(copied);
}

/** The place behind the text that begins at `start`. */
function textEnd(text: string, start: number): number {
  for (let quote = start + 1; ; quote++) {
    quote = text.indexOf('"', quote);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
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

export function textsOf(body: JsonObject, name: string): string[] {
  const value = body[name];
  if (!Array.isArray(value)) throw wrong(name);
  return value.map((item: unknown) => {
    if (typeof item !== "string") throw wrong(name);
    return item;
  });
}

export function bytesOrNull(body: JsonObject, name: string): Uint8Array | null {
  const text = textOrNull(body, name);
  return text === null ? null : Buffer.from(text, "base64");
}
