/**
 * Property: the lease clock of a group runs while it has a leader, whoever leads (T1, T3, P-196): a next leader goes on
 * where the one before it stopped, so that a lease ends late by the time without a leader, and by no more.
 *
 * Compared are the clocks of leaders that follow each other. A leader counts as one until it is last seen serving in a
 * process that runs; cut off, it may take itself for one for as long as it takes to notice. A clock by which no lease runs
 * is kept by nobody: it may stand still at the end of the last one. Invariants: 1. Judged is only an heir whose process ran beside the leader for long enough to hear of its clock: what no living process knows is lost.
 * 2. A change after a leadership shorter than the slack shows nothing, and is no evidence.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface LateExpiryOptions {
  /** By how much any clock may be slower than true time. */
  readonly drift: number;
  /** What a change of leader may cost beside the time without one (ms). */
  readonly slackMs: number;
  /** A process that runs is seen at least this often (ms); one that is not was paused. */
  readonly seenEveryMs: number;
  /** Changes after leaderships longer than the slack. */
  readonly minimum: number;
}

export interface ServingSample {
  readonly atMs: number;
  readonly node: number;
  readonly life: number;
  readonly partition: number;
  readonly term: number;
  readonly leading: boolean;
  readonly serving: boolean;
  /** The lease clock as its leader estimates it (ms). */
  readonly leaseNowMs: number;
  /** No lease is known to end after this lease time. */
  readonly leasesUntilMs: number;
}

interface Reign {
  readonly node: number;
  readonly life: number;
  readonly term: number;
  readonly fromMs: number;
  readonly fromLeaseMs: number;
  untilMs: number;
  leasesUntilMs: number;
  isOver: boolean;
  /** The first term after it whose leader has not served; 0 = none. */
  blindTerm: number;
}

interface SeenLife {
  readonly life: number;
  readonly sinceMs: number;
  lastMs: number;
}

export class LateExpiry {
  private readonly reigns = new Map<number, Reign>();
  /** When the present life of a node was first seen. */
  private readonly lives = new Map<number, SeenLife>();
  private readonly findings: Findings;

  constructor(private readonly options: LateExpiryOptions) {
    this.findings = new Findings("leases do not outlive changes of leader", {
      changes: options.minimum,
    });
  }

  sample(sample: ServingSample): void {
    const { node, life, partition, term, atMs } = sample;
    const reign = this.reigns.get(partition);
    const isOwn = reign?.node === node && reign.life === life && reign.term === term;
    // A process that was paused finds out late that it leads no more: it did so until the pause.
    if (reign?.node === node && !(isOwn && sample.serving)) reign.isOver = true;
    if (isOwn) reign.leasesUntilMs = sample.leasesUntilMs;
    const isBlind = sample.leading && !sample.serving && reign !== undefined && term > reign.term;
    if (isBlind && reign.blindTerm === 0) reign.blindTerm = term;
    this.ran(node, life, atMs);
    if (!sample.serving || isOwn || (reign !== undefined && reign.term >= term)) return;
    if (reign !== undefined) this.judge(reign, sample);
    const fromLeaseMs = sample.leaseNowMs;
    const { leasesUntilMs } = sample;
    const begun = { node, life, term, fromMs: atMs, fromLeaseMs, leasesUntilMs };
    this.reigns.set(partition, { ...begun, untilMs: atMs, isOver: false, blindTerm: 0 });
  }

  /** A life of a node did something at `atMs`. */
  ran(node: number, life: number, atMs: number): void {
    let seen = this.lives.get(node);
    if (seen?.life !== life) {
      seen = { life, sinceMs: atMs, lastMs: atMs };
      this.lives.set(node, seen);
    }
    // One that was paused may take itself for the leader when it wakes; it reigned until the pause.
    const wasPaused = atMs - seen.lastMs > this.options.seenEveryMs;
    seen.lastMs = atMs;
    for (const reign of this.reigns.values()) {
      if (reign.node !== node || reign.life !== life) continue;
      if (wasPaused) reign.isOver = true;
      if (!reign.isOver) reign.untilMs = atMs;
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }

  private judge(before: Reign, heir: ServingSample): void {
    const { drift, slackMs } = this.options;
    const sinceMs = this.lives.get(heir.node)?.sinceMs ?? Infinity;
    // Whoever led in between and never served may have decided by a clock that nobody knows.
    if (before.blindTerm > 0 && before.blindTerm < heir.term) return;
    if (heir.node === before.node || sinceMs > before.untilMs - slackMs) return;
    const reignedMs = before.untilMs - before.fromMs;
    if (reignedMs <= slackMs) return;
    const clockMs = before.fromLeaseMs + reignedMs * (1 - drift);
    const leastMs = Math.min(clockMs, before.leasesUntilMs) - slackMs;
    if (leastMs > before.fromLeaseMs) this.findings.count("changes");
    if (heir.leaseNowMs >= leastMs) return;
    const { partition, term, node, atMs } = heir;
    const led = `node ${before.node} led in term ${before.term} for ${reignedMs.toFixed(0)} ms`;
    const now = `node ${node} begins term ${term} at ${atMs.toFixed(0)} ms`;
    const clocks = `with lease clock ${heir.leaseNowMs}, at least ${leastMs.toFixed(0)} is due`;
    this.findings.violation(`partition ${partition}: ${led}, and ${now} ${clocks}`);
  }
}
