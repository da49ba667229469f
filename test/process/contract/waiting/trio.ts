/**
 * Three real nodes with one partition of data, told apart by what they are to its locks: the leader, and two others through
 * which clients come in. And programs of the library that wait there, each pinned to the nodes that it is given.
 *
 * Invariants: 1. No client here follows routes: a wait goes in where its test says. 2. Every wait has one end, judged with
 * all grants by `HeldTimes`.
 */
import { type LockHandle, SvcClient, SvcError } from "../../../../src/client/mod.js";
import { HeldTimes } from "../../../judge/checkers/waits/held-times.js";
import type { AnsweredGrant } from "../../../judge/checkers/watches/told-streams.js";
import { leaderAmong } from "../../cluster/metrics.js";
import { sleep } from "../../cluster/server-process.js";
import { PlacedNodes } from "../../placement/placed-nodes.js";

/** For so long the place of who is gone is kept (Q8). */
export const KEPT_MS = 2000;
/** A connection on which nothing comes is given up after one and a half of it. */
const KEEP_ALIVE_MS = 1000;
const DEADLINE_MS = 15_000;
const WAIT_MS = 60_000;
const QUEUED_TRIES = 1000;

export interface Grant {
  readonly owner: string;
  readonly token: bigint;
  readonly atMs: number;
}

export class Trio {
  private readonly clients: SvcClient[] = [];

  private constructor(
    readonly nodes: PlacedNodes,
    readonly leader: number,
    readonly entry: number,
    readonly other: number,
  ) {}

  static async start(flags: readonly string[] = []): Promise<Trio> {
    const all = ["--initial-cluster-partitions=1", ...flags];
    const nodes = await PlacedNodes.start(3, 0, all);
    const shown = await Promise.all([1, 2, 3].map((id) => nodes.addresses(id)));
    const http = shown.map((addresses) => addresses.http);
    const at = await leaderAmong(http, 1);
    if (at === undefined) throw new Error("nobody leads the lock");
    const [entry, other] = [1, 2, 3].filter((id) => id !== at + 1) as [number, number];
    return new Trio(nodes, at + 1, entry, other);
  }

  /** A client that begins at the first of the nodes, and goes to the others when that one is gone. */
  async client(ids: readonly number[], transport: "grpc" | "rest" = "grpc"): Promise<SvcClient> {
    const addresses = await Promise.all(ids.map((id) => this.nodes.addresses(id)));
    const endpoints = addresses.map(({ grpc, http }) => (transport === "grpc" ? grpc : http));
    const client = new SvcClient({
      ...{ endpoints, transport, startAt: "first", followRoutes: false, channels: 1 },
      ...{ keepAliveMs: KEEP_ALIVE_MS, deadlineMs: DEADLINE_MS },
    });
    this.clients.push(client);
    return client;
  }

  async end(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close({ releaseMs: 0 })));
    await this.nodes.end();
  }
}

/** Those who wait for one lock: each holds it for a moment when it is granted, and lets go. */
export class Line {
  readonly grants: Grant[] = [];
  /** Those that were told to a client of the library. */
  readonly answered: AnsweredGrant[] = [];
  readonly failures: string[] = [];
  readonly times: HeldTimes;

  /** `boundMs`: within its wait and so long each has its end. */
  constructor(
    readonly resource: string,
    private readonly asking: SvcClient,
    minimum: Readonly<Record<string, number>>,
    private readonly boundMs = DEADLINE_MS,
  ) {
    this.times = new HeldTimes(minimum);
  }

  /** Waits until so many wait at the leader. */
  async counts(waiters: number): Promise<void> {
    let found: number | undefined;
    for (let tries = 0; tries < QUEUED_TRIES; tries++) {
      found = (await this.asking.locks.info(this.resource))?.waiters;
      if (found === waiters) return;
      await sleep(10);
    }
    throw new Error(`${found ?? "no lock, none"} of ${waiters} wait for ${this.resource}`);
  }

  /** One wait from its ask to the release; `holdMs`: so long it is held. */
  async waits(client: SvcClient, owner: string, leaseMs: number, holdMs = 2): Promise<void> {
    const askedMs = performance.now();
    const id = this.times.asked(`${owner} waits for ${this.resource}`);
    const ended = (how: "granted" | "busy" | "gave up"): void => {
      this.times.ended(id, how, performance.now() - askedMs, WAIT_MS + this.boundMs);
    };
    let handle: LockHandle;
    try {
      const asked = { owner, leaseMs, waitMs: WAIT_MS, renew: false };
      handle = await client.locks.acquire(this.resource, asked);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      ended("gave up");
      this.failures.push(`${owner}: ${error.code}`);
      return;
    }
    ended(handle.acquired ? "granted" : "busy");
    if (!handle.acquired) return void this.failures.push(`${owner}: busy`);
    const atMs = performance.now();
    const sureMs = atMs + handle.remainingMs;
    const { resource } = this;
    this.answered.push({ resource, token: handle.fencingToken, callMs: askedMs, returnMs: atMs });
    await sleep(holdMs);
    const untilMs = handle.held ? performance.now() : Math.min(sureMs, performance.now());
    this.held(owner, handle.fencingToken, { askedMs, fromMs: atMs, untilMs });
    await handle.release().catch(() => undefined);
  }

  held(
    owner: string,
    token: bigint,
    times: { readonly askedMs: number; readonly fromMs: number; readonly untilMs: number },
  ): void {
    this.grants.push({ owner, token, atMs: times.fromMs });
    this.times.held({ resource: this.resource, owner, token, ...times });
  }

  /** The longest time between two grants, from `sinceMs` on. */
  longestGapMs(sinceMs: number): number {
    const times = this.grants.map(({ atMs }) => atMs).filter((atMs) => atMs > sinceMs);
    const all = [sinceMs, ...times.sort((one, other) => one - other)];
    return all.reduce((most, atMs, at) => Math.max(most, atMs - (all[at - 1] ?? atMs)), 0);
  }

  /** Owners in the order of their tokens. */
  get order(): readonly string[] {
    const sorted = [...this.grants].sort((one, other) => (one.token < other.token ? -1 : 1));
    return sorted.map(({ owner }) => owner);
  }
}
