/**
 * The client: what a program makes once and uses for everything.
 *
 * Owns its engine, its connections and the locks held through it. Invariants: 1. After `close`
 * nothing of it is left: no timer, no connection, no call. 2. It may be used by any number of calls
 * at once.
 */
import { checkFunction, membersOf, optionsOf } from "./values/arguments.js";
import { BackupsAdmin } from "./admin/backups.js";
import { SystemClock } from "./time/clock.js";
import type { ClientPlatform } from "./time/platform.js";
import { systemPlatform } from "./time/system-platform.js";
import { ClusterAdmin } from "./admin/cluster.js";
import { Election } from "./elections/election.js";
import { readHealth } from "./metadata/calls.js";
import type { Health } from "./metadata/results.js";
import { Engine } from "./engine.js";
import { KeyValues } from "./kv/kv.js";
import { Locks } from "./locks/locks.js";
import { localFailure } from "./values/errors.js";
import {
  clientSettings,
  durationMs,
  type CallOptions,
  type SvcClientOptions,
} from "./values/options.js";
import { PrefixCache } from "./watching/cache.js";
import { Watches } from "./watching/watches.js";
import { RangesAdmin } from "./admin/ranges.js";
import { Sequence, Sequences } from "./sequences/sequences.js";

/** Options of `close`. */
export interface CloseOptions {
  /** Longest time for calls under way to end by themselves before the rest (ms, default 0). */
  readonly drainMs?: number | undefined;
  /** Longest time for releasing locks that are still held (ms, default 2000; 0 = do not). */
  readonly releaseMs?: number | undefined;
}

const RELEASE_DEFAULT_MS = 2000;

/**
 * A client of svc.
 *
 * @example
 * const client = new SvcClient({ endpoints: ["http://127.0.0.1:8083"] });
 * const id = await client.sequence("orders").next();
 * await client.close();
 */
export class SvcClient {
  /** Sequences by name; see also `sequence`. */
  readonly sequences: Sequences;
  /** Fenced lease locks. */
  readonly locks: Locks;
  /** Key/value entries. */
  readonly kv: KeyValues;
  /** What changes, as it does. */
  readonly watch: Watches;
  /** Cluster administration. */
  readonly cluster: ClusterAdmin;
  /** Key-range administration. */
  readonly ranges: RangesAdmin;
  /** Backup administration. */
  readonly backups: BackupsAdmin;
  private readonly engine: Engine;
  private closing: Promise<void> | null = null;

  /** Connects lazily. Throws InvalidInputError for wrong options. */
  constructor(options: SvcClientOptions);
  /** @internal `platform`: where its time and chance come from. */
  constructor(options: SvcClientOptions, platform: ClientPlatform);
  constructor(options: SvcClientOptions, platform: ClientPlatform = systemPlatform) {
    const settings = clientSettings(options);
    const clock = options.clock ?? new SystemClock(platform);
    checkFunction("clock.nowMs", membersOf("clock", clock).nowMs);
    const engine = new Engine(platform, settings, clock);
    this.engine = engine;
    this.sequences = new Sequences(engine, settings.idempotency);
    this.kv = new KeyValues(engine);
    const failsWhenRefused = settings.failWhenRefused && settings.endpoints.length === 1;
    this.watch = new Watches({ caller: engine, host: engine, failsWhenRefused });
    this.locks = new Locks({ caller: engine, clock, watches: this.watch });
    this.cluster = new ClusterAdmin(engine);
    this.ranges = new RangesAdmin(engine);
    this.backups = new BackupsAdmin(engine);
  }

  /**
   * One sequence by name. Costs nothing and does not check that it exists.
   *
   * @example
   * const orders = client.sequence("orders");
   */
  sequence(name: string): Sequence {
    return new Sequence(this.sequences, name);
  }

  /**
   * One election by name. Costs nothing until it is used.
   *
   * @example
   * const leadership = await client.election("indexer").campaign({ value: "host-7" });
   */
  election(name: string): Election {
    return new Election(this.locks, this.watch, name);
  }

  /**
   * The entries whose keys begin so, kept level by a watch.
   *
   * @example
   * await using config = client.cache("config/");
   * await config.ready();
   * console.log(config.get("config/color")?.text);
   */
  cache(prefix: string): PrefixCache {
    return new PrefixCache(this.watch.prefix(prefix, { initial: true }));
  }

  /**
   * Whether the answering node is ready to serve.
   *
   * @example
   * const { ready } = await client.health({ deadlineMs: 1000 });
   */
  health(options?: CallOptions): Promise<Health> {
    return this.engine.call(readHealth, {}, options);
  }

  /**
   * Releases held locks, rejects calls under way (after `drainMs`) with ClosedError, and ends all
   * connections and timers. May be called more than once; rejects for wrong options only
   * (InvalidInputError).
   *
   * @example
   * await client.close();
   */
  close(options: CloseOptions = {}): Promise<void> {
    try {
      const { drainMs = 0, releaseMs = RELEASE_DEFAULT_MS } = optionsOf(options);
      durationMs("drainMs", drainMs, 0);
      durationMs("releaseMs", releaseMs, 0);
      this.closing ??= this.closeNow(drainMs, releaseMs);
    } catch (error) {
      return Promise.reject(localFailure(error));
    }
    return this.closing;
  }

  /** As `close`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async closeNow(drainMs: number, releaseMs: number): Promise<void> {
    await this.engine.idle(drainMs);
    await this.locks.close(releaseMs);
    await this.engine.close();
  }
}
