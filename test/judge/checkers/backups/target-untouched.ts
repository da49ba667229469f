/**
 * Property: a restore changes nothing but its target, what is staged beside it, and the claims that
 * count restores; one that fails leaves no target (7.5, P-140).
 */
import { Findings, type Verdict } from "../verdict.js";

const STAGED = /^[^/]+\.staging_[0-9a-f]{8}(?:\/|$)/;
const CLAIM = /^restore_[1-9]\d*\.claim$/;

export class TargetUntouched {
  private readonly findings = new Findings("restores leave alone what is not theirs", {
    changes: 10,
    restores: 1,
  });

  /** Something below the restore root changes. `targets`: names that restores were asked for. */
  changed(path: string, targets: ReadonlySet<string>): void {
    this.findings.count("changes");
    const [first = ""] = path.split("/");
    const isOwn = path === "" || STAGED.test(path) || CLAIM.test(path) || targets.has(first);
    if (!isOwn) this.findings.violation(`a restore changed ${path}`);
  }

  /** In the directory of backups a restore changes claims and leases only. */
  changedCatalogue(path: string): void {
    this.findings.count("changes of the catalogue");
    const isOwn = path === "" || CLAIM.test(path) || path.startsWith(".lease_");
    if (!isOwn) this.findings.violation(`a restore changed ${path} among the backups`);
  }

  /** A restore has ended; `isThere`: its target. */
  ended(target: string, isDone: boolean, isThere: boolean): void {
    this.findings.count("restores");
    if (isDone && !isThere) this.findings.violation(`${target} is not there after its restore`);
    if (!isDone && isThere)
      this.findings.violation(`${target} is there after a restore that failed`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
