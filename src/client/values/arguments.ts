/**
 * Checks of what a program hands to the library: callers in plain JavaScript, and values that a
 * type does not hold at run time.
 *
 * Invariants: 1. What is not of the described type throws InvalidInputError before anything is
 * queued or sent, and names the argument or member. 2. Nothing is converted silently.
 */
import { isUint8Array } from "node:util/types";
import { InvalidInputError } from "./errors.js";

/** A value in words: `null`, `a number`, `an ArrayBuffer`. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "undefined";
  if (typeof value !== "object") return `a ${typeof value}`;
  if (Array.isArray(value)) return "an array";
  const tag = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return `${/^[AEIOU]/.test(tag) ? "an" : "a"} ${tag}`;
}

/** The refusal of `value`, which is to be `wanted`. */
export function wrongType(name: string, wanted: string, value: unknown): InvalidInputError {
  return new InvalidInputError(`${name} is ${wanted}, not ${kindOf(value)}`);
}

export function textOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw wrongType(name, "text", value);
}

export function optionalText(name: string, value: unknown): string | undefined {
  return value === undefined ? undefined : textOf(name, value);
}

export function flagOf(name: string, value: unknown, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === "boolean") return value;
  throw wrongType(name, "true or false", value);
}

/** Bytes, given as such or as text (its UTF-8 form). */
export function bytesOf(name: string, value: unknown): Uint8Array {
  if (typeof value === "string") return Buffer.from(value, "utf8");
  if (isUint8Array(value)) return value;
  throw wrongType(name, "text or a Uint8Array", value);
}

export function bytesOrNull(name: string, value: unknown): Uint8Array | null {
  if (value === null) return null;
  if (typeof value === "string" || isUint8Array(value)) return bytesOf(name, value);
  throw wrongType(name, "text, a Uint8Array or null", value);
}

function listOf<Item>(name: string, value: readonly Item[]): readonly Item[] {
  if (Array.isArray(value)) return value;
  throw wrongType(name, "an array", value);
}

/** Reads each item of a list; a refusal says which one. */
export function eachOf<Item, Result>(
  name: string,
  list: readonly Item[],
  read: (item: Item) => Result,
): Result[] {
  return Array.from(listOf(name, list), (item, at) => {
    try {
      return read(item);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      throw new InvalidInputError(`${name}[${at}]: ${error.message}`);
    }
  });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A required group of named values. */
export function membersOf<Members extends object>(name: string, value: Members): Members {
  if (isObject(value)) return value;
  throw wrongType(name, "an object", value);
}

/** The same, omitted = none given. */
export function optionsOf<Options extends object>(
  value: Options | undefined,
  name = "options",
): Partial<Options> {
  return value === undefined ? {} : membersOf(name, value);
}

/** Durability on the wire: 0 ephemeral, 1 persistent (also when omitted). */
export function durabilityOf(value: unknown): 0 | 1 {
  if (value === undefined || value === "persistent") return 1;
  if (value === "ephemeral") return 0;
  const given = typeof value === "string" ? JSON.stringify(value) : kindOf(value);
  throw new InvalidInputError(`durability is "persistent" or "ephemeral", not ${given}`);
}

/** Something that behaves as an AbortSignal, whichever realm or package made it. */
export function checkSignal(value: unknown): void {
  if (value === undefined || value instanceof AbortSignal) return;
  const like = isObject(value) ? (value as Partial<AbortSignal>) : {};
  if (typeof like.aborted === "boolean" && typeof like.addEventListener === "function") return;
  throw wrongType("signal", "an AbortSignal", value);
}

export function checkFunction(name: string, value: unknown): void {
  if (typeof value !== "function") throw wrongType(name, "a function", value);
}
