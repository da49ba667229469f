/**
 * Shapes of what travels between nodes: small codecs that are put together by declaration, one line
 * per member.
 *
 * Pure. Invariants: 1. A record's shape names every member of its type, or it does not compile:
 * nothing is left out on one of the two ways (P-053). 2. Members travel in the order of their
 * declaration; absent and zero differ. 3. Reading never throws and never allocates by a length that
 * the input has no bytes for (P-128): the reader turns failed and yields zeros.
 */
import { assert } from "./assert.js";
import type { ByteReader, ByteWriter } from "./codec.js";
import type { Hlc } from "./hlc.js";
import { Int64 } from "./int64.js";

export interface Shape<T> {
  write(writer: ByteWriter, value: T): void;
  /** Zeros when the reader fails. */
  read(reader: ByteReader): T;
}

/** One shape per member, in wire order. */
export type Members<T> = { readonly [Name in keyof T]-?: Shape<T[Name]> };

export const text: Shape<string> = {
  write: (writer, value) => void writer.text(value),
  read: (reader) => reader.text(),
};

export const bytes: Shape<Uint8Array> = {
  write: (writer, value) => void writer.bytes(value),
  read: (reader) => reader.bytes(),
};

export const boolean: Shape<boolean> = {
  write: (writer, value) => void writer.boolean(value),
  read: (reader) => reader.boolean(),
};

export const int32: Shape<number> = {
  write: (writer, value) => void writer.int32(value),
  read: (reader) => reader.int32(),
};

export const uint32: Shape<number> = {
  write: (writer, value) => void writer.uint32(value),
  read: (reader) => reader.uint32(),
};

/** A safe integer of either sign. */
export const int53: Shape<number> = {
  write: (writer, value) => void writer.int53(value),
  read: (reader) => reader.int53(),
};

export const bigint64: Shape<bigint> = {
  write: (writer, value) => void writer.int64(value),
  read: (reader) => reader.int64(),
};

export const lanes64: Shape<Int64> = {
  write: (writer, value) => void writer.int32(value.high).int32(value.low),
  read: (reader) => {
    const high = reader.int32();
    return new Int64(high, reader.int32());
  },
};

export const hlc: Shape<Hlc> = record<Hlc>({ n: int32, l: int53, c: uint32 });

/** null or a value. */
export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    write(writer, value) {
      writer.boolean(value !== null);
      if (value !== null) shape.write(writer, value);
    },
    read: (reader) => (reader.boolean() ? shape.read(reader) : null),
  };
}

/** At most `countMax` values; every one of them takes at least a byte. */
export function list<T>(shape: Shape<T>, countMax: number): Shape<readonly T[]> {
  return {
    write(writer, values) {
      assert(values.length <= countMax, "a list is not longer than its bound");
      writer.length(values.length);
      for (const value of values) shape.write(writer, value);
    },
    read(reader) {
      const count = reader.length();
      if (count > countMax || count > reader.remainingBytes) reader.fail();
      const values: T[] = [];
      while (values.length < count && !reader.failed) values.push(shape.read(reader));
      return values;
    },
  };
}

/** One of a fixed list of texts, sent as its place in it. */
export function oneOf<T extends string>(first: T, ...others: readonly T[]): Shape<T> {
  const all = [first, ...others];
  return {
    write(writer, value) {
      const at = all.indexOf(value);
      assert(at >= 0, "the text is one of the list");
      writer.uint8(at);
    },
    read(reader) {
      const value = all[reader.uint8()];
      if (value === undefined) reader.fail();
      return value ?? first;
    },
  };
}

export function record<T extends object>(members: Members<T>): Shape<T> {
  const names = Object.keys(members) as (keyof T)[];
  return {
    write(writer, value) {
      for (const name of names) members[name].write(writer, value[name]);
    },
    read(reader) {
      const value: Partial<T> = {};
      for (const name of names) value[name] = members[name].read(reader);
      // Every member has been read: the shape names them all.
      return value as T;
    },
  };
}

export interface Kinded {
  readonly kind: string;
}

/** The member of the union `U` that has the kind `Kind`, perhaps among other kinds. */
type MemberOf<U extends Kinded, Kind extends string> = U extends Kinded
  ? Kind extends U["kind"]
    ? U
    : never
  : never;

/** For every kind of a union the shapes of its other members. */
export type KindMembers<U extends Kinded> = {
  readonly [Kind in U["kind"]]: Members<Omit<MemberOf<U, Kind>, "kind">>;
};

/** For every kind of a union the number that stands for it and the shapes of its other members. */
export type Kinds<U extends Kinded> = {
  readonly [Kind in U["kind"]]: readonly [number, KindMembers<U>[Kind]];
};

/** The kinds of a union that stand in a table with more about each. */
export function numbered<U extends Kinded>(rows: {
  readonly [Kind in U["kind"]]: {
    readonly wire: number;
    readonly members: KindMembers<U>[Kind];
  };
}): Kinds<U> {
  const kinds: { [Kind in U["kind"]]?: Kinds<U>[Kind] } = {};
  for (const kind of Object.keys(rows) as U["kind"][]) {
    kinds[kind] = [rows[kind].wire, rows[kind].members];
  }
  // Every kind has a row: their type names them all.
  return kinds as Kinds<U>;
}

type AnyMembers = Readonly<Record<string, Shape<unknown>>>;

/** A union told apart by `kind`. A number that stands for nothing fails the reader. */
export function union<U extends Kinded>(kinds: Kinds<U>): Shape<U> {
  const numbers = new Map<string, number>();
  const members = new Map<
    number,
    readonly [string, readonly (readonly [string, Shape<unknown>])[]]
  >();
  const declared: Readonly<Record<string, readonly [number, AnyMembers]>> = kinds;
  for (const [kind, [number, shapes]] of Object.entries(declared)) {
    assert(!members.has(number), "every kind has a number of its own");
    numbers.set(kind, number);
    members.set(number, [kind, Object.entries(shapes)]);
  }
  const [fallback] = members.values();
  assert(fallback !== undefined, "a union has a kind");
  return {
    write(writer, value) {
      const number = numbers.get(value.kind);
      const found = number === undefined ? undefined : members.get(number);
      assert(number !== undefined && found !== undefined, "the kind is declared");
      writer.uint8(number);
      const whole: object = value;
      const source = whole as Readonly<Record<string, unknown>>;
      for (const [name, shape] of found[1]) shape.write(writer, source[name]);
    },
    read(reader) {
      const found = members.get(reader.uint8());
      if (found === undefined) reader.fail();
      const [kind, shapes] = found ?? fallback;
      const value: Record<string, unknown> = { kind };
      for (const [name, shape] of shapes) value[name] = shape.read(reader);
      // The declaration names every member of the kind.
      return value as U;
    },
  };
}
