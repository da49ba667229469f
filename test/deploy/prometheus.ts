/**
 * A real Prometheus that scrapes nodes of a test every second.
 *
 * Invariants: 1. Only the process that was started here is ended. 2. What it keeps goes with the test.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "../process/cluster/server-process.js";

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

export function isInstalled(): boolean {
  return spawnSync("prometheus", ["--version"]).error === undefined;
}

const START_WAIT_MS = 120_000;

export class Prometheus {
  private constructor(
    private readonly child: ChildProcess,
    private readonly base: string,
    private readonly log: () => string,
  ) {}

  /** `targets`: host:port of each node; `token`: what is shown to those that ask for one. */
  static async start(
    folder: string,
    port: number,
    targets: readonly string[],
    rules: string,
    token = "",
  ): Promise<Prometheus> {
    const path = (name: string): string => join(folder, name);
    writeFileSync(path("rules.yaml"), rules);
    const listed = targets.map((target) => `"${target}"`).join(", ");
    const config = [
      "global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }",
      "rule_files: [rules.yaml]",
      "scrape_configs:",
      "  - job_name: svc",
      `    static_configs: [{ targets: [${listed}] }]`,
      ...(token === "" ? [] : [`    authorization: { credentials: "${token}" }`]),
    ];
    writeFileSync(path("prometheus.yaml"), `${config.join("\n")}\n`);
    const child = spawn(
      "prometheus",
      [
        `--config.file=${path("prometheus.yaml")}`,
        `--storage.tsdb.path=${path("data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
    const prometheus = new Prometheus(child, `http://127.0.0.1:${port}`, () => log);
    await prometheus.started();
    return prometheus;
  }

  private async started(): Promise<void> {
    const deadlineMs = performance.now() + START_WAIT_MS;
    for (;;) {
      try {
        if ((await fetch(`${this.base}/-/ready`)).ok) return;
      } catch {
        // Not there yet: the deadline decides.
      }
      if (performance.now() > deadlineMs) throw new Error(`prometheus: ${this.log()}`);
      await sleep(100);
    }
  }

  /** The answer to a query; a failure says what Prometheus says. */
  async query(expr: string): Promise<readonly Sample[]> {
    const url = `${this.base}/api/v1/query?query=${encodeURIComponent(expr)}`;
    const answer = (await (await fetch(url)).json()) as {
      readonly status: string;
      readonly error?: string;
      readonly data?: { readonly result: readonly Sample[] };
    };
    if (answer.data === undefined) throw new Error(`${expr}: ${answer.error ?? answer.status}`);
    return answer.data.result;
  }

  /** Names of the alerts that fire, with the instances that they name, sorted. */
  async firing(): Promise<readonly string[]> {
    const samples = await this.query('ALERTS{alertstate="firing"}');
    const names = samples.map(({ metric }) => `${metric["alertname"]} ${metric["instance"] ?? ""}`);
    return [...new Set(names.map((name) => name.trim()))].sort();
  }

  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("close", resolve));
    if (this.child.exitCode === null) {
      this.child.kill("SIGKILL");
      await ended;
    }
  }
}
