/**
 * A set of pods from the manifests, and what a test asks of it: to come to something, to be told by svc-cli, to be stopped as
 * a StatefulSet stops.
 *
 * Invariant: what never comes fails with what each pod said last.
 */
import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import type { Test } from "tap";
import { Agent, request } from "undici";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import type { Judgement } from "../../process/chaos/library-callers.js";
import { BLOCK_SIZE } from "../../process/chaos/nodes.js";
import { sleep } from "../../process/cluster/server-process.js";
import { root } from "../../tidy/sources.js";
import { baseObjects } from "./manifests.js";
import { Service } from "./service.js";
import { type Secrets, StatefulSet } from "./stateful-set.js";

/** Far longer than a loaded machine takes. */
const WAIT_MS = 240_000;
const TOKEN = "admin-token-0123456789ab";
/** Callers at the Service. */
const SERVICE_CALLERS = 10;

export async function secrets(): Promise<Secrets> {
  const authority = await PeerAuthority.make("peers");
  const peers = await authority.issue("svc-peers");
  const https = await authority.issue("svc-https");
  const files = ({ certificate, key, ca }: typeof peers): Record<string, string> => ({
    "tls.crt": String(certificate),
    "tls.key": String(key),
    "ca.crt": String(ca),
  });
  return {
    "svc-tokens": { tokens: `admin ada ${tokenDigestText(TOKEN)}\n` },
    "svc-https": files(https),
    "svc-peers": files(peers),
  };
}

export class Play {
  private readonly set: StatefulSet;

  constructor(
    private readonly t: Test,
    content: Secrets,
  ) {
    this.set = new StatefulSet(baseObjects(), content);
    // Who judges histories has to know it.
    this.set.settings = { SVC_SEQUENCER_BLOCK_SIZE: String(BLOCK_SIZE) };
    t.teardown(() => this.set.end());
  }

  get stateful(): StatefulSet {
    return this.set;
  }

  async text(ordinal: number, path: string): Promise<string> {
    const url = `http://${this.set.pod(ordinal).address}:8085${path}`;
    const headers = { authorization: `Bearer ${TOKEN}` };
    try {
      return await (await fetch(url, { headers, signal: AbortSignal.timeout(5000) })).text();
    } catch {
      return "";
    }
  }

