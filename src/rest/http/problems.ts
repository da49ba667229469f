/**
 * Problem documents (RFC 9457): what every answer outside 2xx carries.
 *
 * Invariants: 1. `code` is stable and from the closed list below. 2. Where an endpoint has an
 * answer of its own, its members are added and win a clash of names; the HTTP status line is
 * authoritative.
 */
import { quoted } from "../json/json-text.js";

/** Title of each code. */
export const PROBLEM_TITLES = {
  "malformed-json": "The body is not valid JSON",
  "unknown-member": "The body has an unknown member",
  "duplicate-member": "The body has a member twice",
  "wrong-type": "A member has the wrong JSON type",
  "invalid-number": "A number does not fit its member",
  "invalid-base64": "A member is not base64",
  "invalid-argument": "An argument is not acceptable",
  "malformed-http": "The request is not valid HTTP",
  "expectation-failed": "The server does not do what the request expects",
  unauthenticated: "Valid credentials are required",
  forbidden: "The caller's role does not permit this",
  "forbidden-origin": "Pages of this origin may not call",
  "misdirected-request": "The request is for another host",
  "unknown-path": "There is nothing at this path",
  "method-not-allowed": "The path does not support this method",
  "request-timeout": "The request did not arrive in time",
  refused: "The request was refused",
  "not-available-at-level": "The cluster has not switched this on yet",
  "body-too-large": "The body is too large",
  "unsupported-media-type": "The body must be application/json",
  "headers-too-large": "The headers are too large",
  "response-too-large": "The answer is too large",
  "backup-failed": "The backup or restore call failed",
  internal: "An unexpected fault",
  overloaded: "The node is overloaded",
  "not-initialized": "The node is not initialized",
  "shutting-down": "The node is shutting down",
  unavailable: "The operation is not possible now",
  timeout: "The operation was not confirmed in time",
} as const;
export type ProblemCode = keyof typeof PROBLEM_TITLES;

/** Which standard member gives way to a member of the same name in `own`. */
export type Clash = "none" | "type" | "status";

/**
 * The document. `own`: the endpoint's own members as the text of a JSON object, or null; `clash`
 * says which name it shares with the document.
 */
export function problemText(
  status: number,
  code: ProblemCode,
  detail: string,
  own: string | null = null,
  clash: Clash = "none",
): string {
  let text = "{";
  if (clash !== "type") text += `"type":"urn:svc:problem:${code}",`;
  text += `"title":"${PROBLEM_TITLES[code]}",`;
  if (clash !== "status") text += `"status":${status},`;
  text += `"detail":${quoted(detail)},"code":"${code}"`;
  return own === null ? `${text}}` : `${text},${own.slice(1)}`;
}
