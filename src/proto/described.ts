/**
 * The messages that `api/` describes, over gRPC: from what the server holds or a client asks to the
 * fields of the generated codec, and back.
 *
 * Invariants: 1. Every field is written, also with the value that counts as none. 2.
 * What is read has exactly the described members, in their order; a number that no choice has reads
 * as `Unknown(…)`.
 */
import {
  fieldOf,
  type Argument,
  type Asking,
  type GivenOf,
  type Member,
  type Message,
  type ReadOf,
  type RequestOf,
} from "../api/members.js";
import { assert, present } from "../base/assert.js";
import {
  bigIntToHalves,
  halvesToBigInt,
  type Int64Halves,
  type MessageCodec,
  type ProtoReader,
  type ProtoWriter,
} from "./codec.js";
import * as backups from "./generated/backups.js";
import * as cluster from "./generated/cluster.js";
import * as keyvalues from "./generated/keyvalues.js";

type Fields = Readonly<Record<string, unknown>>;
type Codec = MessageCodec<Fields>;

const GENERATED: Readonly<Record<string, unknown>> = { ...keyvalues, ...cluster, ...backups };

function codecOf(name: string): Codec {
  // The names stand in the .proto files; a test holds the two against each other.
  return present(GENERATED[name], `there is a message ${name}`) as Codec;
}

function numberOf(member: Member, value: unknown): number {
  const number = present(member.choice, "a choice has texts").given.indexOf(value as string);
  assert(number >= 0, "a choice is one of its list");
  return number;
}

function fieldValue(member: Member, value: unknown): unknown {
  if (value === null) return member.nulls === "empty" ? "" : null;
  switch (member.kind) {
    case "int64":
      return typeof value === "bigint" ? bigIntToHalves(value) : value;
    case "choice": {
      const number = numberOf(member, value);
      return member.choice?.numberOn === "grpc" ? number : member.choice?.texts[number];
    }
    case "list": {
      const items = present(member.items, "a list has items");
      return (value as readonly unknown[]).map((item) => fieldsOf(items, item as Fields));
    }
    default:
      return value;
  }
}

function fieldsOf({ members }: Message, value: Fields): Fields {
  const fields: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(members)) {
    const { nulls } = member;
    fields[fieldOf(name, member)] = fieldValue(member, value[name]);
    if (nulls !== null && typeof nulls === "object") fields[nulls.flag] = value[name] !== null;
  }
  return fields;
}

function memberValue(member: Member, name: string, fields: Fields): unknown {
  const { nulls } = member;
  const value = fields[fieldOf(name, member)];
  if (nulls !== null && typeof nulls === "object" && fields[nulls.flag] === false) return null;
  if (nulls === "empty" && value === "") return null;
  switch (member.kind) {
    case "int64":
      if (nulls === "absent" && (value ?? null) === null) return null;
      return halvesToBigInt(value as Int64Halves);
    case "choice":
      if (typeof value !== "number") return value;
      return member.choice?.texts[value] ?? `Unknown(${value})`;
    case "list": {
      const items = present(member.items, "a list has items");
      return (value as readonly Fields[]).map((item) => valueOf(items, item));
    }
    default:
      return value;
  }
}

function valueOf({ members }: Message, fields: Fields): Fields {
  const value: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(members)) {
    if (!member.unread) value[name] = memberValue(member, name, fields);
  }
  return value;
}

function onlyMember({ members }: Message): string {
  return present(Object.keys(members)[0], "a bare message has its member");
}

/** Writes an answer. */
export function writeAnswer<M extends Message>(
  answer: M,
  given: GivenOf<M>,
  writer: ProtoWriter,
): void {
  const value = answer.bare ? { [onlyMember(answer)]: given } : given;
  codecOf(answer.name).encode(fieldsOf(answer, value as Fields), writer);
}

/** Reads an answer. Throws when the bytes are no such message. */
export function readAnswer<M extends Message>(
  answer: M,
  reader: ProtoReader,
  lengthBytes?: number,
): ReadOf<M> {
  const value = valueOf(answer, codecOf(answer.name).decode(reader, lengthBytes));
  return (answer.bare ? value[onlyMember(answer)] : value) as ReadOf<M>;
}

function sent(request: Asking): [name: string, argument: Argument][] {
  return Object.entries(request.members).filter(([, argument]) => !argument.ignored);
}

/** Writes a request. */
export function writeRequest<Q extends Asking>(
  request: Q,
  asked: RequestOf<Q>,
  writer: ProtoWriter,
): void {
  const fields: Record<string, unknown> = {};
  for (const [name, argument] of sent(request)) {
    const value = (asked as Fields)[name];
    fields[fieldOf(name, argument)] = typeof value === "bigint" ? bigIntToHalves(value) : value;
  }
  codecOf(request.name).encode(fields, writer);
}

/** Reads a request. Throws when the bytes are no such message. */
export function readRequest<Q extends Asking>(request: Q, reader: ProtoReader): RequestOf<Q> {
  const fields = codecOf(request.name).decode(reader);
  const asked: Record<string, unknown> = {};
  for (const [name, argument] of sent(request)) {
    const value = fields[fieldOf(name, argument)];
    asked[name] = argument.kind === "int64" ? halvesToBigInt(value as Int64Halves) : value;
  }
  return asked as RequestOf<Q>;
}
