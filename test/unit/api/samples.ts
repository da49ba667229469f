/**
 * Values for whatever `api/` describes: a full answer, an answer with every null, and what a client
 * must get of each.
 */
import type { Argument, Asking, Member, Message } from "../../../src/api/members.js";
import { INT64_MAX, INT64_MIN } from "../../../src/base/int64.js";

export type Values = Readonly<Record<string, unknown>>;

/** Which value each member has: numbers differ by it, "nulls" has null wherever it may stand. */
export type Mode = "large" | "small" | "nulls";

const TEXT = 'a"b\\c\u0001é\u{1F600}/ &?';

function givenMember(member: Member, name: string, mode: Mode): unknown {
  const mayBeNull = member.nulls !== null && member.nulls !== "unsent";
  if (mode === "nulls" && mayBeNull) return null;
  switch (member.kind) {
    case "text":
      return `${name} ${TEXT}`;
    case "bool":
      return mode === "large";
    case "int32":
      return mode === "large" ? 2 ** 31 - 1 : -(2 ** 31);
    case "uint32":
      return mode === "large" ? 2 ** 32 - 1 : 0;
    case "int64":
      return mode === "large" ? INT64_MAX : INT64_MIN;
    case "choice":
      return member.choice?.given.at(mode === "large" ? -1 : 0);
    case "texts":
      return mode === "small" ? [] : [`${name} ${TEXT}`, ""];
    case "list":
      return mode === "small"
        ? []
        : [givenOf(member.items as Message, "small"), givenOf(member.items as Message, mode)];
  }
}

/** What an operation might answer. */
export function givenOf(message: Message, mode: Mode): Values | unknown[] {
  const members = Object.entries(message.members);
  const values = members.map(([name, member]) => [name, givenMember(member, name, mode)] as const);
  return message.bare ? (values[0]?.[1] as unknown[]) : Object.fromEntries(values);
}

function readMember(member: Member, value: unknown): unknown {
  if (value === null) return null;
  if (member.kind === "choice") {
    return member.choice?.texts[member.choice.given.indexOf(value as string)];
  }
  if (member.kind !== "list") return value;
  return (value as Values[]).map((item) => readOf(member.items as Message, item));
}

/** What a client gets of it. */
export function readOf(message: Message, given: Values | unknown[]): unknown {
  const members = Object.entries(message.members);
  if (message.bare) return readMember(members[0]?.[1] as Member, given);
  return Object.fromEntries(
    members
      .filter(([, member]) => !member.unread)
      .map(([name, member]) => [name, readMember(member, (given as Values)[name])]),
  );
}

function askedArgument({ kind }: Argument, name: string, mode: Mode): unknown {
  switch (kind) {
    case "text":
      return mode === "nulls" ? "" : `${name} ${TEXT}`;
    case "bool":
      return mode === "large";
    case "int32":
      return mode === "large" ? 2 ** 31 - 1 : 0;
    case "int64":
      return mode === "large" ? INT64_MAX : INT64_MIN;
  }
}

/** What a client might ask. A path has no empty part. */
export function askedOf(request: Asking, mode: Mode): Values {
  const sent = Object.entries(request.members).filter(([, argument]) => !argument.ignored);
  return Object.fromEntries(
    sent.map(([name, argument]) => {
      const empty = mode === "nulls" && argument.place === "path";
      return [name, askedArgument(argument, name, empty ? "small" : mode)];
    }),
  );
}
