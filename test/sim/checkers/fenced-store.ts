/**
 * Property P-073: the fencing token protects an outside resource. The store stands outside the service and refuses
 * writes with a token smaller than the largest that it saw; holders that were paused write late.
 *
 * Invariants: 1. No write with a smaller token is accepted. 2. At least one late write was refused, otherwise nothing was
 * shown. 3. Two owners never write with the same token.
 */
import { Findings, type Verdict } from "./verdict.js";

interface Accepted {
  readonly token: bigint;
  readonly owner: string;
}

export class FencedStore {
  private readonly findings: Findings;
  private readonly latest = new Map<string, Accepted>();

  constructor(minimum: Readonly<Record<string, number>> = { accepted: 20, refused: 1 }) {
    this.findings = new Findings("fenced store refuses smaller tokens", minimum);
  }

  /** A write to `resource` by a holder that was granted `token`. True when it is accepted. */
  write(resource: string, owner: string, token: bigint): boolean {
    const latest = this.latest.get(resource);
    if (latest !== undefined && token < latest.token) {
      this.findings.count("refused");
      return false;
    }
    if (latest !== undefined && token === latest.token && owner !== latest.owner) {
      this.findings.violation(
        `${resource}: token ${token} was used by ${latest.owner} and by ${owner}`,
      );
    }
    this.findings.count("accepted");
    this.latest.set(resource, { token, owner });
    return true;
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
