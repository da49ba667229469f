/**
 * The language in which the administrative interface is described: what an answer holds and what a
 * request asks, member by member, for every wire at once.
 *
 * Plain data with the types that follow from it. Invariants: 1. A member is named as in JSON; its
 * gRPC field has the same name with a capital unless it says otherwise. 2. Members stand in the
 * order in which JSON has them. 3. 64-bit numbers are exact on every wire; whoever reads them gets
 * a bigint.
 */

/**
 * How gRPC, which has no null, tells it: a missing field, an empty text, or a field that is false.
 * `unsent`: the OpenAPI document allows for null, but none is ever sent.
 */
export type NullForm = "absent" | "empty" | "unsent" | { readonly flag: string };

/** One of a closed list of texts; the place in the list is its number. */
export interface Choice {
  /** As the server holds them. */
  readonly given: readonly string[];
  /** As they are told. */
  readonly texts: readonly string[];
  /** The wire on which the number travels instead of the text. */
  readonly numberOn: "grpc" | "json" | null;
}

/**
 * One member of an answer. `Given`: what the server holds; `Read`: what a client gets, that is the
 * texts of a choice and a bigint for every 64-bit number.
 */
export interface Member<Given = unknown, Read = unknown> {
  readonly kind: "text" | "bool" | "int32" | "uint32" | "int64" | "choice" | "list" | "texts";
  /** The gRPC field; null = the name of the member with a capital. */
  readonly field: string | null;
  /** null = there is always a value. */
  readonly nulls: NullForm | null;
  readonly choice: Choice | null;
  readonly items: Message | null;
  /** A JSON answer without it counts as the empty text, the empty list, or false. */
  readonly mayMiss: boolean;
  /** Only on the wire: it is no member of what a client gets. */
  readonly unread: boolean;
  /** For the compiler only. */
  readonly types?: readonly [given: Given, read: Read];
}
export type Members = Readonly<Record<string, Member>>;

/** A message of answers. */
export interface Message<Ms extends Members = Members, Bare extends boolean = boolean> {
  /** Of the protobuf message; "" = it has none. */
  readonly name: string;
  readonly members: Ms;
  /** In JSON the value of the only member is the whole answer. */
  readonly bare: Bare;
}

type GivenMember<M> = M extends Member<infer Given, unknown> ? Given : never;
type ReadMember<M> = M extends Member<unknown, infer Read> ? Read : never;
type Unread = { readonly unread: true };

/** What the server hands in for a message. */
export type GivenOf<M> =
  M extends Message<infer Ms, infer Bare>
    ? Bare extends true
      ? GivenMember<Ms[keyof Ms]>
      : { readonly [Name in keyof Ms]: GivenMember<Ms[Name]> }
    : never;
/** What a client gets of it. */
export type ReadOf<M> =
  M extends Message<infer Ms, infer Bare>
    ? Bare extends true
      ? ReadMember<Ms[keyof Ms]>
      : {
          readonly [Name in keyof Ms as Ms[Name] extends Unread ? never : Name]: ReadMember<
            Ms[Name]
          >;
        }
    : never;

const ORDINARY = {
  field: null,
  nulls: null,
  choice: null,
  items: null,
  mayMiss: false,
  unread: false,
} as const;

export const text: Member<string, string> = { ...ORDINARY, kind: "text" };
export const bool: Member<boolean, boolean> = { ...ORDINARY, kind: "bool" };
export const int32: Member<number, number> = { ...ORDINARY, kind: "int32" };
export const int64: Member<bigint, bigint> = { ...ORDINARY, kind: "int64" };
/** A 64-bit number that the server holds as a safe integer: versions, generations, times. */
export const safeInt64: Member<number, bigint> = { ...ORDINARY, kind: "int64" };
/** A 64-bit number for which the document allows null. */
export const int64OrUnsentNull: Member<bigint, bigint> = { ...int64, nulls: "unsent" };
/** A text that says more: where JSON has none it is empty. */
export const remark: Member<string, string> = { ...text, mayMiss: true };

/** A member that came later: a node of an earlier version answers without it. */
export function later<M extends Member>(member: M): M {
  return { ...member, mayMiss: true };
}

export function textOrNull(nulls: NullForm): Member<string | null, string | null> {
  return { ...ORDINARY, kind: "text", nulls };
}
export function int32OrNull(nulls: NullForm): Member<number | null, number | null> {
  return { ...ORDINARY, kind: "int32", nulls };
}
export function uint32OrNull(nulls: NullForm): Member<number | null, number | null> {
  return { ...ORDINARY, kind: "uint32", nulls };
}
export function int64OrNull(nulls: NullForm): Member<bigint | null, bigint | null> {
  return { ...ORDINARY, kind: "int64", nulls };
}

