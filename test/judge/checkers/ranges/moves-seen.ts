/**
 * What the key ranges of a world went through: no property, but the evidence that its moves were those
 * which the checkers of ranges are for. Steps are counted once, whoever tells of them.
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenMove } from "./seen-moves.js";

/** Which part a group has in a move. */
export type MovePart = "source" | "target" | "meta";

export class MovesSeen {
  private readonly findings = new Findings("what ranges went through", {});

  cut({ kind }: SeenMove): void {
    this.findings.count("moves");
    this.findings.count(`${kind} moves`);
  }

  aborted(reason: string): void {
    this.findings.count("aborted");
    this.findings.count(`aborted: ${reason}`);
  }

  retried(): void {
    this.findings.count("retried attempts");
  }

  /** Somebody else leads a group between the freeze and the adoption. */
  leaderChanged(part: MovePart): void {
    this.findings.count("leader changes between freeze and adopt");
    this.findings.count(`leader changes of the ${part} there`);
  }

  /** Meta had no leader between the freeze and the adoption. */
  metaGone(): void {
    this.findings.count("freezes with meta's leader gone");
  }

  /** What a move brought to its target. */
  imported(keys: number, tombstones: number, historyBytes: number): void {
    this.findings.count("keys moved", keys);
    this.findings.count("tombstones moved", tombstones);
    this.findings.count("bytes of history moved", historyBytes);
  }

  /** A snapshot was installed where an interval is frozen, arriving or closed. */
  installed(): void {
    this.findings.count("snapshots in the middle of a move");
  }

  /** A step of the named kind that has no count of its own. */
  went(what: string): void {
    this.findings.count(what);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
