/**
 * Elections: who of several may act, by a lock with a note (rules E1 to E3).
 *
 * Invariants: 1. Leading ends with the lock, never after it: the signal of a leadership is that of
 * its lock. 2. An epoch is the fencing token of the grant. 3. Who campaigned in vain, or gave up,
 * leads nothing: what may have been granted is released.
 */
import { bytesOf, optionsOf, textOf } from "../values/arguments.js";
import type { LockHandle } from "../locks/lock-handle.js";
import type { Locks } from "../locks/locks.js";
import type { Watches } from "../watching/watches.js";
import { LockNotAcquiredError } from "../values/errors.js";
import type { CallOptions } from "../values/options.js";

const PREFIX = "elections/";
const LEASE_DEFAULT_MS = 15_000;

/** Options of `campaign`. */
export interface CampaignOptions extends CallOptions {
  /** What others are shown of the leader, at most 1024 bytes (default: nothing). */
  readonly value?: string | Uint8Array | undefined;
  /** Owner of the lock (default: 32 random hexadecimal characters). */
  readonly owner?: string | Uint8Array | undefined;
  /** How long it leads without contact to the service (ms, default 15000). It is renewed. */
  readonly leaseMs?: number | undefined;
  /** How long to wait while somebody else leads (ms, default: without end). */
  readonly waitMs?: number | undefined;
}

/** Options of `observe`. */
export interface ObserveOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Who leads an election. */
export interface Leader {
  /** Names the leadership; larger than those of all earlier ones. */
  readonly epoch: bigint;
  readonly owner: Uint8Array;
  /** The owner as text, or null when its bytes are not UTF-8. */
  readonly ownerText: string | null;
  /** What the leader has to say; null: nothing. */
  readonly value: Uint8Array | null;
  readonly valueText: string | null;
}

/** @internal The lock that an election is. */
export function electionLock(name: string): string {
  return `${PREFIX}${name}`;
}

/**
 * An election that was won.
 *
 * Give `epoch` to everything that the leader changes: only what is changed can refuse a leader of
 * before for certain.
 *
 * @example
 * await using leadership = await client.election("indexer").campaign({ value: "host-7" });
 * await work(leadership.signal, leadership.epoch);
 */
export class Leadership {
  /** Of the election. */
  readonly name: string;
  private readonly lock: LockHandle;

  /** @internal */
  constructor(name: string, lock: LockHandle) {
    this.name = name;
    this.lock = lock;
  }

  /** Larger than that of every earlier leader. */
  get epoch(): bigint {
    return this.lock.fencingToken;
  }

  /** The owner of the lock. */
  get owner(): Uint8Array {
    return this.lock.owner;
  }

  /** The owner as text, or null when its bytes are not UTF-8. */
  get ownerText(): string | null {
    return this.lock.ownerText;
  }

  /**
   * Aborts before anybody else can lead, or when this one resigned; the reason is a LockLostError.
   */
  get signal(): AbortSignal {
    return this.lock.signal;
  }

  /** True while it certainly leads. */
  get leads(): boolean {
    return this.lock.held;
  }

  /** Throws LockLostError unless it certainly leads. */
  assertLeads(): void {
    this.lock.assertHeld();
  }

  /**
   * Gives the leadership another value. False when it is over.
   *
   * @example
   * await leadership.proclaim("host-7, 80 %");
   */
  async proclaim(value: string | Uint8Array, options?: CallOptions): Promise<boolean> {
    return this.lock.extend(undefined, { ...optionsOf(options), note: bytesOf("value", value) });
  }

  /**
   * Ends the leadership: whoever waits leads next. True when it led until now.
   *
   * @example
   * await leadership.resign();
   */
  resign(options?: CallOptions): Promise<boolean> {
    return this.lock.release(options);
  }

  /** As `resign`, within one lease (at least a second). */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.lock[Symbol.asyncDispose]();
  }
}

/** One election by name. Costs nothing until it is used. */
export class Election {
  readonly name: string;
  private readonly locks: Locks;
  private readonly watches: Watches;
  private readonly resource: string;

  /** @internal */
  constructor(locks: Locks, watches: Watches, name: string) {
    this.name = textOf("name", name);
    this.locks = locks;
    this.watches = watches;
    this.resource = electionLock(this.name);
  }

  /**
   * Waits until it leads, in the order of asking. Rejects with LockNotAcquiredError when `waitMs`
   * is over, with CancelledError when `signal` aborts, and as `locks.acquire` does.
   *
   * @example
   * const leadership = await client.election("indexer").campaign({ value: "host-7", signal });
   */
  async campaign(options: CampaignOptions = {}): Promise<Leadership> {
    const { value, leaseMs, waitMs, owner, signal, deadlineMs } = optionsOf(options);
    const lock = await this.locks.acquire(this.resource, {
      signal,
      deadlineMs,
      owner,
      note: value === undefined ? undefined : bytesOf("value", value),
      leaseMs: leaseMs ?? LEASE_DEFAULT_MS,
      waitMs: waitMs ?? Number.POSITIVE_INFINITY,
    });
    if (!lock.acquired) throw new LockNotAcquiredError(this.resource);
    return new Leadership(this.name, lock);
  }

  /**
   * Who leads, now and whenever that changes; null: nobody does. What a leader proclaims later is
   * not told. Rejects as a watch does.
   *
   * @example
   * for await (const leader of client.election("indexer").observe()) console.log(leader?.epoch);
   */
  async *observe(options: ObserveOptions = {}): AsyncGenerator<Leader | null, void, undefined> {
    const { signal } = optionsOf(options);
    const watch = this.watches.lock(this.resource, { initial: true, signal });
    /** Of a state: nobody was told to lead in it so far. */
    let isEmpty = true;
    let isWhole = false;
    for await (const { events, cursor, reset } of watch) {
      if (reset) {
        isWhole = false;
        isEmpty = true;
      }
      for (const { type, fencingToken, owner, ownerText, note, noteText } of events) {
        isEmpty = false;
        if (type !== "locked" || owner === null) yield null;
        else yield { epoch: fencingToken, owner, ownerText, value: note, valueText: noteText };
      }
      if (cursor === null || isWhole) continue;
      isWhole = true;
      if (isEmpty) yield null;
    }
  }

  /**
   * Who leads now; null when nobody does.
   *
   * @example
   * const leader = await client.election("indexer").leader();
   */
  async leader(options?: CallOptions): Promise<Leader | null> {
    const info = await this.locks.info(this.resource, options);
    if (info === null) return null;
    const { owner, ownerText, fencingToken, note, noteText } = info;
    return { epoch: fencingToken, owner, ownerText, value: note, valueText: noteText };
  }
}
