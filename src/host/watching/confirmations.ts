/**
 * Waits until partitions are level here with everything that was answered to anybody before (W4,
 * W9): by a round of whoever leads them, shared by all who ask at once.
 *
 * Owns the rounds. Invariants: 1. A round begins after everybody that it serves has asked. 2. Who
 * asks hears once, never in the turn of the call; a failed round is tried again until their time is
 * over.
 */
import type { WatchPorts } from "./watching.js";

/** Between two tries, and between two looks at what is applied (ms). */
const RETRY_MS = 50;
const LOOK_MS = 5;
/** Of one round (ms). */
const ROUND_MS = 2000;

interface Asker {
  readonly untilMs: number;
  readonly done: (isLevel: boolean) => void;
}

interface Rounds {
  isUnderWay: boolean;
  /** For the next round. */
  askers: Asker[];
}

export class Confirmations {
  private readonly byPartition = new Map<number, Rounds>();
  /** Who waits for an entry to be applied here. */
  private waiting: { partition: number; index: number; untilMs: number; done: Done }[] = [];
  private isLooking = false;

  constructor(private readonly ports: WatchPorts) {}

  /** `done` false: not in time. */
  confirm(
    partitions: ReadonlySet<number>,
    untilMs: number,
    done: (isLevel: boolean) => void,
  ): void {
    let open = partitions.size;
    let isLevel = true;
    if (open === 0) return this.ports.timer.soon(() => done(true));
    const one = (isOneLevel: boolean): void => {
      isLevel &&= isOneLevel;
      if (--open === 0) done(isLevel);
    };
    for (const partition of partitions) this.ask(partition, { untilMs, done: one });
  }

  private ask(partition: number, asker: Asker): void {
    let rounds = this.byPartition.get(partition);
    if (rounds === undefined) {
      rounds = { isUnderWay: false, askers: [] };
      this.byPartition.set(partition, rounds);
    }
    rounds.askers.push(asker);
    if (!rounds.isUnderWay) this.begin(partition, rounds);
  }

  private begin(partition: number, rounds: Rounds): void {
    const { askers } = rounds;
    rounds.askers = [];
    rounds.isUnderWay = true;
    this.round(partition, (isLevel) => {
      const nowMs = this.ports.clock.monotonicMs();
      const again = isLevel ? [] : askers.filter(({ untilMs }) => untilMs > nowMs);
      rounds.askers.unshift(...again);
      const next = (): void => {
        rounds.isUnderWay = false;
        if (rounds.askers.length > 0) this.begin(partition, rounds);
        else this.byPartition.delete(partition);
      };
      if (again.length > 0) this.ports.timer.after(RETRY_MS, next);
      else next();
      for (const asker of askers) if (!again.includes(asker)) asker.done(isLevel);
    });
  }

  private round(partition: number, done: Done): void {
    const { ports } = this;
    const untilMs = ports.clock.monotonicMs() + ROUND_MS;
    const group = ports.isClosing() ? null : ports.group(partition);
    if (group === null) return ports.timer.soon(() => done(false));
    if (group.isLeader()) return group.read(untilMs, ({ status }) => done(status === "confirmed"));
    if (group.leaderNode() === 0) return ports.timer.soon(() => done(false));
    ports.confirmThere(partition, untilMs, (index) => {
      if (index === null) done(false);
      else this.applied(partition, index, untilMs, done);
    });
  }

  private applied(partition: number, index: number, untilMs: number, done: Done): void {
    this.waiting.push({ partition, index, untilMs, done });
    this.look();
  }

  /** Something may have been applied. */
  look(): void {
    if (this.waiting.length === 0) return;
    const { ports } = this;
    const nowMs = ports.clock.monotonicMs();
    const { waiting } = this;
    this.waiting = [];
    for (const each of waiting) {
      const group = ports.isClosing() ? null : ports.group(each.partition);
      const isLevel = group !== null && group.machine.appliedIndex >= each.index;
      if (isLevel || group === null || nowMs >= each.untilMs) each.done(isLevel);
      else this.waiting.push(each);
    }
    if (this.waiting.length === 0 || this.isLooking) return;
    this.isLooking = true;
    ports.timer.after(LOOK_MS, () => {
      this.isLooking = false;
      this.look();
    });
  }
}

type Done = (isLevel: boolean) => void;
