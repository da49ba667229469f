/** A meta partition whose key ranges move, and short forms of its commands. */
import { attempt, level, moveId, rangeGeneration } from "../../../src/base/ids.js";
import { hashPartition, keySpaceHashText } from "../../../src/base/routing.js";
import type {
  Command,
  FinishMoveCommand,
  RangeDescriptor,
  RangeMove,
} from "../../../src/machine/commands/command.js";
import { MetaBench } from "./placement.js";

/** "a..m 1@3": from "a" below "m" on partition 1 at generation 3; open ends are left away. */
export function rangeText({ startKey, endKey, partitionId, generation }: RangeDescriptor): string {
  return `${startKey ?? ""}..${endKey ?? ""} ${partitionId}@${generation}`;
}

export class RangeBench extends MetaBench {
  constructor(nodes = 3, factor = 0, partitions = 2, at = 2) {
    super(nodes, factor, partitions);
    this.one(0, { kind: "set-level", level: level(at) });
  }

  /** Status and generation. */
  ask(command: Command, leaseMs = 0): string {
    const outcome = this.one(leaseMs, command);
    if (outcome.kind !== "meta") throw new Error("the command is one of meta");
    return `${outcome.status} ${outcome.generation}`;
  }

  home(keySpace: string): number {
    return hashPartition(keySpaceHashText(keySpace), this.cluster.dataPartitions);
  }

  get cluster(): NonNullable<ReturnType<typeof this.machine.meta.cluster>> {
    const cluster = this.machine.meta.cluster();
    if (cluster === null) throw new Error("the cluster is founded");
    return cluster;
  }

  register(keySpace: string, partitionId = this.home(keySpace)): string {
    return this.ask({ kind: "register-range", keySpace, partitionId });
  }

  unregister(keySpace: string): string {
    return this.ask({ kind: "unregister-range", keySpace });
  }

  /** Of the range that has this start, as it stands. */
  begin(
    keySpace: string,
    move: RangeMove["kind"],
    startKey: string | null,
    target: number,
    change: Partial<Extract<Command, { kind: "begin-move" }>> = {},
  ): string {
    const ranges = this.machine.meta.ranges(keySpace);
    const range =
      move === "split"
        ? [...ranges]
            .reverse()
            .find((one) => one.startKey === null || one.startKey < (startKey ?? ""))
        : ranges.find((one) => one.startKey === startKey);
    const { endKey = null, partitionId: source = 1, generation = rangeGeneration(1) } = range ?? {};
    const interval = { startKey, endKey };
    const command = { kind: "begin-move", keySpace, move, ...interval, source, target } as const;
    return this.ask({ ...command, generation, ...change });
  }

  split(keySpace: string, at: string): string {
    return this.begin(keySpace, "split", at, 0);
  }

  retry(keySpace: string, id: number, ends: number, leaseMs = 0): string {
    const of = { keySpace, moveId: moveId(id), attempt: attempt(ends) };
    return this.ask({ kind: "retry-move", ...of }, leaseMs);
  }

  cut(keySpace: string, id = this.moveOf(keySpace), of = 1, leaseMs = 0): string {
    const command = { keySpace, moveId: moveId(id), attempt: attempt(of) };
    return this.ask({ kind: "cut-range", ...command }, leaseMs);
  }

  abort(
    keySpace: string,
    id = this.moveOf(keySpace),
    reason: RangeMove["reason"] = "deadline",
  ): string {
    return this.ask({ kind: "abort-move", keySpace, moveId: moveId(id), reason });
  }

  finish(keySpace: string, side: FinishMoveCommand["side"], id = this.moveOf(keySpace)): string {
    return this.ask({ kind: "finish-move", keySpace, moveId: moveId(id), side });
  }

  /** Id of the move of a key space; 0 = there is none. */
  moveOf(keySpace: string): number {
    return this.machine.meta.move(keySpace)?.moveId ?? 0;
  }

  /** Begins, cuts and ends a move. */
  moved(keySpace: string, move: RangeMove["kind"], startKey: string | null, target = 0): void {
    const begun = this.begin(keySpace, move, startKey, target);
    if (!begun.startsWith("done")) throw new Error(`${keySpace} ${move}: ${begun}`);
    this.cut(keySpace);
    this.finish(keySpace, "target");
    if (this.moveOf(keySpace) > 0) this.finish(keySpace, "source");
  }

  /** The ranges of a key space in short. */
  ranges(keySpace: string): string {
    return this.machine.meta.ranges(keySpace).map(rangeText).join(", ");
  }

  /** States of the partitions that have a record. */
  states(): string {
    const records = this.machine.meta.partitions();
    return records.map(({ partitionId, state }) => `${partitionId} ${state}`).join(", ");
  }
}
