/**
 * What a restore leaves in the storage directory that it makes: of which cluster the directory is,
 * and what it may not be told apart from again.
 *
 * Pure codec: one line of JSON. A directory with this file and without an identity is adopted by
 * its first start. Invariants: 1. Reading is strict: a member too few or of another kind is damage.
 * 2. Large numbers are texts.
 */
import { decodeText, encodeText } from "../../base/bytes.js";
import { type Failure, type Result, failure, ok } from "../../base/result.js";

/** Name of the file in the directory of the storage revision. */
export const RESTORED_NAME = "restored.json";
export const RESTORED_MAX_BYTES = 16_384;
const KIND = "svc-restored";
const VERSION = 1;

export interface RestoredMark {
  /** Of the new cluster. */
  readonly clusterId: string;
  /** The leaf of the chain, 32 hexadecimal digits; "" for a cluster that was forced. */
  readonly leafId: string;
  /** The how-manieth restore of its catalogue this is, or how many times it was forced. */
  readonly ordinal: number;
  /** How many times a cluster was forced out of this directory. */
  readonly forcedCount: number;
  /** What was set: the largest over all partitions. */
  readonly tokenFloor: bigint;
  readonly ephemeralFloor: bigint;
  readonly incarnation: number;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/** A floor as text; null when it is none. */
export function parseFloor(text: string): bigint | null {
  return /^(?:0|[1-9]\d{0,18})$/.test(text) ? BigInt(text) : null;
}

export function encodeRestoredMark(mark: RestoredMark): Uint8Array {
  const { tokenFloor, ephemeralFloor } = mark;
  const floors = { tokenFloor: String(tokenFloor), ephemeralFloor: String(ephemeralFloor) };
  const file = { kind: KIND, version: VERSION, ...mark, ...floors };
  return encodeText(`${JSON.stringify(file)}\n`);
}

/** "newer": another program wrote it. */
export function decodeRestoredMark(
  path: string,
  bytes: Uint8Array,
): Result<RestoredMark, "damaged" | "newer"> {
  const damaged = (what: string): Failure<"damaged"> =>
    failure("damaged", `${path} is damaged: ${what}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(decodeText(bytes) ?? "");
  } catch {
    return damaged("it is no JSON");
  }
  if (typeof parsed !== "object" || parsed === null) return damaged("it is no object");
  const members = new Map<string, unknown>(Object.entries(parsed));
  const text = (name: string): string | null => {
    const value = members.get(name);
    return typeof value === "string" ? value : null;
  };
  const count = (name: string): number | null => {
    const value = members.get(name);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
  };
  const version = count("version");
  if (text("kind") !== KIND || version === null) return damaged("it is of another kind");
  if (version > VERSION) return failure("newer", `${path} has version ${version}`);
  const mark = {
    clusterId: text("clusterId"),
    leafId: text("leafId"),
    ordinal: count("ordinal"),
    forcedCount: count("forcedCount"),
    tokenFloor: parseFloor(text("tokenFloor") ?? ""),
    ephemeralFloor: parseFloor(text("ephemeralFloor") ?? ""),
    incarnation: count("incarnation"),
    atMs: count("atMs"),
  };
  for (const [name, value] of Object.entries(mark)) {
    if (value === null || value === "") {
      if (name !== "leafId" || value === null) return damaged(`it has no ${name}`);
    }
  }
  return ok(mark as RestoredMark);
}
