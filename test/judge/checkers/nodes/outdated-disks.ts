/**
 * Property P-190: a node whose disk was put back as it was some lives ago never votes and never
 * acknowledges, and the nodes that knew it refuse it.
 *
 * Invariant: it counts as outdated until its disk is emptied.
 */
import type { Message } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

export class OutdatedDisks {
  private readonly findings = new Findings("outdated disks have no say", {});
  private readonly outdated = new Set<number>();
  private readonly refusedLives = new Set<string>();

  rolledBack(node: number): void {
    this.findings.count("disks rolled back");
    this.outdated.add(node);
  }

  /** The disk of `node` is empty. */
  wiped(node: number): void {
    this.outdated.delete(node);
  }

  /** Nodes that refuse a life of `node` for its data. */
  refused(node: number, life: number, by: readonly number[]): void {
    const name = `${node}/${life}`;
    if (!this.outdated.has(node) || by.length === 0 || this.refusedLives.has(name)) return;
    this.refusedLives.add(name);
    this.findings.count("lives refused");
  }

  sent(node: number, group: number, { kind, reject, term, to }: Message): void {
    if (this.outdated.size === 0 || !this.outdated.has(node)) return;
    this.findings.count("frames of outdated nodes");
    if (reject || (kind !== "voteAnswer" && kind !== "appendAnswer")) return;
    const what = `${kind} of group ${group}, term ${term}, to node ${to}`;
    this.findings.violation(`node ${node}, whose disk was rolled back, sends a ${what}`);
  }

  leads(node: number, group: number, term: number): void {
    if (!this.outdated.has(node)) return;
    this.findings.violation(`node ${node}, rolled back, leads group ${group} in term ${term}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
