/**
 * Property Q2: the waiters of one lock are granted it in the order in which their leader took them
 * in; a place without a request is passed over, and one that is taken again has its turn still (Q8).
 *
 * Looked at is whom the leader tries to grant the lock to, and who stood before. Invariant: a try
 * that found its owner to be the holder already overtakes nobody (L2).
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenPlace } from "./seen-queues.js";

export const FIFO = { grants: 100, "grants before others": 50, "turns kept": 1 };

export class Fifo {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = FIFO) {
    this.findings = new Findings("waiters are granted in their order", minimum);
  }

  /**
   * The leader tries to grant the lock to `place`; returns what is to be called with the grant.
   * `isHeir`: along a list. Who comes back to a place finds those before it that were named
   * meanwhile, and who shares one is no heir.
   */
  tried(place: SeenPlace, atMs: number, isHeir = false): (token: bigint, isFresh: boolean) => void {
    if (place.living === 0) this.stranger(place.queue.lock, place.owner, atMs);
    const before = place.queue.before(place);
    const bound = isHeir
      ? before.filter(({ hasReturned, living }) => !hasReturned && living === 1)
      : before;
    if (bound.length < before.length) this.findings.count("heirs before who came back");
    const overtaken = bound.map(({ owner }) => owner);
    const passed = place.queue.passedOver(place);
    return (token, isFresh) => {
      if (!isFresh) return this.findings.count("found to hold it");
      this.findings.count("grants");
      if (place.queue.living > 1) this.findings.count("grants before others");
      if (passed > 0) this.findings.count("places passed over");
      if (place.hasReturned) this.findings.count("turns kept");
      if (overtaken.length === 0) return;
      const { lock, node, term } = place.queue;
      const who = `${place.owner} was tried at ${atMs.toFixed(1)} ms and got token ${token}`;
      const where = `${lock} at node ${node}, term ${term}`;
      this.findings.violation(`${where}: ${who} before ${overtaken.join(", ")}`);
    };
  }

  /** A leader that hands over as planned tells who stands where; `standing`: who waits there (Q11). */
  carried(lock: string, told: readonly string[], standing: readonly string[]): void {
    this.findings.count("queues carried over");
    const known = told.filter((owner) => standing.includes(owner));
    if (known.join() === standing.join()) return;
    const where = `${lock}: a planned move carries ${told.join(", ")}`;
    this.findings.violation(`${where}, and ${standing.join(", ")} wait`);
  }

  /** A leader tries to grant the lock to somebody who has no place. */
  stranger(lock: string, owner: string, atMs: number): void {
    this.findings.violation(
      `${lock}: ${owner} is tried at ${atMs.toFixed(1)} ms, and does not wait`,
    );
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
