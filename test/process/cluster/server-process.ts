/**
 * Real server processes for tests: started on free ports with a data directory of their own, ended by id.
 *
 * Invariants: 1. Only processes that were started here are signalled. 2. Whatever a test does, `endAll` leaves none.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
/** The program as it is delivered. */
export const serverMain = join(dist, "bin", "svc-server.js");
/** The same in modules, for tests that change one of them before it starts. */
export const serverModules = join(dist, "src", "server", "main.js");

const READY_WAIT_MS = 60_000;
const LOG_KEPT_CHARACTERS = 64 * 1024;

export interface Addresses {
  readonly grpc: string;
  readonly https: string;
  readonly http: string;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ServerProcess>();

export class ServerProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** The last part of what it wrote to stderr. */
  log = "";
  output = "";
  private listening: Addresses | null = null;

  constructor(
    flags: readonly string[],
    command: readonly string[] = [process.execPath, serverMain],
  ) {
    const [program, ...first] = command as [string, ...string[]];
    this.child = spawn(program, [...first, ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
      env: cleanEnvironment(),
    });
    running.add(this);
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.output += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.log = (this.log + text).slice(-LOG_KEPT_CHARACTERS);
    });
    this.ended = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        running.delete(this);
        resolve({ code, signal });
      });
    });
  }

  /** Waits for the line that says where it listens. Rejects with its log when it ends before. */
  async addresses(): Promise<Addresses> {
    if (this.listening !== null) return this.listening;
    const deadline = performance.now() + READY_WAIT_MS;
    let ended = false;
    void this.ended.then(() => (ended = true));
    for (;;) {
      const match = /listening grpc=(\S+) https=(\S+) http=(\S+) peer=\S+ node=\d+/.exec(
        this.output,
      );
      if (match !== null) {
        this.listening = {
          grpc: match[1] as string,
          https: match[2] as string,
          http: match[3] as string,
        };
        return this.listening;
      }
      if (ended) throw new Error(`the server ended before it listened:\n${this.log}`);
      if (performance.now() > deadline) throw new Error(`the server does not listen:\n${this.log}`);
      await sleep(10);
    }
  }

  /** Waits until /readyz (on the cleartext HTTP listener) says ready. */
  async ready(): Promise<Addresses> {
    const addresses = await this.addresses();
    const deadline = performance.now() + READY_WAIT_MS;
    for (;;) {
      try {
        const answer = await fetch(`http://${addresses.http}/readyz`);
        await answer.text();
        if (answer.status === 200) return addresses;
      } catch {
        // Not reachable yet, or gone: the deadline decides.
      }
      if (performance.now() > deadline) throw new Error(`the server is not ready:\n${this.log}`);
      await sleep(10);
    }
  }

  signal(name: NodeJS.Signals): void {
    if (running.has(this)) this.child.kill(name);
  }

  async kill(): Promise<Ended> {
    this.signal("SIGKILL");
    return this.ended;
  }

  async stop(): Promise<Ended> {
    this.signal("SIGTERM");
    return this.ended;
  }
}

/** The environment without SVC_ variables, which would change what a test means. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_")),
  );
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Below those that the system gives to outgoing connections: none of them comes in between. */
const FIRST_PORT = 10_000;
const PORTS = 22_000;

/**
 * Ports that were free a moment ago: a list of first members needs them before anybody starts. Whoever listens in
 * `whileHeld` gets none of them.
 */
export async function freePorts(
  count: number,
  whileHeld: (ports: readonly number[]) => Promise<void> = () => Promise.resolve(),
): Promise<number[]> {
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = FIRST_PORT + randomInt(PORTS);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (isFree) held.set(port, server);
  }
  const ports = [...held.keys()];
  await whileHeld(ports);
  for (const server of held.values()) await new Promise((resolve) => server.close(resolve));
  return ports;
}

/** `--initial-cluster` of the founders 1, 2, … on these ports. */
export function foundersOf(ports: readonly number[]): string {
  return ports.map((port, at) => `${at + 1}=127.0.0.1:${port}`).join(",");
}

/** A fresh private directory; `remove` deletes it with all that is in it. */
export function temporaryDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "svc-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Flags of a node on loopback with free ports and its data in `path`. */
export function nodeFlags(path: string, ...more: string[]): string[] {
  const free = ["--grpc-port", "--http-port", "--peer-port"].filter(
    (port) => !more.some((flag) => flag.startsWith(`${port}=`)),
  );
  return [
    ...free.map((port) => `${port}=0`),
    "--https-port=off",
    `--storage-path=${path}`,
    "--log-level=warn",
    ...more,
  ];
}

export async function endAll(): Promise<void> {
  await Promise.all([...running].map((server) => server.kill()));
}
