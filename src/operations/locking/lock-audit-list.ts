/**
 * Who released which locks by force (F5), of the whole cluster, the newest first, page by page.
 *
 * Invariants: 1. What a page shows of one partition was proved and read at one instant. 2. Rows of
 * all partitions are in one order: by stamp, then partition, then number, each from above; a cursor
 * is a place in it, and serves on every node.
 */
import { decodeText, encodeText } from "../../base/bytes.js";
import { compareHlc } from "../../base/hlc.js";
import { Int64 } from "../../base/int64.js";
import { LockType } from "../../machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../machine/kv/cursor.js";
import type { AuditPosition, LockAuditItem } from "../../machine/locks/lock-audit.js";
import type { LockAuditAnswer, LockAuditEntry } from "../api/answers.js";
import type { GroupAccess } from "../api/host-view.js";
import { queryText } from "../api/page-query.js";
import { type ListLockAuditRequest, Durability, type RequestContext } from "../api/requests.js";
import { NOWHERE, emptyLockPage } from "../api/shapes.js";
import type { Fail } from "../serving/attempt.js";
import {
  LeaderParts,
  type PartOrAgain,
  type PartSource,
  type PartsFailed,
} from "../serving/leader-parts.js";
import type { Serving } from "../serving/serving.js";
import type { CallAnswer, CallRequest } from "../wire/calls.js";
import type { AuditPartRequest, AuditPlace } from "../wire/lock-parts.js";
import { type GroupPart, type GroupParts, partHere, partThere, readGroups } from "./group-parts.js";
import { LIST_LIMIT } from "./lock-list.js";

/** Rows that a page looks at in one partition. */
const VISITS_MAX = 2048;

interface AuditPart {
  readonly items: readonly LockAuditEntry[];
  /** The last row looked at in every one of the partitions; null: there is no more. */
  readonly next: AuditPlace | null;
}

type PartQuery = Pick<AuditPartRequest, "prefix" | "below" | "limit">;

/** Negative: `one` comes first. */
function comparePlaces(one: AuditPlace, other: AuditPlace): number {
  const byStamp = compareHlc(other.stamp, one.stamp);
  if (byStamp !== 0) return byStamp;
  return other.partitionId - one.partitionId || other.auditId - one.auditId;
}

/** Where a page goes on in a partition, whose rows are ordered by their numbers. */
function positionIn(partition: number, below: AuditPlace | null): AuditPosition | null {
  if (below === null) return null;
  const { stamp, partitionId, auditId } = below;
  if (partition === partitionId) return { stamp, id: auditId };
  // Of rows with the same stamp, those of higher partitions came before.
  return { stamp, id: partition > partitionId ? 0 : Number.MAX_SAFE_INTEGER };
}

function entryOf(partitionId: number, item: LockAuditItem): LockAuditEntry {
  const { id, isEphemeral, token, ...told } = item;
  return {
    ...told,
    auditId: id,
    partitionId,
    durability: isEphemeral ? Durability.ephemeral : Durability.persistent,
    fencingToken: Int64.fromBigInt(token),
  };
}

export function readAuditPart(
  serving: Serving,
  groups: readonly GroupAccess[],
  { prefix, below, limit }: PartQuery,
  deadlineMs: number,
  then: (end: GroupParts<AuditPart>) => void,
): void {
  const read = (group: GroupAccess, done: (part: GroupPart<AuditPart>) => void): void => {
    group.read(deadlineMs, ({ status }) => {
      if (status !== "confirmed") return done(status === "aborted" ? "aborted" : "lost");
      const { partition: partitionId, machine } = group;
      const from = positionIn(partitionId, below);
      const { items, next } = machine.reads.lockAudit(prefix, from, limit, VISITS_MAX);
      const place = next === null ? null : { stamp: next.stamp, partitionId, auditId: next.id };
      done({ part: { items: items.map((item) => entryOf(partitionId, item)), next: place } });
    });
  };
  readGroups(serving, groups, read, then);
}

/** Parts in one order, up to what was looked at in all of them. */
export function combineAudit(parts: readonly AuditPart[], limit: number): AuditPart {
  let reached: AuditPlace | null = null;
  for (const { next } of parts) {
    if (next !== null && (reached === null || comparePlaces(next, reached) < 0)) reached = next;
  }
  const all = parts.flatMap((part) => part.items);
  all.sort(comparePlaces);
  const items: LockAuditEntry[] = [];
  for (const item of all) {
    if (reached !== null && comparePlaces(item, reached) > 0) break;
    const last = items.at(-1);
    if (last !== undefined && items.length >= limit) return { items, next: placeOf(last) };
    items.push(item);
  }
  return { items, next: reached };
}

