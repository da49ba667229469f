/**
 * Property U4, U5: rolled back before a raise only. A program starts on every directory whose level
 * it supports, and on no other; and once all nodes support a level and are up, raising it to the
 * end takes a bounded time.
 */
import { Findings, type Verdict } from "../verdict.js";

/** From the last node to the last group (ms). */
const FINALIZED_WITHIN_MS = 30_000;
const MINIMUM = {
  "nodes rolled forward": 1,
  "nodes rolled back": 1,
  "starts refused": 1,
  "finalizations timed": 1,
};

export class UpgradeSteps {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = MINIMUM) {
    this.findings = new Findings("rolled back before a raise only", minimum);
  }

  /** A node is started with a program that supports levels up to `supports`. */
  rolled(how: "forward" | "back"): void {
    this.findings.count(`nodes rolled ${how}`);
  }

  /** It is open; its directory may hold data of `stored`. */
  opened(node: number, supports: number, stored: number): void {
    this.findings.count("starts");
    if (stored <= supports) return;
    this.findings.violation(`node ${node} supports level ${supports}, and starts on ${stored}`);
  }

  /** It would not start, or stopped, because of its level. `highest`: that any node was told of. */
  refused(node: number, supports: number, highest: number): void {
    this.findings.count("starts refused");
    if (highest > supports) return;
    this.findings.violation(`node ${node} supports level ${supports}, and refuses ${highest}`);
  }

  /** A joiner was taken in by a cluster of `level`. */
  admitted(node: number, supports: number, level: number): void {
    this.findings.count("joiners");
    if (level <= supports) return;
    this.findings.violation(`node ${node} supports level ${supports}, and joins one of ${level}`);
  }

  /** A refused start wrote something before. */
  wrote(node: number): void {
    this.findings.violation(`node ${node} writes before it is refused`);
  }

  /** The level was raised while `node`, a member, ran a program that does not support it. */
  leftBehind(node: number): void {
    this.findings.violation(`the level is raised over node ${node}, which does not support it`);
  }

  /** Since all nodes were up and support the level, until all groups were at it. */
  finalized(tookMs: number): void {
    this.findings.count("finalizations timed");
    if (tookMs <= FINALIZED_WITHIN_MS) return;
    this.findings.violation(`the last group follows after ${Math.round(tookMs)} ms`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
