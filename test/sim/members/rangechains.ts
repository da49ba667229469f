/**
 * Chains of writes in key spaces that are routed by ranges: through every node two keys of each space in
 * turn, the first one of all and the last one, each write after the answer to the one before. Whoever
 * reads the space in parts, at different times, shows the later write and not the earlier one.
 *
 * Invariants: 1. Nobody else writes the keys of a chain, and no value comes twice. 2. A chain whose answer
 * does not come goes on when it can no longer be awaited.
 */
import type { Prng } from "../../../src/base/prng.js";
import { KvType } from "../../../src/machine/commands/command.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { type Recording, setKey } from "./recorded.js";

/** Mean pause between an answer and the next write (ms). */
const THINK_MS = 15;
/** After a write that was refused, or is unknown (ms). */
const AGAIN_MS = 100;

/** The chain of one node in one key space. */
class RangeChain {
  private readonly prng: Prng;
  private count = 0;
  private isOver = false;

  constructor(
    private readonly recording: Recording,
    private readonly server: Server,
    private readonly keySpace: string,
  ) {
    this.prng = recording.world.prng(`chain of ${server.nodeId} in ${keySpace}`);
  }

  start(): void {
    this.later(THINK_MS);
  }

  stop(): void {
    this.isOver = true;
  }

  private later(meanMs: number): void {
    this.recording.world.schedule(1 + this.prng.below(2 * meanMs), () => this.write());
  }

  private write(): void {
    if (this.isOver) return;
    const { recording, server, keySpace } = this;
    const { world, plan } = recording;
    const number = ++this.count;
    // Before and behind the keys of the workload: wherever the space is split, one lies on each side.
    const place = number % 2 === 0 ? "key-0" : "key-9";
    const key = `${keySpace}/${place}-chain-${server.nodeId}`;
    let isOpen = true;
    const goOn = (meanMs: number): void => {
      if (!isOpen) return;
      isOpen = false;
      world.cancel(patience);
      this.later(meanMs);
    };
    const patience = world.schedule(plan.requestTimeoutMs + AGAIN_MS, () => goOn(AGAIN_MS));
    setKey(recording, server, key, `chain ${server.nodeId} ${keySpace} ${number}`, (answer) => {
      goOn(answer.kind === "kv" && answer.type === KvType.set ? THINK_MS : AGAIN_MS);
    });
  }
}

export class RangeChains {
  private readonly chains: readonly RangeChain[];

  constructor(
    world: World,
    plan: Plan,
    servers: readonly Server[],
    spaces: readonly string[],
    history: HistoryRecorder,
  ) {
    const recording = { world, plan, history, name: "chains" };
    this.chains = servers.flatMap((server) => {
      return spaces.map((space) => new RangeChain(recording, server, space));
    });
  }

  start(): void {
    for (const chain of this.chains) chain.start();
  }

  settle(): void {
    for (const chain of this.chains) chain.stop();
  }
}
