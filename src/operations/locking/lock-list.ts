/**
 * Lists of locks over the whole cluster (F2), page by page: a part from each node that leads
 * partitions.
 *
 * Invariants: 1. What a page shows of one partition was proved and read at one instant. 2. A page
 * is in the order of resources over all partitions, and its cursor serves on every node. 3. A
 * lease end that the log has not seen is told of nobody (P-051); while somebody waits for such a
 * lock, it goes to them first (Q3). 4. A page without items is given only at the end, or when time
 * is short.
 */
import { compareBytes, compareText, encodeText } from "../../base/bytes.js";
import { Int64 } from "../../base/int64.js";
import { lockReads } from "../../host/waiting/lock-decisions.js";
import { LockType } from "../../machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../machine/kv/cursor.js";
import {
  type LockItem,
  type LockPage,
  type LockPageQuery,
  lockItemBytes,
} from "../../machine/locks/lock-pages.js";
import type { LockListItem, LockPageAnswer } from "../api/answers.js";
import type { GroupAccess } from "../api/host-view.js";
import { queryText } from "../api/page-query.js";
import { type ListLocksRequest, Durability, type RequestContext } from "../api/requests.js";
import { NOWHERE, emptyLockPage } from "../api/shapes.js";
import type { Fail } from "../serving/attempt.js";
import { byDeadline } from "../serving/by-deadline.js";
import {
  LeaderParts,
  type PartOrAgain,
  type PartSource,
  type PartsFailed,
} from "../serving/leader-parts.js";
import type { Serving } from "../serving/serving.js";
import type { CallAnswer, CallRequest } from "../wire/calls.js";
import type { LocksPartRequest } from "../wire/lock-parts.js";
import { type GroupPart, type GroupParts, partHere, partThere, readGroups } from "./group-parts.js";

/** Items of a page where no number is asked for. */
export const LIST_LIMIT = 1000;
/** Items that are asked of a partition, at least, whatever its share is. */
const PART_LIMIT_MIN = 16;
/** Rows that a page looks at in one partition. */
const VISITS_MAX = 4096;
/** Share of a partition in a page, as a multiple of an even one. */
const SHARE = 2;

interface ListPart {
  readonly items: readonly LockListItem[];
  readonly next: Uint8Array | null;
}

type PartQuery = Pick<LocksPartRequest, "prefix" | "durability" | "heldOnly" | "after" | "limit">;

/** Reads the part that the groups have of a page. */
export function readLocksPart(
  serving: Serving,
  groups: readonly GroupAccess[],
  query: PartQuery,
  deadlineMs: number,
  then: (end: GroupParts<ListPart>) => void,
): void {
  const read = (group: GroupAccess, done: (part: GroupPart<ListPart>) => void): void => {
    readGroup(serving, group, query, deadlineMs, done);
  };
  readGroups(serving, groups, read, then);
}

function readGroup(
  serving: Serving,
  group: GroupAccess,
  query: PartQuery,
  deadlineMs: number,
  done: (part: GroupPart<ListPart>) => void,
): void {
  const isEphemeral = query.durability === Durability.ephemeral;
  const asked: LockPageQuery = {
    ...query,
    maxBytes: serving.settings.pageBytes,
    maxVisits: VISITS_MAX,
  };
  const look = (leaseMs: number): LockPage | null => {
    const nowMs = isEphemeral ? Math.floor(group.leaseNowMs()) : leaseMs;
    return lockReads(group, isEphemeral)?.lockPage(asked, nowMs) ?? null;
  };
  const shown = (page: LockPage | null): void => {
    if (page === null) return done("lost");
    const items = page.items.map((item) => listItem(serving, group, isEphemeral, item));
    done({ part: { items, next: page.next } });
  };
  const queues = serving.queues(group);
  const looked = (): void => {
    const page = look(group.machine.leaseMs);
    const late = page === null || isEphemeral ? [] : lateItems(page, group.leaseNowMs());
    if (late.length === 0) return shown(page);
    for (const { resource } of late) {
      const queue = queues.find(resource, isEphemeral);
      if (queue !== null) queues.goFirst(queue);
    }
    const endedMs = Math.max(...late.map(({ leaseEndMs }) => leaseEndMs));
    group.advanceClock(endedMs, deadlineMs, ({ status }) => {
      if (status === "applied") shown(look(group.machine.leaseMs));
      else done(status === "aborted" ? "aborted" : "lost");
    });
  };
  group.read(deadlineMs, (result) => {
    if (result.status !== "confirmed") {
      return done(result.status === "aborted" ? "aborted" : "lost");
    }
    if (isEphemeral || !queues.hasUnshown) return looked();
    const then = byDeadline(serving.ports, deadlineMs, false, (isShown) => {
      if (!isShown) return done("aborted");
      if (group.isServing()) looked();
      else done("lost");
    });
    queues.whenAllShown(() => then(true));
  });
}

/** Held ones whose lease may be over. */
function lateItems({ items }: LockPage, nowMs: number): readonly LockItem[] {
  return items.filter(({ owner, leaseEndMs }) => owner !== null && leaseEndMs <= nowMs);
}

