/**
 * What a client asks next: a kind drawn by the plan's weights, and a request of that kind.
 *
 * Pure but for the generator and the counters that make values unique. Invariant: what is drawn is
 * a function of the generator and of what the client saw before.
 */
import type { Prng } from "../../../src/base/prng.js";
import { type Ask, type ClientMemory, type SharedWork, pick } from "./workload.js";
import { type Task, HoldTask, PagesTask } from "./tasks.js";
import { drawKey, drawOddKey, drawSet } from "./kv-requests.js";
import { drawLock, drawOddLock, lockName } from "./lock-requests.js";
import { drawBucket, drawMany, drawPages, drawRangeChange } from "./many-requests.js";
import type { Plan } from "../plan/plan.js";
import { drawAllocation, drawOddSequence, drawSequence } from "./sequence-requests.js";
import { ChurnTask, EndsTask, drawReaders } from "./tomb-requests.js";
import { WORKLOAD_KINDS, type WorkloadKind } from "../plan/workplan.js";

/** What a client sets out to do: one ask, several at once, or one after the other. */
export type Undertaking =
  | { readonly kind: "asks"; readonly asks: readonly Ask[] }
  | { readonly kind: "task"; readonly task: Task };

export class RequestSource {
  private readonly kinds: readonly WorkloadKind[];
  private readonly total: number;

  constructor(
    private readonly plan: Plan,
    private readonly prng: Prng,
    private readonly shared: SharedWork,
  ) {
    this.kinds = WORKLOAD_KINDS.filter((kind) => plan.operations[kind] > 0);
    this.total = this.kinds.reduce((sum, kind) => sum + plan.operations[kind], 0);
  }

  next(memory: ClientMemory): Undertaking {
    const kind = this.kind();
    const task = this.task(kind, memory);
    if (task !== null) return { kind: "task", task };
    if (kind === "readers") {
      return { kind: "asks", asks: drawReaders(this.plan, this.prng, this.shared) };
    }
    if (kind !== "batch") return { kind: "asks", asks: [this.ask(kind, memory)] };
    // What a client sends over one stream: many at once, in no order among themselves.
    const asks: Ask[] = [];
    const count = 2 + this.prng.below(15);
    while (asks.length < count) {
      const other = this.kind();
      if (other === "batch" || other === "readers" || this.isTask(other)) continue;
      asks.push(this.ask(other, memory));
    }
    return { kind: "asks", asks };
  }

  private kind(): WorkloadKind {
    let at = this.prng.below(this.total);
    for (const kind of this.kinds) {
      at -= this.plan.operations[kind];
      if (at < 0) return kind;
    }
    throw new Error("the weights add up");
  }

  private isTask(kind: WorkloadKind): boolean {
    return ["hold", "hold-ephemeral", "scan-all", "scan-local", "range", "churn", "ends"].includes(
      kind,
    );
  }

  private task(kind: WorkloadKind, memory: ClientMemory): Task | null {
    const { plan, prng, shared } = this;
    switch (kind) {
      case "hold":
      case "hold-ephemeral": {
        const ephemeral = kind === "hold-ephemeral";
        const holder = { resource: lockName(plan, prng), ephemeral, owner: memory.owner };
        return new HoldTask(kind, holder, prng, shared.store);
      }
      case "scan-all":
      case "scan-local":
      case "range":
        return new PagesTask(kind, drawPages(kind, plan, prng, shared), prng);
      case "churn":
        return new ChurnTask(plan, prng, shared);
      case "ends":
        return new EndsTask(plan, prng, shared, memory.owner);
      default:
        return null;
    }
  }

  private ask(kind: WorkloadKind, memory: ClientMemory): Ask {
    const { plan, prng, shared } = this;
    switch (kind) {
      case "lock":
      case "ephemeral-lock":
      case "extend":
      case "unlock":
      case "get-lock":
        return drawLock(kind, plan, prng, memory);
      case "create":
      case "update":
      case "delete":
      case "get-sequence":
        return drawSequence(kind, plan, prng);
      case "next":
      case "next-keyed":
      case "reserve":
        return drawAllocation(kind, plan, prng, shared);
      case "replay":
        // A key of long ago: the answer must be the same while the key must be remembered.
        if (memory.keyed.length > 0) return pick(prng, memory.keyed);
        return drawAllocation("next-keyed", plan, prng, shared);
      case "set":
      case "set-conditional":
      case "set-expiring":
      case "set-flags":
      case "ephemeral-set":
        return drawSet(kind, plan, prng, memory, shared);
      case "bucket":
        return drawBucket(kind, prng);
      case "set-many":
      case "delete-many":
      case "get-many":
      case "exists-many":
        return drawMany(kind, plan, prng, shared);
      case "ranges":
        return drawRangeChange(plan, prng);
      case "odd":
        return this.odd(memory);
      default:
        return drawKey(kind, plan, prng, memory);
    }
  }

  /** A request at or beyond the edge of what is acceptable. */
  private odd(memory: ClientMemory): Ask {
    const { plan, prng, shared } = this;
    switch (prng.below(3)) {
      case 0:
        return drawOddLock(plan, prng, memory);
      case 1:
        return drawOddSequence(plan, prng, shared);
      default:
        return drawOddKey(plan, prng);
    }
  }
}
