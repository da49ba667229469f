/**
 * Key/value entries, carried out.
 *
 * Invariants: 1. Long answers for people are printed page by page; only a JSON document is gathered
 * whole. 2. A bucket that does not fit one answer is read in ranges, never cut. 3. The time limit
 * covers all pages together. 4. A doubt about the effect is an error, never a refusal.
 */
import { createReadStream } from "node:fs";
import { TooLargeError, type KvEntry, type KvPage } from "../../client/mod.js";
import {
  DURABILITY_NUMBER,
  INVALID_INPUT_REMARK,
  durabilityOf,
  outcome,
  type Outcome,
  type RunContext,
  type RunTable,
} from "../invocation/context.js";
import { doubt, isRefusal, usageError } from "../invocation/failures.js";
import { base64, timeText, valueText, type JsonValue } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";

const SET = 0;
const NOT_SET = 1;
const EXTENDED = 2;
const DELETED = 4;
const INVALID_INPUT = 100;
const DOES_NOT_EXIST = 103;
/** More than any server takes as a value: what is read from files and stdin is bounded. */
const INPUT_MAX_BYTES = 64 * 1024 * 1024;
const PAGE_ITEMS_MAX = 10_000;

interface Written {
  readonly success: boolean;
  readonly type: number;
  readonly revision: bigint;
}

/** Runs a write; what the service does not accept is an outcome too. */
async function writing(
  key: string,
  values: OptionValues,
  words: readonly [done: string, refused: string],
  action: () => Promise<Written>,
): Promise<Outcome> {
  let written: Written = { success: false, type: INVALID_INPUT, revision: -1n };
  let remark: string | null = null;
  try {
    written = await action();
  } catch (error) {
    if (!isRefusal(error)) throw error;
    remark = INVALID_INPUT_REMARK;
  }
  const { success, type, revision } = written;
  const line = success ? `r${revision} ${words[0]}` : words[1].replace("{rev}", String(revision));
  const durability = DURABILITY_NUMBER[durabilityOf(values)];
  return outcome(success, [line], { key, success, type, revision, durability }, remark);
}

async function set(values: OptionValues, context: RunContext): Promise<Outcome> {
  const key = values.requiredText("--set");
  const value = await valueToSet(values, context);
  const client = await context.client();
  const compareValue = values.text("--compare-value");
  const compareRevision = values.int64("--compare-revision");
  return writing(key, values, ["set", "r{rev} not set"], async () => {
    const answer = await client.kv.set(key, value, {
      ...context.calling(),
      durability: durabilityOf(values),
      expiresMs: values.number("--expires") ?? 0,
      flags: values.number("--flags") ?? 0,
      ...(compareValue === null ? {} : { ifValue: compareValue }),
      ...(compareRevision === null ? {} : { ifRevision: compareRevision }),
    });
    const type = answer.applied ? SET : NOT_SET;
    return { success: answer.applied, type, revision: answer.revision };
  });
}

/** --value as it is, or the bytes that it or --value-file names. */
async function valueToSet(values: OptionValues, context: RunContext): Promise<string | Uint8Array> {
  const path = values.text("--value-file");
  if (path !== null) return readInput(path, () => createReadStream(path));
  const value = values.requiredText("--value");
  if (value !== "-" || context.isShell) return value;
  return readInput("stdin", () => process.stdin);
}

async function readInput(name: string, open: () => AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of open()) {
      chunks.push(chunk);
      sizeBytes += chunk.length;
      if (sizeBytes > INPUT_MAX_BYTES) break;
    }
  } catch (error) {
    throw usageError(`cannot read ${name}: ${error instanceof Error ? error.message : ""}`);
  }
  if (sizeBytes <= INPUT_MAX_BYTES) return Buffer.concat(chunks);
  throw usageError(`${name} holds more than a value can (${INPUT_MAX_BYTES} bytes)`);
}

async function extend(values: OptionValues, context: RunContext): Promise<Outcome> {
  const key = values.requiredText("--extend");
  const client = await context.client();
  return writing(key, values, ["extended", "not found"], async () => {
    const answer = await client.kv.extend(key, values.requiredNumber("--expires"), {
      ...context.calling(),
      durability: durabilityOf(values),
    });
    const type = answer.applied ? EXTENDED : DOES_NOT_EXIST;
    return { success: answer.applied, type, revision: answer.revision };
  });
}

async function remove(values: OptionValues, context: RunContext): Promise<Outcome> {
  const key = values.requiredText("--delete");
  const client = await context.client();
  return writing(key, values, ["deleted", "not found"], async () => {
    const answer = await client.kv.delete(key, {
      ...context.calling(),
      durability: durabilityOf(values),
    });
    if (!answer.deleted && answer.doubtful) {
      throw doubt(
        `${key}: not found now; an earlier try whose answer was lost may have deleted it`,
      );
    }
    const type = answer.deleted ? DELETED : DOES_NOT_EXIST;
    return { success: answer.deleted, type, revision: answer.revision };
  });
}

interface Found {
  readonly entry: KvEntry | null;
  readonly remark: string | null;
}

async function find(key: string, values: OptionValues, context: RunContext): Promise<Found> {
  const client = await context.client();
  const revision = values.int64("--revision");
  try {
    const entry = await client.kv.get(key, {
      ...context.calling(),
      durability: durabilityOf(values),
      ...(revision === null || revision === -1n ? {} : { revision }),
    });
    return { entry, remark: null };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return { entry: null, remark: INVALID_INPUT_REMARK };
  }
}

