/**
 * Payloads as quoted literals, the way the original's language writes them: printable characters
 * stay, control characters and invalid UTF-8 are escaped. Works on texts with one character per
 * byte.
 */
const named = new Map<number, string>([
  [0x07, "\\a"],
  [0x08, "\\b"],
  [0x09, "\\t"],
  [0x0a, "\\n"],
  [0x0b, "\\v"],
  [0x0c, "\\f"],
  [0x0d, "\\r"],
  [0x22, '\\"'],
  [0x5c, "\\\\"],
]);

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** How many bytes a UTF-8 sequence has that begins with `first`; 0 if none does. */
function sequenceLength(first: number): number {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/** The character at `at` of a byte text, or null if the bytes there are not UTF-8. */
function decodeAt(bytes: string, at: number): { character: string; length: number } | null {
  const length = sequenceLength(bytes.charCodeAt(at));
  if (length === 0 || at + length > bytes.length) return null;
  const part = Uint8Array.from(bytes.slice(at, at + length), (byte) => byte.charCodeAt(0));
  try {
    return { character: decoder.decode(part), length };
  } catch {
    return null;
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

export function quote(bytes: string): string {
  let text = '"';
  for (let at = 0; at < bytes.length;) {
    const decoded = decodeAt(bytes, at);
    if (decoded === null) {
      text += `\\x${hex(bytes.charCodeAt(at), 2)}`;
      at++;
      continue;
    }
    const name = named.get(decoded.character.codePointAt(0) ?? 0);
    if (name !== undefined) text += name;
    else if (printable.test(decoded.character)) text += bytes.slice(at, at + decoded.length);
    else text += escape(decoded.character);
    at += decoded.length;
  }
  return `${text}"`;
}
