/**
 * Values of keys: what bytes are, as text or in hexadecimal.
 *
 * Invariants: 1. At most SHOWN_MAX_BYTES of a value are shown, and it is said that there are more.
 */
import { printable } from "./words.js";

export const SHOWN_MAX_BYTES = 4096;
const LINE_BYTES = 16;

export function bytesOf(base64: string): Uint8Array {
  const binary = atob(base64);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** How many bytes there are in a text of base64. */
export function sizeOf(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** A byte of UTF-8 with which no character begins. */
function isContinued(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** The beginning as text, line by line; null: it is none. */
export function textOf(value: Uint8Array): string | null {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    let end = Math.min(value.length, SHOWN_MAX_BYTES);
    // A character that the cut goes through is left away, not called broken.
    while (end > 0 && isContinued(value[end])) end--;
    const text = decoder.decode(value.subarray(0, end));
    return text.split("\n").map(printable).join("\n");
  } catch {
    return null;
  }
}

/** The beginning as a dump: place, bytes, and what of them is printable ASCII. */
export function dumpOf(value: Uint8Array): string {
  const lines: string[] = [];
  const end = Math.min(value.length, SHOWN_MAX_BYTES);
  for (let at = 0; at < end; at += LINE_BYTES) {
    const line = [...value.subarray(at, Math.min(at + LINE_BYTES, end))];
    const hex = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const ascii = line.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${hex.padEnd(LINE_BYTES * 3)} ${ascii}`);
  }
  return lines.join("\n");
}
