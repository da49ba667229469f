/**
 * Reads of several partitions of this node for one page: each by itself, in the turn in which it
 * was proved to be led.
 *
 * Invariants: 1. A few partitions at a time: a turn is short however many there are. 2. One that
 * cannot be read fails all.
 */
import type { GroupAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
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
