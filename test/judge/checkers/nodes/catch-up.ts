/**
 * Property: a node that fell behind catches up by few snapshots (P-037): the log behind a snapshot
 * is kept until the node has joined it.
 *
 * Invariant: snapshots are counted from the last moment at which the node lacked little; its
 * restarts count as well.
 */
import { Findings, type Verdict } from "../verdict.js";

/** Who lacks fewer entries than this has caught up. */
const NEAR = 50;

export class CatchUp {
  private readonly findings = new Findings("few snapshots until a node has caught up", {});
  private readonly before = new Map<number, number>();

  /** `snapshotsMax`: for one return of a node. */
  constructor(private readonly snapshotsMax: number) {}

  /** Now and then: `snapshots` that `node` has installed so far, and entries that it lacks. */
  measure(node: number, snapshots: number, lag: number): void {
    const before = this.before.get(node);
    if (before === undefined || lag < NEAR) {
      if (before !== undefined && snapshots > before) this.findings.count("returns by snapshot");
      this.before.set(node, snapshots);
      return;
    }
    if (snapshots - before > this.snapshotsMax) {
      const text = `node ${node} has installed ${snapshots - before} snapshots and lacks ${lag} entries`;
      this.findings.violation(text);
      this.before.set(node, snapshots);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
