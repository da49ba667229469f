/**
 * Property P-183: a lock that is free does not stay so while somebody waits for it at a leader that
 * serves: within a moment that leader tries to grant it.
 *
 * The leaders are looked at again and again. Invariant: a leader that stood still or could not grant
 * owes nothing for that time, and a try on its way is no loss, however long its commit takes.
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenQueue } from "./seen-queues.js";

export const NO_LOST_WAKE_UP = { "looks at waiters": 500, "looks at a free lock": 5 };

/** A leader that serves grants what is free within this time (ms). */
const MOMENT_MS = 200;

export interface WaitLook {
  readonly atMs: number;
  /** The leader runs, serves, and is not kept from its work. */
  readonly isAble: boolean;
  /** By the leader's own state and clock nobody holds the lock. */
  readonly isFree: boolean;
  /** By that state a list of a former leader binds it: it waits for the end of the list (Q15). */
  readonly isBound: boolean;
  /** A try of somebody who waits is on its way. */
  readonly isTried: boolean;
}

export class NoLostWakeUp {
  private readonly findings: Findings;
  /** Since when a lock is free, waited for, and nobody is tried. */
  private readonly since = new Map<SeenQueue, number>();

  constructor(minimum: Readonly<Record<string, number>> = NO_LOST_WAKE_UP) {
    this.findings = new Findings("no wake-up of a waiter is lost", minimum);
  }

  look(queue: SeenQueue, { atMs, isAble, isFree, isBound, isTried }: WaitLook): void {
    if (queue.living === 0) return void this.since.delete(queue);
    this.findings.count("looks at waiters");
    if (isFree && !isBound) this.findings.count("looks at a free lock");
    if (!isAble || !isFree || isBound || isTried) return void this.since.delete(queue);
    const fromMs = this.since.get(queue);
    if (fromMs === undefined) return void this.since.set(queue, atMs);
    if (atMs - fromMs <= MOMENT_MS) return;
    this.since.set(queue, Infinity);
    const { lock, node, term, living } = queue;
    const where = `${lock} at node ${node}, term ${term}`;
    const text = `is free since ${fromMs.toFixed(0)} ms, ${living} wait, and nobody is tried`;
    this.findings.violation(`${where}: ${text} by ${atMs.toFixed(0)} ms`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
