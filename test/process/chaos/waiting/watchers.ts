/**
 * Programs that watch under faults, through the library: keys, prefixes, buckets and locks, at random nodes; they leave a
 * watch in the middle and go on at another node, from the cursor that they have.
 *
 * Invariants: 1. A watch ends by its reader alone: no fault ends one. 2. What each was told is kept, and judged by
 * `checkToldStreams`. 3. In peace those that still stand are held against linearizable reads.
 */
import type { Prng } from "../../../../src/base/prng.js";
import type { SvcClient, Watch } from "../../../../src/client/mod.js";
import { isOf } from "../../../judge/checkers/watches/changes.js";
import {
  STREAM_KINDS,
  type StreamKind,
  ToldStream,
} from "../../../judge/checkers/watches/told-streams.js";
import { Findings, type Verdict } from "../../../judge/checkers/verdict.js";
import type { History } from "../../../judge/history.js";
import { sleep } from "../../cluster/server-process.js";
import type { ChaosNodes } from "../nodes.js";
import { clientAt } from "./waiting-clients.js";

/** A watch of one era ends behind it. */
const SHORT_MS = 8000;
const SYNC_MS = 10_000;
const PEACE_TRIES_MAX = 40;
const PEACE_PAUSE_MS = 500;
const PLAN = ["prefix", "lockPrefix", "bucket", "key", "lock"] as const;

interface Standing {
  readonly stream: ToldStream;
  readonly watch: Watch;
}

export class ChaosWatchers {
  readonly streams: ToldStream[] = [];
  private readonly clients: SvcClient[];
  private readonly standing: Standing[] = [];
  private isStopped = false;
  private serial = 0;

  /** `spaces`: keys in spaces that move are watched too. */
  constructor(
    nodes: ChaosNodes,
    private readonly prng: Prng,
    private readonly eraAt: (nowMs: number) => number,
    private readonly isRanged: boolean,
  ) {
    this.clients = nodes.all.flatMap((node) => [
      clientAt(nodes, node, "grpc"),
      clientAt(nodes, node, "grpc"),
      clientAt(nodes, node, "rest"),
    ]);
  }

  /** Runs `count` watchers until `stop`; what they have then stands until `rest` has looked. */
  async run(count: number): Promise<void> {
    const watchers = Array.from({ length: count }, (_, at) =>
      this.watcher(at, this.prng.fork(`watcher ${at}`)),
    );
    await Promise.all(watchers);
  }

