/**
 * The parts of one page of keys, each read by the node that leads its partitions.
 *
 * Invariants: 1. Parts are of partitions that were proved to be led, all of a node as they are at
 * one instant. 2. Every watch of a part is closed: by whoever takes the parts, or here when it
 * takes none.
 */
import { type PartitionId, level, partitionId } from "../../base/ids.js";
import { fromByteKey, toByteKey } from "../../machine/store/keys.js";
import type { GroupAccess } from "../api/host-view.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import {
  LeaderParts,
  type PartOrAgain,
  type PartSource,
  type PartsEnd,
  type PartsFailed,
} from "../serving/leader-parts.js";
import type { Serving } from "../serving/serving.js";
import type { CallAnswer, CallRequest, SpanPartAnswer, WireTiles } from "../wire/calls.js";
import type { ScanQuery } from "./kv-merge.js";
import { type PagePart, type PartResult, proveAll, readPart } from "./scan-part.js";
import type { SpaceTiles } from "./span-tiles.js";
import type { SpanWatch } from "./span-watch.js";

/** Below it no range moves, and nodes know parts without tiles alone. */
const TILED_FROM_LEVEL = level(2);
/** A part that was read; of one that is watched, whether it still stands. */
export interface ReadPart extends PagePart {
  /** Closes the watch, too. Proves anew that the partitions are led there. */
  confirm(then: (stands: boolean) => void): void;
  /** Of a part that nobody asks about again. */
  close(): void;
}

/** What is asked of all nodes alike. */
export interface PartsQuestion {
  readonly after: Uint8Array | null;
  readonly isWatched: boolean;
  /** As `SpanPartRequest.holdMs`. */
  readonly holdMs: number;
}

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

export class PartsRead implements PartSource<ReadPart, PartsQuestion> {
  private readonly parts: LeaderParts<ReadPart, PartsQuestion>;

  /** `partitions`: those that may have keys, by the present map. */
  constructor(
    private readonly serving: Serving,
    private readonly query: ScanQuery,
    private readonly context: RequestContext,
    readonly partitions: () => readonly PartitionId[],
  ) {
    this.parts = new LeaderParts(serving, context, this);
  }

  /** Reads a part from every node concerned; the end never comes in the turn of the first call. */
  read(question: PartsQuestion, then: (end: PartsEnd<ReadPart>) => void): void {
    this.parts.read(question, then);
  }

  here(
    groups: readonly GroupAccess[],
    { after, isWatched, holdMs }: PartsQuestion,
    ended: (part: PartOrAgain<ReadPart>) => void,
  ): void {
    const { serving, query, context } = this;
    const { deadlineMs } = context;
    holdEntries(groups, holdMs);
    readPart({ serving, groups, query, after, deadlineMs, isWatched }, false, (part) => {
      if (part.end === "page") return ended({ kind: "part", part: this.partHere(part) });
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

  requestFor(
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

  partOf(
    to: number,
    partitions: readonly number[],
    answer: CallAnswer,
  ): { readonly kind: "part"; readonly part: ReadPart } | PartsFailed | null {
    if (answer.kind !== "scan-part" && answer.kind !== "span-part") return null;
    const { end, refusal } = answer;
    if (end !== "page") return { kind: "failed", end, refusal };
    const tiled = answer.kind === "span-part" ? answer : { spaces: [], watch: 0 };
    const part = this.partThere(to, partitions, { ...answer, ...tiled, kind: "span-part" });
    return { kind: "part", part };
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

  close(part: ReadPart): void {
    part.close();
  }
}
