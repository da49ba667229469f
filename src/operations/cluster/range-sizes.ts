/**
 * How many live keys a range holds, as the host counts them where it is led.
 *
 * Invariants: 1. A number is exact, or at least what was asked for; what is not known is null. 2.
 * Whoever asks is answered by its deadline, though the count may take longer.
 */
import type { RangeDescriptor } from "../../machine/commands/command.js";
import type { RangeOfKeys } from "../api/host-view.js";
import { byDeadline } from "../serving/by-deadline.js";
import type { Serving } from "../serving/serving.js";

type KeysDone = (keys: number | null) => void;

export class RangeSizes {
  constructor(private readonly serving: Serving) {}

  /** All of its live keys. */
  exact(keySpace: string, range: RangeDescriptor, deadlineMs: number, then: KeysDone): void {
    this.ask({ keySpace, ...range }, deadlineMs, then);
  }

  /** The same, or enough to split it by hand. */
  atLeast(keySpace: string, range: RangeDescriptor, deadlineMs: number, then: KeysDone): void {
    const enoughKeys = this.serving.settings.rangeSplitMinSize;
    this.ask({ keySpace, ...range, enoughKeys }, deadlineMs, then);
  }

  private ask(range: RangeOfKeys, deadlineMs: number, then: KeysDone): void {
    const { node, ports } = this.serving;
    const end = byDeadline<number | null>(ports, deadlineMs, null, then);
    node.rangeSize(range, ({ keys }) => end(keys));
  }
}
