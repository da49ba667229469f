/**
 * Notices at once that a leader's node is gone, and has its groups elect another leader without
 * waiting for the election timeout.
 *
 * Advice only: a follower that lost its link forgets the leader and campaigns by pre-vote, which
 * the others grant only if they lost it too (P-095). Invariants: 1. A broken link alone deposes
 * nobody. 2. Attempts are spread over time by node and group, bounded in number, and end when a
 * leader is heard. 3. Elections by timeout go on beside.
 */
import type { Prng } from "../../base/prng.js";
import type { GroupOwner } from "../group/group-owner.js";
import type { Replica } from "../group/replica.js";

/** A link that is back within this was not down. */
const GRACE_MS = 20;
/** A leader that lives is heard within this after its follower forgot it. */
const FIRST_DELAY_MS = 110;
const SPREAD_MS = 120;
/** An election gets this, and twice as long each time: slow disks would never end one otherwise. */
const RETRY_MS = 200;
const ATTEMPTS_MAX = 4;

interface Attempt {
  readonly node: number;
  count: number;
  atMs: number;
}

export class Failover implements GroupOwner {
  private readonly down = new Set<number>();
  private readonly attempts = new Map<Replica, Attempt>();
  private due = Infinity;

  constructor(
    private readonly random: Prng,
    private readonly replicas: () => readonly Replica[],
    private readonly wakeAt: (atMs: number) => void,
    private readonly wake: (replica: Replica) => void,
  ) {}

  get wakeAtMs(): number {
    return this.due;
  }

  linkUp(node: number): void {
    this.down.delete(node);
  }

  linkDown(node: number, nowMs: number): void {
    this.down.add(node);
    for (const replica of this.replicas()) {
      if (replica.leadership.leader !== node || !replica.isVoter) continue;
      this.plan(replica, { node, count: 0, atMs: nowMs + GRACE_MS });
    }
  }

  /** Takes the steps that are due; inside a turn. */
  check(nowMs: number): void {
    if (nowMs < this.due) return;
    this.due = Infinity;
    for (const [replica, attempt] of [...this.attempts]) {
      if (attempt.atMs > nowMs) this.due = Math.min(this.due, attempt.atMs);
      else this.step(replica, attempt, nowMs);
    }
    if (this.due !== Infinity) this.wakeAt(this.due);
  }

  removed(replica: Replica): void {
    this.attempts.delete(replica);
  }

  private step(replica: Replica, attempt: Attempt, nowMs: number): void {
    const { leader } = replica.leadership;
    this.attempts.delete(replica);
    if (!this.down.has(attempt.node)) return;
    if (attempt.count === 0) {
      if (leader !== attempt.node) return;
      replica.core.forgetLeader();
      const delayMs = FIRST_DELAY_MS + this.random.below(SPREAD_MS);
      this.plan(replica, { node: attempt.node, count: 1, atMs: nowMs + delayMs });
    } else if (leader === 0 && attempt.count <= ATTEMPTS_MAX) {
      replica.core.campaign();
      const { node, count } = attempt;
      const delayMs = (RETRY_MS + this.random.below(RETRY_MS)) * 2 ** (count - 1);
      this.plan(replica, { node, count: count + 1, atMs: nowMs + delayMs });
    }
    this.wake(replica);
  }

  private plan(replica: Replica, attempt: Attempt): void {
    this.attempts.set(replica, attempt);
    if (attempt.atMs >= this.due) return;
    this.due = attempt.atMs;
    this.wakeAt(attempt.atMs);
  }
}
