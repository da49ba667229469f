/**
 * What a client does in several steps: holds a lock and works under it, reads page after page.
 *
 * Invariants: 1. A meta proposal is a function of its draws and of the answers. 2. It ends after a
 * bounded number of steps, whatever the answers are.
 */
import type { Prng } from "../../../src/base/prng.js";
import { type Ask, leaseMs } from "./workload.js";
import type { FencedStore, StoreMark } from "../../judge/checkers/clients/fenced-store.js";
import type { Outcome } from "../../judge/history.js";
import { askLock } from "./lock-requests.js";
import { askPage } from "./many-requests.js";
import type { KvManyReadOperation, KvManyReadResult, LockResult } from "../../judge/operation.js";
import type { WorkloadKind } from "../plan/workplan.js";

/** `ask` null: nothing is asked, only time passes. */
export interface TaskStep {
  readonly ask: Ask | null;
  readonly afterMs: number;
}

export interface Task {
  /** The next step; null when it is over. `last`: how the ask before ended; null: none was. */
  next(last: Outcome | null): TaskStep | null;
}

interface Holder {
  readonly resource: string;
  readonly ephemeral: boolean;
  readonly owner: string;
}

const TRIES_MAX = 8;
const WRITES_MAX = 4;
const PAGES_MAX = 40;

/**
 * Waits for a lock, works under it in an outside store with the fencing token, stands still in
 * between, now and then for longer than its lease, extends, and lets go or forgets.
 */
export class HoldTask implements Task {
  private readonly leaseMs: number;
  private triesLeft: number;
  private writesLeft: number;
  private token: bigint | null = null;
  private asked: "try-lock" | "try-extend" | "try-unlock" | "pause" = "pause";
  private mark: StoreMark | null = null;

  constructor(
    private readonly kind: WorkloadKind,
    private readonly holder: Holder,
    private readonly prng: Prng,
    private readonly store: FencedStore,
  ) {
    this.leaseMs = leaseMs(prng);
    this.triesLeft = 1 + prng.below(TRIES_MAX);
    this.writesLeft = 1 + prng.below(WRITES_MAX);
  }

  private get place(): string {
    return `${this.holder.ephemeral ? "ephemeral " : ""}${this.holder.resource}`;
  }

  next(last: Outcome | null): TaskStep | null {
    const { asked } = this;
    if (asked === "try-unlock") return null;
    if (this.token === null) {
      if (asked === "pause") return this.tryLock(0);
      const result = last?.kind === "ok" ? (last.result as LockResult) : null;
      if (result?.type === "Locked" && result.token !== null) {
        this.token = result.token;
        this.store.granted(this.place, this.holder.owner, this.token, this.mark);
        return this.work();
      }
      if (result !== null && result.type !== "Busy") return null;
      return this.tryLock(1 + this.prng.below(Math.min(this.leaseMs, 500)));
    }
    return this.work();
  }

  private tryLock(afterMs: number): TaskStep | null {
    if (this.triesLeft-- <= 0) return null;
    this.mark = this.store.mark(this.place);
    return this.step("try-lock", afterMs);
  }

  /** Writes, and draws what comes after it. */
  private work(): TaskStep | null {
    const { prng, holder } = this;
    if (this.token === null) return null;
    this.store.write(this.place, holder.owner, this.token);
    if (--this.writesLeft <= 0) {
      // Who forgets to let go leaves the end to the lease.
      return prng.chance(3, 4) ? this.step("try-unlock", prng.below(20)) : null;
    }
    if (prng.chance(1, 3)) return this.step("try-extend", prng.below(this.leaseMs));
    this.asked = "pause";
    return { ask: null, afterMs: prng.below(Math.min(2 * this.leaseMs, 8000)) };
  }

  private step(kind: "try-lock" | "try-extend" | "try-unlock", afterMs: number): TaskStep {
    this.asked = kind;
    const expiresMs = kind === "try-unlock" ? 0 : this.leaseMs;
    return { ask: askLock(this.kind, { kind, ...this.holder, expiresMs }), afterMs };
  }
}

/** Reads a scan or range to its end, each page at whichever node. */
export class PagesTask implements Task {
  private cursor: string | null = null;
  private hasAsked = false;
  private retriesLeft = 3;

  constructor(
    private readonly kind: WorkloadKind,
    private operation: KvManyReadOperation,
    private readonly prng: Prng,
  ) {}

  next(last: Outcome | null): TaskStep | null {
    if (!this.hasAsked) return this.page(0);
    if (last?.kind !== "ok") {
      // Which keys a node's own scan shows depends on the node: it is not taken up at another one.
      if (this.operation.kind === "kv-scan-local" || this.retriesLeft-- <= 0) return null;
      return this.page(1 + this.prng.below(200));
    }
    const { nextCursor } = last.result as KvManyReadResult;
    const { page } = this.operation;
    if (typeof nextCursor !== "string" || page === undefined) return null;
    if (page.number + 1 >= PAGES_MAX) return null;
    this.cursor = nextCursor;
    this.operation = { ...this.operation, page: { ...page, number: page.number + 1 } };
    return this.page(this.prng.below(30));
  }

  private page(afterMs: number): TaskStep {
    this.hasAsked = true;
    return { ask: askPage(this.kind, this.operation, this.cursor), afterMs };
  }
}
