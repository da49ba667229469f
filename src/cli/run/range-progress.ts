/**
 * Says while a split, a merge pass or an unregister runs where its moves are.
 *
 * Invariants: 1. It tells and ends as meanwhile.ts says. 2. What is told is the list of ranges of
 * the node that was asked, which may be a moment behind.
 */
import type { KeySpaceRanges, RangeMove } from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";
import { tellMeanwhile } from "../terminal/meanwhile.js";
import { keyText, phaseText } from "./range-text.js";

type ChangingCall = "split" | "merge" | "unregister";

const KIND_OF = { split: "split", merge: "merge", unregister: "home" } as const;

function moveOf(call: ChangingCall, { keySpace }: KeySpaceRanges, move: RangeMove): string {
  const name = keyText(keySpace);
  const { source, target } = move;
  const where = call === "split" ? `to partition ${target}` : `partition ${source} to ${target}`;
  return `${call} ${name}: ${where}, ${phaseText(move)}`;
}

/** Where the call is, of what the list says; null = nothing of it is under way. */
function progressText(call: ChangingCall, keySpaces: readonly KeySpaceRanges[]): string | null {
  const texts: string[] = [];
  for (const space of keySpaces) {
    const moves = space.moves.filter(({ kind }) => kind === KIND_OF[call]);
    for (const move of moves) texts.push(moveOf(call, space, move));
    if (call === "unregister" && space.leaving) {
      const left = space.descriptors.length;
      const ranges = `${left} ${left === 1 ? "range" : "ranges"} left`;
      if (moves.length === 0) texts.push(`unregister ${keyText(space.keySpace)}: ${ranges}`);
      else texts[texts.length - 1] += `, ${ranges}`;
    }
  }
  const [first] = texts;
  if (first === undefined) return null;
  return texts.length === 1 ? first : `${first} (and ${texts.length - 1} more)`;
}

/** Carries `work` out, and tells meanwhile how far it is; `keySpace` "" = all are looked at. */
export function whileMoving<Value>(
  context: RunContext,
  call: ChangingCall,
  keySpace: string,
  work: () => Promise<Value>,
): Promise<Value> {
  return tellMeanwhile(
    context,
    async (calling) => {
      const client = await context.client();
      return progressText(call, (await client.ranges.list(keySpace, calling)).keySpaces);
    },
    work,
  );
}
