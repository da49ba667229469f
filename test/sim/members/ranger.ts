/**
 * Whoever changes the key ranges of a world: registers key spaces, splits at keys of the workload,
 * merges, unregisters, through whichever node; a hand that orders moves around the planners; and a
 * witness that reads its own keys through every node meanwhile.
 *
 * Invariants: 1. Numbers come from the schedule of faults. 2. Every call and its answer is told. 3. In
 * peace nothing new is changed; what was begun goes on by itself.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { RequestContext } from "../../../src/operations/api/requests.js";
import type { AskedChange, ToldChange } from "../../judge/checkers/ranges/honest-status.js";
import type { HistoryRecorder } from "../../judge/history.js";
import { administer } from "../../doubles/operations/administration.js";
import { BUCKETS } from "../clients/kv-requests.js";
import type { Faults } from "../faults/faults.js";
import type { RangeKind } from "../faults/kinds.js";
import type { Plan } from "../plan/plan.js";
import type { OpenCall, Running, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { RangePlan } from "./rangeplan.js";
import { RangeHand } from "./rangehand.js";
import { RangeChains } from "./rangechains.js";
import { type WitnessEvents, RangeWitness } from "./rangewitness.js";

/** Told of calls that change ranges. */
export interface RangerEvents extends WitnessEvents {
  asked(id: number, ask: AskedChange): void;
  told(id: number, answer: ToldChange): void;
}

/**
 * What was split must be left alone for ten seconds before it can be merged: splits come in the first
 * part of each cycle alone (ms), and key spaces end in the last one.
 */
const CYCLE_MS = 20_000;
const SPLITS_MS = 6000;
const MERGES_MS = 18_000;

type Told = (answer: ToldChange) => void;

const NOTHING = { determinate: null, partitionId: 0, generation: 0, merges: 0 } as const;

