/**
 * The network between the nodes of a chaos run: one TCP proxy per node, which the node advertises. A connection's two
 * directions can be held (bytes wait), delayed, or the connection cut.
 *
 * Who dialled is read from the kernel's table of connections, so that a cut can have a direction. Invariants: 1. Bytes of
 * one direction keep their order. 2. What is held is bounded by the sockets' own buffers: reading stops.
 */
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { type Server, type Socket, connect, createServer } from "node:net";

/** The sockets of each node's process, by their inodes. */
function socketsOf(pids: ReadonlyMap<number, number>): ReadonlyMap<string, number> {
  const nodes = new Map<string, number>();
  for (const [node, pid] of pids) {
    try {
      for (const file of readdirSync(`/proc/${pid}/fd`)) {
        try {
          const target = readlinkSync(`/proc/${pid}/fd/${file}`);
          if (target.startsWith("socket:")) nodes.set(target.slice(8, -1), node);
        } catch {
          // Closed meanwhile.
        }
      }
    } catch {
      // The process has ended.
    }
  }
  return nodes;
}

/** Inodes of the connections of this machine, by "near far". */
function connections(): ReadonlyMap<string, string> {
  const inodes = new Map<string, string>();
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n")) {
    const [, near, far, , , , , , , inode] = line.trim().split(/\s+/);
    if (inode !== undefined) inodes.set(`${near} ${far}`, inode);
  }
  return inodes;
}

function addressText(port: number): string {
  return `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** All who dialled since the last look are looked up at once: it costs more than all that the proxies do (ms). */
const LOOK_EVERY_MS = 50;
/** A process that has just dialled may not show its connection yet. */
const LOOKS_MAX = 3;

interface Pair {
  /** 0: not known, or not yet. */
  from: number;
  /** As the kernel lists its near end. */
  readonly line: string;
  looks: number;
  readonly to: number;
  readonly near: Socket;
  readonly far: Socket;
}

export class ChaosNetwork {
  private readonly servers: Server[] = [];
  private readonly pairs = new Set<Pair>();
  /** Of these it is not known yet who dialled. */
  private readonly unknown = new Set<Pair>();
  private looking: NodeJS.Timeout | null = null;
  /** Directions that are held, as "from>to"; 0 stands for a dialler that was not found. */
  private readonly held = new Set<string>();
  private readonly delays = new Map<string, number>();
  /** Process ids by node, kept by the cluster. */
  readonly pids = new Map<number, number>();
  readonly addresses = new Map<number, string>();
  /** Connections whose dialler was found, and was not. */
  known = 0;
  strangers = 0;

  /** Opens the proxy of `node`, whose peer listener is at `port`. Returns the address to advertise. */
  async open(node: number, port: number): Promise<string> {
    const server = createServer({ pauseOnConnect: true }, (near) => this.accept(node, port, near));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has a port");
    this.servers.push(server);
    const text = `127.0.0.1:${address.port}`;
    this.addresses.set(node, text);
    return text;
  }

  /** Bytes from `from` to `to` wait, on all connections, until `release`. */
  hold(from: number, to: number): void {
    this.held.add(`${from}>${to}`);
    this.settle();
  }

  release(): void {
    this.held.clear();
    this.delays.clear();
    this.settle();
  }

  /** Bytes from `from` to `to` arrive later by this (ms). */
  delay(from: number, to: number, delayMs: number): void {
    this.delays.set(`${from}>${to}`, delayMs);
  }

  /** Ends the connections between two nodes; new ones may be made. */
  cut(one: number, other: number): void {
    for (const pair of [...this.pairs]) {
      const isBetween =
        (pair.from === one && pair.to === other) || (pair.from === other && pair.to === one);
      if (isBetween) pair.near.destroy();
    }
  }

  async close(): Promise<void> {
    if (this.looking !== null) clearTimeout(this.looking);
    for (const pair of [...this.pairs]) pair.near.destroy();
    for (const server of this.servers) await new Promise((resolve) => server.close(resolve));
  }

  private accept(to: number, port: number, near: Socket): void {
    const far = connect({ host: "127.0.0.1", port });
    const line = `${addressText(near.remotePort ?? 0)} ${addressText(near.localPort ?? 0)}`;
    const pair: Pair = { from: 0, to, near, far, line, looks: 0 };
    this.pairs.add(pair);
    const end = (): void => {
      this.pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    this.carry(near, far, () => `${pair.from}>${to}`);
    this.carry(far, near, () => `${to}>${pair.from}`);
    // Nothing passes before it is known whose it is.
    near.pause();
    far.pause();
    this.unknown.add(pair);
    this.looking ??= setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  private look(): void {
    this.looking = null;
    const [inodes, nodes] = [connections(), socketsOf(this.pids)];
    for (const pair of this.unknown) {
      pair.from = nodes.get(inodes.get(pair.line) ?? "") ?? 0;
      const isGone = pair.near.destroyed || pair.far.destroyed;
      if (pair.from === 0 && ++pair.looks < LOOKS_MAX && !isGone) continue;
      this.unknown.delete(pair);
      if (isGone) continue;
      if (pair.from === 0) this.strangers++;
      else this.known++;
      this.settlePair(pair);
    }
    if (this.unknown.size > 0) this.looking = setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  private carry(source: Socket, target: Socket, direction: () => string): void {
    let dueMs = 0;
    source.on("data", (chunk: Buffer) => {
      const nowMs = performance.now();
      // Never before what was sent earlier.
      dueMs = Math.max(dueMs, nowMs + (this.delays.get(direction()) ?? 0));
      if (dueMs <= nowMs) target.write(chunk);
      else setTimeout(() => target.destroyed || target.write(chunk), dueMs - nowMs);
    });
  }

  private settle(): void {
    for (const pair of this.pairs) if (!this.unknown.has(pair)) this.settlePair(pair);
  }

  private settlePair({ from, to, near, far }: Pair): void {
    if (near.destroyed || far.destroyed) return;
    if (this.held.has(`${from}>${to}`)) near.pause();
    else near.resume();
    if (this.held.has(`${to}>${from}`)) far.pause();
    else far.resume();
  }
}
