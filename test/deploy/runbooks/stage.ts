/**
 * A cluster of three for somebody who has only the documents: nodes as processes, and a shell in which `svc-server` and
 * `svc-cli` are the programs, in a folder of its own.
 *
 * Invariants: 1. Nodes are started with the flags of docs/operations.md, "A cluster by hand", and what the runbooks take for
 * granted (a health listener, backups). 2. Ports in the documents stand for free ones. 3. Whatever a box leaves running
 * ends with the stage.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Test } from "tap";
import { boxesOf } from "./documented.js";
import { cleanEnvironment } from "../../process/cli/programs.js";
import {
  ServerProcess,
  freePorts,
  serverMain,
  sleep,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";

export const RUNBOOKS = "scripts/deploy/README.md";
export const OPERATIONS = "docs/operations.md";

const WAIT_MS = 180_000;
/** A box that runs for longer is ended. */
const BOX_MS = 180_000;
/** Three founders, and one that comes later. */
const NODES = 4;

export interface Shown {
  readonly status: number;
  /** What was written to both outputs. */
  readonly text: string;
}

export interface Program {
  readonly main?: string;
  /** The program that starts it, with its words. */
  readonly under?: readonly string[];
}

export class Stage {
  private readonly directory = temporaryDirectory();
  private readonly nodes = new Map<number, ServerProcess>();
  private readonly ports = new Map<string, number>();
  private readonly groups = new Set<number>();

  private constructor(private readonly flags: (id: number) => readonly string[]) {}

  /** `flags`: more of them for each node. */
  static async make(t: Test, flags: (id: number) => readonly string[] = () => []): Promise<Stage> {
    const stage = new Stage(flags);
    t.teardown(() => stage.end());
    const named = [
      ...["9103", "9113", "9123", "9133"],
      ...["9100", "9110", "9120", "9130", "9200", "9202"],
    ];
    const drawn = await freePorts(named.length + 2 * NODES);
    for (const [at, name] of named.entries()) stage.ports.set(name, drawn[at] ?? 0);
    for (let id = 1; id <= NODES; id++) {
      stage.ports.set(`health ${id}`, drawn[named.length + id - 1] ?? 0);
      stage.ports.set(`new peer ${id}`, drawn[named.length + NODES + id - 1] ?? 0);
    }
    for (const name of ["bin", "backups", "restores"]) {
      mkdirSync(stage.path(name), { mode: 0o700 });
    }
    for (const program of ["svc-server", "svc-cli"]) {
      const main = join(dirname(serverMain), `${program}.js`);
      const text = `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`;
      writeFileSync(stage.path("bin", program), text);
      chmodSync(stage.path("bin", program), 0o755);
    }
    return stage;
  }

  path(...names: readonly string[]): string {
    return join(this.directory.path, ...names);
  }

  /** Where a node has its data, as the documents call it. */
  data(id: number): string {
    return this.path("data", String(id));
  }

  port(name: string): number {
    return this.ports.get(name) ?? 0;
  }

  health(id: number): string {
    return `http://127.0.0.1:${this.port(`health ${id}`)}`;
  }

  endpoint(id: number): string {
    return `http://127.0.0.1:${this.port(`91${id - 1}0`)}`;
  }

  /** The peer address that a document gives to a node. */
  peer(id: number): string {
    return `127.0.0.1:${this.port(`91${id - 1}3`)}`;
  }

  /** Flags of a node as the document has them for the first one; the others follow its pattern. */
  private documentedFlags(id: number): readonly string[] {
    const [box = ""] = boxesOf(OPERATIONS, "A cluster by hand");
    const words = box.replaceAll("\\\n", " ").trim().split(/\s+/);
    if (words.shift() !== "svc-server") throw new Error("the first box starts no server");
    return words.map((word) => {
      if (word.includes("=")) return this.withPorts(word);
      if (word === "1") return String(id);
      if (word === "data/1") return this.data(id);
      if (word === "9103" || word === "9100") {
        return String(this.port(`${word.slice(0, 2)}${id - 1}${word.slice(3)}`));
      }
      return word;
    });
  }

  private withPorts(text: string): string {
    return text.replace(/\b9[12]\d\d\b/g, (name) => String(this.ports.get(name) ?? name));
  }

