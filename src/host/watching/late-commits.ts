/**
 * A follower hears that an entry is committed with the next entries, or with a heartbeat. Where
 * somebody watches here and no next entries come, it asks whoever leads: the round by which that
 * answers tells everybody, and for a while after a question that leader announces each commit by
 * itself. One of an older version does not: what it commits is asked about a little later.
 *
 * Owns the looks. Invariants: 1. Of a partition one look or question is on its way at a time, and
 * they come the less often the longer an entry takes. 2. Where entries follow each other nothing is
 * asked but that commits are announced on. 3. Where nobody watches the partition, or this node
 * leads it, nothing is done (W15).
 */
import type { WatchGroup, WatchPorts } from "./watching.js";

/** For so long a leader that was asked announces commits (ms). */
export const ANNOUNCED_MS = 10_000;
/** Then it is asked anew. */
const ASKED_ANEW_MS = ANNOUNCED_MS / 2;
/** Before the first question about an entry (ms). */
const FIRST_MS = 2;
/** And where commits are announced. */
const FIRST_ANNOUNCED_MS = 16;
/** Longest between two (ms). */
const LONGEST_MS = 64;
/** Of one question. */
const QUESTION_MS = 2000;

interface Look {
  /** Asked about until it is applied. */
  index: number;
  /** The newest entry of the log here. */
  lastIndex: number;
}

/** Which leader answered a question last, and when that was asked (monotonic ms). */
interface Announcer {
  readonly node: number;
  readonly askedMs: number;
}

export class LateCommits {
  private readonly looks = new Map<number, Look>();
  private readonly announcers = new Map<number, Announcer>();

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
    this.later(partition, this.firstMs(group));
  }

  private firstMs(group: WatchGroup): number {
    return this.announcedForMs(group) < ANNOUNCED_MS ? FIRST_ANNOUNCED_MS : FIRST_MS;
  }

  /** For how long its leader has announced commits (ms); infinity: it does not. */
  private announcedForMs(group: WatchGroup): number {
    const announcer = this.announcers.get(group.partition);
    if (announcer === undefined || announcer.node !== group.leaderNode()) return Infinity;
    return this.ports.clock.monotonicMs() - announcer.askedMs;
  }

  private later(partition: number, inMs: number): void {
    this.ports.timer.after(inMs, () => this.look(partition, inMs));
  }

  private look(partition: number, waitedMs: number): void {
    const { ports } = this;
    const look = this.looks.get(partition) as Look;
    const group = ports.isClosing() ? null : ports.group(partition);
    const isOver = group === null || group.isLeader() || group.leaderNode() === 0;
    if (isOver) {
      this.looks.delete(partition);
      this.announcers.delete(partition);
      return;
    }
    const { appliedIndex } = group.machine;
    const forMs = this.announcedForMs(group);
    const isDueAnew = forMs >= ASKED_ANEW_MS && forMs < Infinity;
    if ((appliedIndex >= look.lastIndex && !isDueAnew) || !this.isWatched(partition)) {
      this.looks.delete(partition);
      return;
    }
    if (appliedIndex >= look.index && !isDueAnew) {
      look.index = look.lastIndex;
      return this.later(partition, this.firstMs(group));
    }
    this.ask(group, () => this.later(partition, Math.min(LONGEST_MS, 2 * waitedMs)));
  }

  private ask(group: WatchGroup, then: () => void): void {
    const { ports } = this;
    const { partition } = group;
    const node = group.leaderNode();
    const askedMs = ports.clock.monotonicMs();
    ports.confirmThere(partition, askedMs + QUESTION_MS, (index) => {
      if (index === null) this.announcers.delete(partition);
      else this.announcers.set(partition, { node, askedMs });
      then();
    });
  }
}
