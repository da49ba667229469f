/**
 * The nodes of a chaos run: real server processes with fixed ports on loopback, each behind its proxy.
 *
 * Invariants: 1. Only processes that were started here are signalled, by id. 2. A node's directory outlives its
 * processes and is removed at the end.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { metricsOf } from "../cluster/metrics.js";
import {
  ServerProcess,
  endAll,
  freePorts,
  serverMain,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { ChaosNetwork } from "./network.js";

/** Loaded into each node: its wall clock jumps on SIGUSR2. */
const wallClock = new URL("wallclock.js", import.meta.url).href;

export interface NodePorts {
  readonly grpc: number;
  readonly http: number;
  readonly peer: number;
}

/** Longest handling time that the nodes are told (ms). */
export const REQUEST_TIMEOUT_MS = 5000;
export const BLOCK_SIZE = 50;
/** Where replicas move: soon, and away from who is gone. */
const PLACED_FLAGS = ["--raft-placement-pass-interval=1s", "--raft-dead-member-timeout=10s"];

/** Size of the file system of the node whose disk can be filled: the log, the state file, and something to fill. */
const SMALL_DISK = "600m";
/** A node with a lost disk learns within this time that it is not welcome. */
const WIPED_WAIT_MS = 30_000;
/** What it says then. */
export const WIPED_WORDS = /--cluster-leave --member \d+/;
const FILLER_CHUNK_BYTES = 1024 * 1024;

export class ChaosNodes {
  readonly network = new ChaosNetwork();
  readonly ports = new Map<number, NodePorts>();
  private readonly directory = temporaryDirectory();
  private readonly processes = new Map<number, ServerProcess>();
  private readonly tracers = new Set<ChildProcess>();
  private members = "";
  /** How often each node was disturbed: an answer that was asked for before and is missing is excused. */
  readonly disturbances = new Map<number, number>();
  /** The node whose directory is a small file system of its own; 0 where this process may not mount one. */
  fillable = 0;
  /** What nodes that ended by themselves said last. */
  readonly lastWords: string[] = [];

  private constructor(
    readonly count: number,
    readonly factor: number,
    private readonly flags: readonly string[],
  ) {}

  /** `factor`: replicas of each partition; 0 = every node has all. `flags`: more of them, for all nodes. */
  static async start(
    count: number,
    factor = 0,
    flags: readonly string[] = [],
  ): Promise<ChaosNodes> {
    const nodes = new ChaosNodes(count, factor, flags);
    const members: string[] = [];
    // All at once: a port that was let go may be drawn again, for another node or for the way to it.
    await freePorts(3 * count, async (drawn) => {
      for (const node of nodes.all) {
        const [grpc, http, peer] = drawn.slice(3 * node - 3) as [number, number, number];
        nodes.ports.set(node, { grpc, http, peer });
        members.push(`${node}=${await nodes.network.open(node, peer)}`);
      }
    });
    nodes.members = members.join(",");
    nodes.mountSmallDisk(count);
    for (let node = 1; node <= count; node++) nodes.launch(node);
    try {
      await nodes.allReady();
    } catch (error) {
      await nodes.end();
      throw error;
    }
    return nodes;
  }

  get all(): number[] {
    return Array.from({ length: this.count }, (_, at) => at + 1);
  }

  get partitions(): number {
    return this.factor === 0 ? 4 : 8;
  }

  /** The node with that peer endpoint; 0 = none. */
  nodeAt(endpoint: string): number {
    return this.all.find((node) => this.network.addresses.get(node) === endpoint) ?? 0;
  }

  /** The node with that client endpoint; 0 = none. */
  nodeServing(endpoint: string): number {
    return this.all.find((node) => endpoint.endsWith(`:${this.ports.get(node)?.grpc}`)) ?? 0;
  }

  /** What the process of a node has said last. */
  log(node: number): string {
    return this.processes.get(node)?.log ?? "";
  }

  isRunning(node: number): boolean {
    return this.processes.has(node);
  }

  disturb(node: number): void {
    this.disturbances.set(node, (this.disturbances.get(node) ?? 0) + 1);
  }

  launch(node: number): void {
    if (this.processes.has(node)) return;
    const ports = this.ports.get(node) as NodePorts;
    const flags = [
      `--raft-nodeid=${node}`,
      `--grpc-port=${ports.grpc}`,
      `--http-port=${ports.http}`,
      "--https-port=off",
      `--peer-port=${ports.peer}`,
      ...(this.count > 1
        ? [
            `--initial-cluster=${this.members}`,
            `--advertised-peer-endpoint=${this.network.addresses.get(node)}`,
          ]
        : []),
      `--initial-cluster-partitions=${this.partitions}`,
      ...(this.factor === 0 ? [] : [`--raft-replication-factor=${this.factor}`, ...PLACED_FLAGS]),
      `--request-timeout=${REQUEST_TIMEOUT_MS}ms`,
      `--sequencer-block-size=${BLOCK_SIZE}`,
      "--sequencer-block-lease=1s",
      "--raft-compact-every-entries=2000",
      "--raft-compact-keep-entries=200",
      `--storage-path=${join(this.directory.path, `node${node}`, "data")}`,
      "--log-level=warn",
      ...this.flags,
    ];
    const server = new ServerProcess(flags, [process.execPath, "--import", wallClock, serverMain]);
    this.processes.set(node, server);
    if (server.child.pid !== undefined) this.network.pids.set(node, server.child.pid);
    void server.ended.then(({ code, signal }) => {
      if (this.processes.get(node) !== server) return;
      this.processes.delete(node);
      this.disturb(node);
      if (signal !== "SIGKILL" && code !== 0) {
        const words = server.log.trim().split("\n").slice(-3).join("\n    ");
        this.lastWords.push(`node ${node} ended with ${code ?? signal}: ${words}`);
      }
    });
  }