/** A 64-bit number that the server holds as a safe integer. */
export function safeInt64OrNull(nulls: NullForm): Member<number | null, bigint | null> {
  return { ...ORDINARY, kind: "int64", nulls };
}

/** One of `texts`, told as text on every wire. */
export function oneOf<const Texts extends readonly string[]>(
  ...texts: Texts
): Member<Texts[number], string> {
  return { ...ORDINARY, kind: "choice", choice: { given: texts, texts, numberOn: null } };
}
/** One of the names of `texts`, told by its text in JSON and by its place over gRPC. */
export function enumeration<Name extends string>(
  texts: Readonly<Record<Name, string>>,
): Member<Name, string> {
  const choice = { given: Object.keys(texts), texts: Object.values<string>(texts) };
  return { ...ORDINARY, kind: "choice", choice: { ...choice, numberOn: "grpc" } };
}
/** One of `texts`, told by its place on the wire `numberOn`, by its text on the other. */
export function numbered<const Texts extends readonly string[]>(
  numberOn: "grpc" | "json",
  texts: Texts,
): Member<Texts[number], string> {
  return { ...ORDINARY, kind: "choice", choice: { given: texts, texts, numberOn } };
}
/** Only on the wire: no member of what a client gets. */
export function unread<Given>(member: Member<Given>): Member<Given> & Unread {
  return { ...member, unread: true };
}

export function list<M extends Message>(
  items: M,
): Member<readonly GivenOf<M>[], readonly ReadOf<M>[]> {
  return { ...ORDINARY, kind: "list", items };
}

/** A list of plain texts. */
export const texts: Member<readonly string[], readonly string[]> = { ...ORDINARY, kind: "texts" };

/** The same member under another gRPC field. */
export function inField<M extends Member>(field: string, member: M): M {
  return { ...member, field };
}

/** `name`: the protobuf message; "" = it is not sent over gRPC. */
export function message<const Ms extends Members>(name: string, members: Ms): Message<Ms, false> {
  return { name, members, bare: false };
}
/** A message whose only member is, in JSON, the whole answer. */
export function bareMessage<const Ms extends Members>(
  name: string,
  members: Ms,
): Message<Ms, true> {
  return { name, members, bare: true };
}

/** The gRPC field of a member or an argument. */
export function fieldOf(name: string, { field }: { readonly field: string | null }): string {
  return field ?? name.charAt(0).toUpperCase() + name.slice(1);
}

/** One argument of a request. `Value`: what an operation gets. */
export interface Argument<Value = unknown> {
  readonly kind: "text" | "bool" | "int32" | "int64";
  readonly field: string | null;
  /** Where REST has it. */
  readonly place: "body" | "query" | "path";
  /** For the OpenAPI document. */
  readonly note: string;
  /** REST takes it, and nobody looks at it. */
  readonly ignored: boolean;
  /** For the compiler only. */
  readonly type?: Value;
}
export type Arguments = Readonly<Record<string, Argument>>;

/** A request: omitted arguments count as empty, zero or false. */
export interface Asking<As extends Arguments = Arguments> {
  readonly name: string;
  readonly members: As;
}
type Ignored = { readonly ignored: true };
type ValueOf<A> = A extends Argument<infer Value> ? Value : never;
/** The arguments of a request as an operation takes them and a client gives them. */
export type RequestOf<Q> =
  Q extends Asking<infer As>
    ? { readonly [Name in keyof As as As[Name] extends Ignored ? never : Name]: ValueOf<As[Name]> }
    : never;

const IN_BODY = { field: null, place: "body", ignored: false } as const;

export function textArgument(note: string): Argument<string> {
  return { ...IN_BODY, kind: "text", note };
}
export function boolArgument(note: string): Argument<boolean> {
  return { ...IN_BODY, kind: "bool", note };
}
export function int32Argument(note: string): Argument<number> {
  return { ...IN_BODY, kind: "int32", note };
}
export function int64Argument(note: string): Argument<bigint> {
  return { ...IN_BODY, kind: "int64", note };
}
/** What a URL holds is text. */
type UrlArgument = Argument<string> | Argument<boolean>;

export function inQuery<A extends UrlArgument>(argument: A): A {
  return { ...argument, place: "query" };
}
/** The variable part of the path, `{id}`. */
export function inPath<A extends UrlArgument>(argument: A): A {
  return { ...argument, place: "path" };
}
/** Taken by REST, for callers that send it, and not looked at. */
export function ignored<Value>(argument: Argument<Value>): Argument<Value> & Ignored {
  return { ...argument, note: "accepted and ignored", ignored: true };
}

export function asking<const As extends Arguments>(name: string, members: As): Asking<As> {
  return { name, members };
}
