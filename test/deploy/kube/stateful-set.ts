/**
 * A stand-in for the controller of a StatefulSet, with what belongs to it: claims that outlive pods, Secrets as kubelet mounts
 * them, names of the headless Services, what the NetworkPolicies let pass.
 *
 * After the documentation of Kubernetes, "StatefulSets" and "Secrets". Invariants: 1. Pods are made and ended all at once
 * (`Parallel`), those with the highest numbers go first. 2. A claim is kept whatever happens to its pod. 3. A name has the
 * address of the pod that bears it now, or none. 4. Where packets can be filtered here, no pod is without the rules of the
 * policies while it runs, and they know every pod there is.
 */
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NameServer } from "../../doubles/net/dns.js";
import { at, objectOf } from "./manifests.js";
import { sleep } from "../../process/cluster/server-process.js";
import { PodNetwork, canFilter } from "./network.js";
import { Pod } from "./pod.js";
import { type Inhabitant, passagesOf, rulesOf } from "./policy.js";
import type { Yaml, YamlMap } from "./yaml.js";

/** Content of Secrets by their names: files and texts. */
export type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

const NAMESPACE = "play";
const DNS_PORT = 53;

function policiesOf(objects: readonly Yaml[]): readonly YamlMap[] {
  return (objects as readonly YamlMap[]).filter((one) => one["kind"] === "NetworkPolicy");
}

export class StatefulSet {
  readonly pods = new Map<number, Pod>();
  /** The ConfigMap of settings, for pods that are made from now on. */
  settings: Readonly<Record<string, string>> = {};
  /** Processor time of each pod that is made from now on, as a share of one; null: what there is. */
  share: number | null = null;
  private readonly folder = mkdtempSync(join(tmpdir(), "svc-kube-"));
  private readonly nets = new PodNetwork();
  private readonly spec: Yaml;
  private readonly owner: number;
  private names: NameServer | null = null;
  private readonly others: Inhabitant[] = [];
  /** Whether what the policies do not let pass is dropped. */
  readonly isGuarded = canFilter();
  private policies: readonly YamlMap[];

  constructor(
    private readonly objects: readonly Yaml[],
    private readonly secrets: Secrets,
  ) {
    this.spec = at(objectOf(objects, "StatefulSet", "svc"), "spec");
    this.policies = policiesOf(objects);
    this.owner = Number(at(this.podSpec, "securityContext", "fsGroup"));
    // Pods run as somebody else, who has to get at their volumes.
    chmodSync(this.folder, 0o755);
    this.writeHosts();
  }

  private get podSpec(): Yaml {
    return at(this.spec, "template", "spec");
  }

  /** As the manifest has it. */
  get replicas(): number {
    return Number(at(this.spec, "replicas"));
  }

  /** Makes the pods with these numbers, all at once. */
  create(...ordinals: readonly number[]): void {
    for (const ordinal of ordinals) {
      const plan = {
        name: `svc-${ordinal}`,
        namespace: NAMESPACE,
        labels: at(this.spec, "template", "metadata", "labels") as Record<string, string>,
        spec: this.podSpec,
        settings: this.settings,
        ...(this.share === null ? {} : { share: this.share }),
        volumes: this.volumesOf(ordinal),
        hostsPath: this.names === null ? this.hostsPath : join(this.folder, "own-hosts"),
        resolvPath: this.names === null ? null : join(this.folder, "resolv.conf"),
      };
      this.pods.set(ordinal, new Pod(plan, this.nets));
    }
    this.writeHosts();
    this.guard();
    for (const ordinal of ordinals) this.pod(ordinal).start();
  }

  pod(ordinal: number): Pod {
    const pod = this.pods.get(ordinal);
    if (pod === undefined) throw new Error(`there is no pod svc-${ordinal}`);
    return pod;
  }

  /** Ends pods, all at once. Their exit codes. */
  async delete(...ordinals: readonly number[]): Promise<readonly (number | null)[]> {
    const codes = await Promise.all(ordinals.map((ordinal) => this.pod(ordinal).delete()));
    for (const ordinal of ordinals) this.pods.delete(ordinal);
    this.writeHosts();
    this.guard();
    return codes;
  }

  /** Its host loses power: the pod is gone without a word, its claim stays. */
  async crash(ordinal: number): Promise<void> {
    await this.pod(ordinal).delete("SIGKILL");
    this.pods.delete(ordinal);
    this.writeHosts();
    this.guard();
  }

  /** These policies count from now on, and no others. */
  guardBy(objects: readonly Yaml[]): void {
    this.policies = policiesOf(objects);
    this.guard();
  }

  /** A pod of somebody else; returns its network namespace and its address. */
  neighbour(who: Pick<Inhabitant, "name" | "namespace" | "labels">): {
    readonly network: string;
    readonly address: string;
  } {
    const { namespace: network, address } = this.nets.join();
    this.others.push({ ...who, address, ports: new Map() });
    this.guard();
    return { network, address };
  }

  /** Gives every pod the rules that hold for it now. */
  private guard(): void {
    if (!this.isGuarded) return;
    const names = { name: "dns", namespace: "kube-system", labels: {}, ports: new Map() };
    const pods = [...this.pods.values()];
    const all = [
      ...pods.map(({ inhabitant }) => inhabitant),
      ...this.others,
      { ...names, address: this.nets.nameServerAddress },
    ];
    for (const { network, inhabitant } of pods) {
      const passages = passagesOf(this.policies, NAMESPACE, inhabitant, all);
      this.nets.filter(network, rulesOf(passages, this.nets.hostAddress));
    }
  }