export class Ranger {
  readonly counts: Record<string, number> = { calls: 0, unanswered: 0 };
  /** Calls that may still do something by themselves. */
  openCalls = 0;
  readonly spaces: readonly string[];
  private readonly prng: Prng;
  private readonly witness: RangeWitness | null;
  private readonly chains: RangeChains | null;
  private readonly hand: RangeHand | null;
  private isOver = false;
  private nextId = 1;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly ranges: RangePlan,
    private readonly servers: readonly Server[],
    private readonly faults: Faults,
    history: HistoryRecorder,
    private readonly events: RangerEvents,
  ) {
    this.prng = world.prng("ranger");
    this.spaces = BUCKETS.slice(0, ranges.spaces);
    const { spaces } = this;
    this.witness = ranges.hasWitness
      ? new RangeWitness(world, plan, servers, spaces, history, events)
      : null;
    this.chains = ranges.hasChains ? new RangeChains(world, plan, servers, spaces, history) : null;
    const { handEveryMs } = ranges;
    this.hand = handEveryMs > 0 ? this.makeHand(handEveryMs) : null;
  }

  private makeHand(everyMs: number): RangeHand {
    const work = {
      drawKey: (keySpace: string, prng: Prng) => this.drawKey(keySpace, prng),
      splits: (keySpace: string, splitKey: string) => {
        this.events.asked(this.nextId++, { kind: "split", keySpace, splitKey });
      },
    };
    return new RangeHand(this.world, everyMs, this.servers, work, this.counts);
  }

  /** Somebody's call or order may still begin a move. */
  get isAsking(): boolean {
    return this.openCalls > 0 || (this.hand?.open ?? 0) > 0;
  }

  start(): void {
    for (const space of this.spaces) this.registerFirst(space);
    this.witness?.start();
    this.chains?.start();
    this.hand?.start();
    if (this.ranges.kinds.length > 0) this.later();
  }

  settle(): void {
    this.isOver = true;
    this.witness?.settle();
    this.chains?.settle();
    this.hand?.settle();
  }

  private later(): void {
    this.world.schedule(1 + this.prng.below(2 * this.ranges.everyMs), () => {
      if (this.isOver) return;
      this.act();
      this.later();
    });
  }

  /** What comes instead of the drawn kind at this time of the cycle. */
  private timely(drawn: RangeKind): RangeKind {
    const atMs = this.world.nowMs % CYCLE_MS;
    const isSplit = drawn === "split-space" && !this.ranges.isAutomatic;
    const isEarly = drawn === "unregister-space" && atMs < MERGES_MS;
    return isEarly || (isSplit && atMs >= SPLITS_MS) ? "merge-spaces" : drawn;
  }

  private get able(): readonly Server[] {
    return this.servers.filter(({ running }) => running?.node.shuttingDown === false);
  }

  /** Who leads meta mostly; now and then whoever it is, who refuses and names the other. */
  private draw(prng: Prng): Server | null {
    const { able } = this;
    const leader = able.find(({ running }) => running?.node.metaGroup().isServing() === true);
    const any = able[prng.below(Math.max(1, able.length))] ?? null;
    return leader !== undefined && prng.chance(5, 6) ? leader : any;
  }

  private act(): void {
    const { faults, ranges } = this;
    const number = ++faults.count;
    const kind = this.timely(ranges.kinds[this.prng.below(ranges.kinds.length)] as RangeKind);
    const prng = this.prng.fork(kind);
    if (this.plan.without.includes(number)) return;
    const keySpace = this.spaces[prng.below(this.spaces.length)] as string;
    const server =
      kind === "split-space" || kind === "merge-spaces"
        ? this.draw(prng)
        : (this.able[prng.below(Math.max(1, this.able.length))] ?? null);
    if (server === null) return;
    faults.saw(kind, number, server.nodeId);
    switch (kind) {
      case "register-space":
        return this.register(server, keySpace, "register");
      case "unregister-space":
        this.register(server, keySpace, "unregister");
        return this.registerAgain(keySpace, prng);
      case "split-space":
        return this.split(server, keySpace, this.drawKey(keySpace, prng));
      case "merge-spaces":
        return this.merge(server);
    }
  }

  /** A key of the workload mostly; else one between two, a deeper one, or one of another bucket. */
  private drawKey(keySpace: string, prng: Prng): string {
    const at = prng.below(this.plan.keys);
    if (prng.chance(1, 20)) return `other/key-${at}`;
    if (prng.chance(1, 20)) return `${keySpace}/deeper/key-${at}`;
    return `${keySpace}/key-${at}${prng.chance(1, 4) ? "x" : ""}`;
  }

  /** Until it is registered once. */
  private registerFirst(space: string): void {
    this.world.schedule(200 + this.prng.below(800), () => {
      if (this.isOver) return;
      const server = this.able[this.prng.below(Math.max(1, this.able.length))];
      if (server === undefined) return this.registerFirst(space);
      this.register(server, space, "register", (answer) => {
        if (answer?.success !== true) this.registerFirst(space);
      });
    });
  }

  /** Most worlds would be without ranges soon. */
  private registerAgain(space: string, prng: Prng): void {
    this.world.schedule(500 + prng.below(5000), () => {
      const server = this.able[prng.below(Math.max(1, this.able.length))];
      if (!this.isOver && server !== undefined) this.register(server, space, "register");
    });
  }

  private register(
    server: Server,
    keySpace: string,
    kind: "register" | "unregister",
    then: (answer: ToldChange | null) => void = () => undefined,
  ): void {
    this.call(server, { kind, keySpace, splitKey: "" }, then, (running, context, told) => {
      administer(running.operations, `ranges.${kind}`, { keySpace }, context, (answer) => {
        told({ ...NOTHING, status: answer.status, success: answer.success });
      });
    });
  }

  private split(server: Server, keySpace: string, splitKey: string): void {
    const ask = { kind: "split", keySpace, splitKey } as const;
    this.call(
      server,
      ask,
      () => undefined,
      ({ operations }, context, told) => {
        administer(operations, "ranges.split", { keySpace, splitKey }, context, (answer) => {
          const { status, success, determinate, newPartitionId, newGeneration } = answer;
          const made = { partitionId: newPartitionId, generation: newGeneration };
          told({ ...NOTHING, status, success, determinate, ...made });
        });
      },
    );
  }

  private merge(server: Server): void {
    const ask = { kind: "merge", keySpace: "", splitKey: "" } as const;
    this.call(
      server,
      ask,
      () => undefined,
      ({ operations }, context, told) => {
        administer(operations, "ranges.merge", {}, context, (answer) => {
          const { status, success, determinate, merges } = answer;
          told({ ...NOTHING, status, success, determinate, merges });
        });
      },
    );
  }

  private call(
    server: Server,
    ask: AskedChange,
    then: (answer: ToldChange | null) => void,
    send: (running: Running, context: RequestContext, told: Told) => void,
  ): void {
    const { running } = server;
    if (running === null) return then(null);
    const id = this.nextId++;
    const { life } = running;
    this.counts["calls"] = (this.counts["calls"] ?? 0) + 1;
    this.openCalls++;
    const lost: OpenCall = {
      ended: () => {
        this.openCalls--;
        this.counts["unanswered"] = (this.counts["unanswered"] ?? 0) + 1;
        then(null);
      },
      disturbed: () => undefined,
    };
    server.openCall(lost);
    this.events.asked(id, ask);
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + this.ranges.callMs;
      const context = { deadlineMs, forwardHops: 0, requestId: `range-${id}` };
      send(running, context, (answer) => {
        server.closeCall(lost);
        this.openCalls--;
        const name = `${ask.kind} ${answer.status}`;
        this.counts[name] = (this.counts[name] ?? 0) + 1;
        this.world.say(
          server.nodeId,
          `answers ${ask.kind} ${ask.keySpace} ${ask.splitKey}: ${name}`,
        );
        this.events.told(id, answer);
        this.world.schedule(1, () => then(answer));
      });
    });
  }
}
