/**
 * Key/value entries, carried out.
 *
 * Invariants: 1. Long answers for people are printed page by page; only a JSON document is gathered
 * whole. 2. A bucket that does not fit one answer is read in ranges, never cut. 3. The time limit
 * covers all pages together. 4. A doubt about the effect is an error, never a refusal.
 */
import { TooLargeError, type KvEntry, type KvPage } from "../../client/mod.js";
import {
  DURABILITY_NUMBER,
  INVALID_INPUT_REMARK,
  durabilityOf,
  outcome,
  type Outcome,
  type RunContext,
  type RunTable,
} from "../context.js";
import { doubt, isRefusal } from "../failures.js";
import { base64, timeText, valueText, type JsonValue } from "../format.js";
import type { OptionValues } from "../values.js";

const SET = 0;
const NOT_SET = 1;
const EXTENDED = 2;
const DELETED = 4;
const INVALID_INPUT = 100;
const DOES_NOT_EXIST = 103;

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
  const client = await context.client();
  const compareValue = values.text("--compare-value");
  const compareRevision = values.int64("--compare-revision");
  return writing(key, values, ["set", "r{rev} not set"], async () => {
    const answer = await client.kv.set(key, values.requiredText("--value"), {
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
  return outcome(entry !== null, [getLine(entry)], getDocument(key, entry, values), remark);
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
async function listing(items: AsyncIterable<KvEntry>, context: RunContext): Promise<Outcome> {
  const document: JsonValue[] = [];
  const isJson = context.settings.format === "json";
  for await (const item of items) {
    if (isJson) document.push({ key: item.key, ...valueMembers(item), revision: item.revision });
    else context.line(`r${item.revision} ${item.key} ${valueText(item.value)}`);
  }
  return outcome(true, [], document);
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
  const client = await context.client();
  const durability = durabilityOf(values);
  try {
    const items = await client.kv.bucket(name, { ...context.calling(), durability });
    return await listing(iterate(items), context);
  } catch (error) {
    if (isRefusal(error)) return outcome(false, [], [], INVALID_INPUT_REMARK);
    if (!(error instanceof TooLargeError)) throw error;
    process.stderr.write("note: the bucket is too large for one answer; reading it in ranges\n");
  }
  const ranges = pages((before) => {
    const start = before?.items.at(-1)?.key;
    if (before !== null && start === undefined) return null;
    const range = { bucket: name, start, startInclusive: before === null };
    return client.kv.rangePage(range, { ...context.calling(), durability });
  });
  return listing(ranges, context);
}

async function* iterate(items: readonly KvEntry[]): AsyncGenerator<KvEntry> {
  yield* items;
}

async function scan(values: OptionValues, context: RunContext): Promise<Outcome> {
  const client = await context.client();
  const prefix = values.requiredText("--scan-by-prefix");
  const durability = durabilityOf(values);
  const items = pages((before) => {
    if (before !== null && before.nextCursor === null) return null;
    const cursor = before?.nextCursor ?? undefined;
    return client.kv.scanPage(prefix, { ...context.calling(), durability, cursor });
  });
  try {
    return await listing(items, context);
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
