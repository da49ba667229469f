/**
 * A strict JSON scanner over UTF-8 bytes: one pass, no tree, exact integers (RFC 8259).
 *
 * Owns the position in one body. May call base and node:buffer. The decoder drives it by what it expects; nothing is
 * built that nobody asked for. Invariants: 1. Every fault of syntax, encoding or nesting throws the one MalformedJson
 * object, and only `JsonReader.run` lets it out as data. 2. Text handed out is well-formed Unicode and holds no
 * reference to the body. 3. No digit of an integer is lost: int64 leaves as bigint or as "does not fit". 4. Work and
 * stack are bounded by the body size and by JSON_NESTING_MAX.
 */
import { isUtf8 } from "node:buffer";
import { INT32_MAX, INT32_MIN, isInt64 } from "../base/int64.js";
import { isWellFormedText } from "../base/bytes.js";
import { JSON_NESTING_MAX } from "../base/limits.js";

/** Thrown inside the reader only; one object for all faults, because a stack trace per bad body would be a gift. */
class MalformedJson extends Error {
  override readonly name = "MalformedJson";
}
const MALFORMED = new MalformedJson("not valid JSON");

/** What stands at the current position. */
export const Token = {
  text: 0,
  number: 1,
  object: 2,
  array: 3,
  yes: 4,
  no: 5,
  none: 6,
} as const;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Integers of so many digits are exact doubles. */
const EXACT_DIGITS = 15;
const INT64_DIGITS = 19;
/** Up to this length joining characters is cheaper than a call into the runtime. */
const JOIN_MAX = 8;
const INTEGER_TEXT = /^-?[0-9]+$/;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const EMPTY = Buffer.alloc(0);

/** The int64 that `text` (of the form -?[0-9]+) names, or null when it is outside the range. */
function int64FromDigits(text: string): bigint | null {
  const negative = text.startsWith("-");
  const digits = text.slice(negative ? 1 : 0).replace(/^0+(?=[0-9])/, "");
  // Converting a megabyte of digits takes quadratic time: the length alone decides.
  if (digits.length > INT64_DIGITS) return null;
  const value = BigInt(negative ? `-${digits}` : digits);
  return isInt64(value) ? value : null;
}

/** The int64 written in `text`: null = an integer outside the range, undefined = no integer literal at all. */
export function int64FromText(text: string): bigint | null | undefined {
  return INTEGER_TEXT.test(text) ? int64FromDigits(text) : undefined;
}

export class JsonReader {
  private bytes: Buffer = EMPTY;
  private at = 0;
  private end = 0;
  private depth = 0;
  /** Bounds of the last text, between its quotes. */
  private textStart = 0;
  private textEnd = 0;
  private textEscaped = false;
  private textAscii = true;

  /**
   * Runs `read` over `body`, which must be consumed to its end. Returns null when all was well-formed, else where it
   * stopped being so.
   */
  run(body: Buffer, read: () => void): { readonly offset: number } | null {
    this.bytes = body;
    this.at = 0;
    this.end = body.length;
    this.depth = 0;
    try {
      read();
      this.space();
      return this.at === this.end ? null : { offset: this.at };
    } catch (error) {
      if (error === MALFORMED) return { offset: this.at };
      throw error;
    } finally {
      this.bytes = EMPTY;
    }
  }

  private space(): void {
    const bytes = this.bytes;
    while (this.at < this.end) {
      const byte = bytes[this.at] as number;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      this.at++;
    }
  }

  /** Passes white space and tells what comes; nothing of it is consumed. */
  peek(): number {
    this.space();
    if (this.at >= this.end) throw MALFORMED;
    const byte = this.bytes[this.at] as number;
    if (byte === QUOTE) return Token.text;
    if (byte === MINUS || (byte >= ZERO && byte <= NINE)) return Token.number;
    if (byte === OPEN_BRACE) return Token.object;
    if (byte === OPEN_BRACKET) return Token.array;
    if (byte === 0x74) return Token.yes;
    if (byte === 0x66) return Token.no;
    if (byte === 0x6e) return Token.none;
    throw MALFORMED;
  }

