/**
 * Property: the collection takes nothing that somebody can reach: what has a manifest has its parents
 * and all of its files; the newest chain stays; and a dry run says what a run does (7.4, P-141).
 */
import { Findings, type Verdict } from "../verdict.js";

/** What lies in the directory. */
export interface SeenManifest {
  readonly id: string;
  readonly parent: string | null;
  readonly createdMs: number;
  readonly filesMissing: readonly string[];
}

export class GcSafe {
  private readonly findings = new Findings("the collection takes nothing that is reachable", {
    looks: 1,
  });

  /**
   * After something was removed. `aside`: those that a pass holds back and has not removed; `spoilt`:
   * chains that were damaged on purpose.
   */
  looked(
    manifests: readonly SeenManifest[],
    aside: ReadonlySet<string>,
    spoilt: ReadonlySet<string>,
  ): void {
    const { findings } = this;
    findings.count("looks");
    const known = new Map(manifests.map((manifest) => [manifest.id, manifest]));
    for (const { id, parent, filesMissing } of manifests) {
      if (spoilt.has(id)) continue;
      if (filesMissing.length > 0) {
        findings.violation(`backup ${id} lacks ${filesMissing.slice(0, 3).join(", ")}`);
      }
      const isThere = parent === null || known.has(parent) || aside.has(parent);
      if (!isThere && !spoilt.has(parent)) {
        findings.violation(`backup ${id} goes on from ${parent}, which is gone`);
      }
    }
  }

  /** A manifest vanished; `newest`: of all that were there. */
  removed(id: string, newest: string | null): void {
    this.findings.count("removed");
    if (id === newest)
      this.findings.violation(`backup ${id} is gone, the newest one that there was`);
  }

  /** Ids that a dry run named, and that a run right after it took, nothing between them. */
  dryRun(told: readonly string[], taken: readonly string[]): void {
    const { findings } = this;
    findings.count("dry runs");
    if (told.join(" ") === taken.join(" ")) return;
    findings.violation(`a dry run told ${told.join(", ")}; taken were ${taken.join(", ")}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
