/**
 * Member tables: what a request body may hold. The one source for validation, decoding and the
 * OpenAPI document.
 *
 * Invariants: 1. A table names every member that the server accepts; all others are refused. 2.
 * Each member says what it counts as when it is omitted or null. 3. A table has at most 31 members
 * (the decoder keeps the ones it has seen in one integer), each with an ASCII name.
 */
import { assert } from "../../base/assert.js";
import { encodeText } from "../../base/bytes.js";
import { hashOfName } from "./json-reader.js";

/** How a value is read; the decoder has one branch per kind. */
export const Kind = {
  text: 0,
  int64: 1,
  int32: 2,
  bool: 3,
  base64: 4,
  durability: 5,
  owner: 6,
  items: 7,
  /** Transactional members: they must say nothing, which is all that is kept of them. */
  emptyStamp: 8,
  emptyText: 9,
  emptyInteger: 10,
  emptyPolicy: 11,
  uint64: 12,
  texts: 13,
} as const;

/** What one object held. */
export interface Decoded {
  readonly values: readonly unknown[];
  /** Every transactional member said nothing. */
  readonly plain: boolean;
  /** `durability` was a JSON number. */
  readonly numericDurability: boolean;
  /** The first member whose number does not fit, or null. */
  readonly misfit: string | null;
}

/** One member; `Value` is what decoding yields for it. */
export interface Member<Value> {
  readonly name: string;
  readonly nameBytes: Uint8Array;
  readonly kind: number;
  /** Value of an omitted or null member. */
  readonly absent: Value;
  /** Items only: the table of one item and what becomes of it. */
  readonly items: ItemReader | null;
  /** For the OpenAPI document. */
  readonly note: string;
}
export interface ItemReader {
  readonly table: MemberTable;
  build(decoded: Decoded): unknown;
}

export type Members = readonly Member<unknown>[];
/** The values that a list of members decodes to, in its order. */
export type ValuesOf<M extends Members> = {
  readonly [At in keyof M]: M[At] extends Member<infer Value> ? Value : never;
};

/** A list of members, arranged for the decoder. */
export class MemberTable {
  readonly members: Members;
  /** Values when nothing was sent. */
  readonly absent: readonly unknown[];
  /** Positions of the members by hash of their names. */
  private readonly buckets: readonly (readonly number[])[];
  private readonly byName: ReadonlyMap<string, number>;

  constructor(members: Members) {
    assert(members.length <= 31, "a member table has at most 31 members");
    const buckets: number[][] = Array.from({ length: 64 }, () => []);
    members.forEach((member, at) => (buckets[hashOfName(member.name)] as number[]).push(at));
    this.members = members;
    this.absent = members.map((member) => member.absent);
    this.buckets = buckets;
    this.byName = new Map(members.map((member, at) => [member.name, at]));
    assert(this.byName.size === members.length, "a member table names each member once");
  }

  bucket(hash: number): readonly number[] {
    return this.buckets[hash] as readonly number[];
  }

  /** Position of the member `name`, or -1. */
  find(name: string): number {
    return this.byName.get(name) ?? -1;
  }
}

function member<Value>(name: string, kind: number, absent: Value, note: string): Member<Value> {
  return { name, nameBytes: encodeText(name), kind, absent, items: null, note };
}

/** Text; omitted or null counts as empty. */
export function text(name: string, note: string): Member<string> {
  return member(name, Kind.text, "", note);
}
export function optionalText(name: string, note: string): Member<string | null> {
  return member<string | null>(name, Kind.text, null, note);
}
/** A 64-bit integer, sent as a number or as a text of digits. */
export function int64(name: string, absent: bigint, note: string): Member<bigint> {
  return member(name, Kind.int64, absent, note);
}
export function optionalInt64(name: string, note: string): Member<bigint | null> {
  return member<bigint | null>(name, Kind.int64, null, note);
}
/** An unsigned 64-bit integer; omitted or null counts as 0. */
export function uint64(name: string, note: string): Member<bigint> {
  return member(name, Kind.uint64, 0n, note);
}
export function int32(name: string, note: string): Member<number> {
  return member(name, Kind.int32, 0, note);
}
export function optionalInt32(name: string, note: string): Member<number | null> {
  return member<number | null>(name, Kind.int32, null, note);
}
/** A list of texts. */
export function texts(name: string, note: string): Member<readonly string[] | null> {
  return member<readonly string[] | null>(name, Kind.texts, null, note);
}
export function bool(name: string, note: string): Member<boolean> {
  return member(name, Kind.bool, false, note);
}
export function base64(name: string, note: string): Member<Uint8Array | null> {
  return member<Uint8Array | null>(name, Kind.base64, null, note);
}
/** Owner bytes, sent as text (or as text that begins with `base64:`). */
export function owner(name: string, note: string): Member<Uint8Array> {
  return member(name, Kind.owner, new Uint8Array(0), note);
}
/** As `owner`; omitted or null is none. */
export function optionalOwner(name: string, note: string): Member<Uint8Array | null> {
  return member<Uint8Array | null>(name, Kind.owner, null, note);
}
/**
 * 0, 1, "Ephemeral", "Persistent"; what is none of these decodes to a number that no operation
 * accepts.
 */
export function durability(): Member<number> {
  const note = "0 or `Ephemeral`, 1 or `Persistent`; omitted = Persistent";
  return member("durability", Kind.durability, 1, note);
}
/** A list of objects; `build` makes the request item of each. */
export function items<M extends Members, Item>(
  name: string,
  table: { readonly members: M; readonly table: MemberTable },
  build: (values: ValuesOf<M>, decoded: Decoded) => Item,
  note: string,
): Member<readonly Item[] | null> {
  return {
    ...member<readonly Item[] | null>(name, Kind.items, null, note),
    items: {
      table: table.table,
      // The decoder fills the values by the same table from which their types were derived.
      build: (decoded) => build(decoded.values as unknown as ValuesOf<M>, decoded),
    },
  };
}

/** Accepted wherever a transaction could be named, and required to say nothing. */
const TRANSACTIONAL = [
  member("transactionId", Kind.emptyStamp, true, "must be zero"),
  member("readTimestamp", Kind.emptyStamp, true, "must be zero"),
  member("coordinatorKey", Kind.emptyText, true, "must be empty"),
  member("operationIdHigh", Kind.emptyInteger, true, "must be 0"),
  member("operationIdLow", Kind.emptyInteger, true, "must be 0"),
  member("routedGeneration", Kind.emptyInteger, true, "must be 0"),
  member("conflictPolicy", Kind.emptyPolicy, true, "must be 0 or 1"),
] as const;

/** A list of members with its table; the list keeps the types of the values. */
export interface TypedTable<M extends Members> {
  readonly members: M;
  readonly table: MemberTable;
}
export function tableOf<const M extends Members>(...members: M): TypedTable<M> {
  return { members, table: new MemberTable(members) };
}
/** A table followed by the transactional members. */
export function transactionalTableOf<const M extends Members>(...members: M): TypedTable<M> {
  return { members, table: new MemberTable([...members, ...TRANSACTIONAL]) };
}
