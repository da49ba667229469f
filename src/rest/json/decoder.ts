/**
 * Reads one request body by its member table: every fault is typed and names its member.
 *
 * Invariants: 1. A body that is not well-formed JSON is `malformed-json` whatever else is wrong
 * with it; otherwise the first fault in reading order is reported. 2. Numbers that do not fit are
 * no fault here: they are noted, and the caller decides (InvalidInput on the data APIs, 400
 * elsewhere). 3. Names are only compared with the table, never used as property names, so
 * `__proto__` is just one more unknown member. 4. Decoding keeps nothing of the body.
 */
import { encodeText, startsWithBytes } from "../../base/bytes.js";
import { MANY_ITEMS_MAX } from "../../base/limits.js";
import { decodeBase64 } from "./base64.js";
import { int64FromText, JsonReader, uint64FromText } from "./json-reader.js";
import { Token } from "./json-scanner.js";
import { type Decoded, Kind, type Member, MemberTable } from "./members.js";

export type BodyFaultCode =
  | "malformed-json"
  | "unknown-member"
  | "duplicate-member"
  | "wrong-type"
  | "invalid-base64"
  | "invalid-number";

export interface BodyFault {
  readonly code: BodyFaultCode;
  readonly detail: string;
}

/** A durability that no operation accepts. */
const UNKNOWN_DURABILITY = -1;
const PERSISTENT = encodeText("Persistent");
const OWNER_BASE64 = encodeText("base64:");
/**
 * Items kept of one call; a call of more than MANY_ITEMS_MAX is refused anyway, and memory stays
 * bounded.
 */
const ITEMS_KEPT_MAX = 2 * MANY_ITEMS_MAX;

const STAMP_TABLE = new MemberTable(
  ["n", "l", "c"].map((name) => ({
    name,
    nameBytes: encodeText(name),
    kind: Kind.emptyInteger,
    absent: true,
    items: null,
    note: "",
  })),
);

class Scratch implements Decoded {
  readonly values: unknown[];
  plain = true;
  numericDurability = false;
  misfit: string | null = null;
  constructor(table: MemberTable) {
    this.values = table.absent.slice();
  }
}

class Decoder {
  private readonly reader = new JsonReader();
  private fault: BodyFault | null = null;

  decode(body: Buffer, table: MemberTable): Decoded | BodyFault {
    const decoded = new Scratch(table);
    this.fault = null;
    const stopped = this.reader.run(body, () => {
      if (this.reader.peek() === Token.object) this.object(table, decoded, "");
      else {
        this.report("wrong-type", "the body must be one JSON object");
        this.reader.skip();
      }
    });
    if (stopped !== null) {
      return { code: "malformed-json", detail: `not valid JSON at byte ${stopped.offset}` };
    }
    return this.fault ?? decoded;
  }

  private report(code: BodyFaultCode, detail: string): void {
    this.fault ??= { code, detail };
  }

  private wrongType(path: string, expected: string): null {
    this.report("wrong-type", `member "${path}" must be ${expected}`);
    this.reader.skip();
    return null;
  }

  private memberAt(table: MemberTable): number {
    const hash = this.reader.nameHash();
    if (hash < 0) return table.find(this.reader.text());
    for (const at of table.bucket(hash)) {
      if (this.reader.textIs((table.members[at] as Member<unknown>).nameBytes)) return at;
    }
    return -1;
  }

  private object(table: MemberTable, into: Scratch, prefix: string): void {
    const reader = this.reader;
    let seen = 0;
    for (let has = reader.openObject(); has; has = reader.moreMembers()) {
      reader.name();
      const at = this.memberAt(table);
      if (at < 0 || (seen & (1 << at)) !== 0) {
        const code = at < 0 ? "unknown-member" : "duplicate-member";
        const shown = reader.text().slice(0, 64);
        this.report(code, `${at < 0 ? "unknown" : "duplicate"} member "${prefix}${shown}"`);
        reader.skip();
        continue;
      }
      seen |= 1 << at;
      const member = table.members[at] as Member<unknown>;
      const token = reader.peek();
      if (token === Token.none) {
        reader.literal();
        // An explicit null numbers as omitted, and so does its durability: it is no JSON number.
        continue;
      }
      into.values[at] = this.value(member, token, into, prefix);
    }
  }

  private value(member: Member<unknown>, token: number, into: Scratch, prefix: string): unknown {
    const path = prefix === "" ? member.name : prefix + member.name;
    switch (member.kind) {
      case Kind.text:
        return token === Token.text ? this.reader.readText() : this.wrongType(path, "a text");
      case Kind.int64:
        return this.int64(token, into, path) ?? member.absent;
      case Kind.uint64:
        return this.uint64(token, into, path) ?? member.absent;
      case Kind.int32:
        return this.int32(token, into, path) ?? member.absent;
      case Kind.bool:
        return this.bool(token, path);
      case Kind.base64:
        return token === Token.text ? this.base64(path) : this.wrongType(path, "a base64 text");
      case Kind.durability:
        return this.durability(token, into, path);
      case Kind.owner:
        return token === Token.text ? this.owner(path) : this.wrongType(path, "a text");
      case Kind.items:
        return token === Token.array ? this.items(member, path) : this.wrongType(path, "a list");
      case Kind.texts:
        return token === Token.array ? this.texts(path) : this.wrongType(path, "a list");
      default:
        this.transactional(member.kind, token, into, path);
        return true;
    }
  }

