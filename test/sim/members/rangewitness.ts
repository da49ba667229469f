/**
 * The witness of key ranges: sets keys of its own once, spread over each key space, and from then on
 * reads them through every node, all the time; whatever moves, none may be missed.
 *
 * Invariants: 1. Nobody else touches its keys, and it deletes none. 2. A key is looked for from its
 * acknowledgement on. 3. In peace it goes on reading: what was moved last is looked for too.
 */
import { decodeText } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";
import { KvType } from "../../../src/machine/commands/command.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { type Recording, onKey, setKey } from "./recorded.js";

export interface WitnessEvents {
  /** What a node answers for a key whose value was acknowledged; null: there is none. */
  witnessed(node: number, keySpace: string, key: string, value: string, found: string | null): void;
}

/** Keys of each key space. */
const KEYS = 12;
const EVERY_MS = 60;

export class RangeWitness {
  private readonly prng: Prng;
  /** Keys that were acknowledged, with their key spaces. */
  private readonly known = new Map<string, string>();
  private readonly wanted: { readonly key: string; readonly keySpace: string }[] = [];
  private readonly recording: Recording;
  private isOver = false;
  /** Reads that are left to make in peace. */
  private reads = 40;

  constructor(
    private readonly world: World,
    plan: Plan,
    private readonly servers: readonly Server[],
    spaces: readonly string[],
    history: HistoryRecorder,
    private readonly events: WitnessEvents,
  ) {
    this.prng = world.prng("witness");
    this.recording = { world, plan, history, name: "witness" };
    for (const keySpace of spaces) {
      for (let at = 0; at < KEYS; at++) {
        // Between the keys of the workload.
        const before = Math.floor((at * plan.keys) / KEYS);
        this.wanted.push({ key: `${keySpace}/key-${before}-witness-${at}`, keySpace });
      }
    }
  }

  start(): void {
    this.world.schedule(1 + this.prng.below(2 * EVERY_MS), () => {
      if (this.isOver && this.known.size === 0) return;
      this.act();
      if (!this.isOver || this.reads-- > 0) this.start();
    });
  }

  settle(): void {
    this.isOver = true;
  }

  private act(): void {
    const { prng, wanted, known } = this;
    const server = this.servers[prng.below(this.servers.length)] as Server;
    const open = wanted.filter(({ key }) => !known.has(key));
    const [next] = open;
    if (next !== undefined && !this.isOver && prng.chance(1, 2)) return this.set(server, next);
    const keys = [...known];
    const entry = keys[prng.below(Math.max(1, keys.length))];
    if (entry !== undefined) this.read(server, ...entry);
  }

  private set(server: Server, { key, keySpace }: { key: string; keySpace: string }): void {
    setKey(this.recording, server, key, valueOf(key), (answer) => {
      if (answer.kind === "kv" && answer.type === KvType.set) this.known.set(key, keySpace);
    });
  }

  private read(server: Server, key: string, keySpace: string): void {
    onKey(this.recording, server, "kv-get", key, (answer) => {
      if (answer.kind !== "kv" || answer.refusal !== null) return;
      if (answer.type !== KvType.got && answer.type !== KvType.doesNotExist) return;
      const found = answer.value === null ? null : decodeText(answer.value);
      this.events.witnessed(server.nodeId, keySpace, key, valueOf(key), found);
    });
  }
}

function valueOf(key: string): string {
  return `of ${key}`;
}