function placeOf({ stamp, partitionId, auditId }: AuditPlace): AuditPlace {
  return { stamp, partitionId, auditId };
}

/** A place as the text that cursors hold. */
function placeText({ stamp, partitionId, auditId }: AuditPlace): string {
  return [stamp.l, stamp.c, stamp.n, partitionId, auditId].join(" ");
}

function ofPlaceText(text: string | null): AuditPlace | null {
  const numbers = (text ?? "").split(" ").map(Number);
  const [l, c, n, partitionId, auditId] = numbers;
  if (auditId === undefined || !numbers.every(Number.isSafeInteger)) return null;
  if (l === undefined || c === undefined || n === undefined) return null;
  return { stamp: { l, c, n }, partitionId: partitionId ?? 0, auditId };
}

export function listLockAudit(
  serving: Serving,
  request: ListLockAuditRequest,
  context: RequestContext,
  fail: Fail,
  done: (answer: LockAuditAnswer) => void,
): void {
  new AuditList(serving, request, context, fail, done).begin();
}

class AuditList implements PartSource<AuditPart, AuditPlace | null> {
  private readonly parts: LeaderParts<AuditPart, AuditPlace | null>;
  private readonly cursorQuery: string;
  private readonly limit: number;
  /** From here on a page is given although nothing is in it. */
  private readonly hurryMs: number;

  constructor(
    private readonly serving: Serving,
    private readonly request: ListLockAuditRequest,
    private readonly context: RequestContext,
    private readonly fail: Fail,
    private readonly done: (answer: LockAuditAnswer) => void,
  ) {
    const { kind, prefix, limit } = request;
    this.cursorQuery = queryText(kind, prefix);
    this.limit = limit === 0 ? LIST_LIMIT : limit;
    const nowMs = serving.ports.clock.monotonicMs();
    this.hurryMs = nowMs + (context.deadlineMs - nowMs) / 2;
    this.parts = new LeaderParts(serving, context, this);
  }

  begin(): void {
    const { cursor } = this.request;
    if (cursor === null) return this.step(null);
    const key = decodeCursor(this.cursorQuery, cursor);
    const below = key === null ? null : ofPlaceText(decodeText(key));
    if (below !== null) return this.step(below);
    const bad = emptyLockPage("lock-audit", LockType.invalidInput, NOWHERE);
    this.serving.ports.timer.soon(() => this.done(bad));
  }

  private step(below: AuditPlace | null): void {
    const { serving } = this;
    this.parts.read(below, (end) => {
      if (end.kind === "failed") return this.fail(end.end, end.refusal, null);
      const { items, next } = combineAudit(end.parts, this.limit);
      const isLate = serving.ports.clock.monotonicMs() >= this.hurryMs;
      // Nothing but other resources so far.
      if (items.length === 0 && next !== null && !isLate) return this.step(next);
      const origin = { servedFrom: serving.settings.clientEndpoint, route: null };
      const page = emptyLockPage("lock-audit", LockType.got, origin);
      const place = next === null ? null : encodeText(placeText(next));
      const nextCursor = place === null ? null : encodeCursor(this.cursorQuery, place);
      this.done({ ...page, items, nextCursor, hasMore: next !== null });
    });
  }

  partitions() {
    return this.serving.placement.servingPartitions();
  }

  here(
    groups: readonly GroupAccess[],
    below: AuditPlace | null,
    ended: (part: PartOrAgain<AuditPart>) => void,
  ): void {
    const { serving, context, limit } = this;
    const { deadlineMs } = context;
    readAuditPart(serving, groups, this.query(below), deadlineMs, (end) => {
      ended(partHere(serving, context, end, (parts) => combineAudit(parts, limit)));
    });
  }

  private query(below: AuditPlace | null): PartQuery {
    return { prefix: this.request.prefix, below, limit: this.limit };
  }

  requestFor(partitions: readonly number[], below: AuditPlace | null): CallRequest {
    return { kind: "audit-part", partitions, ...this.query(below) };
  }

  partOf(
    _to: number,
    _partitions: readonly number[],
    answer: CallAnswer,
  ): { readonly kind: "part"; readonly part: AuditPart } | PartsFailed | null {
    if (answer.kind !== "audit-part") return null;
    return partThere(answer);
  }

  close(): void {
    // A part holds nothing.
  }
}