  /** Starts nodes. `instead`: flags in the place of the documented ones of that name; null = none. */
  start(
    id: number,
    instead: Readonly<Record<string, string | null>> = {},
    /** Modules that are loaded before the program. */
    before: readonly string[] = [],
    { main = serverMain, under = [] }: Program = {},
  ): ServerProcess {
    const words = this.documentedFlags(id);
    const flags = new Map<string, string | null>();
    for (let at = 0; at < words.length; at += 2) flags.set(words[at] ?? "", words[at + 1] ?? "");
    flags.set("--health-port", String(this.port(`health ${id}`)));
    flags.set("--pitr-backup-dir", this.path("backups"));
    flags.set("--pitr-restore-root", this.path("restores"));
    for (const [name, value] of Object.entries(instead)) flags.set(name, value);
    const given = [...flags].flatMap(([name, value]) => (value === null ? [] : [name, value]));
    const imports = before.flatMap((path) => ["--import", path]);
    const command = [...under, process.execPath, ...imports, main];
    const node = new ServerProcess([...given, ...this.flags(id)], command);
    this.nodes.set(id, node);
    return node;
  }

  /** Ids of all that were started. */
  get started(): readonly number[] {
    return [...this.nodes.keys()];
  }

  node(id: number): ServerProcess {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was not started`);
    return node;
  }

  /** Stops a node that left: nobody looks for it any more. */
  async retire(id: number): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const ended = await this.node(id).stop();
    this.nodes.delete(id);
    return ended;
  }

  async kill(...ids: readonly number[]): Promise<void> {
    await Promise.all(ids.map((id) => this.node(id).kill()));
  }

  loseDisk(...ids: readonly number[]): void {
    for (const id of ids) rmSync(this.data(id), { recursive: true, force: true });
  }

  /** The last lines of all that run. */
  logs(): string {
    const logs = [...this.nodes].map(([id, { log }]) => `node ${id}: ${log.slice(-800)}`);
    return logs.join("\n");
  }

  async isReady(id: number): Promise<boolean> {
    try {
      const answer = await fetch(`${this.health(id)}/readyz`, {
        signal: AbortSignal.timeout(5000),
      });
      await answer.text();
      return answer.status === 200;
    } catch {
      return false;
    }
  }

  async ready(...ids: readonly number[]): Promise<void> {
    await this.until(`nodes ${ids.join()} are ready`, async () => {
      const all = await Promise.all(ids.map((id) => this.isReady(id)));
      return all.every((is) => is);
    });
  }

  async until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const deadlineMs = performance.now() + WAIT_MS;
    while (!(await isSo())) {
      if (performance.now() > deadlineMs) {
        throw new Error(`it never came to this: ${what}\n${this.logs()}`);
      }
      await sleep(100);
    }
  }

  /** Runs boxes of a heading in one shell, as an operator who looks at `node`. */
  run(
    boxes: readonly string[],
    node: number,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Shown> {
    const others = [...this.nodes.keys()].sort((a, b) => a - b);
    const child = spawn("sh", ["-e", "-c", this.withPorts(boxes.join("\n"))], {
      cwd: this.directory.path,
      // A group of its own: what it leaves in the background ends with the stage.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...cleanEnvironment(),
        PATH: `${this.path("bin")}:${process.env["PATH"] ?? ""}`,
        NODE_OPTIONS: "",
        SVC_ENDPOINTS: others.map((id) => this.endpoint(id)).join(),
        HEALTH: this.health(node),
        NODE: String(node),
        DATA: this.data(node),
        BACKUPS: this.path("backups"),
        RESTORES: this.path("restores"),
        ...more,
      },
    });
    const { pid } = child;
    if (pid !== undefined) this.groups.add(pid);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
    child.stderr.setEncoding("utf8").on("data", (part: string) => (text += part));
    const late = setTimeout(() => this.endGroup(pid), BOX_MS);
    return new Promise((resolve) => {
      child.once("close", (code) => {
        clearTimeout(late);
        this.endGroup(pid);
        resolve({ status: code ?? -1, text });
      });
    });
  }

  private endGroup(pid: number | undefined): void {
    if (pid === undefined || !this.groups.delete(pid)) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  }

  private async end(): Promise<void> {
    for (const pid of [...this.groups]) this.endGroup(pid);
    for (const node of this.nodes.values()) await node.kill();
    this.directory.remove();
  }
}
