/**
 * Values out of JSON bytes: exact integers, text, base64.
 *
 * Invariants: 1. No digit of an integer is lost: int64 leaves as bigint, or as null for "does not
 * fit". 2. What is handed out holds no reference to the body.
 */
import { encodeText } from "../../base/bytes.js";
import { INT32_MAX, INT32_MIN, isInt64 } from "../../base/int64.js";
import { decodeBase64 } from "./base64.js";
import { JsonScanner, MINUS, ZERO } from "./json-scanner.js";

/** Integers of so many characters are exact doubles. */
const EXACT_CHARACTERS = 15;
const INT64_DIGITS = 19;
/** Up to this length joining characters is cheaper than a call into the runtime. */
const JOIN_MAX = 12;
const QUOTE = 0x22;
const UINT64_MAX = (1n << 64n) - 1n;
/** Of a text with leading zeros, however many. */
const UINT64_CHARACTERS = 400;
const INTEGER_TEXT = /^-?[0-9]+$/;

/** The int64 that `text` (of the form -?[0-9]+) names, or null when it is outside the range. */
function int64FromDigits(text: string): bigint | null {
  const negative = text.startsWith("-");
  const digits = text.slice(negative ? 1 : 0).replace(/^0+(?=[0-9])/, "");
  // Converting a megabyte of digits takes quadratic time: the length alone decides.
  if (digits.length > INT64_DIGITS) return null;
  const value = BigInt(negative ? `-${digits}` : digits);
  return isInt64(value) ? value : null;
}

/**
 * The int64 written in `text`: null = an integer outside the range, undefined = no integer literal
 * at all.
 */
export function int64FromText(text: string): bigint | null | undefined {
  return INTEGER_TEXT.test(text) ? int64FromDigits(text) : undefined;
}

/** As `int64FromText`, for the range of uint64. */
export function uint64FromText(text: string): bigint | null | undefined {
  return INTEGER_TEXT.test(text) ? uint64FromDigits(text) : undefined;
}

function uint64FromDigits(text: string): bigint | null {
  if (text.length > UINT64_CHARACTERS) return null;
  const value = BigInt(text);
  return value >= 0n && value <= UINT64_MAX ? value : null;
}

/** The hash that `JsonReader.nameHash` gives for this ASCII name. */
export function hashOfName(name: string): number {
  if (name === "") return 0;
  const last = name.charCodeAt(name.length - 1);
  return (name.length * 7 + name.charCodeAt(0) * 3 + last) & 63;
}

export class JsonReader extends JsonScanner {
  /**
   * A number below 64 that `hashOfName` gives for the last text; -1 when it was written with
   * escapes.
   */
  nameHash(): number {
    if (this.textEscaped) return -1;
    const length = this.textEnd - this.textStart;
    if (length === 0) return 0;
    const first = this.bytes[this.textStart] as number;
    return (length * 7 + first * 3 + (this.bytes[this.textEnd - 1] as number)) & 63;
  }

  /** True when the last text is exactly the bytes `name`; a text written with escapes never is. */
  textIs(name: Uint8Array): boolean {
    const { bytes, textStart } = this;
    const length = this.textEnd - textStart;
    if (length !== name.length || this.textEscaped) return false;
    for (let at = 0; at < length; at++) {
      if (bytes[textStart + at] !== name[at]) return false;
    }
    return true;
  }

  /** The last text. */
  text(): string {
    if (this.textEscaped) return this.unescaped();
    const { bytes, textStart, textEnd } = this;
    if (!this.textAscii || textEnd - textStart > JOIN_MAX) {
      return bytes.toString("utf8", textStart, textEnd);
    }
    let text = "";
    for (let at = textStart; at < textEnd; at++) {
      text += String.fromCharCode(bytes[at] as number);
    }
    return text;
  }

  /** At `"`: consumes the text and returns it. */
  readText(): string {
    this.scanText();
    return this.text();
  }

  /** At `"`: consumes the text and returns its UTF-8 form, in memory of its own. */
  readBytes(): Uint8Array {
    this.scanText();
    if (this.textEscaped) return encodeText(this.unescaped());
    const { bytes, textStart, textEnd } = this;
    const copy = new Uint8Array(textEnd - textStart);
    for (let at = textStart; at < textEnd; at++) copy[at - textStart] = bytes[at] as number;
    return copy;
  }

  /**
   * At `"`: consumes the text and returns what it stands for as base64, or null when it is not
   * base64.
   */
  readBase64(): Uint8Array | null {
    // Base64 holds neither quotes nor escapes as a rule: the next quote is its end, and one pass
    // does both checks.
    const start = this.at + 1;
    const quote = this.bytes.indexOf(QUOTE, start);
    const bytes = quote < 0 ? null : decodeBase64(this.bytes, start, quote);
    if (bytes === null) return decodeBase64(this.readBytes());
    this.at = quote + 1;
    return bytes;
  }

  /** At a number: its exact value, or null for a fraction, an exponent or a value outside int64. */
  readInt64(): bigint | null {
    const start = this.at;
    if (!this.scanNumber()) return null;
    if (this.at - start <= EXACT_CHARACTERS) return BigInt(this.exactNumber(start));
    return int64FromDigits(this.bytes.toString("latin1", start, this.at));
  }

  /** As `readInt64`, for the range of uint64. */
  readUint64(): bigint | null {
    const start = this.at;
    if (!this.scanNumber()) return null;
    return uint64FromDigits(this.bytes.toString("latin1", start, this.at));
  }

  /** At a number: its exact value, or null for a fraction, an exponent or a value outside int32. */
  readInt32(): number | null {
    const start = this.at;
    if (!this.scanNumber() || this.at - start > EXACT_CHARACTERS) return null;
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
}
