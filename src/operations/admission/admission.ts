/**
 * How many data requests are in progress on this node, its own and those of other nodes.
 *
 * Owns the count. Invariants: 1. Every entry is left once. 2. Whoever is refused is counted until
 * its answer is given, and nothing is done for it.
 */
import { assert } from "../../base/assert.js";
import type { NodeAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";

export class Admission {
  private count = 0;

  constructor(
    private readonly node: Pick<NodeAccess, "initialized" | "shuttingDown">,
    private readonly inflightMax: number,
  ) {}

  get inProgress(): number {
    return this.count;
  }

  /** Counts one request in; not null: why it is refused. */
  enter(): Refusal | null {
    this.count++;
    return this.refusal() ?? (this.count > this.inflightMax ? "overloaded" : null);
  }

  /** Why a request that is counted elsewhere is refused; null: it is not. */
  refusal(): Refusal | null {
    if (this.node.shuttingDown) return "shutting-down";
    return this.node.initialized ? null : "not-initialized";
  }

  leave(): void {
    assert(this.count > 0, "whoever leaves has entered");
    this.count--;
  }
}
