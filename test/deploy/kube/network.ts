/**
 * Networks for pods: a bridge of its own, and a namespace with an address for each pod.
 *
 * Needs root and iproute2. Invariants: 1. Nothing of the machine's own networks is touched; names begin with `svcT`. 2. What
 * was made is taken away by `remove`.
 */
import { execFileSync, spawnSync } from "node:child_process";

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

const PREFIX_BITS = 24;
const LAST_HOST = 250;

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
    ip("addr", "add", `${this.base}.1/${PREFIX_BITS}`, "dev", this.name);
    ip("link", "set", this.name, "up");
  }

  /** This machine, as pods reach it. */
  get hostAddress(): string {
    return `${this.base}.1`;
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
