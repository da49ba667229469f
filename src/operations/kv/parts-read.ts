/**
 * The parts of one page, each read by the node that leads its partitions: who is asked for what,
 * and what becomes of a part that went nowhere.
 *
 * Invariants: 1. Parts are of partitions that were proved to be led, all of a node as they are at
 * one instant. 2. A part that went nowhere is asked for again, with all others, a bounded number of
 * times: a read changes nothing. 3. Every watch of a part is closed: by whoever takes the parts, or
 * here when it takes none. 4. A node that closes its store knows neither map nor level: it plans
 * nothing more.
 */
import { type PartitionId, level, partitionId } from "../../base/ids.js";
import { fromByteKey, toByteKey } from "../../machine/store/keys.js";
import type { GroupAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import type { CallResult } from "../forwarding/calls.js";
import type { Serving } from "../serving/serving.js";
import type { CallRequest, SpanPartAnswer, WireTiles } from "../wire/calls.js";
import type { ScanQuery } from "./kv-merge.js";
import { type PagePart, type PartResult, proveAll, readPart } from "./scan-part.js";
import type { SpaceTiles } from "./span-tiles.js";
import type { SpanWatch } from "./span-watch.js";

/** Below it no range moves, and nodes know parts without tiles alone. */
const TILED_FROM_LEVEL = level(2);
/** Times that parts are asked for anew; the wait for leaders bounds it, too. */
export const TRIES_MAX = 32;
/** A node that sent a part back, or lost it, is left alone so long (ms). */
const AVOID_MS = 50;

/** A part that was read; of one that is watched, whether it still stands. */
export interface ReadPart extends PagePart {
  /** Closes the watch, too. Proves anew that the partitions are led there. */
  confirm(then: (stands: boolean) => void): void;
  /** Of a part that nobody asks about again. */
  close(): void;
}

export type PartsEnd =
  | { readonly kind: "parts"; readonly parts: readonly ReadPart[] }
  | {
      readonly kind: "failed";
      readonly end: "mustRetry" | "aborted";
      readonly refusal: Refusal | null;
    };

/** What is asked of all nodes alike. */
export interface PartsQuestion {
  readonly after: Uint8Array | null;
  readonly isWatched: boolean;
  /** As `SpanPartRequest.holdMs`. */
  readonly holdMs: number;
}

/** Who reads which partitions. */
interface Plan {
  readonly here: readonly GroupAccess[];
  readonly there: ReadonlyMap<number, readonly number[]>;
}

type PartOrAgain = ReadPart | "again" | Extract<PartsEnd, { readonly kind: "failed" }>;

export function toWireTiles(spaces: readonly SpaceTiles[]): readonly WireTiles[] {
  return spaces.map(({ keySpace, tiles }) => ({
    keySpace,
    tiles: tiles.map(({ first, last }) => ({ first: fromByteKey(first), last: fromByteKey(last) })),
  }));
}

function fromWireTiles(spaces: readonly WireTiles[]): readonly SpaceTiles[] {
  return spaces.map(({ keySpace, tiles }) => ({
    keySpace,
    tiles: tiles.map(({ first, last }) => ({ first: toByteKey(first), last: toByteKey(last) })),
  }));
}

/** Proves that the groups of a watch are led here, and says whether what it watches stands. */
export function confirmWatch(
  serving: Serving,
  watch: SpanWatch,
  deadlineMs: number,
  then: (stands: boolean) => void,
): void {
  proveAll({ serving, groups: watch.groups, deadlineMs }, false, (proved) => {
    const stands = proved !== null && watch.stands;
    watch.close();
    then(stands);
  });
}

/** Keeps the entries of `groups` back for a moment, as far as they allow it. */
export function holdEntries(groups: readonly GroupAccess[], holdMs: number): void {
  if (holdMs <= 0) return;
  for (const group of groups) group.holdEntries(holdMs);
}

export class PartsRead {
  private tries = 0;
  private giveUpMs = 0;
  private readonly avoided = new Map<number, number>();

  /** `partitions`: those that may have keys, by the present map. */
  constructor(
    private readonly serving: Serving,
    private readonly query: ScanQuery,
    private readonly context: RequestContext,
    private readonly partitions: () => readonly PartitionId[],
  ) {}

  /** Reads a part from every node concerned; the end never comes in the turn of the first call. */
  read(question: PartsQuestion, then: (end: PartsEnd) => void): void {
    const { node, ports } = this.serving;
    if (node.closing) {
      const end = { end: "mustRetry", refusal: "shutting-down" } as const;
      return ports.timer.soon(() => then({ kind: "failed", ...end }));
    }
    const nowMs = ports.clock.monotonicMs();
    const plan = this.plan(nowMs);
    if (plan === null) return this.wait(question, nowMs, then);
    let open = plan.there.size;
    const isHere = plan.here.length > 0 || plan.there.size === 0;
    if (isHere) open++;
    const ends: PartOrAgain[] = [];
    const ended = (part: PartOrAgain): void => {
      ends.push(part);
      open--;
      if (open === 0) this.gathered(question, ends, then);
    };
    if (isHere) this.readHere(plan.here, question, ended);
    for (const [to, partitions] of plan.there) {
      this.ask(to, partitions, question, (result) => ended(this.partOf(to, partitions, result)));
    }
  }

  private gathered(
    question: PartsQuestion,
    ends: readonly PartOrAgain[],
    then: (end: PartsEnd) => void,
  ): void {
    const parts: ReadPart[] = [];
    let failure: PartsEnd | null = null;
    for (const end of ends) {
      if (end === "again") continue;
      if ("kind" in end) failure ??= end;
      else parts.push(end);
    }
    if (failure === null && parts.length === ends.length) {
      // Who reads again, or on, waits for a leader anew (C12).
      this.tries = 0;
      this.giveUpMs = 0;
      return then({ kind: "parts", parts });
    }
    for (const part of parts) part.close();
    if (failure !== null) return then(failure);
    this.wait(question, this.serving.ports.clock.monotonicMs(), then);
  }

  private readHere(
    groups: readonly GroupAccess[],
    { after, isWatched, holdMs }: PartsQuestion,
    ended: (part: PartOrAgain) => void,
  ): void {
    const { serving, query, context } = this;
    const { deadlineMs } = context;
    holdEntries(groups, holdMs);
    readPart({ serving, groups, query, after, deadlineMs, isWatched }, false, (part) => {
      if (part.end === "page") return ended(this.partHere(part));
      const lost = part.end === "mustRetry" && part.refusal === null;
      const isLate = serving.ports.clock.monotonicMs() >= deadlineMs;
      ended(lost && mayForward(context) && !isLate ? "again" : { kind: "failed", ...part });
    });
  }

  private partHere(part: Extract<PartResult, { readonly end: "page" }>): ReadPart {
    const { serving } = this;
    const { items, next, spaces, watch } = part;
    const { deadlineMs } = this.context;
    return {
      ...{ items, next, spaces },
      confirm: (then) => {
        if (watch === null) serving.ports.timer.soon(() => then(false));
        else confirmWatch(serving, watch, deadlineMs, then);
      },
      close: () => watch?.close(),
    };
  }

  /** Null when a partition has no leader that could be asked now. */
  private plan(nowMs: number): Plan | null {
    const { node, leaders, calls } = this.serving;
    const here: GroupAccess[] = [];
    const there = new Map<number, number[]>();
    const isReachable = (to: number): boolean => calls.isReachable(to, nowMs);
    for (const partition of this.partitions()) {
      const group = node.group(partition);
      if (group?.isLeader() === true) {
        here.push(group);
        continue;
      }
      const to = leaders.other(partition, isReachable);
      if (to === 0 || (this.avoided.get(to) ?? 0) > nowMs || !isReachable(to)) return null;
      const partitions = there.get(to);
      if (partitions === undefined) there.set(to, [partition]);
      else partitions.push(partition);
    }
    if (there.size > 0 && !mayForward(this.context)) return null;
    return { here, there };
  }

  private ask(
    to: number,
    partitions: readonly number[],
    question: PartsQuestion,
    then: (result: CallResult) => void,
  ): void {
    const { requestId, deadlineMs, trace } = this.context;
    const partition = partitionId(partitions[0] ?? 0);
    const request = this.requestFor(partitions, question);
    const asking = { to, partition, request, requestId, deadlineMs, trace };
    this.serving.calls.ask(asking, then);
  }

  private requestFor(
    partitions: readonly number[],
    { after, isWatched, holdMs }: PartsQuestion,
  ): CallRequest {
    const { prefix, limit, whole, durability, range } = this.query;
    const part = { partitions, prefix, after, limit, whole, durability };
    if (this.serving.clusterLevel() < TILED_FROM_LEVEL) return { kind: "scan-part", ...part };
    let bounds = null;
    if (range !== null) {
      const { startKey, startInclusive, endKey, endInclusive } = range;
      bounds = { startKey, startInclusive, endKey, endInclusive };
    }
    return { kind: "span-part", ...part, bounds, isWatched, holdMs };
  }

  private partOf(to: number, partitions: readonly number[], result: CallResult): PartOrAgain {
    if (result.status === "overloaded") {
      return { kind: "failed", end: "mustRetry", refusal: "overloaded" };
    }
    const answer = result.status === "answered" ? result.answer : null;
    if (answer?.kind === "scan-part" || answer?.kind === "span-part") {
      const { end, refusal } = answer;
      const stops = refusal !== null && refusal !== "overloaded";
      if (!stops) {
        if (end !== "page") return { kind: "failed", end, refusal };
        const tiled = answer.kind === "span-part" ? answer : { spaces: [], watch: 0 };
        return this.partThere(to, partitions, { ...answer, ...tiled, kind: "span-part" });
      }
    }
    this.avoided.set(to, this.serving.ports.clock.monotonicMs() + AVOID_MS);
    return "again";
  }

  private partThere(to: number, partitions: readonly number[], part: SpanPartAnswer): ReadPart {
    const { items, next, watch } = part;
    const { requestId, deadlineMs, trace } = this.context;
    const partition = partitionId(partitions[0] ?? 0);
    return {
      ...{ items, next, spaces: fromWireTiles(part.spaces) },
      confirm: (then) => {
        if (watch === 0) return this.serving.ports.timer.soon(() => then(false));
        const request = { kind: "span-stands", watch } as const;
        const asking = { to, partition, request, requestId, deadlineMs, trace };
        this.serving.calls.ask(asking, (result) => {
          const answer = result.status === "answered" ? result.answer : null;
          then(answer?.kind === "span-stands" && answer.stands);
        });
      },
      // The node that holds it lets go of it by itself, soon.
      close: () => undefined,
    };
  }

  private wait(question: PartsQuestion, nowMs: number, then: (end: PartsEnd) => void): void {
    const { serving, context } = this;
    const { ports, leaders, node, settings } = serving;
    const failed = (refusal: Refusal | null): void => {
      then({ kind: "failed", end: "mustRetry", refusal });
    };
    const retry = (): void => failed(node.shuttingDown ? "shutting-down" : null);
    if (this.giveUpMs === 0) this.giveUpMs = nowMs + settings.leaderWaitMs;
    const untilMs = Math.min(this.giveUpMs, context.deadlineMs);
    const given = this.partitions().some((id) => leaders.isGivenUp(id));
    if (given || !mayForward(context) || ++this.tries > TRIES_MAX) return ports.timer.soon(retry);
    const taken = leaders.wait({
      untilMs,
      isOver: (thenMs) => this.plan(thenMs) !== null,
      resume: (came) => {
        // Somebody to ask is found at any time; whether there still is time is another matter.
        if (came && ports.clock.monotonicMs() < context.deadlineMs) this.read(question, then);
        else retry();
      },
    });
    if (!taken) ports.timer.soon(() => failed("overloaded"));
  }
}
