/**
 * Three real nodes, clients that work in key spaces whose ranges move, and the verdict of what they saw: keys, buckets,
 * scans and pages by the judges of all histories.
 *
 * Invariant: only processes of this run are touched, and none outlives it.
 */
import { Prng } from "../../../src/base/prng.js";
import { checkAnsweredOnce } from "../../judge/checkers/clients/answered-once.js";
import {
  LINEARIZABILITY,
  checkLinearizability,
} from "../../judge/checkers/clients/linearizability.js";
import { checkReadsSeeWrites } from "../../judge/checkers/clients/reads-see-writes.js";
import { checkScans } from "../../judge/checkers/clients/scans.js";
import type { Verdict } from "../../judge/checkers/verdict.js";
import { HistoryRecorder } from "../../judge/history.js";
import { leaseTime } from "../../judge/models/lease-time.js";
import { Asking, type Json } from "../chaos/asking.js";
import { ChaosNodes } from "../chaos/nodes.js";
import type { RangeSpaces } from "../chaos/range-clients.js";
import { ChaosRanges } from "../chaos/ranges.js";
import { ChaosWorkload } from "../chaos/workload.js";
import { ElectionTally, unplanned } from "../cluster/elections.js";
import { Stalls } from "../cluster/stalls.js";

const NODES = 3;
/** Rate by which one clock of one machine may differ from itself between processes. */
const DRIFT = 0.001;
/** Of ten things that a client does all are done in key spaces of ranges. */
const RANGE_SHARE = 10;

export interface RangedOptions {
  readonly seed: number;
  readonly flags: readonly string[];
  readonly spaces: RangeSpaces;
  readonly say: (text: string) => void;
}

export class RangedRun {
  readonly asking: Asking;
  readonly ranges: ChaosRanges;
  readonly workload: ChaosWorkload;
  private readonly history = new HistoryRecorder(500_000);
  private readonly elections: ElectionTally;
  private readonly stalls = new Stalls();
  private clients: Promise<void> | null = null;
  private callers = 0;
  /** While callers worked; judging, which comes after that, keeps this process busy by itself. */
  private stillTimes = 0;

  private constructor(
    readonly nodes: ChaosNodes,
    { seed, spaces, say }: RangedOptions,
  ) {
    const prng = new Prng(seed);
    this.asking = new Asking(nodes);
    this.elections = new ElectionTally(nodes);
    const { history } = this;
    this.workload = new ChaosWorkload(nodes, history, prng.fork("work"), RANGE_SHARE, spaces);
    this.ranges = new ChaosRanges(nodes, spaces, prng.fork("ranges"), say);
  }

  static async start(options: RangedOptions): Promise<RangedRun> {
    return new RangedRun(await ChaosNodes.start(NODES, 0, options.flags), options);
  }

  work(clients: number): void {
    this.callers = clients;
    this.elections.take().catch(() => undefined);
    this.stalls.take();
    this.clients = this.workload.run(clients);
  }

  /**
   * How calls ended that may not end so while no process dies, by kind and reason. A machine that lets nodes stand still
   * makes leaders change without an order, or a range wait longer than calls do, and each time that may cost every
   * caller one call (C12): none is told then.
   */
  async failures(): Promise<readonly string[]> {
    const { unknownReasons, refusedReasons } = this.workload;
    const all = [...unknownReasons, ...refusedReasons];
    const failed = all.reduce((sum, [, count]) => sum + count, 0);
    const times = unplanned(await this.elections.take()) + this.stillTimes;
    return failed <= this.callers * times ? [] : all.map(([reason, count]) => `${reason} ${count}`);
  }

  get answered(): number {
    return this.workload.outcomes.ok;
  }

  /** Ends the clients, reads every key once more, and judges. */
  async judge(): Promise<readonly Verdict[]> {
    this.workload.stop();
    await this.clients;
    this.stillTimes = this.stalls.take();
    const unserved = await this.workload.sweep();
    if (unserved > 0) throw new Error(`${unserved} keys could not be read`);
    const history = this.history.history(performance.now());
    const time = leaseTime(DRIFT);
    const budget = { stepsMax: 3_000_000, memoryMax: 1_500_000 };
    const linear = { ...LINEARIZABILITY, time, budget, minimum: { key: 50 } };
    return [
      checkAnsweredOnce(history, 100),
      ...checkLinearizability(history, linear),
      checkReadsSeeWrites(history, {
        minimum: 50,
        tombstoneRetentionMs: LINEARIZABILITY.kv.tombstoneRetentionMs / (1 + DRIFT),
      }),
      checkScans(history, { pages: 20, rows: 50, untouched: 5 }),
    ];
  }

  /**
   * Whether all nodes show the same keys with the same revisions below a prefix: what one of them left out although it
   * lives. Nobody writes any more, but leases may end between two answers: what is shown after all of them lived while
   * each was made.
   */
  async differences(prefixKey: string): Promise<readonly string[]> {
    const seen = await Promise.all(this.nodes.all.map((node) => this.rows(node, prefixKey)));
    const living = await Promise.all(this.nodes.all.map((node) => this.rows(node, prefixKey)));
    const rows = new Set(living.flat());
    return seen.flatMap((shown, at) =>
      [...rows]
        .filter((row) => !shown.includes(row))
        .map((row) => `node ${this.nodes.all[at]} leaves out ${row}`),
    );
  }

  private async rows(node: number, prefixKey: string): Promise<readonly string[]> {
    const answer = await this.asking.ask(node, "/v1/kv/scan-all-by-prefix", { prefixKey });
    const items = answer?.["items"] as readonly Json[] | undefined;
    if (items === undefined) throw new Error(`node ${node} answers no scan: ${answer?.["code"]}`);
    return items.map(({ key, revision }) => `${String(key)} ${String(revision)}`);
  }

  /** A split of a key space by whoever leads meta, a registration and the rest through node 1; its status. */
  async change(
    change: "register" | "unregister" | "split" | "merge",
    body: object,
    node = 0,
  ): Promise<string> {
    const leader = node === 0 ? await this.asking.metaLeader(1) : node;
    const answer = await this.asking.ask(leader, `/v1/ranges/${change}`, body);
    return String(answer?.["status"] ?? answer?.["code"] ?? "no answer");
  }

  async end(): Promise<void> {
    this.stalls.end();
    this.workload.stop();
    await this.clients;
    this.workload.close();
    await this.nodes.end();
  }
}