  private int64(token: number, into: Scratch, path: string): bigint | null {
    let value: bigint | null | undefined;
    if (token === Token.number) value = this.reader.readInt64();
    else if (token === Token.text) {
      value = int64FromText(this.reader.readText());
      if (value === undefined) {
        this.report("wrong-type", `member "${path}" must be an integer or a text of its digits`);
        return null;
      }
    } else return this.wrongType(path, "an integer");
    if (value === null) into.misfit ??= path;
    return value;
  }

  private uint64(token: number, into: Scratch, path: string): bigint | null {
    if (token !== Token.number && token !== Token.text) return this.wrongType(path, "an integer");
    const value =
      token === Token.number ? this.reader.readUint64() : uint64FromText(this.reader.readText());
    if (value === undefined) {
      this.report("wrong-type", `member "${path}" must be an integer or a text of its digits`);
      return null;
    }
    if (value === null) into.misfit ??= path;
    return value;
  }

  private int32(token: number, into: Scratch, path: string): number | null {
    if (token !== Token.number) return this.wrongType(path, "an integer");
    const value = this.reader.readInt32();
    if (value === null) into.misfit ??= path;
    return value;
  }

  private bool(token: number, path: string): boolean | null {
    if (token !== Token.yes && token !== Token.no) return this.wrongType(path, "true or false");
    this.reader.literal();
    return token === Token.yes;
  }

  private base64(path: string): Uint8Array | null {
    const bytes = this.reader.readBase64();
    if (bytes === null) this.report("invalid-base64", `member "${path}" is not base64`);
    return bytes;
  }

  private owner(path: string): Uint8Array | null {
    const sent = this.reader.readBytes();
    if (!startsWithBytes(sent, OWNER_BASE64)) return sent;
    const bytes = decodeBase64(sent, OWNER_BASE64.length);
    if (bytes === null) {
      this.report("invalid-base64", `member "${path}" is not base64 after "base64:"`);
    }
    return bytes;
  }

  private durability(token: number, into: Scratch, path: string): number {
    if (token === Token.number) {
      into.numericDurability = true;
      return this.int32(token, into, path) ?? UNKNOWN_DURABILITY;
    }
    if (token !== Token.text) {
      this.wrongType(path, "an integer or a name");
      return UNKNOWN_DURABILITY;
    }
    this.reader.scanText();
    if (this.reader.textIs(PERSISTENT)) return 1;
    const name = this.reader.text();
    return name === "Persistent" ? 1 : name === "Ephemeral" ? 0 : UNKNOWN_DURABILITY;
  }

  private transactional(kind: number, token: number, into: Scratch, path: string): void {
    if (kind === Kind.emptyText) {
      if (token !== Token.text) this.wrongType(path, "a text");
      else if (this.reader.readText() !== "") into.plain = false;
    } else if (kind === Kind.emptyStamp) {
      if (token === Token.object) this.emptyStamp(into, `${path}.`);
      else this.wrongType(path, "a timestamp");
    } else {
      const value = this.int64(token, into, path) ?? 0n;
      if (value !== 0n && !(kind === Kind.emptyPolicy && value === 1n)) into.plain = false;
    }
  }

  private emptyStamp(into: Scratch, prefix: string): void {
    const stamp = new Scratch(STAMP_TABLE);
    this.object(STAMP_TABLE, stamp, prefix);
    into.plain = into.plain && stamp.plain;
    into.misfit ??= stamp.misfit;
  }

  private texts(path: string): string[] {
    const { reader } = this;
    const list: string[] = [];
    let count = 0;
    for (let has = reader.openArray(); has; has = reader.moreElements()) {
      if (reader.peek() !== Token.text) this.wrongType(`${path}[${count}]`, "a text");
      else if (list.length < ITEMS_KEPT_MAX) list.push(reader.readText());
      else reader.skip();
      count++;
    }
    return list;
  }

  private items(member: Member<unknown>, path: string): unknown[] {
    const reader = this.reader;
    const list: unknown[] = [];
    const source = member.items;
    let count = 0;
    for (let has = reader.openArray(); has; has = reader.moreElements()) {
      const token = reader.peek();
      const at = `${path}[${count}]`;
      count++;
      if (token !== Token.object || source === null) {
        this.wrongType(at, "an object");
        continue;
      }
      const item = new Scratch(source.table);
      this.object(source.table, item, `${at}.`);
      if (this.fault === null && list.length < ITEMS_KEPT_MAX) list.push(source.build(item));
    }
    return list;
  }
}

const decoder = new Decoder();

/** Decodes `body` by `table`; what comes back has `code` exactly when the body is refused. */
export function decodeBody(body: Buffer, table: MemberTable): Decoded | BodyFault {
  return decoder.decode(body, table);
}
