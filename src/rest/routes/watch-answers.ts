/**
 * What the watch paths take and tell, as text (contract 3.9).
 *
 * Invariants: 1. What does not apply is null, 0 or false: the members are always all there. 2. An
 * event is written once, for all that it goes to. 3. Kinds, types and ends are the names of the
 * tables, in lower case with hyphens.
 */
import { hyphenedNames, WatchEnd, WatchEventType, WatchKind } from "../../base/result-types.js";
import { sequenceView } from "../../operations/api/shapes.js";
import type { WatchEvent, WatchMessage } from "../../operations/api/requests.js";
import { base64OrNull, listText, ownerText, quoted, quotedOrNull } from "../json/json-text.js";
import { stampText } from "../json/json-text.js";
import type { Schema } from "../http/schemas.js";
import { SEQUENCE, sequenceText } from "./sequence-routes.js";

const KINDS = new Map([...hyphenedNames(WatchKind)].map(([number, name]) => [name, number]));
const EVENT_TYPES = hyphenedNames(WatchEventType);
const TYPES = new Map([...EVENT_TYPES].map(([number, name]) => [name, number]));
const ENDS = hyphenedNames(WatchEnd);

export const KIND_NAMES: readonly string[] = [...KINDS.keys()].slice(1);

export const WATCHED: Schema = {
  object: {
    events: {
      list: {
        object: {
          type: "text",
          name: "text",
          value: "base64-or-null",
          revision: "int64",
          stamp: "stamp",
          fencingToken: "int64",
          owner: "text-or-null",
          note: "text-or-null",
          sequence: SEQUENCE,
          forced: "bool",
        },
      },
    },
    cursor: "text-or-null",
    initial: "bool",
    merged: "bool",
    reset: "bool",
    more: "bool",
    staleMs: "int32",
    servedFrom: "text-or-null",
  },
};

/** The number of a kind; none: there is no such kind. */
export function kindOf(name: string): number {
  return KINDS.get(name) ?? WatchKind.none;
}

/** The sum of 2^type; null: one of the names is none. */
export function onlyOf(names: readonly string[]): number | null {
  let only = 0;
  for (const name of names) {
    const type = TYPES.get(name) ?? WatchEventType.none;
    if (type === WatchEventType.none) return null;
    only |= 1 << type;
  }
  return only;
}

export function endName(end: number): string {
  return ENDS.get(end) ?? "none";
}

export function eventText(event: WatchEvent): string {
  const { sequence } = event;
  const view = sequence === null ? null : sequenceView(sequence, sequence.currentValue);
  event.text ??=
    `{"type":"${EVENT_TYPES.get(event.type) ?? "none"}","name":${quoted(event.name)},` +
    `"value":${base64OrNull(event.value)},"revision":${event.revision},` +
    `"stamp":${stampText(event.stamp)},"fencingToken":${event.token.toString()},` +
    `"owner":${ownerText(event.owner)},"note":${ownerText(event.note)},` +
    `"sequence":${sequenceText(view, false)},"forced":${event.forced}}`;
  return event.text;
}

/** What of one or several messages is told at once. */
type Told = Pick<
  WatchMessage,
  "events" | "cursor" | "initial" | "merged" | "reset" | "more" | "staleMs"
>;

export function toldText(told: Told): string {
  return (
    `{"events":${listText(told.events, eventText)},"cursor":${quotedOrNull(told.cursor)},` +
    `"initial":${told.initial},"merged":${told.merged},"reset":${told.reset},` +
    `"more":${told.more},"staleMs":${told.staleMs},"servedFrom":null}`
  );
}
