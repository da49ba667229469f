/**
 * Property P-191: one founding. No second cluster comes into being under the id of the first, and
 * nobody is elected by nodes that lost what they had voted and acknowledged.
 *
 * Invariants: 1. An emptied directory counts for nothing until its node was taken in again, or
 * founded where no cluster stood. 2. A candidate whose votes were under way when a disk was emptied
 * may win that term, and no later one.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface Directory {
  readonly nodeId: number;
  readonly storageId: string;
}

export class OneFounding {
  private readonly findings = new Findings("one founding", {});
  private readonly emptied = new Set<number>();
  private readonly terms = new Map<number, number>();
  private readonly termsAtLoss = new Map<number, number>();
  private first: { readonly version: number; readonly directories: readonly Directory[] } | null =
    null;

  /** The disk of `node` is empty. */
  wiped(node: number): void {
    this.findings.count("disks emptied");
    this.emptied.add(node);
    for (const [group, term] of this.terms) this.termsAtLoss.set(group, term);
  }

  /** `node` belongs to the cluster again, with an empty directory that never voted. */
  admitted(node: number): void {
    this.emptied.delete(node);
  }

  /** `node` founds a cluster with these directories. */
  founded(node: number, directories: readonly Directory[]): void {
    this.findings.count("nodes that found");
    this.emptied.delete(node);
    if (this.first === null) return;
    const same = directories.filter((directory) => isAmong(this.first?.directories, directory));
    if (same.length * 2 > directories.length) return;
    const text = directories.map(({ nodeId, storageId }) => `${nodeId} ${storageId}`).join(", ");
    this.findings.violation(`node ${node} founds the cluster again, with ${text}`);
  }

  /** A node has applied a member list. */
  members(node: number, version: number, members: readonly Directory[]): void {
    if (version === 0) return;
    this.first ??= { version, directories: members };
    if (version !== this.first.version) return;
    this.findings.count("rosters of the founding");
    const { directories } = this.first;
    const isSame = members.every((member) => isAmong(directories, member));
    if (isSame && members.length === directories.length) return;
    const both = `${JSON.stringify(directories)} and, on node ${node}, ${JSON.stringify(members)}`;
    this.findings.violation(`founded twice: ${both}`);
  }

  /** A node is in `term` of `group`. */
  term(group: number, term: number): void {
    this.terms.set(group, Math.max(this.terms.get(group) ?? 0, term));
  }

  /** `node` was elected by `voters`. */
  elected(node: number, group: number, term: number, voters: readonly number[]): void {
    if (this.emptied.size === 0) return;
    this.findings.count("elections after losses");
    const whole = voters.filter((voter) => !this.emptied.has(voter));
    if (whole.length >= Math.ceil(voters.length / 2)) return;
    if (term <= (this.termsAtLoss.get(group) ?? 0)) return;
    const lost = `${voters.length - whole.length} of ${voters.length} voters were emptied`;
    this.findings.violation(`node ${node} leads group ${group} in term ${term}, and ${lost}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

function isAmong(list: readonly Directory[] | undefined, wanted: Directory): boolean {
  return (list ?? []).some(({ nodeId, storageId }) => {
    return nodeId === wanted.nodeId && storageId === wanted.storageId;
  });
}
