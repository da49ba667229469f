/**
 * The messages that `api/` describes, read from the JSON of the REST interface, and the requests
 * written for it.
 *
 * Invariants: 1. What is read has exactly the described members, in their order;
 * unknown ones are ignored. 2. A member of an unexpected type throws ServerError `protocol`. 3.
 * 64-bit numbers are bigint.
 */
import type { Argument, Asking, Member, Message, ReadOf, RequestOf } from "../../api/members.js";
import { present } from "../../base/assert.js";
import {
  bigintOf,
  bigintOrNull,
  boolOf,
  intOf,
  intOrNull,
  jsonText,
  listOf,
  textOf,
  textOrNull,
  textsOf,
  type JsonObject,
} from "./json.js";

type Values = Readonly<Record<string, unknown>>;

/** The transport hands an answer that is an array over as this member. */
const WHOLE_ANSWER = "list";

function memberOf(member: Member, body: JsonObject, name: string): unknown {
  const { kind, mayMiss } = member;
  const mayBeNull = member.nulls !== null && member.nulls !== "unsent";
  switch (kind) {
    case "bool":
      return mayMiss && body[name] === undefined ? false : boolOf(body, name);
    case "text":
      if (mayMiss) return textOrNull(body, name) ?? "";
      return mayBeNull ? textOrNull(body, name) : textOf(body, name);
    case "choice":
      return textOf(body, name);
    case "int32":
    case "uint32":
      return mayBeNull ? intOrNull(body, name) : intOf(body, name);
    case "int64":
      return mayBeNull ? bigintOrNull(body, name) : bigintOf(body, name);
    case "texts":
      return textsOf(body, name);
    case "list": {
      if (mayMiss && body[name] === undefined) return [];
      const items = present(member.items, "a list has items");
      return listOf(body, name).map((item) => objectOf(items, item));
    }
  }
}

function objectOf({ members }: Message, body: JsonObject): Values {
  const read: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(members)) {
    if (!member.unread) read[name] = memberOf(member, body, name);
  }
  return read;
}

/** Reads an answer. */
export function answerFromJson<M extends Message>(answer: M, body: JsonObject): ReadOf<M> {
  const [only] = Object.values(answer.members);
  // The description from which the type follows is the one by which it is read.
  if (!answer.bare) return objectOf(answer, body) as ReadOf<M>;
  const whole = memberOf(present(only, "a bare message has its member"), body, WHOLE_ANSWER);
  return whole as ReadOf<M>;
}

function argumentsIn(request: Asking, place: Argument["place"]): string[] {
  const sent = Object.entries(request.members).filter(([, argument]) => !argument.ignored);
  return sent.filter(([, argument]) => argument.place === place).map(([name]) => name);
}

/** The body of a request; null = it has none. */
export function bodyText<Q extends Asking>(request: Q, asked: RequestOf<Q>): string | null {
  const names = argumentsIn(request, "body");
  if (names.length === 0) return null;
  return jsonText(Object.fromEntries(names.map((name) => [name, (asked as Values)[name]])));
}

/** The path of a request with its query; an empty text is left out of it. */
export function pathText<Q extends Asking>(request: Q, path: string, asked: RequestOf<Q>): string {
  const valueOf = (name: string): string => String((asked as Values)[name]);
  let text = path;
  for (const name of argumentsIn(request, "path")) {
    text = text.replace("{id}", () => encodeURIComponent(valueOf(name)));
  }
  const given = argumentsIn(request, "query").filter((name) => valueOf(name) !== "");
  const query = given.map((name) => `${name}=${encodeURIComponent(valueOf(name))}`);
  return query.length === 0 ? text : `${text}?${query.join("&")}`;
}
