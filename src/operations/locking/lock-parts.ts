/**
 * Answers other nodes that ask for a part of a list of locks, or of forced releases.
 *
 * Invariant: a part that could not be read is told as such, never as an empty one.
 */
import { NAME_MAX_BYTES, PAGE_LIMIT_MAX } from "../../base/limits.js";
import type { Refusal } from "../api/answers.js";
import type { GroupAccess } from "../api/host-view.js";
import { isListAcceptable } from "../api/lock-requests.js";
import { Durability } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";
import type { CallAnswer } from "../wire/calls.js";
import type { AuditPartRequest, LocksPartRequest } from "../wire/lock-parts.js";
import type { GroupParts } from "./group-parts.js";
import { combineAudit, readAuditPart } from "./lock-audit-list.js";
import { combineLocks, readLocksPart } from "./lock-list.js";

interface Asked {
  readonly request: LocksPartRequest | AuditPartRequest;
  /** Why nothing is to be done. */
  readonly refusal: Refusal | null;
  readonly deadlineMs: number;
}

function isPart(request: Asked["request"]): boolean {
  const { prefix, limit, partitions } = request;
  const isAudit = request.kind === "audit-part";
  const durability = isAudit ? Durability.persistent : request.durability;
  const asList = { kind: "list-locks", prefix, durability, limit, heldOnly: false } as const;
  if (!isListAcceptable({ ...asList, cursor: null }) || limit < 1) return false;
  const { after } = isAudit ? { after: null } : request;
  if (after !== null && after.length > NAME_MAX_BYTES) return false;
  return partitions.length > 0 && new Set(partitions).size === partitions.length;
}

/**
 * `groups`: the partitions that are asked for. "unreadable": the request is none of this version;
 * "lost": one of them is not led here, as it turned out.
 */
export function answerLockPart(
  serving: Serving,
  groups: readonly GroupAccess[],
  { request, refusal, deadlineMs }: Asked,
  then: (answer: CallAnswer | "unreadable" | "lost") => void,
): void {
  const { kind } = request;
  const cut = (end: "mustRetry" | "aborted", why: Refusal | null): void => {
    const none = { items: [], next: null };
    then({ kind, end, refusal: why, ...none });
  };
  if (refusal !== null) return cut("mustRetry", refusal);
  if (!isPart(request)) return then("unreadable");
  const failed = (end: Exclude<GroupParts<never>, { readonly end: "page" }>): void => {
    // It changes nothing: another node is asked, or this one again.
    if (end.end === "aborted") cut("mustRetry", "shutting-down");
    else if (end.refusal === null) then("lost");
    else cut(end.end, end.refusal);
  };
  // Each partition gave as many as its share is.
  const limit = Math.min(PAGE_LIMIT_MAX, request.limit * groups.length);
  if (request.kind === "locks-part") {
    return readLocksPart(serving, groups, request, deadlineMs, (end) => {
      if (end.end !== "page") return failed(end);
      const page = combineLocks(end.parts, limit, serving.settings.pageBytes);
      then({ kind: request.kind, end: "page", refusal: null, ...page });
    });
  }
  readAuditPart(serving, groups, request, deadlineMs, (end) => {
    if (end.end !== "page") return failed(end);
    then({ kind: request.kind, end: "page", refusal: null, ...combineAudit(end.parts, limit) });
  });
}
