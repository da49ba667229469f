/**
 * The hand that orders moves of key ranges in a world, around those who plan them: splits of what has
 * just changed, merges with either neighbour and of ranges that do not touch, ways home in any order, and
 * that a move be given up. Meta refuses what may not be, and the leaders of groups carry out the rest.
 *
 * It knows the newest map that any node has applied. Invariants: 1. It orders what apply accepts or
 * refuses, never around it. 2. In peace nothing new is ordered. 3. An order of unknown end counts as
 * open for as long as it may be carried out.
 */
import type { Prng } from "../../../src/base/prng.js";
import { hashPartition, keySpaceHashText } from "../../../src/base/routing.js";
import { findRange } from "../../../src/control/ranges.js";
import type { Command, MoveEnd, RangeDescriptor } from "../../../src/machine/commands/command.js";
import type { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

/** An order is waited for, and may be carried out behind that (ms). */
const ORDER_MS = 2000;
const UNKNOWN_MS = 20_000;
/** Why a move may be given up. */
const REASONS: readonly MoveEnd[] = ["deadline", "no-target", "transfer-failed"];
const ORDERS = [
  ...(["split", "split", "split", "merge", "merge", "merge", "home", "abort", "abort"] as const),
] as const;

export interface HandWork {
  /** A key at which the space may be split. */
  drawKey(keySpace: string, prng: Prng): string;
  /** A split is about to be ordered; nobody is told how it ends. */
  splits(keySpace: string, splitKey: string): void;
}

export class RangeHand {
  /** Orders that may still begin a move. */
  open = 0;
  private readonly prng: Prng;
  private isOver = false;

  constructor(
    private readonly world: World,
    /** Mean time between two orders (ms). */
    private readonly everyMs: number,
    private readonly servers: readonly Server[],
    private readonly work: HandWork,
    private readonly counts: Record<string, number>,
  ) {
    this.prng = world.prng("range-hand");
  }

  start(): void {
    this.world.schedule(1 + this.prng.below(2 * this.everyMs), () => {
      if (this.isOver) return;
      this.act();
      this.start();
    });
  }

  settle(): void {
    this.isOver = true;
  }

  /** The newest that any node has applied. */
  private records(): MetaReads | null {
    let newest: MetaReads | null = null;
    let version = -1;
    for (const { running } of this.servers) {
      if (running === null || running.node.closing) continue;
      const { meta } = running.node.metaGroup().machine;
      const known: number = meta.cluster()?.mapVersion ?? -1;
      if (known <= version) continue;
      version = known;
      newest = meta;
    }
    return newest;
  }

  private act(): void {
    const records = this.records();
    const command = records === null ? null : this.draw(records);
    if (command !== null) this.order(command);
  }

  private draw(records: MetaReads): Command | null {
    const kind = this.one(ORDERS);
    if (kind === "abort") return this.abort(records);
    const pool = records.cluster()?.dataPartitions ?? 0;
    const space = this.one(records.keySpaces().filter(({ descriptors }) => descriptors.length > 0));
    if (kind === null || space === null || pool === 0) return null;
    const { keySpace, descriptors } = space;
    if (kind === "split") return this.split(keySpace, descriptors);
    const at = this.prng.below(descriptors.length);
    const range = descriptors[at];
    if (range === undefined) return null;
    const { startKey, endKey, partitionId: source, generation } = range;
    const of = { kind: "begin-move", keySpace, startKey, endKey, source, generation } as const;
    if (kind === "home") {
      return { ...of, move: "home", target: hashPartition(keySpaceHashText(keySpace), pool) };
    }
    // Mostly a neighbour, before or behind; else any, which may not be.
    const beside = [descriptors[at - 1], descriptors[at + 1]].filter((each) => each !== undefined);
    const target = this.one(this.prng.chance(3, 4) ? beside : descriptors);
    if (target === null || target.partitionId === source) return null;
    return { ...of, move: "merge", target: target.partitionId };
  }

  private one<Each>(list: readonly Each[]): Each | null {
    return list[this.prng.below(Math.max(1, list.length))] ?? null;
  }

  private abort(records: MetaReads): Command | null {
    const move = this.one(records.moves().filter(({ phase }) => phase === "copying"));
    if (move === null) return null;
    const { keySpace, moveId } = move;
    const reason = this.one(REASONS) ?? "deadline";
    return { kind: "abort-move", keySpace, moveId, reason };
  }

  private split(keySpace: string, ranges: readonly RangeDescriptor[]): Command | null {
    const splitKey = this.work.drawKey(keySpace, this.prng);
    const range = findRange(ranges, splitKey);
    if (range === null || range.startKey === splitKey) return null;
    const { endKey, partitionId: source, generation } = range;
    this.work.splits(keySpace, splitKey);
    const of = { keySpace, startKey: splitKey, endKey, source, target: 0, generation };
    return { kind: "begin-move", move: "split", ...of };
  }

  private order(command: Command): void {
    const leader = this.servers.find(({ running }) => running?.node.metaGroup().isServing());
    const running = leader?.running ?? null;
    if (running === null) return;
    const { life, node } = running;
    this.open++;
    this.count("orders");
    let isOpen = true;
    const over = (): void => {
      if (isOpen) this.open--;
      isOpen = false;
    };
    // A process that dies says nothing.
    this.world.schedule(UNKNOWN_MS, over);
    life.enter(() => {
      node.metaGroup().proposeFinal(command, 200, node.nowMs() + ORDER_MS, (result) => {
        const outcome = result.status === "applied" ? result.outcome : null;
        const status = outcome?.kind === "meta" ? outcome.status : "unknown";
        this.count(`${command.kind} ${status}`);
        if (status !== "unknown") over();
      });
    });
  }

  private count(what: string): void {
    const name = `by hand: ${what}`;
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}
