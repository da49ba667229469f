/**
 * The messages that `api/` describes, in JSON: the table by which a request is decoded, and the
 * text of an answer.
 *
 * Invariants: 1. An answer has every described member, in their order. 2. Every
 * 64-bit number is a plain JSON number with all its digits.
 */
import type { Argument, Asking, GivenOf, Member, Message } from "../../api/members.js";
import { assert, present } from "../../base/assert.js";
import { listText, quoted } from "./json-text.js";
import { bool, int32, int64, MemberTable, text, type Member as TableMember } from "./members.js";

type Values = Readonly<Record<string, unknown>>;

function tableMember(name: string, argument: Argument): TableMember<unknown> {
  const { kind, note } = argument;
  switch (kind) {
    case "text":
      return text(name, note);
    case "bool":
      return bool(name, note);
    case "int32":
      return int32(name, note);
    case "int64":
      return int64(name, 0n, note);
  }
}

/** The arguments of a request that REST has in one place. */
export function argumentsIn(
  request: Asking,
  place: Argument["place"],
): readonly (readonly [name: string, argument: Argument])[] {
  return Object.entries(request.members).filter(([, argument]) => argument.place === place);
}

/** The table of the body; null = there is none. */
export function bodyTable(request: Asking): MemberTable | null {
  const list = argumentsIn(request, "body");
  if (list.length === 0) return null;
  return new MemberTable(list.map(([name, argument]) => tableMember(name, argument)));
}

function memberText(member: Member, value: unknown): string {
  if (value === null) return "null";
  switch (member.kind) {
    case "text":
      return quoted(value as string);
    case "choice": {
      const { given, texts, numberOn } = present(member.choice, "a choice has texts");
      const number = given.indexOf(value as string);
      assert(number >= 0, "a choice is one of its list");
      return numberOn === "json" ? String(number) : quoted(texts[number] as string);
    }
    case "list": {
      const items = present(member.items, "a list has items");
      return listText(value as readonly Values[], (item) => objectText(items, item));
    }
    case "texts":
      return listText(value as readonly string[], quoted);
    default:
      return String(value);
  }
}

function objectText({ members }: Message, values: Values): string {
  let written = "{";
  for (const [name, member] of Object.entries(members)) {
    const comma = written === "{" ? "" : ",";
    written += `${comma}"${name}":${memberText(member, values[name])}`;
  }
  return `${written}}`;
}

/** An answer as JSON. */
export function answerText<M extends Message>(answer: M, given: GivenOf<M>): string {
  const [only] = Object.values(answer.members);
  if (answer.bare) return memberText(present(only, "a bare message has its member"), given);
  return objectText(answer, given as Values);
}
