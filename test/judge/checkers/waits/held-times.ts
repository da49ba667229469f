/**
 * Who held a lock from when to when, as programs of the library believe it, and how their waits ended: one holder at a
 * time, tokens that grow, and no wait without an end (L12, Q2, Q5, P-183).
 *
 * Invariants: 1. All times are of one clock, which all holders share. 2. A holder that was told too late to hold anything
 * has a token all the same, and nobody else has it.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface HeldTime {
  readonly resource: string;
  readonly owner: string;
  readonly token: bigint;
  /** When its wait began. */
  readonly askedMs: number;
  readonly fromMs: number;
  /** Until then it certainly held it: it let go, or could no longer be sure. */
  readonly untilMs: number;
}

export type WaitEnd = "granted" | "busy" | "cancelled" | "vanished" | "gave up";

export const HELD_TIMES = { grants: 50, "handed over": 20, "waits that ended": 50, cancelled: 1 };

export class HeldTimes {
  private readonly findings: Findings;
  private readonly holds = new Map<string, HeldTime[]>();
  private readonly open = new Map<number, string>();
  private lastId = 0;

  constructor(minimum: Readonly<Record<string, number>> = HELD_TIMES) {
    this.findings = new Findings("who waits gets its lock, one at a time", minimum);
  }

  /** Somebody waits; the number of its wait. */
  asked(what: string): number {
    this.open.set(++this.lastId, what);
    return this.lastId;
  }

  /** `tookMs` of the `boundMs` within which an end was due. */
  ended(id: number, how: WaitEnd, tookMs: number, boundMs: number): void {
    const what = this.open.get(id);
    if (what === undefined) return this.findings.violation(`wait ${id} ended twice`);
    this.open.delete(id);
    this.findings.count("waits that ended");
    this.findings.count(how);
    if (tookMs <= boundMs) return;
    this.findings.violation(`${what} ended (${how}) after ${tookMs.toFixed(0)} ms of ${boundMs}`);
  }

  held(time: HeldTime): void {
    const known = this.holds.get(time.resource);
    if (known === undefined) this.holds.set(time.resource, [time]);
    else known.push(time);
  }

  verdict(): Verdict {
    for (const what of this.open.values()) this.findings.violation(`${what} has no end`);
    for (const times of this.holds.values()) this.judge(times);
    return this.findings.verdict();
  }

  private judge(times: readonly HeldTime[]): void {
    const owners = new Map<bigint, string>();
    for (const { resource, owner, token } of times) {
      this.findings.count("grants");
      const other = owners.get(token);
      if (other !== undefined) {
        this.findings.violation(`${resource}: token ${token} was given to ${other} and ${owner}`);
      }
      owners.set(token, owner);
    }
    const sure = times.filter(({ fromMs, untilMs }) => untilMs > fromMs);
    sure.sort((a, b) => a.fromMs - b.fromMs);
    for (const [at, time] of sure.entries()) {
      const before = sure[at - 1];
      if (before !== undefined) this.follows(before, time);
    }
  }

  private follows(before: HeldTime, time: HeldTime): void {
    const words = ({ owner, token, fromMs, untilMs }: HeldTime): string =>
      `${owner} with ${token} from ${fromMs.toFixed(1)} to ${untilMs.toFixed(1)} ms`;
    const both = `${time.resource}: ${words(before)}, and ${words(time)}`;
    if (time.askedMs < before.untilMs) this.findings.count("handed over");
    if (before.untilMs > time.fromMs) this.findings.violation(`two hold ${both}`);
    if (time.token <= before.token) this.findings.violation(`tokens go back, ${both}`);
  }
}
