/**
 * P-185, W13: readers of 1 KB a second of what is written much faster. Beside the buffers of their streams they hold
 * nothing of the node's memory; when they read on they are told the newest state, merged.
 *
 * `SVC_SLOW_READER_SECONDS=60` is its long form.
 */
import { type IncomingMessage, request } from "node:http";
import t from "tap";
import { SvcClient, type Watch } from "../../../src/client/mod.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";

const SECONDS = Number(process.env["SVC_SLOW_READER_SECONDS"] ?? 10);
/** Of each kind: what is kept for all of them would be seen. */
const READERS = 6;
const WRITERS = 12;
const KEYS = 50;
const VALUE_BYTES = 32_768;
const BUFFER_BYTES = 1024 * 1024;
/** A message that was made when there was still room: its events, and one value more, as base64 in server-sent events. */
const MESSAGE_BYTES = ((256 * 1024 + VALUE_BYTES) * 4) / 3 + 16_384;
/** What the garbage collector may leave, and what a young process grows by. */
const RESIDENT_SLACK_BYTES = 320 * 1024 * 1024;

const directory = temporaryDirectory();
t.setTimeout((SECONDS + 200) * 1000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** Names and the revisions that they were told to have. */
type Model = Map<string, bigint>;

/** Server-sent events, read by so many bytes at a time, or as they come. */
class SlowStream {
  readonly model: Model = new Map();
  merged = 0;
  private text = "";

  private constructor(private readonly response: IncomingMessage) {
    response.setEncoding("utf8");
  }

  static open(http: string, prefix: string): Promise<SlowStream> {
    const path = `/v1/watch/stream?kind=prefix&name=${encodeURIComponent(prefix)}`;
    return new Promise((resolve, reject) => {
      const asked = request(`http://${http}${path}`, (response) =>
        resolve(new SlowStream(response)),
      );
      asked.on("error", reject);
      asked.end();
    });
  }

  readSome(bytes: number): void {
    const text = this.response.read(bytes) as string | null;
    if (text !== null) this.take(text);
  }

  readOn(): void {
    this.response.on("data", (text: string) => this.take(text));
  }

  close(): void {
    this.response.destroy();
  }

  private take(text: string): void {
    const blocks = (this.text + text).split("\n\n");
    this.text = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (!block.includes("event: events") || data === undefined) continue;
      const told = JSON.parse(data) as {
        readonly events: readonly { readonly name: string; readonly revision: number }[];
        readonly merged?: boolean;
      };
      if (told.merged === true) this.merged++;
      for (const { name, revision } of told.events) this.model.set(name, BigInt(revision));
    }
  }
}

async function figures(http: string): Promise<{ readonly rss: number; readonly unsent: number }> {
  const text = await (await fetch(`http://${http}/metrics`)).text();
  const of = (name: string): number =>
    Number(new RegExp(`^${name} ([0-9.e+]+)$`, "m").exec(text)?.[1] ?? NaN);
  return { rss: of("process_resident_memory_bytes"), unsent: of("svc_watch_buffer_bytes") };
}

t.test("P-185 W13 slow readers cost a cursor each, and get the newest state", async (t) => {
  const flags = [`--watch-stream-buffer-bytes=${BUFFER_BYTES}`, "--watch-history-bytes=4MiB"];
  const server = new ServerProcess(nodeFlags(directory.path, ...flags));
  const { grpc, http } = await server.ready();
  const client = new SvcClient({ endpoints: grpc });
  const newest: Model = new Map();
  let written = 0;
  let isOver = false;
  const write = async (from: number): Promise<void> => {
    for (let at = from; !isOver; at += WRITERS) {
      const key = `slow/${at % KEYS}`;
      const { revision } = await client.kv.set(key, "x".repeat(VALUE_BYTES));
      if (revision > (newest.get(key) ?? -1n)) newest.set(key, revision);
      written++;
    }
  };
  const writers = Array.from({ length: WRITERS }, (_, at) => write(at));
  await sleep(3000);
  const before = await figures(http);

  const streams = await Promise.all(
    Array.from({ length: READERS }, () => SlowStream.open(http, "slow/")),
  );
  const reader = new SvcClient({ endpoints: grpc });
  const watches = Array.from({ length: READERS }, () => reader.watch.prefix("slow/"));
  await Promise.all(watches.map((watch) => watch.started()));
  const atBegin = written;
  let highestRss = 0;
  let highestUnsent = 0;
  for (let second = 0; second < SECONDS; second++) {
    await sleep(1000);
    for (const stream of streams) stream.readSome(1024);
    const { rss, unsent } = await figures(http);
    highestRss = Math.max(highestRss, rss);
    highestUnsent = Math.max(highestUnsent, unsent);
  }
  isOver = true;
  await Promise.all(writers);
  const owed = (written - atBegin) * VALUE_BYTES * READERS * 2;
  const said = `resident ${before.rss} to ${highestRss}, unsent ${highestUnsent}, owed ${owed}`;
  t.comment(`${written - atBegin} writes: ${said}`);
  const boundBytes = 2 * READERS * (BUFFER_BYTES + MESSAGE_BYTES);
  t.ok(highestUnsent > 0 && highestUnsent <= boundBytes, `unsent is bounded: ${said}`);
  t.ok(owed > boundBytes + RESIDENT_SLACK_BYTES, `there was more than is kept: ${said}`);
  t.ok(highestRss - before.rss < boundBytes + RESIDENT_SLACK_BYTES, `memory is bounded: ${said}`);

  const told = watches.map((watch) => follow(watch));
  for (const stream of streams) stream.readOn();
  const isNewest = (model: Model): boolean =>
    [...newest].every(([name, revision]) => model.get(name) === revision);
  const models = [...streams, ...told];
  for (let tries = 0; tries < 600 && !models.every(({ model }) => isNewest(model)); tries++) {
    await sleep(50);
  }
  for (const [at, { model, merged }] of models.entries()) {
    t.ok(isNewest(model), `reader ${at} has the newest state`);
    t.ok(merged > 0, `reader ${at} was told what it missed as merged (${merged})`);
  }
  for (const stream of streams) stream.close();
  await Promise.all([client.close(), reader.close()]);
});

/** Reads a watch from now on. */
function follow(watch: Watch): { readonly model: Model; merged: number } {
  const seen = { model: new Map<string, bigint>(), merged: 0 };
  const read = async (): Promise<void> => {
    for await (const { events, merged } of watch) {
      if (merged) seen.merged++;
      for (const { name, revision } of events) seen.model.set(name, revision);
    }
  };
  void read().catch(() => undefined);
  return seen;
}
