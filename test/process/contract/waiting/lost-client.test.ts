/**
 * Contract 4.8 on three real nodes, when a process that waits for a lock is killed or stands still: over both transports, at
 * the node that leads the lock and at one that passes its wait on.
 *
 * What it proves: who is killed while it waits leaves the queue, and the next one has the lock with the release, not with the
 * end of a lease (Q9, P-182); killed in the very hand-off it holds the lock for its lease at most, or not at all; one that
 * stands still is passed over by its lease, and does not believe it has the lock when it goes on (Q6, P-184). Tokens grow, and
 * nobody holds twice (L12).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { LockHandle, SvcClient } from "../../../../src/client/mod.js";
import { endAll, sleep } from "../../cluster/server-process.js";
import { KEPT_MS, Trio } from "./trio.js";

const program = join(import.meta.dirname, "waiting-program.js");
/** Longer than any test waits: nobody is granted a lock because it ended. */
const LONG_LEASE_MS = 120_000;
const SHORT_LEASE_MS = 1000;
/** A busy machine takes its time; far below the long lease. */
const SLACK_MS = 15_000;
/** So long after the release was sent the process is killed. */
const KILLED_AFTER_MS = [0, 1, 0, 3] as const;
const WAYS = [
  ["leader", "grpc"],
  ["entry", "grpc"],
  ["entry", "rest"],
] as const;
type Way = (typeof WAYS)[number];

t.setTimeout(240_000);

class Waiter {
  output = "";
  private readonly ended: Promise<void>;
  private isOver = false;

  constructor(private readonly child: ChildProcess) {
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    this.ended = new Promise((resolve) => {
      child.on("close", () => {
        this.isOver = true;
        resolve();
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    if (!this.isOver) this.child.kill(name);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }

  /** The token that it was granted; null: it was granted none yet. */
  get token(): bigint | null {
    const match = /^granted (\d+)$/m.exec(this.output);
    return match === null ? null : BigInt(match[1] as string);
  }
}

const waiters: Waiter[] = [];
t.teardown(async () => {
  await Promise.all(waiters.map((waiter) => waiter.kill()));
  await endAll();
});

class Scene {
  private constructor(
    private readonly trio: Trio,
    private readonly asking: SvcClient,
    private readonly behind: SvcClient,
  ) {}

  static async of(trio: Trio): Promise<Scene> {
    const asking = await trio.client([trio.leader]);
    return new Scene(trio, asking, await trio.client([trio.other]));
  }

  /** A holder, a process that waits behind it, and somebody behind that one. */
  async queue(resource: string, [at, transport]: Way, leaseMs: number) {
    const { trio, asking, behind } = this;
    const asked = { leaseMs: LONG_LEASE_MS, waitMs: 60_000, renew: false };
    const holder = await asking.locks.acquire(resource, asked);
    const { grpc, http } = await trio.nodes.addresses(trio[at]);
    const endpoint = transport === "grpc" ? grpc : http;
    const child = spawn(
      process.execPath,
      [program, endpoint, transport, resource, "lost", String(leaseMs)],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const waiter = new Waiter(child);
    waiters.push(waiter);
    await this.counts(resource, 1);
    const next = behind.locks.acquire(resource, asked);
    await this.counts(resource, 2);
    return { holder, waiter, next };
  }

  async counts(resource: string, wanted: number): Promise<void> {
    let found: number | undefined;
    for (let tries = 0; tries < 1000 && found !== wanted; tries++) {
      if (tries > 0) await sleep(10);
      found = (await this.asking.locks.info(resource))?.waiters;
    }
    if (found !== wanted) throw new Error(`${found ?? "no lock, none"} of ${wanted} wait`);
  }

  /** Who was granted the lock; how long after `sinceMs`. */
  static async took(
    next: Promise<LockHandle>,
    sinceMs: number,
  ): Promise<readonly [bigint, number]> {
    const { fencingToken } = await next;
    return [fencingToken, performance.now() - sinceMs];
  }
}

async function killedWhileWaiting(t: Test, scene: Scene, way: Way): Promise<void> {
  const name = `killed/${way.join()}`;
  const { holder, waiter, next } = await scene.queue(name, way, LONG_LEASE_MS);
  const killedMs = performance.now();
  await waiter.kill();
  await scene.counts(name, 1);
  const goneMs = performance.now() - killedMs;
  const releasedMs = performance.now();
  t.equal(await holder.release(), true);
  const [token, tookMs] = await Scene.took(next, releasedMs);
  t.equal(token, holder.fencingToken + 1n, "P-182 the next one is granted it, nobody before it");
  t.ok(
    tookMs < SLACK_MS,
    `gone after ${goneMs.toFixed(0)} ms, granted after ${tookMs.toFixed(0)} ms`,
  );
}

async function killedInHandOff(t: Test, scene: Scene): Promise<void> {
  let grants = 0;
  for (const [round, afterMs] of KILLED_AFTER_MS.entries()) {
    const way = WAYS[round % WAYS.length] as Way;
    const name = `handed/${round}`;
    const { holder, waiter, next } = await scene.queue(name, way, SHORT_LEASE_MS);
    const sinceMs = performance.now();
    const released = holder.release();
    if (afterMs > 0) await sleep(afterMs);
    await waiter.kill();
    t.equal(await released, true);
    const [token, tookMs] = await Scene.took(next, sinceMs);
    const wasGranted = token > holder.fencingToken + 1n;
    if (wasGranted) grants++;
    t.ok(token > holder.fencingToken, "L12");
    t.ok(tookMs < SHORT_LEASE_MS + KEPT_MS + SLACK_MS, `its lease holds nobody up for longer`);
    const how = wasGranted ? "was granted it before" : "was gone";
    t.comment(`${way.join()} killed after ${afterMs} ms ${how}: next ${tookMs.toFixed(0)} ms`);
  }
  t.comment(`${grants} of ${KILLED_AFTER_MS.length} were granted the lock and died`);
}

async function stoodStill(t: Test, scene: Scene, way: Way): Promise<void> {
  const name = `stopped/${way.join()}`;
  const { holder, waiter, next } = await scene.queue(name, way, SHORT_LEASE_MS);
  waiter.signal("SIGSTOP");
  const sinceMs = performance.now();
  await holder.release();
  const handle = await next;
  const tookMs = performance.now() - sinceMs;
  t.equal(handle.fencingToken, holder.fencingToken + 2n, "it was granted it, and did not know");
  t.ok(tookMs < SHORT_LEASE_MS + KEPT_MS + SLACK_MS, `granted on after ${tookMs.toFixed(0)} ms`);
  waiter.signal("SIGCONT");
  // It finds its lease over, and stands in the queue again.
  await scene.counts(name, 1);
  t.equal(waiter.token, null, "Q6 it does not believe that it has it");
  await handle.release();
  while (waiter.token === null) await sleep(10);
  t.ok(waiter.token > handle.fencingToken, "L12 a token of its own");
  await waiter.kill();
}

t.test("three nodes and a process that waits", async (t) => {
  const trio = await Trio.start();
  t.teardown(() => trio.end());
  const scene = await Scene.of(trio);
  for (const way of WAYS) {
    const at = way.join(", ");
    await t.test(`Q9 it is killed: ${at}`, (t) => killedWhileWaiting(t, scene, way));
  }
  await t.test("Q8 Q9 it is killed in the hand-off", (t) => killedInHandOff(t, scene));
  for (const way of WAYS.slice(1)) {
    const at = way.join(", ");
    await t.test(`Q6 P-184 it stands still: ${at}`, (t) => stoodStill(t, scene, way));
  }
});
