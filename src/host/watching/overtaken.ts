/**
 * Keys that moved to another partition while this node's replica of the one before has yet to apply
 * that (W14): from the apply of the adoption on, the target speaks for them.
 *
 * Owns what is known of such moves. Invariants: 1. What a source still brings of an interval that
 * its target adopted is told to nobody, until it applies that it gave the interval away. 2. Nothing
 * is kept of a move whose source is level.
 */
import type { RangeCommand } from "../../machine/commands/command.js";
import { type KeyInterval, isWithin } from "../../machine/ownership/ownership-row.js";
import { spaceOf, spanOf, type SpaceSpan } from "../../machine/ownership/ownership.js";
import { type ByteKey, textToByteKey } from "../../machine/store/keys.js";
import type { WatchGroup } from "./watching.js";

interface Late extends SpaceSpan {
  readonly source: number;
  readonly space: ByteKey;
  readonly interval: KeyInterval;
  readonly moveId: number;
  readonly attempt: number;
}

export class Overtaken {
  /** Intervals that are closed, and await their adoption: by partition and move. */
  private readonly closed = new Map<string, KeyInterval>();
  private late: Late[] = [];

  constructor(private readonly groups: () => readonly WatchGroup[]) {}

  /** The rows of the group are to be looked at from now on, or are others than before. */
  begins({ partition, machine }: WatchGroup): void {
    for (const row of machine.ownership.all()) {
      if (row.state === "closed") this.closed.set(`${partition}/${row.moveId}`, row);
    }
    this.late = this.late.filter((each) => {
      return each.source !== partition || !machine.ownership.ownsNone(each.interval);
    });
  }

  left(partition: number): void {
    this.late = this.late.filter(({ source }) => source !== partition);
  }

  clear(): void {
    this.closed.clear();
    this.late = [];
  }

  /** The group applied this, and its rows changed. */
  applied({ partition, machine }: WatchGroup, command: RangeCommand): void {
    const { kind, moveId, attempt } = command;
    const name = `${partition}/${moveId}`;
    switch (kind) {
      case "range-close": {
        const rows = machine.ownership.rowsOf(textToByteKey(command.keySpace));
        const row = rows.find((each) => each.moveId === moveId && each.state === "closed");
        if (row !== undefined) this.closed.set(name, row);
        return;
      }
      case "range-adopt": {
        const interval = this.closed.get(name);
        this.closed.delete(name);
        if (interval !== undefined) this.adopted(partition, interval, moveId, attempt);
        return;
      }
      case "range-drop":
        this.closed.delete(name);
        return;
      case "range-freeze":
        this.late = this.late.filter((each) => {
          const isOfIt = each.source === partition && each.moveId === moveId;
          return !isOfIt || attempt < each.attempt;
        });
        return;
      default:
    }
  }

  private adopted(target: number, interval: KeyInterval, moveId: number, attempt: number): void {
    // What comes back to it, it speaks for again.
    this.late = this.late.filter((each) => {
      const isSame = each.source === target && each.interval.keySpace === interval.keySpace;
      return !isSame || !isWithin(each.interval, interval);
    });
    const space = textToByteKey(interval.keySpace);
    for (const { partition: source, machine } of this.groups()) {
      if (source === target || machine.ownership.ownsNone(interval)) continue;
      this.late.push({ source, space, interval, moveId, attempt, ...spanOf(interval) });
    }
  }

  /** Some source is late. */
  get hasLate(): boolean {
    return this.late.length > 0;
  }

  /** Whether what the partition brings of the key is told. */
  speaksFor(partition: number, key: ByteKey): boolean {
    if (!this.hasLate) return true;
    return !this.late.some(({ source, space, first, last }) => {
      if (source !== partition || spaceOf(key) !== space) return false;
      return key >= first && (last === null || key < last);
    });
  }
}
