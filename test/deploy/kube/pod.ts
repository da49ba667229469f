/**
 * One pod as kubelet would run it, as a real process: the server is process 1 of its own process and network namespaces, with
 * the user, the mounts, the environment and the read-only root of the manifest.
 *
 * Invariants: 1. Its address is its own for as long as it lives, and nobody had it before. 2. A process that ends by itself is
 * started again with the same address, as `restartPolicy: Always` has it. 3. Only processes of this pod are signalled.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { serverMain, sleep } from "../../process/cluster/server-process.js";
import { at } from "./manifests.js";
import { MemoryGroup } from "./memory-group.js";
import type { PodNetwork } from "./network.js";
import type { Inhabitant } from "./policy.js";
import type { Yaml, YamlMap } from "./yaml.js";

export interface PodPlan {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `spec` of the pod. */
  readonly spec: Yaml;
  /** What the optional ConfigMap of settings holds; absent: there is none. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Folders on this machine by the names of the volumes. */
  readonly volumes: ReadonlyMap<string, string>;
  readonly hostsPath: string;
  /** Whom it asks for names that are not in its hosts file; null: as this machine does. */
  readonly resolvPath: string | null;
  /** Processor time that it gets, as a share of one; absent: what there is. */
  readonly share?: number;
}

const LOG_KEPT_CHARACTERS = 64 * 1024;
const RESTART_PAUSE_MS = 1000;
const LOOK_MS = 20;

/** `$(NAME)` of variables that come before. */
function expanded(text: string, known: Readonly<Record<string, string>>): string {
  return text.replace(/\$\((\w+)\)/g, (all, name: string) => known[name] ?? all);
}

export function environmentOf(
  container: Yaml,
  plan: Pick<PodPlan, "name" | "namespace" | "settings">,
): Record<string, string> {
  const known: Record<string, string> = {};
  // What `env` says stands above what comes from elsewhere.
  const settings = "envFrom" in (container as YamlMap) ? plan.settings : {};
  const fields: Readonly<Record<string, string>> = {
    "metadata.name": plan.name,
    "metadata.namespace": plan.namespace,
  };
  for (const each of at(container, "env") as readonly YamlMap[]) {
    const name = String(each["name"]);
    if ("value" in each) known[name] = expanded(String(each["value"]), known);
    else known[name] = fields[String(at(each, "valueFrom", "fieldRef", "fieldPath"))] ?? "";
  }
  return { ...settings, ...known };
}

export class Pod {
  readonly address: string;
  log = "";
  restarts = 0;
  /** Its network namespace, as iproute2 names it. */
  readonly network: string;
  private child: ChildProcess | null = null;
  private isEnding = false;
  private exit: { code: number | null; signal: NodeJS.Signals | null } | null = null;
  private readonly probing: Promise<void>[] = [];
  isReady = false;
  /** What bounds its memory; null: nothing can here. */
  readonly group: MemoryGroup | null;

  constructor(
    readonly plan: PodPlan,
    private readonly nets: PodNetwork,
  ) {
    const { namespace, address } = nets.join();
    this.network = namespace;
    this.address = address;
    const limit = bytesOf(String(at(this.container, "resources", "limits", "memory")));
    this.group = MemoryGroup.make(namespace, limit, plan.share);
  }

  /** It is asked to go, or goes: no Service has it as an endpoint from then on. */
  get isTerminating(): boolean {
    return this.isEnding;
  }

  /** As policies see it. */
  get inhabitant(): Inhabitant {
    const { name, namespace, labels } = this.plan;
    const ports = at(this.container, "ports") as readonly YamlMap[];
    const named = ports.map((port): [string, number] => {
      return [String(port["name"]), Number(port["containerPort"])];
    });
    return { name, namespace, labels, address: this.address, ports: new Map(named) };
  }

  get container(): Yaml {
    return at(this.plan.spec, "containers", 0);
  }

  /** Starts its process and its probes. */
  start(): void {
    this.launch();
    this.probing.push(this.probe());
  }

