/**
 * Property P-073: the fencing token protects an outside resource. The store stands outside the service and refuses
 * writes with a token smaller than the largest that it saw; holders that were paused write late.
 *
 * Invariants: 1. No write with a smaller token is accepted. 2. At least one late write was refused, otherwise nothing was
 * shown. 3. Two owners never write with the same token. 4. A lock that was asked for after the store had seen a token is
 * granted with a larger one, or with the same one to the same owner: whoever holds the lock is not refused.
 */
import { Findings, type Verdict } from "../verdict.js";

/** The largest token that a resource had seen at one moment, and whose it was. */
export interface StoreMark {
  readonly token: bigint;
  readonly owner: string;
}

export class FencedStore {
  private readonly findings: Findings;
  private readonly latest = new Map<string, StoreMark>();

  constructor(minimum: Readonly<Record<string, number>> = { accepted: 20, refused: 1 }) {
    this.findings = new Findings("fenced store refuses smaller tokens", minimum);
  }

  /** What `resource` has seen up to now: to be taken when a lock is asked for. */
  mark(resource: string): StoreMark | null {
    return this.latest.get(resource) ?? null;
  }

  /** A lock on `resource` that was asked for at `mark` is granted to `owner` with `token`. */
  granted(resource: string, owner: string, token: bigint, mark: StoreMark | null): void {
    if (mark === null) return;
    this.findings.count("grants compared");
    if (token > mark.token || (token === mark.token && owner === mark.owner)) return;
    const seen = `after token ${mark.token} of ${mark.owner} was seen`;
    this.findings.violation(`${resource}: granted to ${owner} with token ${token} ${seen}`);
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
