/**
 * Property Q15: what a list that outlived its term holds up ends with the list, and soon after its
 * first heir came back: that one was not told, so nobody was.
 *
 * The leaders are looked at again and again. Invariant: a leader that stood still, or has a try of
 * that heir on its way, owes nothing for that time.
 */
import type { History, LockOperation } from "../../history.js";
import { Findings, type Verdict } from "../verdict.js";

export const ORPHAN_BOUNDED = { "looks at orphaned lists": 0 };

/** After the first heir came back its leader has so much time (ms). */
const MOMENT_MS = 300;
/** An answer that a client is told to come again by. */
const MUST_RETRY = "type 101";

export interface OrphanLook {
  readonly lock: string;
  readonly node: number;
  readonly term: number;
  readonly atMs: number;
  /** The leader runs, serves, and is not kept from its work. */
  readonly isAble: boolean;
  /** Its list is one of an earlier term, and not over. */
  readonly isOrphaned: boolean;
  /** A later try of its first heir waits there. */
  readonly isFirstBack: boolean;
  /** A try of that heir is on its way. */
  readonly isTried: boolean;
}

export class OrphanBounded {
  private readonly findings: Findings;
  private readonly since = new Map<string, number>();
  private readonly holds = new Map<string, { readonly fromMs: number; toMs: number }[]>();

  constructor(minimum: Readonly<Record<string, number>> = ORPHAN_BOUNDED) {
    this.findings = new Findings("what an orphaned list holds up ends", minimum);
  }

  look({ lock, node, term, atMs, isAble, isOrphaned, isFirstBack, isTried }: OrphanLook): void {
    const name = `${lock} ${node} ${term}`;
    if (!isOrphaned) return void this.since.delete(name);
    this.findings.count("looks at orphaned lists");
    this.held(lock, atMs);
    if (isFirstBack) this.findings.count("looks at a first heir that is back");
    if (!isAble || !isFirstBack || isTried) return void this.since.delete(name);
    const fromMs = this.since.get(name);
    if (fromMs === undefined) return void this.since.set(name, atMs);
    if (atMs - fromMs <= MOMENT_MS) return;
    this.since.set(name, Infinity);
    const where = `${lock} at node ${node}, term ${term}`;
    const text = `its first heir is back since ${fromMs.toFixed(0)} ms, and the list still stands`;
    this.findings.violation(`${where}: ${text} at ${atMs.toFixed(0)} ms`);
  }

  /** How many were told to come again because of it. */
  judge(history: History): void {
    for (const { operation, outcome, callMs, returnMs } of history.attempts) {
      if (outcome?.kind !== "unknown" || outcome.reason !== MUST_RETRY) continue;
      if (!("resource" in operation) || operation.ephemeral) continue;
      const { resource, kind } = operation as LockOperation;
      const holds = this.holds.get(`lock ${resource}`) ?? [];
      const isOf = holds.some(
        ({ fromMs, toMs }) => fromMs <= (returnMs ?? callMs) && toMs >= callMs,
      );
      if (isOf) this.findings.count(`told to come again: ${kind}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }

  private held(lock: string, atMs: number): void {
    const list = this.holds.get(lock) ?? [];
    this.holds.set(lock, list);
    const last = list.at(-1);
    if (last !== undefined && atMs - last.toMs <= MOMENT_MS) last.toMs = atMs;
    else list.push({ fromMs: atMs, toMs: atMs });
  }
}
