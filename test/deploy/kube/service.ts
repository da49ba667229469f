/**
 * A stand-in for a Service with an address of its own: connections go to a pod that is ready, as far as the list of
 * endpoints has heard of it by now.
 *
 * After the documentation of Kubernetes, "Service" and "Pod Lifecycle": a pod that is to end is no endpoint any more, ready or
 * not, and whoever forwards hears of every change a moment later. Invariants: 1. A list is forwarded to 1 to 3 s after it
 * came about, in the order of the lists. 2. With no endpoint a connection is refused.
 */
import { type AddressInfo, type Server, connect, createServer } from "node:net";
import { Prng } from "../../../src/base/prng.js";
import { sleep } from "../../process/cluster/server-process.js";
import { at, objectOf } from "./manifests.js";
import type { StatefulSet } from "./stateful-set.js";
import type { Yaml, YamlMap } from "./yaml.js";

const LOOK_MS = 50;
const LAG_LEAST_MS = 1000;
const LAG_MORE_MS = 2000;

export class Service {
  private readonly server: Server;
  private readonly draw = new Prng(1);
  private endpoints: readonly string[] = [];
  private newest: readonly string[] = [];
  private isEnding = false;
  private readonly following: Promise<void>;
  /** Connections for which there was no endpoint, or whose endpoint did not take them. */
  refused = 0;

  private constructor(
    objects: readonly Yaml[],
    name: string,
    port: string,
    private readonly set: StatefulSet,
  ) {
    const spec = at(objectOf(objects, "Service", name), "spec");
    if ("clusterIP" in (spec as YamlMap)) throw new Error(`${name} has no address of its own`);
    const targetPort = Service.targetOf(spec, port, set);
    this.server = createServer((socket) => {
      const address = this.endpoints[this.draw.below(Math.max(1, this.endpoints.length))];
      if (address === undefined) {
        this.refused++;
        return void socket.resetAndDestroy();
      }
      const pod = connect(targetPort, address);
      let isOpen = false;
      pod.once("connect", () => (isOpen = true));
      pod.on("error", () => {
        if (!isOpen) this.refused++;
        socket.resetAndDestroy();
      });
      socket.on("error", () => pod.destroy());
      socket.on("close", () => pod.destroy());
      pod.on("close", () => socket.destroySoon());
      socket.pipe(pod).pipe(socket);
    });
    this.following = this.follow();
  }

  static async open(
    objects: readonly Yaml[],
    name: string,
    port: string,
    set: StatefulSet,
  ): Promise<Service> {
    const service = new Service(objects, name, port, set);
    await new Promise<void>((resolve) => service.server.listen(0, "127.0.0.1", resolve));
    return service;
  }

  private static targetOf(spec: Yaml, port: string, set: StatefulSet): number {
    const ports = at(spec, "ports") as readonly YamlMap[];
    const target = ports.find((each) => each["name"] === port)?.["targetPort"];
    const [pod] = set.pods.values();
    const named = at(pod?.container ?? null, "ports") as readonly YamlMap[];
    return Number(named.find((each) => each["name"] === target)?.["containerPort"]);
  }

  /** Where it is reached. */
  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** How many pods it forwards to now. */
  get size(): number {
    return this.endpoints.length;
  }

  private async follow(): Promise<void> {
    while (!this.isEnding) {
      const ready = [...this.set.pods.values()]
        .filter(({ isReady, isTerminating }) => isReady && !isTerminating)
        .map(({ address }) => address);
      if (ready.join() !== this.newest.join()) {
        this.newest = ready;
        const lagMs = LAG_LEAST_MS + this.draw.below(LAG_MORE_MS);
        setTimeout(() => (this.endpoints = ready), lagMs).unref();
      }
      await sleep(LOOK_MS);
    }
  }

  async close(): Promise<void> {
    this.isEnding = true;
    await this.following;
    await new Promise((resolve) => this.server.close(resolve));
  }
}
