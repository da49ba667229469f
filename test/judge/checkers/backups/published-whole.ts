/**
 * Property: whatever has a manifest is whole: it verifies from then on, through crashes and losses of
 * power, until the collection takes it away; and what does not verify is never restored (P-136,
 * P-140).
 */
import { Findings, type Verdict } from "../verdict.js";

export class PublishedWhole {
  private readonly findings = new Findings("what is published is whole", { published: 1 });

  /** `fault`: why a chain does not verify; null: it does. `isSpoilt`: a byte of it was turned. */
  looked(when: "published" | "crashed" | "at the end", id: string, fault: string | null): void {
    const { findings } = this;
    findings.count(when);
    if (fault !== null) findings.violation(`backup ${id}, ${when}: ${fault}`);
  }

  /** A chain of which a byte was turned: `isNoticed` when it is refused. */
  spoilt(id: string, isNoticed: boolean): void {
    this.findings.count("spoilt");
    if (!isNoticed)
      this.findings.violation(`backup ${id} verifies although a byte of it was turned`);
  }

  /** A restore was asked for; `fault`: how it failed though nothing was in its way. */
  restored(id: string, fault: string | null): void {
    this.findings.count("restores");
    if (fault !== null)
      this.findings.violation(`backup ${id} verifies, and cannot be restored: ${fault}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
