/**
 * Two machines and a move of an interval between them, as a mover would drive it: every command is
 * an entry of its own, and both lease clocks run with one true time.
 */
import { attempt, moveId as moveIdOf, rangeGeneration } from "../../../src/base/ids.js";
import type { Command, RangeOutcome } from "../../../src/machine/commands/command.js";
import { commandSizeBytes } from "../../../src/machine/commands/codec.js";
import type { KeyInterval } from "../../../src/machine/ownership/ownership-row.js";
import type { CopyBounds, CopySource } from "../../../src/machine/ranges/copy-source.js";
import type { IntervalCount } from "../../../src/machine/ranges/interval-count.js";
import { RowKind, generationPrefix, historyKeyOf } from "../../../src/machine/store/keys.js";
import { Bench } from "./bench.js";

/** All values and older revisions of a group: key, kind and bytes, in order. */
export function valuesOf({ memtable, machine }: Bench): { key: string; row: string }[] {
  const found: { key: string; row: string }[] = [];
  const prefix = generationPrefix(machine.group, machine.record().generation);
  for (const kind of [RowKind.value, RowKind.history]) {
    const first = prefix + String.fromCharCode(kind);
    memtable.scan(first, prefix + String.fromCharCode(kind + 1), (name, value) => {
      const rest = name.slice(first.length);
      const key = kind === RowKind.value ? rest : historyKeyOf(rest);
      found.push({ key, row: `${name} ${Buffer.from(value).toString("hex")}` });
      return true;
    });
  }
  return found;
}

/** Names and values of all rows of a group, by reading them. */
export function bytesOf({ memtable, machine }: Bench): number {
  const prefix = generationPrefix(machine.group, machine.record().generation);
  let bytes = 0;
  memtable.scan(prefix, `${prefix}\xff`, (key, value) => {
    bytes += key.length - prefix.length - 1 + value.length;
    return true;
  });
  return bytes;
}

/** A group whose lease clock runs `aheadMs` ahead of the true time. */
export class Side extends Bench {
  constructor(
    private readonly world: { nowMs: number },
    readonly aheadMs: number,
    group: number,
    ownsByDefault: boolean,
  ) {
    super(undefined, group, ownsByDefault);
  }

  /** As the leader knows it: it runs on while nothing is committed. */
  get leaseNowMs(): number {
    return this.world.nowMs + this.aheadMs;
  }

  do(command: Command): ReturnType<Bench["one"]> {
    return this.one(this.leaseNowMs, command);
  }

  range(command: Command): RangeOutcome {
    const outcome = this.do(command);
    if (outcome.kind !== "range") throw new Error(`a ${outcome.kind} is no outcome of a move`);
    return outcome;
  }
}

export class Move {
  attempt = attempt(1);
  copy: CopySource | null = null;
  count: IntervalCount | null = null;
  private number = 1;
  private begunMs = 0;

  constructor(
    readonly source: Side,
    readonly target: Side,
    readonly interval: KeyInterval,
    readonly moveId = moveIdOf(77),
  ) {}

  get named() {
    const { keySpace } = this.interval;
    return { keySpace, moveId: this.moveId, attempt: this.attempt };
  }

  private get bounded() {
    return { ...this.named, ...this.interval, generation: rangeGeneration(4) };
  }

  /** Opens the target, purging what an earlier attempt left. */
  begin(): void {
    this.endReading();
    for (;;) {
      const { status } = this.target.range({ kind: "range-open", ...this.bounded });
      if (status === "done") break;
      if (status !== "unsettled") throw new Error(`not opened: ${status}`);
      this.purge(this.target, 3);
    }
    this.number = 1;
    this.begunMs = this.source.machine.leaseMs;
    this.copy = this.source.machine.openCopy(this.interval, () => this.source.leaseNowMs);
    this.count = this.source.machine.openCount(this.interval);
  }

  private endReading(): void {
    this.copy?.close();
    this.count?.close();
    this.copy = null;
    this.count = null;
  }

  /** Gives one slice to the target; true at the end of what there is for now. */
  give(step: "next" | "nextNoted", bounds: CopyBounds): boolean {
    const slice = this.copy?.[step](bounds) ?? "overrun";
    if (slice === "overrun") throw new Error("an overrun");
    const { items, leaseMs } = slice;
    if (items.length > 0) {
      const { status, nextImport } = this.target.range(this.import(items, leaseMs));
      if (status !== "done") throw new Error(`not taken: ${status}`);
      this.number = nextImport;
    }
    return slice.isEnd;
  }

  import(items: readonly unknown[], sourceLeaseMs: number, number = this.number): Command {
    const copyAgeMs = sourceLeaseMs - this.begunMs;
    const command = {
      kind: "range-import",
      ...this.named,
      number,
      sourceLeaseMs,
      copyAgeMs,
      items,
    };
    if (commandSizeBytes(command as Command) > 4 << 20) throw new Error("too large an entry");
    return command as Command;
  }

  freeze(): RangeOutcome {
    return this.source.range({ kind: "range-freeze", ...this.bounded });
  }

  /** Rest, comparison and adoption: the target owns the interval. */
  finish(bounds: CopyBounds): RangeOutcome["status"] {
    const status = this.close(bounds);
    return status === "closed" ? this.adopt() : status;
  }

  /** The target has all that the source froze. */
  close(bounds: CopyBounds): RangeOutcome["status"] {
    while (!this.give("nextNoted", bounds));
    while (this.count?.next(3) === false);
    if (this.count === null) throw new Error("it was counted");
    const { counted } = this.count;
    const { number } = this;
    const closed = this.target.range({ kind: "range-close", ...this.named, number, ...counted });
    if (closed.status === "closed") this.endReading();
    return closed.status;
  }

  adopt(): RangeOutcome["status"] {
    return this.target.range({ kind: "range-adopt", ...this.named }).status;
  }

  release(limit: number): void {
    this.source.range({ kind: "range-release", ...this.named });
    this.purge(this.source, limit);
  }

  /** The next attempt: what the one before froze is served again. */
  retry(): RangeOutcome["status"] {
    this.endReading();
    this.attempt = attempt(this.attempt + 1);
    return this.source.range({ kind: "range-unfreeze", ...this.named }).status;
  }

  abort(limit: number): void {
    this.endReading();
    const later = { ...this.named, attempt: attempt(this.attempt + 1) };
    this.source.range({ kind: "range-unfreeze", ...later });
    this.target.range({ kind: "range-drop", ...this.named });
    this.purge(this.target, limit);
  }

  /** Deletes all that is left of intervals that left. Returns the number of slices. */
  purge(side: Side, limit: number): number {
    let slices = 0;
    for (const row of side.machine.ownership.all()) {
      if (row.state !== "left" || row.isPurged) continue;
      const { keySpace, moveId: move, attempt: at, startKey } = row;
      const named = { keySpace, moveId: move, attempt: at };
      for (let status = "more"; status === "more"; slices++) {
        const said = side.range({ kind: "range-purge", ...named, startKey, limit });
        if (said.dropped > limit) throw new Error(`${said.dropped} rows in a slice of ${limit}`);
        ({ status } = said);
      }
    }
    return slices;
  }
}
