/**
 * The entries of a prefix, kept level by a watch.
 *
 * Owns its watch. Invariants: 1. What is read was true at one time of the service for each key, and
 * is followed within moments; a state is shown when all of it is here. 2. A failure ends it, and is
 * what every wait rejects with.
 */
import type { Watch } from "./watch.js";
import type { WatchBatch } from "./watch-shapes.js";

/** An entry of a cache. */
export interface CachedEntry {
  readonly value: Uint8Array | null;
  /** The value as text, or null when there is none or its bytes are not UTF-8. */
  readonly text: string | null;
  readonly revision: bigint;
}

/**
 * A map of keys to entries. It holds them all: a prefix of many entries takes their memory.
 *
 * @example
 * await using flags = client.cache("flags/");
 * await flags.ready();
 * if (flags.get("flags/dark")?.text === "on") dim();
 */
export class PrefixCache {
  private readonly watch: Watch;
  private entries = new Map<string, CachedEntry>();
  /** A state that is being told. */
  private coming: Map<string, CachedEntry> | null = new Map();
  private readonly running: Promise<void>;
  private readonly isReady: Promise<void>;
  private onReady: () => void = () => undefined;
  private ended = false;

  /** @internal */
  constructor(watch: Watch) {
    this.watch = watch;
    const whole = new Promise<void>((resolve) => (this.onReady = resolve));
    this.running = this.run();
    // Whoever waits is told; nobody has to.
    this.running.catch(() => undefined);
    this.isReady = Promise.race([whole, this.running]);
    this.isReady.catch(() => undefined);
  }

  /** How many entries there are. */
  get size(): number {
    return this.entries.size;
  }

  get(key: string): CachedEntry | undefined {
    return this.entries.get(key);
  }

  has(key: string): boolean {
    return this.entries.has(key);
  }

  keys(): IterableIterator<string> {
    return this.entries.keys();
  }

  [Symbol.iterator](): IterableIterator<[string, CachedEntry]> {
    return this.entries.entries();
  }

  /** Resolves when the state is here; rejects with what ended it. */
  ready(): Promise<void> {
    return this.isReady;
  }

  /** Resolves when everything that was answered to anybody before this call is here. */
  async sync(): Promise<void> {
    await this.isReady;
    await this.watch.sync();
    // What came before it has been handed out, and is taken in order.
    await this.watch.drained();
  }

  /** Resolves when it has ended; rejects with what ended it, unless that was `close`. */
  closed(): Promise<void> {
    return this.running;
  }

  /** Ends it. What was read stays. */
  async close(): Promise<void> {
    this.ended = true;
    await this.watch.return();
    await this.running.catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async run(): Promise<void> {
    for await (const batch of this.watch) {
      this.take(batch);
      if (this.ended) return;
    }
  }

  private take({ events, cursor, reset }: WatchBatch): void {
    if (reset) this.coming = new Map();
    const entries = this.coming ?? this.entries;
    for (const { type, name, value, text, revision } of events) {
      if (type === "set") entries.set(name, { value, text, revision });
      else entries.delete(name);
    }
    if (cursor === null || this.coming === null) return;
    this.entries = this.coming;
    this.coming = null;
    this.onReady();
  }
}
