/**
 * Key ranges and their moves as text for people.
 *
 * Invariants: 1. A bound is one word of one line, whatever is in the key: what could be taken for
 * an open end, for two words or for nothing stands in quotes, as in JSON. 2. Unknown is `-`.
 */
import type { KeySpaceRanges, RangeMap, RangeMove } from "../../client/mod.js";
import { tableLines } from "../terminal/format.js";
import { visibleText } from "../terminal/text-width.js";

const OPEN_START = "-inf";
const OPEN_END = "+inf";

/** A key on one line of its own word. */
export function keyText(key: string): string {
  const isOpenEnd = key === OPEN_START || key === OPEN_END;
  const isPlain = /^[^\s"]\S*$/u.test(key) && visibleText(key) === key && !isOpenEnd;
  return isPlain ? key : visibleText(JSON.stringify(key));
}

function startText(key: string | null): string {
  return key === null ? OPEN_START : keyText(key);
}

function endText(key: string | null): string {
  return key === null ? OPEN_END : keyText(key);
}

/** "copying, attempt 2": where a move is. */
export function phaseText({ phase, reason, attempt }: RangeMove): string {
  const why = reason === "none" ? "" : ` (${reason})`;
  return `${phase}${why}, attempt ${attempt}`;
}

function moveText(move: RangeMove): string {
  const { kind, startKey, endKey, source, target } = move;
  const keys = `${startText(startKey)} to ${endText(endKey)}`;
  return `${kind}: ${keys}, partition ${source} to ${target}, ${phaseText(move)}`;
}

function spaceLines(space: KeySpaceRanges, columns: number | null): string[] {
  const { keySpace, routingMode, descriptors, moves, leaving } = space;
  const isCounted = descriptors.some(({ keys }) => keys !== null);
  const rows = descriptors.map(({ startKey, endKey, partitionId, generation, keys }) => [
    ...[startText(startKey), endText(endKey), String(partitionId), String(generation)],
    ...(isCounted ? [String(keys ?? "-")] : []),
  ]);
  const titles = ["Start key", "End key", "Partition", "Generation"];
  const header = isCounted ? [...titles, "Keys"] : titles;
  return [
    `${visibleText(keySpace)}  routed by ${routingMode} on this node`,
    ...tableLines(header, rows, columns),
    ...moves.map((move) => `Moving  ${moveText(move)}`),
    ...(leaving ? ["Being unregistered: its ranges go back to the hash partition."] : []),
  ];
}

/** The answer of `--ranges`. */
export function rangesLines(answer: RangeMap, columns: number | null): string[] {
  const ready = answer.initialized ? "initialized" : "not initialized";
  const { localEndpoint, keySpaces } = answer;
  const lines = [`Node ${localEndpoint} ${ready}  ${keySpaces.length} key space(s)`];
  for (const space of keySpaces) lines.push("", ...spaceLines(space, columns));
  return lines;
}