  stop(): void {
    this.isStopped = true;
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()));
  }

  private async watcher(at: number, prng: Prng): Promise<void> {
    const kind = PLAN[at % PLAN.length] as StreamKind;
    while (!this.isStopped) {
      const name = this.nameOf(kind, at, prng);
      const initial = prng.chance(2, 3);
      const isWhole = kind === "prefix" || kind === "lockPrefix";
      const stream = new ToldStream(
        `${kind} watch ${this.serial++} of ${name}`,
        { kind: STREAM_KINDS[kind], name },
        initial || isWhole,
      );
      this.streams.push(stream);
      await this.follow(stream, kind, prng, isWhole ? Infinity : SHORT_MS);
    }
  }

  private nameOf(kind: StreamKind, at: number, prng: Prng): string {
    const era = this.eraAt(performance.now());
    switch (kind) {
      case "prefix":
        return this.isRanged && at >= PLAN.length ? "ranged-" : "e";
      case "lockPrefix":
        return "e";
      case "bucket":
        return `e${era}`;
      case "key":
        return `e${era}/key-${prng.below(6)}`;
      default:
        return prng.chance(1, 2) ? `e${era}/hot-${prng.below(2)}` : `e${era}/lock-${prng.below(4)}`;
    }
  }

  /** One watch, over the nodes that it goes on at. */
  private async follow(
    stream: ToldStream,
    kind: StreamKind,
    prng: Prng,
    lifeMs: number,
  ): Promise<void> {
    const endMs = performance.now() + lifeMs;
    for (;;) {
      const client = this.clients[prng.below(this.clients.length)] as SvcClient;
      const from = stream.cursor === null ? {} : { cursor: stream.cursor };
      const options = { initial: stream.initial, ...from };
      const watch = client.watch[kind](stream.watched.name, options);
      const reading = read(watch, stream);
      if (stream.startedMs === Infinity) {
        await Promise.race([watch.started().catch(() => undefined), reading]);
        if (stream.failure === null) stream.startedMs = performance.now();
      }
      const untilMs = Math.min(endMs, performance.now() + 1000 + prng.below(5000));
      while (!this.isStopped && performance.now() < untilMs) await sleep(100);
      if (stream.failure !== null) return;
      if (this.isStopped) {
        this.standing.push({ stream, watch });
        return;
      }
      const isLast = performance.now() >= endMs;
      if (isLast || prng.chance(1, 2)) await level({ stream, watch });
      await watch.return();
      await reading;
      if (isLast) return;
      stream.goesOn(watch.cursor);
      if (stream.cursor === null) {
        // Nothing was told whole: there is nothing to go on from.
        stream.startedMs = Infinity;
        return;
      }
    }
  }

  /** After the faults: whatever stands is level, and what it says of each name is what a linearizable read says. */
  async rest(history: History): Promise<Verdict> {
    const minimum = { "watches in peace": 3, "names in peace": 50 };
    const findings = new Findings("watchers know the newest state in peace", minimum);
    const names = namesOf(history);
    const looking = this.standing.map(async (one) => {
      findings.count("watches in peace");
      const { stream } = one;
      const all = stream.isLock ? names.locks : names.keys;
      const mine = stream.initial
        ? [...all].filter((name) => isOf(stream.watched, name))
        : stream.names;
      findings.count("names in peace", mine.length);
      const wrong = await this.settle(one, mine);
      for (const text of wrong) findings.violation(`${stream.id}: ${text}`);
    });
    await Promise.all(looking);
    for (const { watch } of this.standing) await watch.return();
    return findings.verdict();
  }

  /** Leases end meanwhile: those names that differ are looked at again. */
  private async settle(one: Standing, names: readonly string[]): Promise<readonly string[]> {
    let wrong: readonly string[] = [];
    let left = names;
    for (let tries = 0; tries < PEACE_TRIES_MAX; tries++) {
      if (tries > 0) await sleep(PEACE_PAUSE_MS);
      if (!(await level(one))) {
        wrong = [`${one.stream.failure ?? "is not level"}`];
        if (one.stream.failure !== null) return wrong;
        continue;
      }
      const differ: string[] = [];
      const texts: string[] = [];
      const now = await Promise.all(left.map((name) => this.newest(one.stream, name)));
      for (const [at, name] of left.entries()) {
        const there = now[at] as bigint | null;
        const told = one.stream.stateOf(name);
        if (there === told) continue;
        differ.push(name);
        texts.push(`${name} is ${there ?? "not there"}, and told to be ${told ?? "not there"}`);
      }
      if (differ.length === 0) return [];
      left = differ;
      wrong = texts;
    }
    return wrong;
  }

  private async newest(stream: ToldStream, name: string): Promise<bigint | null> {
    const [client] = this.clients as [SvcClient];
    if (stream.isLock) return (await client.locks.info(name))?.fencingToken ?? null;
    return (await client.kv.get(name))?.revision ?? null;
  }
}

/** Ends with the watch. */
async function read(watch: Watch, stream: ToldStream): Promise<void> {
  try {
    for await (const batch of watch) stream.told(batch, performance.now());
  } catch (error) {
    stream.failure = String(error);
  }
}

/** False: the barrier did not come in time. */
async function level({ stream, watch }: Standing): Promise<boolean> {
  const askedMs = performance.now();
  const synced = watch.sync().then(
    () => watch.drained().then(() => true),
    () => false,
  );
  const isLevel = await Promise.race([synced, sleep(SYNC_MS).then(() => false)]);
  if (!isLevel) return false;
  stream.levelMs = askedMs;
  stream.barriers++;
  return true;
}

function namesOf({ attempts }: History): {
  readonly keys: ReadonlySet<string>;
  readonly locks: ReadonlySet<string>;
} {
  const keys = new Set<string>();
  const locks = new Set<string>();
  for (const { operation } of attempts) {
    if ("key" in operation && !operation.ephemeral) keys.add(operation.key);
    if ("resource" in operation && !operation.ephemeral) locks.add(operation.resource);
  }
  return { keys, locks };
}