  signal(node: number, name: NodeJS.Signals): void {
    this.disturb(node);
    this.processes.get(node)?.signal(name);
  }

  async kill(node: number): Promise<void> {
    this.disturb(node);
    await this.processes.get(node)?.kill();
    this.processes.delete(node);
  }

  /** SIGTERM; SIGKILL when it has not ended in time. */
  async stop(node: number): Promise<void> {
    const server = this.processes.get(node);
    if (server === undefined) return;
    this.disturb(node);
    server.signal("SIGTERM");
    await Promise.race([server.ended, sleep(20_000)]);
    await this.kill(node);
  }

  /** Every write of the node's log fails from now on: it has to end. False where that cannot be done. */
  async failWrites(node: number): Promise<boolean> {
    const server = this.processes.get(node);
    const pid = server?.child.pid;
    if (server === undefined || pid === undefined) return false;
    const calls = "pwrite64,pwritev,pwritev2,fsync,fdatasync";
    const inject = `inject=${calls}:error=EIO`;
    const tracer = spawn(
      "strace",
      ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${calls}`, "-e", inject, "-p", String(pid)],
      { stdio: "ignore" },
    );
    this.tracers.add(tracer);
    const failed = new Promise<false>((resolve) => tracer.on("error", () => resolve(false)));
    tracer.on("exit", () => this.tracers.delete(tracer));
    const ended = await Promise.race([
      server.ended.then(() => true as const),
      failed,
      sleep(10_000).then(() => false as const),
    ]);
    tracer.kill("SIGTERM");
    return ended;
  }

  /**
   * Kills the node, removes its data, and starts it under its old identity. It must not be let back: the result is what
   * it says while it waits, null when it serves. It is killed in the end.
   */
  async wipe(node: number): Promise<string | null> {
    await this.kill(node);
    this.empty(node);
    this.launch(node);
    const server = this.processes.get(node) as ServerProcess;
    const endMs = performance.now() + WIPED_WAIT_MS;
    while (server.output === "" && performance.now() < endMs) {
      if (WIPED_WORDS.test(server.log)) break;
      await sleep(50);
    }
    const words = server.output === "" ? server.log : null;
    await this.kill(node);
    return words;
  }

  /** The data of a node that does not run is gone for good. */
  empty(node: number): void {
    rmSync(join(this.directory.path, `node${node}`, "data"), { recursive: true, force: true });
  }

  /** Fills the disk of `fillable` to the last byte. */
  fillDisk(): void {
    this.disturb(this.fillable);
    const file = openSync(this.fillerPath(), "w");
    try {
      for (;;) writeSync(file, Buffer.alloc(FILLER_CHUNK_BYTES));
    } catch {
      // The disk is full: that is what it is for.
    } finally {
      closeSync(file);
    }
  }

  freeDisk(): void {
    rmSync(this.fillerPath(), { force: true });
  }

  private fillerPath(): string {
    return join(this.directory.path, `node${this.fillable}`, "filler");
  }

  private mountSmallDisk(node: number): void {
    const path = join(this.directory.path, `node${node}`);
    mkdirSync(path, { mode: 0o700 });
    const options = `size=${SMALL_DISK},mode=0700`;
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
    if (mounted.status === 0) this.fillable = node;
  }

  async allReady(): Promise<void> {
    for (const [, server] of this.processes) await server.addresses();
    const deadline = performance.now() + 90_000;
    for (const node of this.all) {
      const url = `http://127.0.0.1:${this.ports.get(node)?.http}/readyz`;
      for (;;) {
        try {
          const answer = await fetch(url, { signal: AbortSignal.timeout(2000) });
          await answer.text();
          if (answer.status === 200) break;
        } catch {
          // Not there yet: the deadline decides.
        }
        if (performance.now() > deadline) {
          throw new Error(`node ${node} is not ready:\n${this.processes.get(node)?.log ?? "gone"}`);
        }
        await sleep(50);
      }
    }
  }

  get ids(): readonly number[] {
    return this.all;
  }

  /** What a node counts, by name with labels. Rejects where it does not answer. */
  metrics(node: number): Promise<ReadonlyMap<string, number>> {
    return metricsOf(`127.0.0.1:${this.ports.get(node)?.http}`);
  }

  async end(): Promise<void> {
    for (const tracer of this.tracers) tracer.kill("SIGKILL");
    for (const [, server] of this.processes) server.signal("SIGCONT");
    await endAll();
    await this.network.close();
    if (this.fillable !== 0) {
      spawnSync("umount", ["-l", join(this.directory.path, `node${this.fillable}`)]);
    }
    this.directory.remove();
  }
}
