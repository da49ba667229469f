/**
 * Three etcd nodes on loopback to measure beside: on free ports, each with a data directory of its
 * own, with etcd's own defaults for everything that decides about speed and safety.
 *
 * Owns its processes and their data. Invariants: 1. Only processes started here are ended, by id.
 * 2. Nothing is started where `etcd` is not on the PATH.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { freePorts, sleep, temporaryDirectory } from "../../test/process/cluster/server-process.js";
import { etcdAnswers } from "./etcd-calls.js";

const READY_WAIT_MS = 60_000;
const LOG_KEPT_CHARACTERS = 16 * 1024;
/** Room for the history of all rounds: etcd refuses writes beyond its default of 2 GiB. */
const QUOTA_BYTES = 8 * 1024 ** 3;

/** The version that is installed; null when none is. */
export function etcdVersion(): string | null {
  const { status, stdout } = spawnSync("etcd", ["--version"], { encoding: "utf8" });
  return status === 0 ? (stdout.split("\n")[0] ?? "") : null;
}

interface Ports {
  readonly client: number;
  readonly peer: number;
}

export class EtcdNodes {
  private readonly directory = temporaryDirectory();
  private readonly children: ChildProcess[] = [];
  private log = "";

  private constructor(private readonly ports: readonly Ports[]) {}

  /** Starts three nodes and waits until each answers; rejects with their log when they do not. */
  static async start(): Promise<EtcdNodes> {
    const ports: Ports[] = [];
    for (let at = 0; at < 3; at++) {
      const [client, peer] = (await freePorts(2)) as [number, number];
      ports.push({ client, peer });
    }
    const nodes = new EtcdNodes(ports);
    try {
      for (let at = 0; at < 3; at++) nodes.begin(at);
      await nodes.ready();
    } catch (error) {
      await nodes.end();
      throw error;
    }
    return nodes;
  }

  /** Client port of node 1, 2 or 3. */
  clientPort(id: number): number {
    const ports = this.ports[id - 1];
    if (ports === undefined) throw new Error(`there is no node ${id}`);
    return ports.client;
  }

  get pids(): readonly number[] {
    return this.children.map(({ pid }) => pid ?? 0);
  }

  async end(): Promise<void> {
    const gone = this.children.map(
      (child) =>
        new Promise<void>((resolve) => {
          if (child.exitCode !== null || child.signalCode !== null) return resolve();
          child.once("close", () => resolve());
          child.kill("SIGKILL");
        }),
    );
    await Promise.all(gone);
    this.directory.remove();
  }

  private begin(at: number): void {
    const { client, peer } = this.ports[at] as Ports;
    const url = (port: number): string => `http://127.0.0.1:${port}`;
    const members = this.ports.map((each, index) => `node-${index + 1}=${url(each.peer)}`).join();
    const child = spawn(
      "etcd",
      [
        `--name=node-${at + 1}`,
        `--data-dir=${join(this.directory.path, `node-${at + 1}`)}`,
        `--listen-client-urls=${url(client)}`,
        `--advertise-client-urls=${url(client)}`,
        `--listen-peer-urls=${url(peer)}`,
        `--initial-advertise-peer-urls=${url(peer)}`,
        `--initial-cluster=${members}`,
        "--initial-cluster-state=new",
        "--initial-cluster-token=svc-perf",
        `--quota-backend-bytes=${QUOTA_BYTES}`,
        "--log-level=error",
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.log = (this.log + text).slice(-LOG_KEPT_CHARACTERS);
    });
    child.on("error", (error) => (this.log += error.message));
    this.children.push(child);
  }

  private async ready(): Promise<void> {
    const endMs = performance.now() + READY_WAIT_MS;
    for (const { client } of this.ports) {
      while (!(await etcdAnswers(client))) {
        const ended = this.children.some((child) => child.exitCode !== null);
        if (ended || performance.now() > endMs) {
          throw new Error(`etcd does not become ready:\n${this.log}`);
        }
        await sleep(100);
      }
    }
  }
}
