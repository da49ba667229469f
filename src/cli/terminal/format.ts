/**
 * Answers as text: exact JSON, tables, values that may not be text.
 *
 * Invariants: 1. A 64-bit integer is written as a plain JSON number, digit by digit (P-144). 2.
 * Member order is that of the document. 3. Bytes that are not UTF-8 are never turned into
 * replacement characters.
 */
import { decodeText } from "../../base/bytes.js";
import { padColumns, textColumns } from "./text-width.js";

export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | readonly JsonValue[]
  | { readonly [member: string]: JsonValue };

/** One JSON document on one line. */
export function jsonText(value: JsonValue): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number" || typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) {
    return `[${(value as readonly JsonValue[]).map(jsonText).join(",")}]`;
  }
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${jsonText(member as JsonValue)}`,
  );
  return `{${members.join(",")}}`;
}

/** A value for people: its text, `base64:…` when it is none, `-` for null. */
export function valueText(value: Uint8Array | null): string {
  if (value === null) return "-";
  return decodeText(value) ?? `base64:${base64(value)}`;
}

/**
 * The owner of a lock as text: `base64:…` when the bytes are none, or could be mistaken for that
 * form.
 */
export function ownerText(owner: Uint8Array): string {
  const text = decodeText(owner);
  return text === null || text.startsWith("base64:") ? `base64:${base64(owner)}` : text;
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** RFC 3339 in UTC with milliseconds; "-" for 0 (none). */
export function timeText(unixMs: bigint): string {
  if (unixMs === 0n) return "-";
  const date = new Date(Number(unixMs));
  return Number.isNaN(date.getTime()) ? `${unixMs} ms` : date.toISOString();
}

/**
 * A table with a header, columns two spaces apart. When it does not fit into `width` columns (null:
 * no limit), each row becomes a small block of "Header: value" lines instead.
 */
export function tableLines(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width: number | null,
): string[] {
  const columns = header.map((name, at) =>
    Math.max(textColumns(name), ...rows.map((row) => textColumns(row[at] ?? ""))),
  );
  const total = columns.reduce((sum, size) => sum + size + 2, -2);
  if (width !== null && total > width) {
    const label = Math.max(...header.map(textColumns)) + 2;
    return rows.flatMap((row, index) => [
      ...(index === 0 ? [] : [""]),
      ...header.map((name, at) => padColumns(`${name}:`, label) + (row[at] ?? "")),
    ]);
  }
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => padColumns(cell, columns[at] ?? 0))
      .join("  ")
      .trimEnd();
  const rule = columns.map((size) => "-".repeat(size)).join("  ");
  return [line(header), rule, ...rows.map(line)];
}
