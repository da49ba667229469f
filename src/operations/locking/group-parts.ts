/**
 * Reads of several partitions of this node for one page: each by itself, in the turn in which it
 * was proved to be led.
 *
 * Invariants: 1. A few partitions at a time: a turn is short however many there are. 2. One that
 * cannot be read fails all.
 */
import type { GroupAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
import { type RequestContext, mayForward } from "../api/requests.js";
import type { PartOrAgain, PartsFailed } from "../serving/leader-parts.js";
import type { Serving } from "../serving/serving.js";

/** Partitions that are read at a time. */
const AT_ONCE = 8;

/** How the read of one partition ended; "lost": it is not led here, or could not be proved to be. */
export type GroupPart<Part> = { readonly part: Part } | "lost" | "aborted";

export type GroupParts<Part> =
  | { readonly end: "page"; readonly parts: readonly Part[] }
  | { readonly end: "mustRetry" | "aborted"; readonly refusal: Refusal | null };

/** `read`: calls back in a later turn, once. */
export function readGroups<Part>(
  { node, ports }: Serving,
  groups: readonly GroupAccess[],
  read: (group: GroupAccess, done: (part: GroupPart<Part>) => void) => void,
  then: (end: GroupParts<Part>) => void,
): void {
  const parts: Part[] = [];
  let failure: "lost" | "aborted" | null = null;
  let begun = 0;
  let open = 0;
  const next = (): void => {
    while (open < AT_ONCE && failure === null && begun < groups.length) {
      const group = groups[begun++] as GroupAccess;
      open++;
      read(group, (part) => {
        open--;
        if (typeof part === "object") parts.push(part.part);
        else failure ??= part;
        next();
      });
    }
    if (open > 0) return;
    if (failure === null) return then({ end: "page", parts });
    const end = failure === "aborted" ? "aborted" : "mustRetry";
    then({ end, refusal: node.shuttingDown ? "shutting-down" : null });
  };
  if (groups.length === 0) ports.timer.soon(() => then({ end: "page", parts }));
  else next();
}

/**
 * What this node has of a page: combined, or asked for again where a leadership was lost in between
 * and there is time.
 */
export function partHere<Part>(
  { ports }: Serving,
  context: RequestContext,
  end: GroupParts<Part>,
  combine: (parts: readonly Part[]) => Part,
): PartOrAgain<Part> {
  if (end.end === "page") return { kind: "part", part: combine(end.parts) };
  const isLost = end.end === "mustRetry" && end.refusal === null;
  const isLate = ports.clock.monotonicMs() >= context.deadlineMs;
  return isLost && mayForward(context) && !isLate ? "again" : { kind: "failed", ...end };
}

/** A part as another node answered. */
interface CarriedPart<Item, Place> {
  readonly end: "page" | PartsFailed["end"];
  readonly refusal: PartsFailed["refusal"];
  readonly items: readonly Item[];
  readonly next: Place;
}

/** The part of another node. */
export function partThere<Item, Place>({
  end,
  refusal,
  items,
  next,
}: CarriedPart<Item, Place>):
  { readonly kind: "part"; readonly part: { items: readonly Item[]; next: Place } } | PartsFailed {
  return end === "page"
    ? { kind: "part", part: { items, next } }
    : { kind: "failed", end, refusal };
}
