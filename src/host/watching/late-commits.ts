/**
 * A follower hears that an entry is committed with the next entries, or with a heartbeat. Where
 * somebody watches here and no next entries come, it asks whoever leads: the round by which that
 * answers tells everybody.
 *
 * Owns the looks. Invariants: 1. Of a partition one look or question is on its way at a time, and
 * they come the less often the longer an entry takes. 2. Where entries follow each other nothing is
 * asked. 3. Where nobody watches the partition, or this node leads it, nothing is done (W15).
 */
import type { WatchGroup, WatchPorts } from "./watching.js";

/** Before the first question about an entry, and longest between two (ms). */
const FIRST_MS = 2;
const LONGEST_MS = 64;
/** Of one question. */
const QUESTION_MS = 2000;

interface Look {
  /** Asked about until it is applied. */
  index: number;
  /** The newest entry of the log here. */
  lastIndex: number;
}

export class LateCommits {
  private readonly looks = new Map<number, Look>();

  /** `isWatched`: whether somebody is to be told of the partition now. */
  constructor(
    private readonly ports: WatchPorts,
    private readonly isWatched: (partition: number) => boolean,
  ) {}

  /** An entry is in the log of the group, and not applied. */
  appended(group: WatchGroup, index: number): void {
    if (group.isLeader()) return;
    const { partition } = group;
    const look = this.looks.get(partition);
    if (look !== undefined) {
      look.lastIndex = index;
      return;
    }
    this.looks.set(partition, { index, lastIndex: index });
    this.later(partition, FIRST_MS);
  }

  private later(partition: number, inMs: number): void {
    this.ports.timer.after(inMs, () => this.look(partition, inMs));
  }

  private look(partition: number, waitedMs: number): void {
    const { ports } = this;
    const look = this.looks.get(partition) as Look;
    const group = ports.isClosing() ? null : ports.group(partition);
    const isOver = group === null || group.isLeader() || group.leaderNode() === 0;
    if (isOver || group.machine.appliedIndex >= look.lastIndex || !this.isWatched(partition)) {
      this.looks.delete(partition);
      return;
    }
    if (group.machine.appliedIndex >= look.index) {
      look.index = look.lastIndex;
      return this.later(partition, FIRST_MS);
    }
    const untilMs = ports.clock.monotonicMs() + QUESTION_MS;
    ports.confirmThere(partition, untilMs, () => {
      this.later(partition, Math.min(LONGEST_MS, 2 * waitedMs));
    });
  }
}