function valueMembers(entry: KvEntry | null): { readonly [member: string]: JsonValue } {
  const value = entry?.value ?? null;
  return { value: entry?.text ?? null, valueBase64: value === null ? null : base64(value) };
}

function getDocument(
  key: string,
  entry: KvEntry | null,
  values: OptionValues,
): { readonly [member: string]: JsonValue } {
  return {
    key,
    success: entry !== null,
    revision: entry?.revision ?? 0n,
    ...valueMembers(entry),
    durability: DURABILITY_NUMBER[durabilityOf(values)],
  };
}

function getLine(entry: KvEntry | null): string {
  return entry === null ? "r0 not get" : `r${entry.revision} get ${valueText(entry.value)}`;
}

async function get(values: OptionValues, context: RunContext): Promise<Outcome> {
  const key = values.requiredText("--get");
  const { entry, remark } = await find(key, values, context);
  const document = getDocument(key, entry, values);
  if (!values.flag("--raw")) return outcome(entry !== null, [getLine(entry)], document, remark);
  if (entry !== null && entry.value !== null) context.raw(entry.value);
  return outcome(entry !== null, [], document, remark ?? (entry === null ? "not found" : null));
}

const NO_STAMP = { n: 0, l: 0, c: 0 } as const;

async function getKv(values: OptionValues, context: RunContext): Promise<Outcome> {
  const key = values.requiredText("--get-kv");
  const { entry, remark } = await find(key, values, context);
  const expires = entry?.expires ?? NO_STAMP;
  const lastModified = entry?.lastModified ?? NO_STAMP;
  const lines = [getLine(entry)];
  if (entry !== null) {
    lines.push(
      `Expires: ${timeText(BigInt(expires.l))}`,
      `Modified: ${timeText(BigInt(lastModified.l))}`,
      `Bytes: ${entry.value?.byteLength ?? 0}`,
    );
  }
  const document = {
    ...getDocument(key, entry, values),
    expires: { ...expires },
    lastModified: { ...lastModified },
  };
  return outcome(entry !== null, lines, document, remark);
}

/** Prints items as they come, or gathers them for the document. */
async function listing(
  items: AsyncIterable<KvEntry>,
  values: OptionValues,
  context: RunContext,
): Promise<Outcome> {
  const document: JsonValue[] = [];
  const isJson = context.settings.format === "json";
  const keysOnly = values.flag("--keys-only");
  let left = values.number("--limit") ?? Number.POSITIVE_INFINITY;
  for await (const item of items) {
    const { key, revision } = item;
    if (isJson) document.push({ key, ...(keysOnly ? {} : valueMembers(item)), revision });
    else context.line(keysOnly ? key : `r${revision} ${key} ${valueText(item.value)}`);
    left -= 1;
    if (left <= 0) break;
  }
  return outcome(true, [], document);
}

/** Items of the next page: no more than are wanted and a page holds; undefined = as many as fit. */
function pageLimit(values: OptionValues): number | undefined {
  const limit = values.number("--limit");
  return limit === null ? undefined : Math.min(limit, PAGE_ITEMS_MAX);
}

function checkLimit(values: OptionValues): void {
  const limit = values.number("--limit");
  if (limit !== null && limit < 1) throw usageError("--limit is at least 1");
}

/**
 * All pages, one after the other. `readPage` gets the page before (null = the first is wanted) and
 * gives null when nothing can follow it.
 */
async function* pages(
  readPage: (before: KvPage | null) => Promise<KvPage> | null,
): AsyncGenerator<KvEntry, void, void> {
  let page = await readPage(null);
  while (page !== null) {
    yield* page.items;
    page = page.hasMore ? await readPage(page) : null;
  }
}

async function bucket(values: OptionValues, context: RunContext): Promise<Outcome> {
  const name = values.requiredText("--get-by-bucket");
  checkLimit(values);
  const client = await context.client();
  const durability = durabilityOf(values);
  try {
    const items = await client.kv.bucket(name, { ...context.calling(), durability });
    return await listing(iterate(items), values, context);
  } catch (error) {
    if (isRefusal(error)) return outcome(false, [], [], INVALID_INPUT_REMARK);
    if (!(error instanceof TooLargeError)) throw error;
    context.note("the bucket is too large for one answer; reading it in ranges");
  }
  const ranges = pages((before) => {
    const start = before?.items.at(-1)?.key;
    if (before !== null && start === undefined) return null;
    const range = { bucket: name, start, startInclusive: before === null };
    return client.kv.rangePage(range, {
      ...context.calling(),
      durability,
      limit: pageLimit(values),
    });
  });
  return listing(ranges, values, context);
}

async function* iterate(items: readonly KvEntry[]): AsyncGenerator<KvEntry> {
  yield* items;
}

async function scan(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const prefix = values.requiredText("--scan-by-prefix");
  checkLimit(values);
  const durability = durabilityOf(values);
  const items = pages((before) => {
    if (before !== null && before.nextCursor === null) return null;
    const cursor = before?.nextCursor ?? undefined;
    const limit = pageLimit(values);
    return client.kv.scanPage(prefix, { ...context.calling(), durability, cursor, limit });
  });
  try {
    return await listing(items, values, context);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return outcome(false, [], [], INVALID_INPUT_REMARK);
  }
}

export const KV_RUN: RunTable = {
  "--set": set,
  "--get": get,
  "--get-kv": getKv,
  "--delete": remove,
  "--extend": extend,
  "--get-by-bucket": bucket,
  "--scan-by-prefix": scan,
};