  private open(): void {
    this.at++;
    this.depth++;
    if (this.depth > JSON_NESTING_MAX) throw MALFORMED;
  }

  /** True when the structure ended here (and its `close` is consumed). */
  private ends(close: number): boolean {
    this.space();
    if (this.at >= this.end) throw MALFORMED;
    if (this.bytes[this.at] !== close) return false;
    this.at++;
    this.depth--;
    return true;
  }

  /** After an element: true when another follows. */
  private more(close: number): boolean {
    if (this.ends(close)) return false;
    if (this.bytes[this.at] !== COMMA) throw MALFORMED;
    this.at++;
    return true;
  }

  /** At `{`: enters. True when there is a first member, whose name is then read by `name`. */
  openObject(): boolean {
    this.open();
    return !this.ends(CLOSE_BRACE);
  }

  moreMembers(): boolean {
    return this.more(CLOSE_BRACE);
  }

  /** At `[`: enters. True when there is a first element. */
  openArray(): boolean {
    this.open();
    return !this.ends(CLOSE_BRACKET);
  }

  moreElements(): boolean {
    return this.more(CLOSE_BRACKET);
  }

  /** Consumes a member name and its colon; ask `nameHash`, `nameIs` and `text` about it. */
  name(): void {
    this.space();
    if (this.bytes[this.at] !== QUOTE) throw MALFORMED;
    this.scanText();
    this.space();
    if (this.bytes[this.at] !== COLON) throw MALFORMED;
    this.at++;
  }

  /** A number below 64 that `hashOfName` gives for the same name; -1 for a name written with escapes. */
  nameHash(): number {
    if (this.textEscaped) return -1;
    const length = this.textEnd - this.textStart;
    if (length === 0) return 0;
    const first = this.bytes[this.textStart] as number;
    return (length * 7 + first * 3 + (this.bytes[this.textEnd - 1] as number)) & 63;
  }

  /** True when the last text is exactly the ASCII bytes `name`. */
  nameIs(name: Uint8Array): boolean {
    const length = this.textEnd - this.textStart;
    if (length !== name.length) return false;
    for (let at = 0; at < length; at++) {
      if (this.bytes[this.textStart + at] !== name[at]) return false;
    }
    return true;
  }

  /** At `"`: consumes the text and returns it. */
  readText(): string {
    this.scanText();
    return this.text();
  }

