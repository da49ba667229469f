/**
 * Until when a healed cluster must have come to rest.
 *
 * Where nobody is ever called dead, a replica on its way to a machine that is gone keeps its
 * partition from everything else until it is given up, ten minutes after it got on last. Pure.
 * Invariants: 1. Such a replica puts the end off only for as long as it is there, and only once for
 * all of them. 2. Where the dead are told, nothing does.
 */
import type { PartitionRecord } from "../../../src/machine/commands/command.js";

/** After so long every such replica is given up, also where meta got another leader in the first minute (ms). */
const GIVEN_UP_MS = 660_000;

type Listed = Pick<PartitionRecord, "replicas">;

/** A replica is on its way to a node that will not come back. `deadMemberMs`: 0 = nobody is ever dead. */
export function waitsForTheGone(
  records: readonly Listed[],
  gone: ReadonlySet<number>,
  deadMemberMs: number | undefined,
): boolean {
  if (deadMemberMs !== 0) return false;
  return records.some(({ replicas }) => {
    return replicas.some(({ role, nodeId }) => role === "learner" && gone.has(nodeId));
  });
}

export class PeaceBound {
  private fromMs: number;

  /** Peace began at `startMs`; within `peaceMs` the cluster is at rest. */
  constructor(
    private readonly startMs: number,
    private readonly peaceMs: number,
  ) {
    this.fromMs = startMs;
  }

  /** The end as it is now, with what was seen at `nowMs` (ms). */
  endMs(nowMs: number, isWaiting: boolean): number {
    if (isWaiting && nowMs < this.startMs + GIVEN_UP_MS) this.fromMs = nowMs;
    return this.fromMs + this.peaceMs;
  }
}
