/**
 * What a chaos run does to key ranges: key spaces in which clients work are registered, split at their keys, merged and
 * brought home, one change after the other beside all other faults; and as a fault of its own, with a node killed in it.
 *
 * Invariants: 1. A kill counts only when the call was not answered as it came. 2. In the end all moves are over. 3. Nothing
 * is waited for without an end.
 */
import type { Prng } from "../../../src/base/prng.js";
import { sleep } from "../cluster/server-process.js";
import { Asking, type Json } from "./asking.js";
import type { ChaosNodes } from "./nodes.js";
import type { RangeSpaces } from "./range-clients.js";

export const RANGE_KINDS = [
  "split range",
  "split range, kill a node",
  "merge ranges",
  "unregister ranges",
  "unregister ranges, kill a node",
] as const;
export type RangeKind = (typeof RANGE_KINDS)[number];

type Change = "register" | "split" | "merge" | "unregister";
/** What each is answered when it is done. */
const DONE = {
  register: ["Seeded", "AlreadySeeded"],
  split: ["Succeeded"],
  merge: ["Completed"],
  unregister: ["Removed"],
} as const;

/** Each change comes once before any is drawn: short runs see all of them. */
const FIRST: readonly Change[] = ["register", "split", "merge", "split", "unregister"];
const CALL_MS = 20_000;
const TRIES_MAX = 12;
/** A move of a few keys takes that long (ms). */
const MOVE_MS = 80;
const PAUSE_MS = 400;
/** Copies stop after minutes at the latest; with all nodes there a move takes a second (ms). */
const REST_MS = 120_000;

/** Splits by hand are never refused for their size. */
const BY_HAND = ["--range-split-min-range-size=1", "--range-merge-min-size=40"];
/** The leader of meta splits and merges by itself too. */
const BY_ITSELF = [
  "--range-split-min-range-size=1",
  "--range-split-threshold=12",
  "--range-merge-min-size=3",
  "--range-collection-interval=1s",
];

/** Flags of the nodes: ranges change by themselves in every other seed. */
export function rangeFlags(seed: number): readonly string[] {
  return seed % 2 === 0 ? BY_HAND : BY_ITSELF;
}

/** What a listing tells of one key space. */
export interface ListedSpace {
  readonly keySpace: string;
  readonly descriptors: readonly {
    readonly startKey: string | null;
    readonly partitionId: number;
  }[];
  readonly moves: readonly ListedMove[];
  readonly leaving: boolean;
}

export interface ListedMove {
  readonly moveId: number;
  readonly kind: "split" | "merge" | "home";
  readonly source: number;
  readonly target: number;
  readonly phase: "copying" | "cut" | "aborting";
  readonly attempt: number;
}

