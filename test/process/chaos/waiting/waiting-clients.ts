/**
 * Programs that wait for locks under faults, through the library: they acquire with a wait, hold for nothing to two leases,
 * release, forget, cancel while they wait or are granted, and vanish with their connections.
 *
 * Invariants: 1. Each wait is judged to have an end, and each hold by the handle that believes in it. 2. What was granted
 * and told is remembered, so that watchers can be held against it.
 */
import type { Prng } from "../../../../src/base/prng.js";
import { type LockHandle, SvcClient, SvcError } from "../../../../src/client/mod.js";
import type { AnsweredGrant } from "../../../judge/checkers/watches/told-streams.js";
import { HeldTimes, type WaitEnd } from "../../../judge/checkers/waits/held-times.js";
import { sleep } from "../../cluster/server-process.js";
import type { ChaosNodes } from "../nodes.js";

/** Few, so that many wait for each. */
const LOCKS = 2;
const LEASES_MS = [300, 2000, 10_000];
const WAITS_MS = [200, 1000, 5000];
const DEADLINE_MS = 15_000;
/** A wait ends within its time, the deadline, and slack for a busy machine. */
const SLACK_MS = 12_000;

/** A client of the library that begins at a node and knows all of them. */
export function clientAt(nodes: ChaosNodes, node: number, transport: "grpc" | "rest"): SvcClient {
  const { all } = nodes;
  const from = all.indexOf(node);
  const endpoints = [...all.slice(from), ...all.slice(0, from)].map((each) => {
    const ports = nodes.ports.get(each);
    return `127.0.0.1:${transport === "grpc" ? ports?.grpc : ports?.http}`;
  });
  const more = { startAt: "first", keepAliveMs: 1000, deadlineMs: DEADLINE_MS } as const;
  return new SvcClient({ endpoints, transport, ...more });
}

interface Wish {
  readonly resource: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly waitMs: number;
}

export class WaitingClients {
  readonly times = new HeldTimes();
  readonly grants: AnsweredGrant[] = [];
  private readonly clients: SvcClient[];
  private isStopped = false;
  private serial = 0;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly prng: Prng,
    private readonly eraAt: (nowMs: number) => number,
  ) {
    this.clients = nodes.all.flatMap((node) => [
      clientAt(nodes, node, "grpc"),
      clientAt(nodes, node, "rest"),
    ]);
  }

  /** Runs `count` programs until `stop`; resolves when the last wait has its end. */
  async run(count: number): Promise<void> {
    const programs = Array.from({ length: count }, (_, at) =>
      this.program(`w${at}`, this.prng.fork(`waiting ${at}`)),
    );
    await Promise.all(programs);
  }

  stop(): void {
    this.isStopped = true;
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()));
  }

  private async program(name: string, prng: Prng): Promise<void> {
    while (!this.isStopped) {
      const era = this.eraAt(performance.now());
      const wish = {
        resource: `e${era}/hot-${prng.below(LOCKS)}`,
        owner: `${name}-${this.serial++}`,
        leaseMs: LEASES_MS[prng.below(LEASES_MS.length)] as number,
        waitMs: WAITS_MS[prng.below(WAITS_MS.length)] as number,
      };
      const choice = prng.below(16);
      if (choice === 0) await this.vanish(wish, prng);
      else if (choice < 3) await this.cancel(wish, prng);
      else await this.hold(wish, prng);
      await sleep(prng.below(40));
    }
  }

  private draw(prng: Prng): SvcClient {
    return this.clients[prng.below(this.clients.length)] as SvcClient;
  }

  /** Null: it was not granted. */
  private async acquire(
    client: SvcClient,
    { resource, owner, leaseMs, waitMs }: Wish,
    renew: boolean,
    signal?: AbortSignal,
    endWhenFailed: WaitEnd = "gave up",
  ): Promise<{ readonly handle: LockHandle; readonly callMs: number } | null> {
    const callMs = performance.now();
    const id = this.times.asked(`${owner} waits for ${resource}`);
    const ended = (how: WaitEnd): void =>
      this.times.ended(id, how, performance.now() - callMs, waitMs + DEADLINE_MS + SLACK_MS);
    try {
      // A random owner of the library's, as most programs have.
      const asked = { leaseMs, waitMs, renew, note: owner };
      const handle = await client.locks.acquire(resource, { ...asked, signal });
      ended(handle.acquired ? "granted" : "busy");
      if (!handle.acquired) return null;
      const { fencingToken: token } = handle;
      this.grants.push({ resource, token, callMs, returnMs: performance.now() });
      return { handle, callMs };
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      ended(endWhenFailed);
      return null;
    }
  }

  /** The hold of a handle, from now until `until` is called: then it still held it, or not for certain. */
  private holding(wish: Wish, callMs: number, handle: LockHandle): () => void {
    const fromMs = performance.now();
    const sureMs = fromMs + handle.remainingMs;
    return () => {
      const nowMs = performance.now();
      const untilMs = handle.held ? nowMs : Math.min(sureMs, nowMs);
      const { resource, owner } = wish;
      const { fencingToken: token } = handle;
      this.times.held({ resource, owner, token, askedMs: callMs, fromMs, untilMs });
    };
  }

  private async hold(wish: Wish, prng: Prng): Promise<void> {
    const renew = prng.chance(1, 4);
    const granted = await this.acquire(this.draw(prng), wish, renew);
    if (granted === null) return;
    const { handle, callMs } = granted;
    const over = this.holding(wish, callMs, handle);
    const isLong = wish.leaseMs <= 300 && prng.chance(1, 4);
    await sleep(isLong ? prng.below(2 * wish.leaseMs) : prng.below(15));
    over();
    // Some are forgotten, and expire.
    if (!renew && wish.leaseMs <= 300 && prng.chance(1, 4)) return;
    await handle.release().catch(ofService);
  }

  private async cancel(wish: Wish, prng: Prng): Promise<void> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), prng.below(wish.waitMs));
    const granted = await this.acquire(this.draw(prng), wish, false, abort.signal, "cancelled");
    clearTimeout(timer);
    if (granted === null) return;
    this.holding(wish, granted.callMs, granted.handle)();
    await granted.handle.release().catch(ofService);
  }

  /** Its connections are gone while it waits or holds; a lease that it has ends by itself. */
  private async vanish(wish: Wish, prng: Prng): Promise<void> {
    const { nodes } = this;
    const transport = prng.chance(1, 2) ? "grpc" : "rest";
    const client = clientAt(nodes, 1 + prng.below(nodes.count), transport);
    const short = { ...wish, leaseMs: LEASES_MS[0] as number };
    const going = sleep(prng.below(600)).then(() => client.close({ releaseMs: 0 }));
    const granted = await this.acquire(client, short, false, undefined, "vanished");
    const over = granted && this.holding(short, granted.callMs, granted.handle);
    if (granted !== null) await sleep(Math.min(granted.handle.remainingMs, prng.below(50)));
    over?.();
    await going;
  }
}

/** An end by faults; anything else is a mistake of the program. */
function ofService(error: unknown): void {
  if (!(error instanceof SvcError)) throw error;
}
