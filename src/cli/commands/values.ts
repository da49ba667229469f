/**
 * Reading the text of option values, and handing them out by name.
 *
 * Invariants: 1. A value is read whole or refused; nothing is rounded: 64-bit numbers are bigint.
 * 2. Text that is not well-formed Unicode is refused here, before it could turn into replacement
 * characters.
 */
import { present } from "../../base/assert.js";
import { isWellFormedText } from "../../base/bytes.js";
import { INT32_MAX, INT32_MIN, isInt64 } from "../../base/int64.js";
import { failure, ok, type Result } from "../../base/result.js";
import type { ValueKind } from "./command.js";

export type OptionValue = string | number | bigint | boolean | readonly string[];
export type ValueResult = Result<OptionValue, "bad-value">;

/** What a kind of value is called in a message. */
const WANTED: Readonly<Record<ValueKind, string>> = {
  none: "nothing",
  text: "text",
  secret: "visible ASCII text of at most 4096 characters",
  int32: "a whole number from -2147483648 to 2147483647",
  int64: "a whole number in the 64-bit range",
  milliseconds: "a whole number of milliseconds from 0 to 2147483647",
  seconds: "a number of seconds above 0",
  endpoint: "an endpoint such as http://127.0.0.1:8083 or https://host:8082",
  endpoints: "endpoints such as http://127.0.0.1:8083,https://host:8082",
  file: "a file name",
  choice: "one of the choices",
  rest: "a command",
};

/** What can travel as a bearer token. */
const SECRET_FORM = /^[\x21-\x7e]{1,4096}$/;
const SECONDS_MAX = 2_147_483;

/** The endpoint in full, with scheme and port; null when `text` is none. */
export function readEndpoint(text: string): string | null {
  const trimmed = text.trim();
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
  let url: URL;
  try {
    url = new URL(full);
  } catch {
    return null;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  const isBare = (url.pathname === "/" || url.pathname === "") && url.search === "";
  if (!isBare || url.username !== "" || url.hash !== "" || url.hostname === "") return null;
  // URL drops the scheme's own port: 80 and 443 are then meant only when they are written out.
  const written = /:(\d+)\/?$/.exec(full.slice(full.indexOf("//") + 2))?.[1];
  const port = url.port || written || (url.protocol === "http:" ? "8083" : "8082");
  return `${url.protocol}//${url.hostname}:${Number(port)}`;
}

function integer(text: string): bigint | null {
  if (!/^[+-]?\d{1,30}$/.test(text)) return null;
  return BigInt(text.replace(/^\+/, ""));
}

function endpoints(text: string): readonly string[] | null {
  const parts = text.split(",").filter((part) => part.trim() !== "");
  const read = parts.map(readEndpoint);
  if (read.length === 0 || read.some((part) => part === null)) return null;
  return [...new Set(read.map((part) => present(part, "bad parts were refused above")))];
}

function readKind(kind: ValueKind, text: string): OptionValue | null {
  switch (kind) {
    case "none":
    case "rest":
      return null;
    case "text":
    case "choice":
      return text;
    case "secret":
      return SECRET_FORM.test(text) ? text : null;
    case "file":
      return text === "" ? null : text;
    case "int32":
    case "milliseconds": {
      const value = integer(text);
      const least = kind === "int32" ? INT32_MIN : 0;
      return value === null || value < least || value > INT32_MAX ? null : Number(value);
    }
    case "int64": {
      const value = integer(text);
      return value === null || !isInt64(value) ? null : value;
    }
    case "seconds": {
      const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : 0;
      return value > 0 && value <= SECONDS_MAX ? value : null;
    }
    case "endpoint":
      return readEndpoint(text);
    case "endpoints":
      return endpoints(text);
  }
}

/** Reads `text` as the value of an option of this kind. */
export function readValue(
  spec: { readonly kind: ValueKind; readonly choices?: readonly string[] },
  text: string,
): ValueResult {
  if (!isWellFormedText(text)) return failure("bad-value", "well-formed text");
  if (spec.kind === "choice") {
    const choices = spec.choices ?? [];
    if (!choices.includes(text)) return failure("bad-value", `one of ${choices.join(", ")}`);
  }
  const value = readKind(spec.kind, text);
  return value === null ? failure("bad-value", WANTED[spec.kind]) : ok(value);
}

/** Values by option name ("--expires"). */
export class OptionValues {
  private readonly values: ReadonlyMap<string, OptionValue>;

  constructor(values: ReadonlyMap<string, OptionValue>) {
    this.values = values;
  }

  has(name: string): boolean {
    return this.values.has(name);
  }

  /** True when a bare option was given. */
  flag(name: string): boolean {
    return this.values.get(name) === true;
  }

  text(name: string): string | null {
    const value = this.values.get(name);
    return typeof value === "string" ? value : null;
  }

  /** For values that the parser made sure of. */
  requiredText(name: string): string {
    return present(this.text(name), `${name} was checked by the parser`);
  }

  number(name: string): number | null {
    const value = this.values.get(name);
    return typeof value === "number" ? value : null;
  }

  requiredNumber(name: string): number {
    return present(this.number(name), `${name} was checked by the parser`);
  }

  int64(name: string): bigint | null {
    const value = this.values.get(name);
    return typeof value === "bigint" ? value : null;
  }

  texts(name: string): readonly string[] {
    const value = this.values.get(name);
    return Array.isArray(value) ? (value as readonly string[]) : [];
  }
}