export class ChaosRanges {
  /** Calls by change and answer. */
  readonly answers = new Map<string, number>();
  private readonly done = new Map<Change, number>();
  private readonly asking: Asking;
  private isStopped = false;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly spaces: RangeSpaces,
    private readonly prng: Prng,
    private readonly say: (text: string) => void,
  ) {
    this.asking = new Asking(nodes);
  }

  doneOf(change: Change): number {
    return this.done.get(change) ?? 0;
  }

  /** Changes ranges until `stop`, whatever else is done to the nodes. */
  async run(): Promise<void> {
    const prng = this.prng.fork("beside");
    const first = [...FIRST];
    while (!this.isStopped) {
      const change = first.shift();
      if (change === undefined) await this.step(prng);
      else await this.change(change, this.spaces.of()[0] as string, prng);
      await sleep(PAUSE_MS + prng.below(PAUSE_MS * 2));
    }
  }

  stop(): void {
    this.isStopped = true;
  }

  /**
   * One merge, if none is done yet, while nothing else is changed: neighbours are merged that rested, and where one split
   * follows the other it is chance whether any two do.
   */
  async mergeRested(endMs: number): Promise<void> {
    const prng = this.prng.fork("rested");
    const space = this.spaces.of()[0] as string;
    while (this.doneOf("merge") === 0 && performance.now() < endMs) {
      const ranges = await this.rangesOf(space);
      await this.change(ranges === 0 ? "register" : ranges === 1 ? "split" : "merge", space, prng);
      await sleep(PAUSE_MS);
    }
  }

  private async step(prng: Prng): Promise<void> {
    const { era } = this.spaces;
    // What is not used any more is given back: the number of partitions stays small.
    const isOld = era > 0 && prng.chance(1, 5);
    const all = this.spaces.of(isOld ? era - 1 : era);
    const space = all[prng.below(all.length)] as string;
    const ranges = await this.rangesOf(space);
    const choice = prng.below(10);
    if (isOld || choice === 0) await this.change("unregister", space, prng);
    else if (ranges === 0) await this.change("register", space, prng);
    else if (choice < Math.min(2 * ranges, 6)) await this.change("merge", space, prng);
    else await this.change("split", space, prng);
  }

  /** Whether it could be done as its name says. */
  async carryOut(kind: RangeKind, node: number): Promise<boolean> {
    const { prng } = this;
    const isKill = kind.endsWith("kill a node");
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const space = this.spaces.draw(prng);
      if ((await this.rangesOf(space)) === 0) await this.change("register", space, prng);
      const change = kind.startsWith("split")
        ? "split"
        : kind.startsWith("merge")
          ? "merge"
          : "unregister";
      // To go home there has to be something elsewhere.
      if (change === "unregister") await this.change("split", space, prng);
      const isOver = isKill
        ? await this.killIn(change, space, node)
        : await this.change(change, space, prng);
      if (isOver) return true;
      await sleep(PAUSE_MS);
    }
    return false;
  }

  /** Kills who leads meta or one of the ranges, or `node`, while the call goes on. */
  private async killIn(change: Change, space: string, node: number): Promise<boolean> {
    const { nodes, prng } = this;
    const asker = this.anyNode(prng);
    const ranges = (await this.listed(asker, space))[0]?.descriptors ?? [];
    const range = ranges[prng.below(Math.max(1, ranges.length))]?.partitionId ?? 0;
    const who = [
      () => this.asking.metaLeader(asker),
      () => this.asking.leaderOf(range, asker),
      () => Promise.resolve(node),
    ][prng.below(3)] as () => Promise<number>;
    const victim = (await who()) || node;
    let isOpen = true;
    const call = this.change(change, space, prng).finally(() => (isOpen = false));
    await sleep(prng.below(MOVE_MS));
    const wasOpen = isOpen;
    this.say(`kill, node ${victim}${wasOpen ? "" : " (late)"}`);
    await nodes.kill(victim);
    nodes.launch(victim);
    await nodes.allReady();
    await call;
    return wasOpen;
  }

  private anyNode(prng: Prng): number {
    return 1 + prng.below(this.nodes.count);
  }

  /** One call. True: it is answered with success. */
  private async change(change: Change, space: string, prng: Prng): Promise<boolean> {
    const asker = this.anyNode(prng);
    const isForMeta = change === "split" || change === "merge";
    const node = isForMeta ? await this.asking.metaLeader(asker) : asker;
    const splitKey = this.spaces.drawKey(space, prng);
    const body =
      change === "merge" ? {} : { keySpace: space, ...(change === "split" ? { splitKey } : {}) };
    const answer =
      node === 0 ? null : await this.asking.ask(node, `/v1/ranges/${change}`, body, CALL_MS);
    const status = String(answer?.["status"] ?? answer?.["code"] ?? "no answer");
    this.count(`${change} ${status}`);
    const done: readonly string[] = DONE[change];
    if (!done.includes(status)) return false;
    const count = change === "merge" ? Number(answer?.["merges"] ?? 0) : 1;
    this.done.set(change, this.doneOf(change) + count);
    return count > 0;
  }

  private count(what: string): void {
    this.answers.set(what, (this.answers.get(what) ?? 0) + 1);
  }

  async listed(by: number, keySpace = ""): Promise<readonly ListedSpace[]> {
    const path = `/v1/ranges${keySpace === "" ? "" : `?keySpace=${encodeURIComponent(keySpace)}`}`;
    const answer = await this.asking.ask(by, path, undefined, CALL_MS);
    return ((answer?.["keySpaces"] ?? []) as readonly Json[]).map((space) => ({
      ...({ moves: [], leaving: false, descriptors: [] } as object),
      ...space,
    })) as unknown as readonly ListedSpace[];
  }

  private async rangesOf(space: string): Promise<number> {
    return (await this.listed(this.anyNode(this.prng), space))[0]?.descriptors.length ?? 0;
  }

  /** Waits until no node knows of a move. Null, or what is still under way. */
  async rest(): Promise<string | null> {
    const endMs = performance.now() + REST_MS;
    for (;;) {
      const moving: string[] = [];
      for (const node of this.nodes.all.filter((each) => this.nodes.isRunning(each))) {
        for (const { keySpace, moves, leaving } of await this.listed(node)) {
          if (leaving) moving.push(`node ${node}: ${keySpace} leaves`);
          for (const move of moves) {
            moving.push(`node ${node}: ${keySpace} ${JSON.stringify(move)}`);
          }
        }
      }
      if (moving.length === 0) return null;
      if (performance.now() > endMs) return moving.join("; ");
      await sleep(250);
    }
  }
}
