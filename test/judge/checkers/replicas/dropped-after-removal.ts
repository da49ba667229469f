/**
 * Property (P-097): what a node has of a partition goes only after a committed record that is newer
 * than its replica and without it; and in peace nothing is left of it.
 *
 * Invariants: 1. A record counts from the moment at which any node has applied it. 2. Which life of
 * a replica goes is what was seen of it last.
 */
import type { PartitionRecord } from "../../../../src/machine/commands/command.js";
import { Findings, type Verdict } from "../verdict.js";

interface Listing {
  readonly generation: number;
  readonly mode: PartitionRecord["mode"];
  readonly lives: ReadonlySet<string>;
}

export class DroppedAfterRemoval {
  private readonly findings: Findings;
  private readonly listings = new Map<number, Listing[]>();
  private readonly lives = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = { drops: 3 }) {
    this.findings = new Findings("replicas go after their removal", minimum);
  }

  record({ partitionId, generation, mode, state, replicas }: PartitionRecord): void {
    let listings = this.listings.get(partitionId);
    if (listings === undefined) this.listings.set(partitionId, (listings = []));
    if (listings.some((listing) => listing.generation === generation)) return;
    const listed = state === "Removed" ? [] : replicas;
    const lives = new Set(listed.map(({ nodeId, incarnation }) => `${nodeId}/${incarnation}`));
    listings.push({ generation, mode: state === "Removed" ? "placed" : mode, lives });
  }

  /** `node` has a replica of `group` in this life of it. */
  replica(node: number, group: number, incarnation: number): void {
    this.lives.set(`${node}/${group}`, incarnation);
  }

  /** The log of `node` forgets `group`. */
  dropped(node: number, group: number): void {
    const life = this.lives.get(`${node}/${group}`);
    if (life === undefined) return;
    this.findings.count("drops");
    const isRemoved = (this.listings.get(group) ?? []).some(({ generation, mode, lives }) => {
      return mode === "placed" && generation > life && !lives.has(`${node}/${life}`);
    });
    if (isRemoved) return;
    const text = `node ${node} drops partition ${group}, life ${life}`;
    this.findings.violation(`${text}, which every newer record lists`);
  }

  /** In peace `node` still has something of a partition that it is not to have. */
  left(node: number, group: number, what: string): void {
    this.findings.violation(`node ${node} keeps ${what} of partition ${group}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
