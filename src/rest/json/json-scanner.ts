/**
 * A strict JSON scanner over UTF-8 bytes (RFC 8259): structure and syntax, one pass, no tree.
 *
 * Owns the position in one body. Whoever drives it says what is expected; nothing is built that
 * nobody asked for. Invariants: 1. Every fault of syntax, encoding or nesting throws the one
 * MalformedJson object, and only `run` lets it out, as data. 2. Work and stack are bounded by the
 * body size and JSON_NESTING_MAX. 3. After a text was scanned it is known to be well-formed
 * Unicode.
 */
import { isUtf8 } from "node:buffer";
import { JSON_NESTING_MAX } from "../../base/limits.js";
import { unescapeText } from "./json-escapes.js";

class MalformedJson extends Error {
  override readonly name = "MalformedJson";
}
/**
 * One object for all faults, because a stack trace for every bad body would be a gift to whoever
 * sends them.
 */
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
const PLUS = 0x2b;
const COMMA = 0x2c;
export const MINUS = 0x2d;
const POINT = 0x2e;
export const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_E = 0x65;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const EMPTY = Buffer.alloc(0);

export class JsonScanner {
  protected bytes: Buffer = EMPTY;
  protected at = 0;
  private end = 0;
  private depth = 0;
  /** Bounds of the last text, between its quotes. */
  protected textStart = 0;
  protected textEnd = 0;
  protected textEscaped = false;
  protected textAscii = true;

  /**
   * Runs `read` over `body`, which must be consumed to its end. Returns null when all was
   * well-formed, else where it stopped being so.
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
      if (error === MALFORMED) return { offset: Math.min(this.at, this.end) };
      throw error;
    } finally {
      this.bytes = EMPTY;
    }
  }

  private space(): void {
    const { bytes, end } = this;
    let at = this.at;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break;
      at++;
    }
    this.at = at;
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

  /** Consumes a member name and its colon. */
  name(): void {
    this.space();
    if (this.bytes[this.at] !== QUOTE) throw MALFORMED;
    this.scanText();
    this.space();
    if (this.bytes[this.at] !== COLON) throw MALFORMED;
    this.at++;
  }

  /** At `"`: consumes the text and checks it. */
  scanText(): void {
    const { bytes, end } = this;
    const start = this.at + 1;
    let at = start;
    let every = 0;
    let escaped = false;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.at = at + 1;
        this.textStart = start;
        this.textEnd = at;
        this.textEscaped = escaped;
        this.textAscii = every < 0x80;
        if (every >= 0x80 && !isUtf8(bytes.subarray(start, at))) throw MALFORMED;
        if (escaped) this.unescaped();
        return;
      }
      if (byte < 0x20) break;
      every |= byte;
      if (byte === BACKSLASH) {
        escaped = true;
        at++;
      }
      at++;
    }
    this.at = at;
    throw MALFORMED;
  }

  /** The last text, which was written with escapes. */
  protected unescaped(): string {
    const text = unescapeText(this.bytes.toString("utf8", this.textStart, this.textEnd));
    if (text === null) throw MALFORMED;
    return text;
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

  /** At a number: consumes it. True when it is an integer literal without fraction and exponent. */
  protected scanNumber(): boolean {
    if (this.bytes[this.at] === MINUS) this.at++;
    const leading = this.bytes[this.at];
    if (this.digits() > 1 && leading === ZERO) throw MALFORMED;
    let integer = true;
    if (this.bytes[this.at] === POINT) {
      this.at++;
      this.digits();
      integer = false;
    }
    if (((this.bytes[this.at] ?? 0) | 0x20) === LETTER_E) {
      this.at++;
      const sign = this.bytes[this.at];
      if (sign === MINUS || sign === PLUS) this.at++;
      this.digits();
      integer = false;
    }
    return integer;
  }

  /** At `true`, `false` or `null`: consumes it. */
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
