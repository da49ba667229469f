/**
 * Escapes of JSON text (RFC 8259 section 7).
 *
 * Invariants: 1. What comes out is well-formed Unicode; a faulty escape or a lone surrogate is
 * null.
 */
import { isWellFormedText } from "../../base/bytes.js";

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
const FOUR_DIGITS = /^[0-9a-fA-F]{4}$/;

/**
 * `written` (the text between the quotes) with its escapes resolved, or null when they are faulty.
 */
export function unescapeText(written: string): string | null {
  let text = "";
  let from = 0;
  for (let at = written.indexOf("\\"); at >= 0; at = written.indexOf("\\", from)) {
    text += written.slice(from, at);
    const letter = written.charAt(at + 1);
    from = at + 2;
    if (letter === "u") {
      const digits = written.slice(at + 2, at + 6);
      if (!FOUR_DIGITS.test(digits)) return null;
      text += String.fromCharCode(Number.parseInt(digits, 16));
      from = at + 6;
    } else {
      const meant = ESCAPES[letter];
      if (meant === undefined) return null;
      text += meant;
    }
  }
  text += written.slice(from);
  return isWellFormedText(text) ? text : null;
}
