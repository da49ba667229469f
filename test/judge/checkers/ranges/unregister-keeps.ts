/**
 * Property: while a key space is unregistered, and afterwards, every key that was acknowledged is found
 * through every node.
 *
 * Invariant: only what one writer alone sets once, and nobody deletes, is looked for; an answer that
 * says nothing of the key says nothing here.
 */
import { Findings, type Verdict } from "../verdict.js";

const MINIMUM = { "keys found meanwhile": 20, "keys found afterwards": 10, nodes: 3 };

export class UnregisterKeeps {
  private readonly findings: Findings;
  private readonly nodes = new Set<number>();

  constructor(minimum: Readonly<Record<string, number>> = MINIMUM) {
    this.findings = new Findings("an unregister keeps every key", minimum);
  }

  /** `value` was acknowledged for `key`; `found`: what a node answers, null = there is no such key. */
  read(
    node: number,
    key: string,
    value: string,
    found: string | null,
    when: "meanwhile" | "afterwards" | "otherwise",
  ): void {
    if (!this.nodes.has(node)) this.findings.count("nodes");
    this.nodes.add(node);
    this.findings.count(`keys found ${when}`);
    if (found === value) return;
    const text = `node ${node} answers ${found ?? "nothing"} for ${key}, which is ${value}`;
    this.findings.violation(`${text} (${when})`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
