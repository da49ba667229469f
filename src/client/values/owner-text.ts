/**
 * Bytes that are mostly text, as REST has them: owners, notes.
 *
 * Invariants: 1. What is no text, or could be mistaken for that form, is `base64:…`.
 */
import { decodeText } from "../../base/bytes.js";

const NO_BYTES = new Uint8Array(0);
const BASE64_MARK = "base64:";

/** Owner bytes as the text of the REST interface. */
export function ownerToRest(owner: Uint8Array): string {
  const text = decodeText(owner);
  if (text !== null && !text.startsWith(BASE64_MARK)) return text;
  return BASE64_MARK + Buffer.from(owner).toString("base64");
}

export function ownerFromRest(text: string | null): Uint8Array {
  if (text === null) return NO_BYTES;
  const encoded = text.startsWith(BASE64_MARK);
  return encoded
    ? Buffer.from(text.slice(BASE64_MARK.length), "base64")
    : Buffer.from(text, "utf8");
}
