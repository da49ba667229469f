/**
 * Watches: a line per event, or a document per batch, as they come.
 *
 * Invariants: 1. What comes is printed at once. 2. It ends by --count, by --for or by Ctrl+C; a
 * time limit that is reached is a failure. 3. stdout carries events alone.
 */
import {
  CancelledError,
  TimeoutError,
  type Watch,
  type WatchBatch,
  type WatchEvent,
  type WatchOptions,
  type SvcClient,
} from "../../client/mod.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { base64, jsonText, ownerText, valueText, type JsonValue } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";
import { sequenceDocument } from "./sequences.js";

type Open = (client: SvcClient, name: string, options: WatchOptions) => Watch;

function eventLine(event: WatchEvent): string {
  const { type, name, revision, fencingToken } = event;
  switch (type) {
    case "set":
      return `r${revision} set ${name} ${valueText(event.value)}`;
    case "expired":
      return `expired ${name}`;
    case "locked":
      return `f${fencingToken} locked ${name} ${ownerText(event.owner ?? new Uint8Array(0))}`;
    case "unlocked":
    case "lock-expired":
      return `f${fencingToken} ${type} ${name}`;
    default:
      return `r${revision} ${type} ${name}`;
  }
}

function eventDocument(event: WatchEvent): JsonValue {
  const { type, name, value, revision, stamp, fencingToken, owner, note, sequence } = event;
  return {
    ...{ type, name, value: value === null ? null : base64(value), revision },
    ...{ stamp: { ...stamp }, fencingToken },
    owner: owner === null ? null : ownerText(owner),
    note: note === null ? null : ownerText(note),
    sequence: sequence === null ? null : sequenceDocument(sequence),
    forced: event.forced,
  };
}

/** The object that a poll over REST answers with. */
function batchDocument({ events, cursor, initial, merged, reset }: WatchBatch): JsonValue {
  const marks = { initial, merged, reset, more: false, staleMs: 0, servedFrom: null };
  return { events: events.map(eventDocument), cursor, ...marks };
}

function print(batch: WatchBatch, context: RunContext, format: string): void {
  if (format === "json") return context.line(jsonText(batchDocument(batch)));
  if (batch.reset) context.line("-- reset");
  if (batch.merged) context.line("-- merged");
  for (const event of batch.events) context.line(eventLine(event));
}

/** Reads until it is enough; `stop` says why it ended early. */
async function follow(
  watch: Watch,
  values: OptionValues,
  context: RunContext,
  stop: AbortController,
): Promise<void> {
  const format = values.text("--format") ?? context.settings.format;
  const least = values.number("--count");
  let left = least ?? Number.POSITIVE_INFINITY;
  await watch.started();
  context.settled();
  for await (const batch of watch) {
    const events = batch.events.slice(0, left);
    left -= events.length;
    // What is behind the last event that was asked for was not told.
    print(left === 0 ? { ...batch, events } : batch, context, format);
    if (left <= 0 || stop.signal.aborted) return;
  }
}

function running(
  open: Open,
  option: string,
): (values: OptionValues, context: RunContext) => Promise<Outcome> {
  return async (values, context) => {
    const client = await context.client();
    const stop = new AbortController();
    const cancel = (): void => stop.abort();
    context.signal.addEventListener("abort", cancel, { once: true });
    const limitMs = context.leftMs();
    const late = new TimeoutError("the time of the operation is over");
    const limit = Number.isFinite(limitMs) ? setTimeout(() => stop.abort(late), limitMs) : null;
    const forSeconds = values.number("--for");
    let isEnough = false;
    const enough = (): void => {
      isEnough = true;
      stop.abort();
    };
    const timer = forSeconds === null ? null : setTimeout(enough, forSeconds * 1000);
    const watch = open(client, values.requiredText(option), {
      initial: values.flag("--initial"),
      cursor: values.text("--cursor") ?? undefined,
      signal: stop.signal,
    });
    try {
      await follow(watch, values, context, stop);
    } catch (error) {
      const isEnded = isEnough || context.signal.aborted;
      if (stop.signal.reason === late) throw late;
      if (!(error instanceof CancelledError) || !isEnded) throw error;
    } finally {
      if (limit !== null) clearTimeout(limit);
      if (timer !== null) clearTimeout(timer);
      context.signal.removeEventListener("abort", cancel);
      await watch.return();
    }
    return { ...outcome(true, [], null), isPrinted: true };
  };
}

const OPENS: Readonly<Record<string, Open>> = {
  "--watch-key": (client, name, options) => client.watch.key(name, options),
  "--watch-prefix": (client, name, options) => client.watch.prefix(name, options),
  "--watch-bucket": (client, name, options) => client.watch.bucket(name, options),
  "--watch-lock": (client, name, options) => client.watch.lock(name, options),
  "--watch-locks": (client, name, options) => client.watch.lockPrefix(name, options),
  "--watch-sequence": (client, name, options) => client.watch.sequence(name, options),
};

export const WATCHES_RUN: RunTable = Object.fromEntries(
  Object.entries(OPENS).map(([option, open]) => [option, running(open, option)]),
);
