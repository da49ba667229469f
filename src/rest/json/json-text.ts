/**
 * Pieces of JSON text from which the answers are joined.
 *
 * Invariants: 1. Every 64-bit number is written as a plain JSON number, exact over its whole range.
 * 2. Text is escaped by the rules of RFC 8259; what was well-formed stays so.
 */
import { decodeText } from "../../base/bytes.js";
import type { Hlc } from "../../base/hlc.js";
import type { RouteHint } from "../../operations/api/requests.js";
import { encodeBase64 } from "./base64.js";

const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/;

/** `text` as a JSON string. */
export function quoted(text: string): string {
  return NEEDS_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`;
}

export function quotedOrNull(text: string | null): string {
  return text === null ? "null" : quoted(text);
}

export function base64OrNull(bytes: Uint8Array | null): string {
  return bytes === null ? "null" : `"${encodeBase64(bytes)}"`;
}

export function stampText(stamp: Hlc): string {
  return `{"n":${stamp.n},"l":${stamp.l},"c":${stamp.c}}`;
}

export function routeText(route: RouteHint | null): string {
  if (route === null) return "null";
  return (
    `{"partitionId":${route.partitionId},"endpoint":${quoted(route.endpoint)},` +
    `"provenance":${route.provenance},"generation":${route.generation}}`
  );
}

/** The members that end most answers. */
export function servedText(answer: {
  readonly servedFrom: string | null;
  readonly route: RouteHint | null;
}): string {
  return `"servedFrom":${quotedOrNull(answer.servedFrom)},"route":${routeText(answer.route)}`;
}

export function listText<Item>(list: readonly Item[], write: (item: Item) => string): string {
  let text = "[";
  for (let at = 0; at < list.length; at++) {
    text += at === 0 ? write(list[at] as Item) : `,${write(list[at] as Item)}`;
  }
  return `${text}]`;
}

/** Items of a long list that are written in one turn: about 2 ms. */
const SLICE_ITEMS = 1000;

/** Whether a list is so long that writing it in one turn would hold everybody else up. */
export function isLongList(list: readonly unknown[]): boolean {
  return list.length > SLICE_ITEMS;
}

/** As `listText`, over several turns; `done` gets the pieces of the text, in UTF-8. */
export function listPieces<Item>(
  list: readonly Item[],
  write: (item: Item) => string,
  done: (pieces: Buffer[]) => void,
): void {
  const pieces: Buffer[] = [];
  const slice = (first: number): void => {
    const last = Math.min(first + SLICE_ITEMS, list.length);
    let text = first === 0 ? "[" : "";
    for (let at = first; at < last; at++) {
      text += at === 0 ? write(list[at] as Item) : `,${write(list[at] as Item)}`;
    }
    if (last === list.length) text += "]";
    pieces.push(Buffer.from(text));
    if (last === list.length) done(pieces);
    else setImmediate(slice, last);
  };
  setImmediate(slice, 0);
}

/**
 * Owner bytes as text; bytes that are no text, or whose text would be read back as something else,
 * are written as `base64:` and their base64.
 */
export function ownerText(bytes: Uint8Array | null): string {
  if (bytes === null) return "null";
  const text = decodeText(bytes);
  if (text === null || text.startsWith("base64:")) return `"base64:${encodeBase64(bytes)}"`;
  return quoted(text);
}
