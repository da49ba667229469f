/**
 * Networks for pods: a bridge of its own, and a namespace with an address for each pod, whose packets can be filtered.
 *
 * Needs root and iproute2, and nftables to filter. Invariants: 1. Nothing of the machine's own networks is touched; names begin
 * with `svcT`, and rules are those of a pod's namespace. 2. What was made is taken away by `remove`.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";

function ip(...words: readonly string[]): void {
  execFileSync("ip", words, { stdio: ["ignore", "ignore", "pipe"] });
}

/** Whether pods can be played here. */
export function canPlayPods(): boolean {
  if (process.getuid?.() !== 0) return false;
  const tried = ["unshare --mount --pid --fork true", "setpriv --version", "ip -V"];
  if (!tried.every((line) => spawnSync("sh", ["-c", line], { stdio: "ignore" }).status === 0)) {
    return false;
  }
  const probe = `svcT${process.pid.toString(36)}`;
  const made = spawnSync("ip", ["link", "add", probe, "type", "bridge"], { stdio: "ignore" });
  if (made.status === 0) ip("link", "del", probe);
  return made.status === 0;
}

/** Whether packets of a namespace can be filtered here, by the state of their connection too. */
export function canFilter(): boolean {
  const rule = "add rule inet probe in ct state established accept";
  const rules = `table inet probe { chain in { type filter hook input priority 0; }; }\n${rule}\n`;
  const words = ["--net", "nft", "-f", "-"];
  return spawnSync("unshare", words, { input: rules, stdio: "pipe" }).status === 0;
}

/** So long a connection that nobody answers is waited for (s). */
const KNOCK_S = 4;
/** How `timeout` ends when it had to end what it ran. */
const TIMED_OUT = 124;

/** A connection out of a namespace: whether it is open, refused, or nothing comes back. */
export function knock(
  namespace: string,
  address: string,
  port: number,
): Promise<"open" | "refused" | "dropped"> {
  const tried = `exec 3<>/dev/tcp/${address}/${port}`;
  const words = ["netns", "exec", namespace, "timeout", String(KNOCK_S), "bash", "-c", tried];
  const child = spawn("ip", words, { stdio: "ignore" });
  return new Promise((resolve) => {
    child.once("close", (code) => {
      resolve(code === 0 ? "open" : code === TIMED_OUT ? "dropped" : "refused");
    });
  });
}

/** Somebody who takes connections in a namespace, until it is ended. */
export function listenIn(namespace: string, port: number): ChildProcess {
  const program = `require("node:net").createServer((one) => one.destroy()).listen(${port})`;
  const words = ["netns", "exec", namespace, process.execPath, "-e", program];
  return spawn("ip", words, { stdio: "ignore", env: {} });
}

const PREFIX_BITS = 24;
const LAST_HOST = 250;
/** Stands for the cluster's name server, which is a pod. */
const NAME_SERVER_HOST = 251;

export class PodNetwork {
  private readonly name: string;
  private readonly base: string;
  private next = 2;
  private readonly namespaces = new Set<string>();

  constructor() {
    const mark = process.pid.toString(36).slice(-6);
    this.name = `svcT${mark}`;
    // One of the private networks, by chance: other runs on this machine take others.
    this.base = `10.213.${process.pid % 256}`;
    ip("link", "add", this.name, "type", "bridge");
    for (const host of [this.hostAddress, this.nameServerAddress]) {
      ip("addr", "add", `${host}/${PREFIX_BITS}`, "dev", this.name);
    }
    ip("link", "set", this.name, "up");
  }

  /** This machine, as pods reach it. */
  get hostAddress(): string {
    return `${this.base}.1`;
  }

  get nameServerAddress(): string {
    return `${this.base}.${NAME_SERVER_HOST}`;
  }

  /** Puts rules in the place of those that a namespace had. */
  filter(namespace: string, rules: string): void {
    const words = ["netns", "exec", namespace, "nft", "-f", "-"];
    execFileSync("ip", words, { input: rules, stdio: ["pipe", "ignore", "pipe"] });
  }

  /** A namespace with an address that no pod had before. */
  join(): { readonly namespace: string; readonly address: string } {
    if (this.next > LAST_HOST) throw new Error("too many pods for one network");
    const number = this.next++;
    const namespace = `${this.name}n${number}`;
    const outer = `${this.name}v${number}`;
    const address = `${this.base}.${number}`;
    ip("netns", "add", namespace);
    this.namespaces.add(namespace);
    ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", namespace);
    ip("link", "set", outer, "master", this.name, "up");
    const inside = ["-n", namespace];
    ip(...inside, "link", "set", "lo", "up");
    ip(...inside, "addr", "add", `${address}/${PREFIX_BITS}`, "dev", "eth0");
    ip(...inside, "link", "set", "eth0", "up");
    return { namespace, address };
  }

  leave(namespace: string): void {
    if (this.namespaces.delete(namespace)) ip("netns", "del", namespace);
  }

  remove(): void {
    for (const namespace of [...this.namespaces]) this.leave(namespace);
    ip("link", "del", this.name);
  }
}
