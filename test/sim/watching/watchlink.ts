/**
 * One stream of watches from a client to a node: what the node gives away waits to be read, arrives a
 * little later, and is lost with the node.
 *
 * Invariants: 1. Messages arrive in the order in which they were given. 2. The stream is full as long
 * as more than its buffer is unread, and says once when it is no longer. 3. After the end of the
 * link nothing arrives.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { RouteHint } from "../../../src/operations/api/answers.js";
import type { WatchMessage, WatchReceiver } from "../../../src/operations/api/watching/watches.js";
import type { WatchRequest, WatchStream } from "../../../src/operations/api/watching/watches.js";
import { eventBytes } from "../../../src/machine/events.js";
import { nodeAt } from "../plan/plan.js";
import type { OpenCall, Running, Server } from "../world/server.js";
import type { World } from "../world/world.js";

/** Time that a word or a message takes between client and node, at least (ms). */
const TRAVEL_MS = 0.2;
/** Of a message without its events (bytes). */
const MESSAGE_BYTES = 60;

export interface LinkEars {
  /** A message arrived that the node gave away at `sentMs`; `elsewhere`: the node that it names. */
  came(message: WatchMessage, sentMs: number, elsewhere: Server | null): void;
  /** The node gives a message away. */
  given(isFull: boolean, message: WatchMessage, sizeBytes: number): void;
  becameFull(): void;
  /** The node is gone. */
  lost(): void;
}

interface Unread {
  readonly message: WatchMessage;
  readonly elsewhere: Server | null;
  readonly sizeBytes: number;
  readonly sentMs: number;
}

export class WatchLink implements OpenCall, WatchReceiver {
  private stream: WatchStream | null = null;
  private readonly unread: Unread[] = [];
  private unreadBytes = 0;
  private wasFull = false;
  private isReading = false;
  private isOver = false;
  private standsUntilMs = 0;
  /** When the last word arrives: none overtakes another one. */
  private wordMs = 0;

  constructor(
    private readonly world: World,
    /** All machines, by node id less one. */
    private readonly servers: readonly Server[],
    readonly server: Server,
    private readonly running: Running,
    private readonly bufferBytes: number,
    /** What one message takes to read (ms). */
    private readMs: number,
    private readonly prng: Prng,
    private readonly ears: LinkEars,
  ) {
    server.openCall(this);
    this.say(() => {
      this.stream = running.operations.watches.open(this, null);
    });
  }

  get life(): number {
    return this.running.life.number;
  }

  /** `asked` is told when the node has heard of it. */
  create(watchId: number, request: WatchRequest, asked: () => void): void {
    this.say((stream) => {
      asked();
      stream?.create(watchId, request);
    });
  }

  cancel(watchId: number): void {
    this.say((stream) => stream?.cancel(watchId));
  }

  sync(syncId: number, watchId: number, asked: () => void): void {
    this.say((stream) => {
      asked();
      stream?.sync(syncId, watchId);
    });
  }

  /** The client reads nothing for a while. */
  standStill(forMs: number): void {
    this.standsUntilMs = this.world.nowMs + forMs;
  }

  /** The client reads at once from now on. */
  hurry(): void {
    this.readMs = 0;
    this.standsUntilMs = 0;
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.server.closeCall(this);
    this.say((stream) => stream?.close());
  }

  // The node ends --------------------------------------------------------------------------------

  ended(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.ears.lost();
  }

  disturbed(): void {
    // Nothing is promised about when something comes.
  }

  // What the node gives away ---------------------------------------------------------------------

  deliver(message: WatchMessage, route: RouteHint | null): void {
    const { events } = message;
    const sizeBytes = events.reduce((sum, event) => sum + eventBytes(event), MESSAGE_BYTES);
    this.world.trace.mix(events.length * 8 + message.type);
    if (this.isOver) return;
    this.ears.given(this.isFull(), message, sizeBytes);
    const named = route === null ? undefined : this.servers[nodeAt(route.endpoint) - 1];
    this.unread.push({ message, elsewhere: named ?? null, sizeBytes, sentMs: this.world.nowMs });
    this.unreadBytes += sizeBytes;
    this.readOn();
  }

  isFull(): boolean {
    const isFull = this.unreadBytes > this.bufferBytes;
    if (isFull && !this.wasFull) this.ears.becameFull();
    this.wasFull ||= isFull;
    return isFull;
  }

  mayRead(): boolean {
    return true;
  }

  private readOn(): void {
    if (this.isReading || this.unread.length === 0) return;
    this.isReading = true;
    const { world } = this;
    const waitMs = Math.max(this.readMs + this.travelMs(), this.standsUntilMs - world.nowMs);
    world.schedule(waitMs, () => {
      this.isReading = false;
      if (this.isOver) return;
      if (this.standsUntilMs > world.nowMs) return this.readOn();
      this.read();
      this.readOn();
    });
  }

  /** One message, or all that came meanwhile. */
  private read(): void {
    const isSlow = this.readMs > 0;
    do {
      const next = this.unread.shift();
      if (next === undefined) break;
      this.unreadBytes -= next.sizeBytes;
      this.ears.came(next.message, next.sentMs, next.elsewhere);
    } while (!isSlow && !this.isOver);
    if (!this.wasFull || this.unreadBytes > this.bufferBytes / 2 || this.isOver) return;
    this.wasFull = false;
    this.say((stream) => stream?.ready());
  }

  private travelMs(): number {
    return TRAVEL_MS + this.prng.below(1000) / 1000;
  }

  private say(word: (stream: WatchStream | null) => void): void {
    const { world, running } = this;
    this.wordMs = Math.max(this.wordMs, world.nowMs + this.travelMs());
    world.schedule(this.wordMs - world.nowMs, () => running.life.enter(() => word(this.stream)));
  }
}
