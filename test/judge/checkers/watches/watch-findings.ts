/**
 * The verdicts on what watches were told: their order, that it happened, that nothing is missing, that
 * a barrier is one, and that the newest comes.
 */
import { Findings, type Verdict } from "../verdict.js";

/** What one world of watches shows at least. */
export const WATCH_MINIMUM = {
  order: { events: 50, "changes one by one": 20, "states at the start": 5 },
  committed: { "events that happened": 50 },
  resume: { resumes: 5, "resumes elsewhere": 1 },
  barrier: { barriers: 5 },
  newest: { "watches in peace": 5, "names in peace": 5 },
};

export class WatchFindings {
  /** W2, W3, W4. */
  readonly order: Findings;
  /** W1. */
  readonly committed: Findings;
  /** W5, W6, W7. */
  readonly resume: Findings;
  /** W9. */
  readonly barrier: Findings;
  /** W6: the newest state always comes. */
  readonly newest: Findings;

  constructor(minimum: Readonly<Record<keyof typeof WATCH_MINIMUM, object>> = WATCH_MINIMUM) {
    const of = (property: string, least: object): Findings =>
      new Findings(property, least as Record<string, number>);
    this.order = of("what is watched is told in order", minimum.order);
    this.committed = of("watches tell what is committed", minimum.committed);
    this.resume = of("a watch that goes on misses nothing", minimum.resume);
    this.barrier = of("a barrier of watches holds", minimum.barrier);
    this.newest = of("watches know the newest state", minimum.newest);
  }

  verdicts(): Verdict[] {
    const { order, committed, resume, barrier, newest } = this;
    return [order, committed, resume, barrier, newest].map((each) => each.verdict());
  }
}
