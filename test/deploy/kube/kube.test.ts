/**
 * The manifests as a cluster would run them: pods are real processes with namespaces, users, mounts and probes of their own,
 * and a new address at each creation.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import t, { type Test } from "tap";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { PartOfDay } from "../../doubles/part-of-day.js";
import { PeerAuthority } from "../../doubles/net/certificates.js";
import { sleep } from "../../process/cluster/server-process.js";
import { root } from "../../tidy/sources.js";
import { baseObjects } from "./manifests.js";
import { canPlayPods } from "./network.js";
import { type Secrets, StatefulSet } from "./stateful-set.js";

/** Far longer than a loaded machine takes. */
const WAIT_MS = 240_000;
const TOKEN = "admin-token-0123456789ab";

async function secrets(): Promise<Secrets> {
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

class Play {
  private readonly set: StatefulSet;

  constructor(
    private readonly t: Test,
    content: Secrets,
  ) {
    this.set = new StatefulSet(baseObjects(), content);
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

  async voters(ordinal: number): Promise<number> {
    const found = /^svc_members\{role="voter"\} (\d+)$/m.exec(await this.text(ordinal, "/metrics"));
    return Number(found?.[1] ?? 0);
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
}

/** The first start: nobody is ready before all founders were there. */
async function founded(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  t.equal(set.replicas, 3);
  set.create(0, 1);
  await play.until("founders wait for the third and say so", async () => {
    return /svc-2\.svc-peers/.test(await play.text(0, "/readyz?verbose"));
  });
  t.equal(await play.text(0, "/livez"), "ok");
  t.notOk(set.pod(0).isReady || set.pod(1).isReady, "nobody is ready before all have been seen");
  set.create(2);
  await play.ready("5.6 founded with all three", 0, 1, 2);
  t.equal(await play.voters(0), 3);
  await play.serves(0, 1, "one");
  t.equal(play.restarts(), 0, "waiting is no failure");
}

async function restarted(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  const before = set.pod(1).address;
  await play.stopped(1);
  set.create(1);
  t.not(set.pod(1).address, before);
  await play.ready("back with another address", 1);
  await play.stopped(0, 1, 2);
  set.create(0, 1, 2);
  await play.ready("all back, all with other addresses", 0, 1, 2);
  await play.until("what was stored is there", () => {
    return play.cli(2, "--get", "key", "--raw").text.includes("one");
  });
}

async function claimLost(t: Test, play: Play): Promise<void> {
  const set = play.stateful;
  await play.stopped(2);
  set.loseClaim(2);
  set.create(2);
  await play.until("P-090 a founder without its directory waits, and names the command", async () =>
    /--cluster-leave --member 3/.test(await play.text(2, "/readyz?verbose")),
  );
  t.notOk(set.pod(2).isReady);
  await play.serves(1, 0, "two");
  await play.until("the member is removed once it has been silent for long enough", () => {
    return play.cli(0, "--cluster-leave", "--member", "3").status === 0;
  });
  await play.ready("and the waiting pod is taken in", 2);
  await play.until("as a voter again", async () => (await play.voters(0)) === 3);
}

async function scaled(_: Test, play: Play): Promise<void> {
  const set = play.stateful;
  set.create(3);
  await play.ready("scaled up by one, who is no founder", 3);
  await play.until("and votes", async () => (await play.voters(3)) === 4);
  await play.until("it leaves", () => play.cli(3, "--cluster-leave").status === 0);
  await play.stopped(3);
  await play.until("three are left", async () => (await play.voters(1)) === 3);
  await play.ready("and ready", 0, 1, 2);
  await play.serves(2, 0, "three");
}

const PART = new PartOfDay("SVC_KUBE_PARTS", 3);

t.test(`pods from the manifests, ${PART.text}`, { timeout: 1_500_000 }, async (t) => {
  if (!canPlayPods()) return void t.pass("skipped: this needs root, iproute2 and unshare");
  const play = new Play(t, await secrets());
  await founded(t, play);
  for (const scenario of PART.of([restarted, claimLost, scaled])) await scenario(t, play);
  t.equal(play.restarts(), 0, "no probe ended anything");
});
