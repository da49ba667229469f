/**
 * Programs of the library that wait for locks and watch keys, locks and sequences on a cluster, all the while that something
 * is done to its nodes; what all of them saw is judged.
 *
 * What it holds them to: no waiter is lost, each has the lock in the end, one at a time, with tokens that grow (Q5, L12); of
 * watches no revision falls, and each knows the newest state in the end (W2, W6, W9).
 */
import type { Test } from "tap";
import { SvcClient, type Watch } from "../../../../src/client/mod.js";
import {
  STREAM_KINDS,
  ToldStream,
  checkToldStreams,
} from "../../../judge/checkers/watches/told-streams.js";
import type { Rolling } from "../../cluster/rolling.js";
import { sleep } from "../../cluster/server-process.js";
import { Line } from "./trio.js";

export const ALL = [1, 2, 3];
export const LEASE_MS = 5000;
/** Programs that acquire and release a lock, again and again. */
const PROGRAMS = 6;
const LOCKS = 3;
const HOLD_MS = 20;
const KEYS = 4;
const WRITE_EVERY_MS = 30;

/** What must have been seen of each lock. */
interface Least {
  readonly grants: number;
  readonly "handed over": number;
}

/** `pinned`: it asks only there. */
export function clientOf(
  endpoints: readonly string[],
  transport: "grpc" | "rest",
  pinned = false,
): SvcClient {
  const more = pinned ? { followRoutes: false } : {};
  return new SvcClient({ endpoints, transport, keepAliveMs: 1000, deadlineMs: 15_000, ...more });
}

/** What was told of names that have revisions: none falls, and what was told last is the newest. */
class Revisions {
  readonly newest = new Map<string, { readonly revision: bigint; readonly text: string | null }>();
  readonly falls: string[] = [];
  events = 0;
  private failure: unknown = null;

  constructor(readonly watch: Watch) {
    void this.read().catch((error: unknown) => (this.failure = error));
  }

  /** Everything that was answered before is told. */
  async level(): Promise<void> {
    await this.watch.sync();
    await this.watch.drained();
    if (this.failure !== null) throw this.failure as Error;
  }

  private async read(): Promise<void> {
    for await (const batch of this.watch) {
      for (const { name, revision, text } of batch.events) {
        this.events++;
        const before = this.newest.get(name)?.revision ?? -1n;
        const isAgain = batch.initial || batch.merged || batch.reset;
        if (revision < before || (revision === before && !isAgain)) {
          this.falls.push(`${name}: ${revision} behind ${before}`);
        }
        this.newest.set(name, { revision, text });
      }
    }
  }
}

/** Sets keys and draws from a sequence until `stop`. */
class Writer {
  private isStopped = false;
  private readonly work: Promise<void>;

  constructor(private readonly client: SvcClient) {
    this.work = this.run();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.work;
  }

  private async run(): Promise<void> {
    for (let turn = 0; !this.isStopped; turn++) {
      await this.client.kv.set(`rolling/${turn % KEYS}`, `${turn}`);
      await this.client.sequences.next("rolling");
      await sleep(WRITE_EVERY_MS);
    }
  }
}

/** Some wait and some watch from before `meanwhile` until behind it; what all of them saw is judged. */
export async function usedWhile(
  t: Test,
  rolling: Rolling,
  least: Least,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const clients = [clientOf(rolling.urls.grpc, "grpc"), clientOf(rolling.urls.rest, "rest")];
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  const [grpc] = clients as [SvcClient];
  await grpc.sequences.create("rolling", { blockSize: 10 });

  const told = clients.map((client) => ({
    keys: new Revisions(client.watch.prefix("rolling/", { initial: true })),
    sequence: new Revisions(client.watch.sequence("rolling", { initial: true })),
  }));
  const streams = clients.map((client, at) => {
    const watched = { kind: STREAM_KINDS.lockPrefix, name: "busy/" };
    const stream = new ToldStream(`locks ${at}`, watched, false);
    const watch = client.watch.lockPrefix("busy/");
    const reading = (async () => {
      for await (const batch of watch) stream.told(batch, performance.now());
    })().catch((error: unknown) => void (stream.failure = String(error)));
    return { stream, watch, reading };
  });
  for (const { stream, watch } of streams) {
    await watch.started();
    stream.startedMs = performance.now();
  }

  const lines = Array.from({ length: LOCKS }, (_, at) => {
    return new Line(`busy/${at}`, grpc, { ...least });
  });
  let isOver = false;
  const programs = Array.from({ length: PROGRAMS }, async (_, at) => {
    const line = lines[at % LOCKS] as Line;
    for (let serial = 0; !isOver; serial++) {
      const client = clients[(at + serial) % clients.length] as SvcClient;
      await line.waits(client, `p${at}-${serial}`, LEASE_MS, HOLD_MS);
    }
  });
  const writer = new Writer(grpc);

  await meanwhile();
  isOver = true;
  await Promise.all(programs);
  await writer.stop();

  await t.test("Q5 L12 no waiter is lost", (t) => {
    for (const { times, failures } of lines) {
      const verdict = times.verdict();
      t.equal(verdict.kind, "pass", verdict.violations.join("\n"));
      t.same(failures, []);
      t.comment(JSON.stringify(verdict.seen));
    }
    t.end();
  });
  await t.test("W2 W6 W9 watches know the newest state", async (t) => {
    for (const { keys, sequence } of told) {
      await Promise.all([keys.level(), sequence.level()]);
      t.same(
        [...keys.falls, ...sequence.falls],
        [],
        `${keys.events} and ${sequence.events} events`,
      );
      for (let at = 0; at < KEYS; at++) {
        const there = await grpc.kv.get(`rolling/${at}`);
        const { revision, text } = keys.newest.get(`rolling/${at}`) ?? {};
        t.same([revision, text], [there?.revision, there?.text]);
      }
      const now = await grpc.sequences.get("rolling");
      t.equal(sequence.newest.get("rolling")?.revision, now?.revision);
    }
    for (const { stream, watch, reading } of streams) {
      const askedMs = performance.now();
      await watch.sync();
      await watch.drained();
      stream.levelMs = askedMs;
      stream.barriers++;
      await watch.return();
      await reading;
    }
    const grants = lines.flatMap(({ answered }) => answered);
    const seen = {
      "changes one by one": 2 * least.grants,
      "grants of waiting clients that were told": least.grants,
    };
    const all = streams.map(({ stream }) => stream);
    const verdict = checkToldStreams(all, { attempts: [], endMs: performance.now() }, grants, seen);
    t.equal(verdict.kind, "pass", verdict.violations.map(String).join("\n"));
    t.comment(JSON.stringify(verdict.seen));
    await Promise.all(
      told.flatMap((each) => [each.keys.watch.return(), each.sequence.watch.return()]),
    );
  });
}