  private launch(): void {
    const { plan } = this;
    // Not by `ip netns exec`: that takes the control groups out of sight, by which Node knows its limit.
    const words = [`--net=/run/netns/${this.network}`, "unshare", "--mount", "--pid", "--fork"];
    const child = spawn("nsenter", [...words, "--kill-child", "sh", "-c", this.script()], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"] ?? "", ...environmentOf(this.container, plan) },
    });
    this.child = child;
    this.exit = null;
    const keep = (text: string): void => {
      this.log = (this.log + text).slice(-LOG_KEPT_CHARACTERS);
    };
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    child.once("close", (code, signal) => {
      this.exit = { code, signal };
      this.isReady = false;
      if (this.isEnding) return;
      this.restarts++;
      setTimeout(() => {
        if (!this.isEnding) this.launch();
      }, RESTART_PAUSE_MS);
    });
  }

  /** Mounts what the manifest mounts, makes the rest read-only, and becomes the server. */
  private script(): string {
    const { spec, volumes, hostsPath, resolvPath } = this.plan;
    const user = Number(at(spec, "securityContext", "runAsUser"));
    const group = Number(at(spec, "securityContext", "runAsGroup"));
    const fsGroup = Number(at(spec, "securityContext", "fsGroup"));
    const lines = [
      "set -e",
      // The test runner has every child load what writes beside the sources when it ends; here they
      // are read-only, and the end would be a failure.
      "unset NODE_OPTIONS",
      ...(this.group?.entry ?? []),
      "mount --make-rprivate /",
      "mount -t proc proc /proc",
      "mount -t tmpfs tmpfs /run",
      "mount -t tmpfs tmpfs /var/lib",
      `mount --bind '${hostsPath}' /etc/hosts`,
      ...(resolvPath === null ? [] : [`mount --bind '${resolvPath}' /etc/resolv.conf`]),
    ];
    for (const mount of at(this.container, "volumeMounts") as readonly YamlMap[]) {
      const path = String(mount["mountPath"]);
      const from = volumes.get(String(mount["name"]));
      if (from === undefined) throw new Error(`no volume ${String(mount["name"])}`);
      if (!/^\/(run|var\/lib)\//.test(path)) throw new Error(`${path} cannot be mounted here`);
      lines.push(`mkdir -p '${path}'`, `mount --bind '${from}' '${path}'`);
      if (mount["readOnly"] === true) lines.push(`mount -o remount,bind,ro '${path}'`);
    }
    lines.push("mount -o remount,ro /run", "mount -o remount,ro /var/lib");
    lines.push("mount -o remount,bind,ro /");
    const rights = `--reuid=${user} --regid=${group} --groups=${fsGroup} --no-new-privs`;
    const drop = "--inh-caps=-all --bounding-set=-all";
    lines.push(`exec setpriv ${rights} ${drop} '${process.execPath}' '${serverMain}'`);
    return lines.join("\n");
  }

  /** Process 1 of the pod, as this machine numbers it. */
  private get innerPid(): number | null {
    const outer = this.child?.pid;
    if (outer === undefined) return null;
    try {
      const text = readFileSync(`/proc/${outer}/task/${outer}/children`, "utf8").trim();
      return text === "" ? null : Number(text.split(" ")[0]);
    } catch {
      return null;
    }
  }

  private kill(signal: NodeJS.Signals): void {
    const pid = this.innerPid;
    if (pid === null) return;
    try {
      process.kill(pid, signal);
    } catch {
      // It ended meanwhile.
    }
  }

  /**
   * SIGTERM, the grace period, SIGKILL; its address is gone then. Returns how it ended: 0 when it
   * stopped as it should.
   */
  async delete(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number | null> {
    this.isEnding = true;
    const graceMs = Number(at(this.plan.spec, "terminationGracePeriodSeconds")) * 1000;
    const deadlineMs = performance.now() + graceMs;
    if (this.exit === null) this.kill(signal);
    while (this.exit === null && performance.now() < deadlineMs) await sleep(LOOK_MS);
    if (this.exit === null) this.kill("SIGKILL");
    while (this.exit === null) await sleep(LOOK_MS);
    await Promise.all(this.probing);
    this.nets.leave(this.network);
    this.group?.remove();
    return (this.exit as { readonly code: number | null }).code;
  }

  /** Kubelet's probes: a start that takes too long and a process that is not alive are ended. */
  private async probe(): Promise<void> {
    const { container } = this;
    const [startup, liveness, readiness] = ["startupProbe", "livenessProbe", "readinessProbe"].map(
      (name) => at(container, name) as YamlMap,
    ) as [YamlMap, YamlMap, YamlMap];
    let started = false;
    const dueMs = { startup: 0, liveness: 0, readiness: 0 };
    const failures = { startup: 0, liveness: 0, readiness: 0 };
    let restarts = this.restarts;
    while (!this.isEnding) {
      if (restarts !== this.restarts) {
        restarts = this.restarts;
        started = false;
        Object.assign(failures, { startup: 0, liveness: 0, readiness: 0 });
      }
      const nowMs = performance.now();
      if (!started && nowMs >= dueMs.startup) {
        dueMs.startup = nowMs + period(startup);
        started = await this.ask(startup);
        failures.startup = started ? 0 : failures.startup + 1;
        if (failures.startup >= threshold(startup)) this.kill("SIGKILL");
      }
      if (started && nowMs >= dueMs.liveness) {
        dueMs.liveness = nowMs + period(liveness);
        failures.liveness = (await this.ask(liveness)) ? 0 : failures.liveness + 1;
        if (failures.liveness >= threshold(liveness)) this.kill("SIGKILL");
      }
      if (started && nowMs >= dueMs.readiness) {
        dueMs.readiness = nowMs + period(readiness);
        const isFine = await this.ask(readiness);
        failures.readiness = isFine ? 0 : failures.readiness + 1;
        if (isFine) this.isReady = true;
        else if (failures.readiness >= threshold(readiness)) this.isReady = false;
      }
      await sleep(100);
    }
  }

  private async ask(probe: YamlMap): Promise<boolean> {
    const named = String(at(probe, "httpGet", "port"));
    const ports = at(this.container, "ports") as readonly YamlMap[];
    const port = ports.find((each) => each["name"] === named)?.["containerPort"];
    if (port === undefined) throw new Error(`a probe asks for the port ${named}`);
    const url = `http://${this.address}:${Number(port)}${String(at(probe, "httpGet", "path"))}`;
    const withinMs = Number(probe["timeoutSeconds"] ?? 1) * 1000;
    try {
      const answer = await fetch(url, { signal: AbortSignal.timeout(withinMs) });
      await answer.text();
      return answer.status >= 200 && answer.status < 400;
    } catch {
      return false;
    }
  }
}

/** A quantity of memory as manifests write it. */
function bytesOf(text: string): number {
  const [, number = "", unit = ""] = /^(\d+)(Ki|Mi|Gi)$/.exec(text) ?? [];
  const exponent = ["Ki", "Mi", "Gi"].indexOf(unit) + 1;
  if (exponent === 0) throw new Error(`${text}: no quantity that is known here`);
  return Number(number) * 1024 ** exponent;
}

function period(probe: YamlMap): number {
  return Number(probe["periodSeconds"] ?? 10) * 1000;
}

function threshold(probe: YamlMap): number {
  return Number(probe["failureThreshold"] ?? 3);
}
