/**
 * What a chaos run does to its nodes: one fault at a time, each with its end, so that a majority is always allowed to
 * serve sooner or later.
 *
 * Invariants: 1. When `inject` resolves, the fault is over: all nodes run, nothing is held. 2. What cannot be done on this
 * machine is counted as not available, visibly.
 */
import type { Prng } from "../../../src/base/prng.js";
import { sleep } from "../cluster/server-process.js";
import { ChaosMoves, MOVE_KINDS, type MoveKind } from "./moves.js";
import type { ChaosNodes } from "./nodes.js";
import { type ChaosRanges, RANGE_KINDS, type RangeKind } from "./ranges.js";

const PLAIN_KINDS = [
  "kill",
  "kill all",
  "pause",
  "graceful restart",
  "isolate",
  "one-way out",
  "one-way in",
  "ring",
  "cut connections",
  "delay",
  "write error",
  "full disk",
  "clock jump",
] as const;
export type FaultKind = (typeof PLAIN_KINDS)[number] | MoveKind | RangeKind;

export function isRangeKind(kind: FaultKind): kind is RangeKind {
  return (RANGE_KINDS as readonly FaultKind[]).includes(kind);
}

function isMove(kind: FaultKind): kind is MoveKind {
  return (MOVE_KINDS as readonly FaultKind[]).includes(kind);
}

const NEEDS_PEERS: ReadonlySet<FaultKind> = new Set([
  "isolate",
  "one-way out",
  "one-way in",
  "ring",
  "cut connections",
  "delay",
]);

/** A move may be over before it is seen: so often a fault that was asked for by name is tried. */
const CHOSEN_TRIES_MAX = 5;

export class ChaosFaults {
  readonly injected = new Map<FaultKind, number>();
  readonly unavailable = new Map<FaultKind, number>();
  private waiting: FaultKind[] = [];
  private readonly moves: ChaosMoves;

  constructor(
    private readonly nodes: ChaosNodes,
    private readonly prng: Prng,
    private readonly say: (text: string) => void,
    /** Null: key ranges are left alone. */
    private readonly ranges: ChaosRanges | null = null,
  ) {
    this.moves = new ChaosMoves(nodes, prng.fork("moves"), say);
  }

  private get possible(): readonly FaultKind[] {
    const { count, factor } = this.nodes;
    const plain = PLAIN_KINDS.filter((kind) => count > 1 || !NEEDS_PEERS.has(kind));
    const ranged = this.ranges === null ? [] : RANGE_KINDS;
    return [...plain, ...(factor === 0 ? [] : MOVE_KINDS), ...ranged];
  }

  /** Each kind comes before any comes again. */
  private draw(): FaultKind {
    if (this.waiting.length === 0) {
      this.waiting = [...this.possible];
      for (let at = this.waiting.length - 1; at > 0; at--) {
        const other = this.prng.below(at + 1);
        const moved = this.waiting[at] as FaultKind;
        this.waiting[at] = this.waiting[other] as FaultKind;
        this.waiting[other] = moved;
      }
    }
    return this.waiting.pop() as FaultKind;
  }

  /** `chosen`: else it is drawn. What was chosen is tried again where it came too late, some times. */
  async inject(chosen?: FaultKind): Promise<void> {
    const kind = chosen ?? this.draw();
    const triesMax = chosen === undefined ? 1 : CHOSEN_TRIES_MAX;
    for (let tries = 0; tries < triesMax; tries++) if (await this.injectOnce(kind)) return;
  }

  private async injectOnce(kind: FaultKind): Promise<boolean> {
    const node = 1 + this.prng.below(this.nodes.count);
    const lastsMs = 2500 + this.prng.below(3000);
    this.say(`${kind}, node ${node}, ${lastsMs} ms`);
    const done = await this.carryOut(kind, node, lastsMs);
    const counts = done ? this.injected : this.unavailable;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return done;
  }

  private async carryOut(kind: FaultKind, node: number, lastsMs: number): Promise<boolean> {
    const { nodes } = this;
    if (isMove(kind)) {
      const done = await this.moves.carryOut(kind, node);
      await nodes.allReady();
      return done;
    }
    if (isRangeKind(kind)) return (await this.ranges?.carryOut(kind, node)) ?? false;
    switch (kind) {
      case "kill":
        await nodes.kill(node);
        await sleep(this.prng.chance(1, 2) ? 0 : lastsMs);
        nodes.launch(node);
        break;
      case "kill all":
        await Promise.all(nodes.all.map((each) => nodes.kill(each)));
        for (const each of nodes.all) nodes.launch(each);
        break;
      case "pause":
        nodes.signal(node, "SIGSTOP");
        await sleep(lastsMs);
        nodes.signal(node, "SIGCONT");
        break;
      case "graceful restart":
        await nodes.stop(node);
        nodes.launch(node);
        break;
      case "clock jump":
        nodes.signal(node, "SIGUSR2");
        await sleep(lastsMs);
        break;
      case "write error": {
        const done = await nodes.failWrites(node);
        if (!done) await nodes.kill(node);
        await sleep(500);
        nodes.launch(node);
        await nodes.allReady();
        return done;
      }
      case "full disk":
        if (nodes.fillable === 0) return false;
        nodes.fillDisk();
        await sleep(lastsMs);
        nodes.freeDisk();
        // A node that could not go on without space may have ended itself.
        nodes.launch(nodes.fillable);
        break;
      default:
        await this.disturbNetwork(kind, node, lastsMs);
    }
    await nodes.allReady();
    return true;
  }

  private async disturbNetwork(
    kind: Exclude<FaultKind, MoveKind | RangeKind>,
    node: number,
    lastsMs: number,
  ): Promise<void> {
    const { nodes } = this;
    const { network } = nodes;
    const others = nodes.all.filter((other) => other !== node);
    const next = others[this.prng.below(others.length)] as number;
    nodes.disturb(node);
    for (const other of others) {
      if (kind === "isolate" || kind === "one-way out") network.hold(node, other);
      if (kind === "isolate" || kind === "one-way in") network.hold(other, node);
      if (kind === "cut connections") network.cut(node, other);
      if (kind === "delay") network.delay(node, other, 50 + this.prng.below(200));
    }
    if (kind === "ring") {
      network.hold(node, next);
      network.hold(next, node);
    }
    await sleep(lastsMs);
    // What waited arrives late, or is lost with its connection.
    if (this.prng.chance(1, 2)) for (const other of others) network.cut(node, other);
    network.release();
  }
}
