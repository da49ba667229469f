/**
 * Time that passes only when this process is idle: for clients whose servers are stand-ins in the same process.
 *
 * Sockets are real, waits are not: as soon as no byte is under way between two sockets of this process and nothing ran
 * for a number of turns, time jumps to the next timer. So a wait of a minute costs a moment, and on a busy machine
 * nothing is late. Invariants: 1. Timers run in the order of their times, those of one time in the order in which they
 * were set. 2. Time never passes a timer that has not run, except by `block`. 3. Other processes do not live in this
 * time: whoever talks to one is tested in real time.
 */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { Prng } from "../../../src/base/prng.js";
import type { ClientPlatform, Timer } from "../../../src/client/time/platform.js";
import { loadUndici } from "../../../src/client/transport/http-package.js";

// Clients over REST load it when they first need it. What another thread does for that (loaders of programs that watch
// over tests) moves nothing here: it is done before any time passes.
await loadUndici();

/** So many turns without anything that moves are idle. */
const IDLE_TURNS = 24;
/** Bytes that nobody reads (a stalled proxy) are waited for so many turns, and so long (real ms). */
const HELD_TURNS = 200;
const HELD_MS = 10;
/**
 * A connection whose other end is not seen yet is waited for so long, once: it may stand at the client before a busy
 * machine's kernel tells the server of it.
 */
const UNACCEPTED_MS = 1000;
/** Requests of the platform that end by themselves: connections, files, names. */
const PENDING = /^(?:TCPConnectWrap|FSReq|GetAddrInfo|GetNameInfo)/;

/** The sockets of this process, and how many came and went. */
const sockets = new Set<Socket>();
const clients = new WeakSet<Socket>();
/** Ports, from and to, of every connection that a server of this process has taken, or that is given up. */
const accepted = new Set<string>();
let changes = 0;

function follow({ socket }: { readonly socket: Socket }): void {
  changes += 1;
  sockets.add(socket);
  socket.once("close", () => {
    changes += 1;
    sockets.delete(socket);
  });
}
subscribe("net.client.socket", (message) => {
  const client = message as { readonly socket: Socket };
  clients.add(client.socket);
  follow(client);
});
subscribe("net.server.socket", (message) => {
  const server = message as { readonly socket: Socket };
  accepted.add(`${server.socket.remotePort} ${server.socket.localPort}`);
  follow(server);
});

/** Changes whenever something moves. */
function moved(): number {
  let count = changes;
  for (const { bytesRead, bytesWritten } of sockets) count += bytesRead + bytesWritten;
  return count;
}

/** Whether something was written that its reader in this process has not read, or a request of the platform is out. */
function isUnderWay(): boolean {
  if (process.getActiveResourcesInfo().some((name) => PENDING.test(name))) return true;
  const read = new Map<string, number>();
  for (const one of sockets) read.set(`${one.remotePort} ${one.localPort}`, one.bytesRead);
  for (const one of sockets) {
    const there = read.get(`${one.localPort} ${one.remotePort}`);
    if (there !== undefined && there !== one.bytesWritten) return true;
  }
  return false;
}

/** The connection of a client that stands while its server has not been told of it, or null. */
function unaccepted(): string | null {
  for (const one of sockets) {
    const { localPort, remotePort } = one;
    if (localPort === undefined || remotePort === undefined || !clients.has(one)) continue;
    const ports = `${localPort} ${remotePort}`;
    if (!accepted.has(ports)) return ports;
  }
  return null;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Resolves when nothing moves in this process any more. */
async function idle(): Promise<void> {
  let last = -1;
  let sinceMs = 0;
  for (let turns = 0; ; turns++) {
    const now = moved();
    if (now !== last) {
      last = now;
      turns = 0;
      sinceMs = performance.now();
    }
    const stillMs = performance.now() - sinceMs;
    const coming = turns < IDLE_TURNS ? null : unaccepted();
    if (coming !== null && stillMs > UNACCEPTED_MS) accepted.add(coming);
    if (turns >= IDLE_TURNS && coming === null) {
      if (!isUnderWay()) return;
      if (turns >= HELD_TURNS && stillMs > HELD_MS) return;
    }
    await turn();
  }
}

interface Waiting {
  readonly atMs: number;
  readonly callback: () => void;
}

/** To be given to clients as their platform, and to stand-ins as what they wait in. */
export class VirtualTime implements ClientPlatform {
  private timeMs = 1000;
  /** In the order in which they were set. */
  private readonly timers = new Set<Waiting>();
  private readonly prng: Prng;
  private wake: (() => void) | null = null;
  private running = true;

  /** It flows from now on, until `stop`. */
  constructor(seed = 1) {
    this.prng = new Prng(seed);
    void this.flow();
  }

  nowMs(): number {
    return this.timeMs;
  }

  uptimeMs(): number {
    return this.timeMs;
  }

  /** Real: it goes to packages whose own timers are. */
  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, callback: () => void): Timer {
    // As with those of the platform, none is due at once.
    const one = { atMs: this.timeMs + Math.max(1, delayMs), callback };
    this.timers.add(one);
    this.wake?.();
    return {
      cancel: () => void this.timers.delete(one),
      ref: () => undefined,
      unref: () => undefined,
    };
  }

  soon(callback: () => void): void {
    setImmediate(callback);
  }

  random(): number {
    return this.prng.nextUint32() / 2 ** 32;
  }

  /** Waits `ms` of this time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /**
   * As an event loop that is blocked for `ms`: time passes, and what became due meanwhile runs in the order of its time
   * before anything that waits in the sockets is seen.
   */
  block(ms: number): void {
    this.timeMs += ms;
    process.nextTick(() => {
      for (let one = this.next(); one !== null && one.atMs <= this.timeMs; one = this.next()) {
        this.run(one);
      }
    });
  }

  /** Ends the flow. */
  stop(): void {
    this.running = false;
    this.wake?.();
  }

  private next(): Waiting | null {
    let first: Waiting | null = null;
    for (const one of this.timers) if (first === null || one.atMs < first.atMs) first = one;
    return first;
  }

  private async flow(): Promise<void> {
    while (this.running) {
      await idle();
      const one = this.next();
      if (one === null) {
        await new Promise<void>((resolve) => (this.wake = resolve));
        this.wake = null;
        continue;
      }
      this.run(one);
    }
  }

  private run(one: Waiting): void {
    this.timers.delete(one);
    this.timeMs = Math.max(this.timeMs, one.atMs);
    one.callback();
  }
}
