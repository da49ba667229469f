/**
 * Property: a node that fell behind catches up by few images (P-037): the log behind an image is kept until the node has
 * joined it.
 *
 * Invariant: images are counted from the last moment at which the node lacked little; its restarts count as well.
 */
import { Findings, type Verdict } from "../verdict.js";

/** Who lacks fewer entries than this has caught up. */
const NEAR = 50;

export class CatchUp {
  private readonly findings = new Findings("few images until a node has caught up", {});
  private readonly before = new Map<number, number>();

  /** `imagesMax`: for one return of a node. */
  constructor(private readonly imagesMax: number) {}

  /** Now and then: `images` that `node` has installed so far, and entries that it lacks. */
  measure(node: number, images: number, lag: number): void {
    const before = this.before.get(node);
    if (before === undefined || lag < NEAR) {
      if (before !== undefined && images > before) this.findings.count("returns by image");
      this.before.set(node, images);
      return;
    }
    if (images - before > this.imagesMax) {
      const text = `node ${node} has installed ${images - before} images and lacks ${lag} entries`;
      this.findings.violation(text);
      this.before.set(node, images);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
