/**
 * Owners of locks, as they are made up and as they are typed.
 *
 * Invariants: 1. Two owners made here are never the same.
 */
import { randomBytes } from "node:crypto";
import type { OptionValues } from "../commands/values.js";
import { usageError } from "../invocation/failures.js";

const BASE64_MARK = "base64:";

/** 32 random hexadecimal characters. */
export function newOwner(): string {
  return randomBytes(16).toString("hex");
}

/** The bytes that an owner given as text means. Throws a usage error. */
export function ownerBytes(text: string): Uint8Array {
  return bytesOf("--owner", text);
}

/** As `ownerBytes`, of the note; undefined: none is given. */
export function noteBytes(values: OptionValues): Uint8Array | undefined {
  const text = values.text("--note");
  return text === null ? undefined : bytesOf("--note", text);
}

/** As `noteBytes`, of what a candidate has to say. */
export function valueBytes(values: OptionValues): Uint8Array | undefined {
  const text = values.text("--value");
  return text === null ? undefined : bytesOf("--value", text);
}

function bytesOf(option: string, text: string): Uint8Array {
  if (!text.startsWith(BASE64_MARK)) return Buffer.from(text, "utf8");
  const encoded = text.slice(BASE64_MARK.length);
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.toString("base64") !== encoded) throw usageError(`${option}: "${text}" is not base64`);
  return bytes;
}