  /** At `"`: consumes the text; its bytes are the ones of `rawText` when that is not null. */
  scanText(): void {
    const bytes = this.bytes;
    const end = this.end;
    let at = this.at + 1;
    let every = 0;
    this.textStart = at;
    this.textEscaped = false;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.textEnd = at;
        this.textAscii = every < 0x80;
        this.at = at + 1;
        if (!this.textAscii && !isUtf8(bytes.subarray(this.textStart, at))) throw MALFORMED;
        if (this.textEscaped) this.checkEscapes();
        return;
      }
      if (byte < 0x20) break;
      every |= byte;
      if (byte === BACKSLASH) {
        this.textEscaped = true;
        at++;
      }
      at++;
    }
    this.at = Math.min(at, end);
    throw MALFORMED;
  }

  /** Bytes of the last text as they stand in the body, or null when it was written with escapes. */
  rawText(): Uint8Array | null {
    return this.textEscaped ? null : this.bytes.subarray(this.textStart, this.textEnd);
  }

  /** The last text. */
  text(): string {
    if (this.textEscaped) return this.unescaped();
    const length = this.textEnd - this.textStart;
    if (this.textAscii && length <= JOIN_MAX) {
      let text = "";
      for (let at = this.textStart; at < this.textEnd; at++) {
        text += String.fromCharCode(this.bytes[at] as number);
      }
      return text;
    }
    return this.bytes.toString("utf8", this.textStart, this.textEnd);
  }

  private checkEscapes(): void {
    if (!isWellFormedText(this.unescaped())) throw MALFORMED;
  }

  /** The last text with its escapes resolved; faulty escapes throw. */
  private unescaped(): string {
    const written = this.bytes.toString("utf8", this.textStart, this.textEnd);
    let text = "";
    let from = 0;
    for (let at = written.indexOf("\\"); at >= 0; at = written.indexOf("\\", from)) {
      text += written.slice(from, at);
      const letter = written.charAt(at + 1);
      from = at + 2;
      if (letter === "u") {
        const digits = written.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw MALFORMED;
        text += String.fromCharCode(Number.parseInt(digits, 16));
        from = at + 6;
      } else {
        const meant = ESCAPES[letter];
        if (meant === undefined || letter === "") throw MALFORMED;
        text += meant;
      }
    }
    return text + written.slice(from);
  }

  private digits(): number {
    const start = this.at;
    while (this.at < this.end) {
      const byte = this.bytes[this.at] as number;
      if (byte < ZERO || byte > NINE) break;
      this.at++;
    }
    if (this.at === start) throw MALFORMED;
    return this.at - start;
  }

  /** Consumes a number. True when it is an integer literal without fraction and exponent. */
  private scanNumber(): boolean {
    if (this.bytes[this.at] === MINUS) this.at++;
    const leading = this.bytes[this.at];
    if (this.digits() > 1 && leading === ZERO) throw MALFORMED;
    let integer = true;
    if (this.bytes[this.at] === 0x2e && this.at < this.end) {
      this.at++;
      this.digits();
      integer = false;
    }
    const letter = this.at < this.end ? (this.bytes[this.at] as number) | 0x20 : 0;
    if (letter === 0x65) {
      this.at++;
      const sign = this.bytes[this.at];
      if (sign === MINUS || sign === 0x2b) this.at++;
      this.digits();
      integer = false;
    }
    return integer;
  }

  /** At a number: its exact value, or null for a fraction, an exponent or a value outside int64. */
  readInt64(): bigint | null {
    const start = this.at;
    if (!this.scanNumber()) return null;
    if (this.at - start <= EXACT_DIGITS) return BigInt(this.exactNumber(start));
    return int64FromDigits(this.bytes.toString("latin1", start, this.at));
  }

  /** At a number: its exact value, or null for a fraction, an exponent or a value outside int32. */
  readInt32(): number | null {
    const start = this.at;
    if (!this.scanNumber() || this.at - start > EXACT_DIGITS) return null;
    const value = this.exactNumber(start);
    return value >= INT32_MIN && value <= INT32_MAX ? value : null;
  }

  private exactNumber(start: number): number {
    const negative = this.bytes[start] === MINUS;
    let value = 0;
    for (let at = negative ? start + 1 : start; at < this.at; at++) {
      value = value * 10 + ((this.bytes[at] as number) - ZERO);
    }
    // Minus zero is zero here: no operation tells them apart.
    return negative && value !== 0 ? -value : value;
  }

  /** Consumes `true`, `false` or `null`. */
  literal(): void {
    const byte = this.bytes[this.at];
    const word = byte === 0x74 ? "true" : byte === 0x66 ? "false" : "null";
    for (let at = 0; at < word.length; at++) {
      if (this.bytes[this.at + at] !== word.charCodeAt(at)) throw MALFORMED;
    }
    this.at += word.length;
  }

  /** Consumes whatever value comes, checking its syntax. */
  skip(): void {
    const token = this.peek();
    if (token === Token.text) this.scanText();
    else if (token === Token.number) this.scanNumber();
    else if (token === Token.object) {
      for (let has = this.openObject(); has; has = this.moreMembers()) {
        this.name();
        this.skip();
      }
    } else if (token === Token.array) {
      for (let has = this.openArray(); has; has = this.moreElements()) this.skip();
    } else this.literal();
  }
}

/** The hash that `JsonReader.nameHash` gives for this ASCII name. */
export function hashOfName(name: string): number {
  if (name === "") return 0;
  const last = name.charCodeAt(name.length - 1);
  return (name.length * 7 + name.charCodeAt(0) * 3 + last) & 63;
}