  async until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
    const deadlineMs = performance.now() + WAIT_MS;
    let is = await isSo();
    while (!is && performance.now() < deadlineMs) {
      await sleep(250);
      is = await isSo();
    }
    const logs = [...this.set.pods.values()].map(
      (pod) => `${pod.plan.name}: ${pod.log.slice(-1500)}`,
    );
    if (!is) throw new Error(`it never came to this: ${what}\n${logs.join("\n")}`);
    this.t.pass(what);
  }

  ready(what: string, ...ordinals: readonly number[]): Promise<void> {
    return this.until(what, () => ordinals.every((ordinal) => this.set.pod(ordinal).isReady));
  }

  voters(ordinal: number): Promise<number> {
    return this.figure(ordinal, 'svc_members{role="voter"}');
  }

  /** A series of one node's metrics; 0 where it has none. */
  async figure(ordinal: number, series: string): Promise<number> {
    const lines = (await this.text(ordinal, "/metrics")).split("\n");
    const line = lines.find((one) => one.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  }

  /** svc-cli, sent to one node. */
  cli(
    ordinal: number,
    ...words: readonly string[]
  ): { readonly status: number; readonly text: string } {
    const endpoint = `http://${this.set.pod(ordinal).address}:8083`;
    const main = join(root, "dist/bin/svc-cli.js");
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [main, "--node", endpoint, "-c", endpoint, "--yes", ...words],
      { encoding: "utf8", env: { ...process.env, SVC_TOKEN: TOKEN } },
    );
    return { status: status ?? -1, text: stdout + stderr };
  }

  /** Stores a value through one node and reads it through another. */
  async serves(through: number, from: number, value: string): Promise<void> {
    await this.until(`${value} is stored`, () => {
      return this.cli(through, "--set", "key", "--value", value).status === 0;
    });
    await this.until(`${value} is read through another node`, () => {
      const { status, text } = this.cli(from, "--get", "key", "--raw");
      return status === 0 && text.includes(value);
    });
  }

  /** Ends pods as a StatefulSet does; each has to end with 0, within the grace period. */
  async stopped(...ordinals: readonly number[]): Promise<void> {
    const pods = ordinals.map((ordinal) => this.set.pod(ordinal));
    const codes = await this.set.delete(...ordinals);
    for (const [at, { plan, log }] of pods.entries()) {
      const code = codes[at] ?? null;
      this.t.equal(code, 0, code === 0 ? `${plan.name} stopped` : `${plan.name} stopped\n${log}`);
    }
  }

  restarts(): number {
    return [...this.set.pods.values()].reduce((sum, { restarts }) => sum + restarts, 0);
  }

  /** For so long nobody of these is ready, or writes anything, though each lives. */
  async nobodyServes(forMs: number, ...ordinals: readonly number[]): Promise<void> {
    await this.until("they live", async () => {
      const said = await Promise.all(ordinals.map((ordinal) => this.text(ordinal, "/livez")));
      return said.every((text) => text === "ok");
    });
    const endMs = performance.now() + forMs;
    let served = 0;
    let dead = 0;
    while (performance.now() < endMs) {
      for (const ordinal of ordinals) {
        if (this.set.pod(ordinal).isReady) served++;
        if ((await this.text(ordinal, "/livez")) !== "ok") dead++;
      }
      await sleep(500);
    }
    const tried = ordinals.map((ordinal) =>
      this.cli(ordinal, "--timeout", "2", "--set", "key", "--value", "wrong"),
    );
    this.t.equal(served, 0, `nobody of ${ordinals.join()} is ready`);
    this.t.equal(dead, 0, "each of them lives");
    this.t.ok(
      tried.every(({ status }) => status !== 0),
      "no write is accepted",
    );
  }

  /** Programs that find the pods by name and use the library; what comes back ends and judges them. */
  callers(): Promise<() => Promise<Judgement>> {
    const names = [...this.set.pods.keys()].map((pod) => this.set.nameOf(pod, "svc-nodes"));
    const program = join(root, "dist/test/deploy/kube/callers.js");
    const script = [
      ...["set -e", "unset NODE_OPTIONS", "mount --make-rprivate /"],
      `mount --bind '${this.set.hostsPath}' /etc/hosts`,
      `exec '${process.execPath}' --enable-source-maps '${program}' ${names.join(" ")}`,
    ];
    return this.beside<Judgement>(["unshare", "--mount", "sh", "-c", script.join("\n")]);
  }

  /** Callers without a pause in a network namespace; what comes back ends them and says how many calls ended how. */
  flood(
    network: string,
    callers: number,
    valueBytes: number,
  ): Promise<() => Promise<Readonly<Record<string, number>>>> {
    const program = join(root, "dist/test/deploy/kube/flood.js");
    const urls = [...this.set.pods.values()].map(({ address }) => `https://${address}:8082`);
    const words = [program, String(callers), String(valueBytes), ...urls];
    const enter = ["ip", "netns", "exec", network, "env", "-u", "NODE_OPTIONS"];
    return this.beside([...enter, process.execPath, ...words]);
  }

  /** A program that says `ready`, goes on until its input ends, and then says one line of JSON. */
  private async beside<Said>(words: readonly string[]): Promise<() => Promise<Said>> {
    const [command = "", ...rest] = words;
    const child = spawn(command, rest, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, SVC_TOKEN: TOKEN },
    });
    this.t.teardown(() => child.kill("SIGKILL"));
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    await this.until("programs are answered", () => said.startsWith("ready\n"));
    return async () => {
      child.stdin.end();
      await ended;
      return JSON.parse(said.split("\n")[1] ?? "") as Said;
    };
  }

  service(name: string, port: string): Promise<Service> {
    return Service.open(baseObjects(), name, port, this.set);
  }

  /** Writes, each over a connection of its own; what comes back ends them. */
  throughService(
    service: Service,
  ): () => Promise<{ readonly asked: number; readonly failures: readonly string[] }> {
    const agent = new Agent({ connect: { rejectUnauthorized: false } });
    const failures: string[] = [];
    let asked = 0;
    let goesOn = true;
    const loop = async (caller: number): Promise<void> => {
      for (let turn = 0; goesOn; turn++) {
        asked++;
        try {
          const answer = await request(`https://${service.address}/v1/kv/try-set`, {
            ...({ method: "POST", dispatcher: agent, reset: true } as const),
            headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
            body: JSON.stringify({ key: `service/${caller}`, value: "dg==", durability: 1 }),
          });
          const text = await answer.body.text();
          if (answer.statusCode !== 200) failures.push(`${answer.statusCode} ${text}`);
        } catch (error) {
          failures.push(String(error));
        }
        await sleep(20);
      }
    };
    const loops = Array.from({ length: SERVICE_CALLERS }, (_, caller) => loop(caller));
    return async () => {
      goesOn = false;
      await Promise.all(loops);
      await agent.close();
      return { asked, failures };
    };
  }

  /** Looks at the pods all the time; what comes back says how many were not ready at once at most. */
  watchUnready(): () => number {
    let most = 0;
    const timer = setInterval(() => {
      const unready = [...this.set.pods.values()].filter(({ isReady }) => !isReady).length;
      most = Math.max(most, unready);
    }, 50);
    return () => {
      clearInterval(timer);
      return most;
    };
  }
}
