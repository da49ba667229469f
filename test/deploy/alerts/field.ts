/**
 * Three real nodes, a real Prometheus that scrapes them each second, and the shipped rules with shorter times.
 *
 * Invariants: 1. The expressions of the rules are those that are shipped. 2. Everything ends with the test.
 */
import { mkdirSync } from "node:fs";
import type { Test } from "tap";
import { freePorts, sleep } from "../../process/cluster/server-process.js";
import { readText } from "../../tidy/sources.js";
import { scaledRules } from "../monitoring.js";
import { Prometheus } from "../prometheus.js";
import { Stage } from "../runbooks/stage.js";
import { StandIn } from "./stand-in.js";

/** Far longer than a loaded machine takes. */
const WAIT_MS = 240_000;
const LOOK_EVERY_MS = 500;
/** What Prometheus shows to nodes that ask for it. */
export const SCRAPER_TOKEN = "scraper-scraper-scraper-scraper-1";

/** More flags of each node. */
export type Flags = (id: number, stage: Stage) => readonly string[];
type Tail<List extends readonly unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never;

export class Field {
  private constructor(
    readonly stage: Stage,
    readonly standIn: StandIn,
    private readonly standInPort: number,
    private readonly prometheus: Prometheus,
  ) {}

  /** Nothing is started yet, but Prometheus. */
  static async make(t: Test, flags: Flags, hasNodes: boolean): Promise<Field> {
    const stage: Stage = await Stage.make(t, (id) => ["--http-port=0", ...flags(id, stage)]);
    const [port = 0, standInPort = 0] = await freePorts(2);
    const standIn = await StandIn.listen(standInPort);
    t.teardown(() => standIn.close());
    const folder = stage.path("prometheus");
    mkdirSync(folder);
    const nodes = hasNodes ? [1, 2, 3].map((id) => stage.port(`health ${id}`)) : [standInPort];
    const targets = nodes.map((target) => `127.0.0.1:${target}`);
    const rules = scaledRules(readText("scripts/deploy/monitoring/rules.yaml"));
    const prometheus = await Prometheus.start(folder, port, targets, rules, SCRAPER_TOKEN);
    t.teardown(() => prometheus.end());
    return new Field(stage, standIn, standInPort, prometheus);
  }

  /** Sends a request to a node. What it says is for the metrics; a node that is gone says nothing. */
  async post(
    id: number,
    path: string,
    body: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<number> {
    try {
      const { http } = await this.stage.node(id).addresses();
      const answer = await fetch(`http://${http}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(15_000),
      });
      await answer.text();
      return answer.status;
    } catch {
      return 0;
    }
  }

  /** Stores `sizeBytes` under a key, by a node. */
  set(id: number, key: string, sizeBytes = 16): Promise<number> {
    const value = Buffer.alloc(sizeBytes, 1).toString("base64");
    return this.post(id, "/v1/kv/try-set", { key, value });
  }

  /** A figure of a node, summed over its labels. */
  async figure(id: number, family: string): Promise<number> {
    const text = await (await fetch(`${this.stage.health(id)}/metrics`)).text();
    const rows = [...text.matchAll(new RegExp(`^${family}(?:\\{.*\\})? (\\S+)$`, "gm"))];
    return rows.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  /** Starts a node once more, after whatever end. */
  async again(id: number, ...how: Tail<Parameters<Stage["start"]>>): Promise<void> {
    await this.stage.kill(id);
    this.stage.start(id, ...how);
    await this.stage.ready(id);
  }

  /** Which of these fire. `Name 3`: the one of node 3, `Name 0`: of the stand-in; `Name`: wherever. */
  async firing(alerts: readonly string[]): Promise<readonly string[]> {
    const all = await this.prometheus.firing();
    return alerts.filter((alert) => {
      const [name = "", id] = alert.split(" ");
      if (id === undefined) return all.some((one) => one.split(" ")[0] === name);
      const port = id === "0" ? this.standInPort : this.stage.port(`health ${id}`);
      return all.includes(`${name} 127.0.0.1:${port}`);
    });
  }

  /** Looks until each of these has fired, or none does; `meanwhile` is done before each look. */
  async until(
    t: Test,
    what: string,
    alerts: readonly string[],
    fire: boolean,
    meanwhile: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<boolean> {
    const deadlineMs = performance.now() + WAIT_MS;
    const fired = new Set<string>();
    const look = async (): Promise<readonly string[]> => {
      const seen = await this.firing(alerts);
      for (const alert of seen) fired.add(alert);
      // One may have ended before the next one fires.
      return fire ? alerts.filter((alert) => fired.has(alert)) : seen;
    };
    const wanted = fire ? alerts.length : 0;
    let seen = await look();
    while (seen.length !== wanted && performance.now() < deadlineMs) {
      await meanwhile();
      await sleep(LOOK_EVERY_MS);
      seen = await look();
    }
    return t.same(seen, fire ? alerts : [], what);
  }
}