  /**
   * A new revision of the template: pods from the highest number down to `partition` are ended and
   * made anew, each when the one before has been ready for `minReadySeconds`. Their exit codes.
   */
  async update(
    partition = Number(at(this.spec, "updateStrategy", "rollingUpdate", "partition")),
  ): Promise<readonly (number | null)[]> {
    const codes: (number | null)[] = [];
    const ordinals = [...this.pods.keys()].filter((ordinal) => ordinal >= partition);
    for (const ordinal of ordinals.sort((a, b) => b - a)) {
      codes.push(...(await this.delete(ordinal)));
      this.create(ordinal);
      await this.available(ordinal);
    }
    return codes;
  }

  private async available(ordinal: number): Promise<void> {
    const minReadyMs = Number(at(this.spec, "minReadySeconds")) * 1000;
    let sinceMs = performance.now();
    while (performance.now() - sinceMs < minReadyMs || !this.pod(ordinal).isReady) {
      if (!this.pod(ordinal).isReady) sinceMs = performance.now();
      await sleep(100);
    }
  }

  /**
   * What an eviction (a drain of its host) does to a pod: false when the budget refuses it, else it
   * is ended and made anew. After the documentation of Kubernetes, "Disruptions".
   */
  async evict(ordinal: number): Promise<boolean> {
    const budget = at(objectOf(this.objects, "PodDisruptionBudget", "svc"), "spec");
    const isHealthy = this.pod(ordinal).isReady;
    const healthy = [...this.pods.values()].filter(({ isReady }) => isReady).length;
    const wanted = this.pods.size - Number(at(budget, "maxUnavailable"));
    const mayGoUnhealthy = at(budget, "unhealthyPodEvictionPolicy") === "AlwaysAllow";
    const isAllowed = isHealthy || !mayGoUnhealthy ? healthy - 1 >= wanted : true;
    if (!isAllowed) return false;
    await this.delete(ordinal);
    this.create(ordinal);
    return true;
  }

  /** Pods that are made from now on find each other's names by a server. */
  async namesByServer(): Promise<NameServer> {
    const { nameServerAddress } = this.nets;
    this.names ??= await NameServer.open(nameServerAddress, DNS_PORT);
    writeFileSync(join(this.folder, "own-hosts"), "127.0.0.1 localhost\n");
    writeFileSync(join(this.folder, "resolv.conf"), `nameserver ${nameServerAddress}\n`);
    this.writeHosts();
    return this.names;
  }

  /** The claim of a pod that is gone is lost with all that was on it. */
  loseClaim(ordinal: number): void {
    if (this.pods.has(ordinal)) throw new Error("a claim in use is not lost here");
    rmSync(this.claim(ordinal), { recursive: true, force: true });
  }

  async end(): Promise<void> {
    await this.delete(...this.pods.keys());
    await this.names?.close();
    this.nets.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The names as pods see them. */
  get hostsPath(): string {
    return join(this.folder, "hosts");
  }

  private claim(ordinal: number): string {
    return join(this.folder, `data-svc-${ordinal}`);
  }

  private volumesOf(ordinal: number): ReadonlyMap<string, string> {
    const volumes = new Map<string, string>();
    for (const template of at(this.spec, "volumeClaimTemplates") as readonly YamlMap[]) {
      const folder = this.claim(ordinal);
      mkdirSync(folder, { recursive: true });
      // Group-owned by fsGroup, and writable for it.
      chownSync(folder, 0, this.owner);
      chmodSync(folder, 0o2775);
      volumes.set(String(at(template, "metadata", "name")), folder);
    }
    for (const volume of at(this.podSpec, "volumes") as readonly YamlMap[]) {
      const name = String(volume["name"]);
      volumes.set(name, this.secretFolder(ordinal, name, at(volume, "secret")));
    }
    return volumes;
  }

  /** Files behind a link `..data` to the folder of their version; root's, readable by fsGroup. */
  private secretFolder(ordinal: number, name: string, secret: Yaml): string {
    const content = this.secrets[String(at(secret, "secretName"))];
    if (content === undefined) throw new Error(`there is no Secret for ${name}`);
    const folder = join(this.folder, `secret-${ordinal}-${name}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, "..version"), { recursive: true });
    symlinkSync("..version", join(folder, "..data"));
    for (const [file, text] of Object.entries(content)) {
      const path = join(folder, "..version", file);
      writeFileSync(path, text);
      chownSync(path, 0, this.owner);
      chmodSync(path, Number(at(secret, "defaultMode")));
      symlinkSync(join("..data", file), join(folder, file));
    }
    return folder;
  }

  /** The name of a pod in a headless Service. */
  nameOf(ordinal: number, service: string): string {
    return `svc-${ordinal}.${service}.${NAMESPACE}.svc.cluster.local`;
  }

  /** Names of the headless Services. Written in place: pods have this very file. */
  private writeHosts(): void {
    const services = (this.objects as readonly YamlMap[])
      .filter(
        (object) => object["kind"] === "Service" && "clusterIP" in (object["spec"] as YamlMap),
      )
      .map((object) => String(at(object, "metadata", "name")));
    const lines = ["127.0.0.1 localhost"];
    this.names?.names.clear();
    for (const [ordinal, { plan, address }] of this.pods) {
      const names = services.map((name) => this.nameOf(ordinal, name));
      lines.push(`${address} ${plan.name} ${names.join(" ")}`);
      for (const name of names) this.names?.names.set(name, [address]);
    }
    writeFileSync(this.hostsPath, `${lines.join("\n")}\n`);
  }
}
