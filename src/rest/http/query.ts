/**
 * Query parameters of the administrative paths.
 *
 * Invariants: 1. A parameter that the path does not know, one given twice and one that is no valid
 * text is refused: `gc?dryrun=true` must not collect. 2. `+` and `%20` are a space.
 */
import type { QueryParameter } from "./route.js";

export type QueryValues = ReadonlyMap<string, string>;

function decodePart(part: string): string | null {
  try {
    return decodeURIComponent(part.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/** The parameters of `url`, or a sentence that says what is wrong with them. */
export function parseQuery(url: string, known: readonly QueryParameter[]): QueryValues | string {
  const start = url.indexOf("?");
  const values = new Map<string, string>();
  if (start < 0) return values;
  for (const part of url.slice(start + 1).split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decodePart(equals < 0 ? part : part.slice(0, equals));
    const value = decodePart(equals < 0 ? "" : part.slice(equals + 1));
    if (name === null || value === null) return "the query is not valid percent-encoded UTF-8";
    const parameter = known.find((candidate) => candidate.name === name);
    if (parameter === undefined) return `unknown query parameter "${name.slice(0, 64)}"`;
    if (values.has(name)) return `query parameter "${name}" is given twice`;
    if (parameter.kind === "bool" && value !== "true" && value !== "false") {
      return `query parameter "${name}" must be true or false`;
    }
    values.set(name, value);
  }
  return values;
}

/**
 * True when `url` has the parameter `name`, whatever its value; for the paths that ignore all
 * others.
 */
export function hasFlag(url: string, name: string): boolean {
  const start = url.indexOf("?");
  if (start < 0) return false;
  return url
    .slice(start + 1)
    .split("&")
    .some((part) => part === name || part.startsWith(`${name}=`));
}