function listItem(
  serving: Serving,
  group: GroupAccess,
  isEphemeral: boolean,
  { resource, owner, note, token, leaseEndMs }: LockItem,
): LockListItem {
  const held = owner !== null;
  const leftMs = Math.max(0, Math.ceil(leaseEndMs - group.leaseNowMs()));
  return {
    resource,
    owner,
    fencingToken: Int64.fromBigInt(token),
    held,
    expires: serving.expires(group, held ? leaseEndMs : null),
    expiresInMs: held ? leftMs : 0,
    waiters: serving.queues(group).standing(resource, isEphemeral, null).waiters,
    note,
  };
}

/** Parts in one order, up to what was considered in all of them. */
export function combineLocks(
  parts: readonly ListPart[],
  limit: number,
  maxBytes: number,
): ListPart {
  let reached: Uint8Array | null = null;
  for (const { next } of parts) {
    if (next !== null && (reached === null || compareBytes(next, reached) < 0)) reached = next;
  }
  const all = parts.flatMap((part) => part.items);
  all.sort((one, other) => compareText(one.resource, other.resource));
  const items: LockListItem[] = [];
  let sizeBytes = 0;
  for (const item of all) {
    const key = encodeText(item.resource);
    if (reached !== null && compareBytes(key, reached) > 0) break;
    const last = items.at(-1);
    if (last !== undefined && (items.length >= limit || sizeBytes >= maxBytes)) {
      return { items, next: encodeText(last.resource) };
    }
    items.push(item);
    sizeBytes += lockItemBytes({ ...item, leaseEndMs: 0 });
  }
  return { items, next: reached };
}

export function listLocks(
  serving: Serving,
  request: ListLocksRequest,
  context: RequestContext,
  fail: Fail,
  done: (answer: LockPageAnswer) => void,
): void {
  new LockList(serving, request, context, fail, done).begin();
}

class LockList implements PartSource<ListPart, Uint8Array | null> {
  private readonly parts: LeaderParts<ListPart, Uint8Array | null>;
  private readonly cursorQuery: string;
  private readonly limit: number;
  /** From here on a page is given although nothing is in it. */
  private readonly hurryMs: number;

  constructor(
    private readonly serving: Serving,
    private readonly request: ListLocksRequest,
    private readonly context: RequestContext,
    private readonly fail: Fail,
    private readonly done: (answer: LockPageAnswer) => void,
  ) {
    const { kind, prefix, durability, heldOnly, limit } = request;
    this.cursorQuery = queryText(kind, prefix, durability, heldOnly);
    this.limit = limit === 0 ? LIST_LIMIT : limit;
    const nowMs = serving.ports.clock.monotonicMs();
    this.hurryMs = nowMs + (context.deadlineMs - nowMs) / 2;
    this.parts = new LeaderParts(serving, context, this);
  }

  begin(): void {
    const { cursor } = this.request;
    const after = cursor === null ? null : decodeCursor(this.cursorQuery, cursor);
    if (cursor === null || after !== null) return this.step(after);
    const bad = emptyLockPage("lock-page", LockType.invalidInput, NOWHERE);
    this.serving.ports.timer.soon(() => this.done(bad));
  }

  private step(after: Uint8Array | null): void {
    const { serving, limit } = this;
    this.parts.read(after, (end) => {
      if (end.kind === "failed") return this.fail(end.end, end.refusal, null);
      const { items, next } = combineLocks(end.parts, limit, serving.settings.pageBytes);
      const isLate = serving.ports.clock.monotonicMs() >= this.hurryMs;
      // Nothing but idle records so far.
      if (items.length === 0 && next !== null && !isLate) return this.step(next);
      const origin = { servedFrom: serving.settings.clientEndpoint, route: null };
      const page = emptyLockPage("lock-page", LockType.got, origin);
      const nextCursor = next === null ? null : encodeCursor(this.cursorQuery, next);
      this.done({ ...page, items, nextCursor, hasMore: next !== null });
    });
  }

  partitions() {
    return this.serving.placement.servingPartitions();
  }

  here(
    groups: readonly GroupAccess[],
    after: Uint8Array | null,
    ended: (part: PartOrAgain<ListPart>) => void,
  ): void {
    const { serving, context } = this;
    const { deadlineMs } = context;
    readLocksPart(serving, groups, this.query(after), deadlineMs, (end) => {
      ended(partHere(serving, context, end, (parts) => this.joined(parts)));
    });
  }

  private joined(parts: readonly ListPart[]): ListPart {
    return combineLocks(parts, this.limit, this.serving.settings.pageBytes);
  }

  private query(after: Uint8Array | null): PartQuery {
    const { prefix, durability, heldOnly } = this.request;
    const share = Math.ceil((SHARE * this.limit) / Math.max(1, this.partitions().length));
    const limit = Math.min(this.limit, Math.max(PART_LIMIT_MIN, share));
    return { prefix, durability, heldOnly, after, limit };
  }

  requestFor(partitions: readonly number[], after: Uint8Array | null): CallRequest {
    return { kind: "locks-part", partitions, ...this.query(after) };
  }

  partOf(
    _to: number,
    _partitions: readonly number[],
    answer: CallAnswer,
  ): { readonly kind: "part"; readonly part: ListPart } | PartsFailed | null {
    if (answer.kind !== "locks-part") return null;
    return partThere(answer);
  }

  close(): void {
    // A part holds nothing.
  }
}
