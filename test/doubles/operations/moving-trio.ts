/**
 * A registered key space on three nodes, half of whose keys go from their hash partition to another
 * one, one step of the move at a time.
 */
import { encodeText } from "../../../src/base/bytes.js";
import type { Command } from "../../../src/machine/commands/command.js";
import { FalseMap, aboveThePool, holdMoves, own } from "./moving.js";
import { Trio } from "./trio.js";

export const SPACE = "m";
/** The first key that moves. */
export const CUT = "m/n";

export class MovingTrio {
  readonly trio: Trio;
  readonly map: FalseMap;
  readonly source: number;
  readonly target: number;

  constructor(settings: ConstructorParameters<typeof Trio>[0] = {}) {
    this.trio = new Trio(settings);
    const { trio } = this;
    holdMoves(trio.host);
    this.source = trio.partitionOf(SPACE);
    this.target = (this.source % 3) + 1;
    this.map = new FalseMap(trio.machine(0), () => {
      this.propose(0, { kind: "advance-clock" });
      trio.world.settle();
    });
    this.map.set(SPACE, [[null, null, this.source]]);
    for (const id of [1, 2, 3]) if (id !== this.source) aboveThePool(trio.machine(id));
  }

  /** A key space whose name begins with `prefix` and which the source has by its hash. */
  besides(prefix: string): string {
    for (let number = 0; ; number++) {
      const name = `${prefix}${number}`;
      if (this.trio.partitionOf(name) === this.source) return name;
    }
  }

  private propose(partition: number, command: Command, done: () => void = () => undefined): void {
    const group = this.trio.host.groups().find((one) => one.partition === partition);
    group?.propose(command, 100, 1e9, done);
  }

  /** Writes a key where it lies, and calls `done` when that is applied. */
  later(partition: number, key: string, value: string, done: () => void): void {
    const command = {
      ...({ kind: "kv-set", key, value: encodeText(value), compareValue: null } as const),
      ...{ compareRevision: 0n, expiresMs: 0, flags: 0, revisionsRetained: 1 },
    };
    this.propose(partition, command, done);
  }

  write(partition: number, key: string, value: string): void {
    this.later(partition, key, value, () => undefined);
    this.trio.world.settle();
  }

  /** The target takes a key in, as by an import. */
  copy(key: string, value: string): void {
    this.adopt();
    this.write(this.target, key, value);
    this.close();
  }

  /** Node `at` hears of no newer map from now on, until what is returned is called. */
  blind(at: number): () => void {
    const operations = this.trio.node(at) as unknown as {
      readonly serving: { readonly placement: object };
    };
    const { placement } = operations.serving;
    Object.defineProperty(placement, "refresh", { value: () => undefined, configurable: true });
    return () => void Reflect.deleteProperty(placement, "refresh");
  }

  freeze(): void {
    own(this.trio.machine(this.source), SPACE, CUT, null, "leaving");
  }

  /** The target has all keys, and waits for the cut. */
  close(): void {
    own(this.trio.machine(this.target), SPACE, CUT, null, "closed");
  }

  cut(): void {
    this.map.set(SPACE, [
      [null, CUT, this.source],
      [CUT, null, this.target],
    ]);
  }

  adopt(): void {
    own(this.trio.machine(this.target), SPACE, CUT, null, "here");
  }

  release(): void {
    own(this.trio.machine(this.source), SPACE, CUT, null, "left");
  }

  /** The way back, all of it. */
  back(): void {
    own(this.trio.machine(this.target), SPACE, CUT, null, "left");
    this.map.set(SPACE, [[null, null, this.source]]);
    own(this.trio.machine(this.source), SPACE, CUT, null, "default");
  }

  /** All of it. */
  move(): void {
    this.freeze();
    this.cut();
    this.adopt();
    this.release();
  }
}
