/**
 * What nodes count, as they tell it themselves, and what tests look for in it.
 *
 * Invariant: a counter that begins anew, because its process did, is counted from zero.
 */
import { sleep } from "./server-process.js";

/** Locks that were handed over along lists of heirs. */
export const HANDED_TO_HEIRS = 'svc_lock_handoffs_total{path="heir"}';

/** By name with labels, of the node at `address` (host and port). Rejects where it does not answer. */
export async function metricsOf(address: string): Promise<ReadonlyMap<string, number>> {
  const url = `http://${address}/metrics`;
  const text = await (await fetch(url, { signal: AbortSignal.timeout(3000) })).text();
  const lines = text.matchAll(/^(\w+(?:\{[^}]*\})?) ([0-9.e+-]+)$/gm);
  return new Map([...lines].map(([, name = "", value]) => [name, Number(value)]));
}

/** Which of `addresses` says first, within seconds, that it leads the partition. */
export async function leaderAmong(
  addresses: readonly string[],
  partition: number,
): Promise<number | undefined> {
  const name = `svc_raft_is_leader{partition="${partition}"}`;
  for (let tries = 0; tries < 100; tries++) {
    for (const [at, address] of addresses.entries()) {
      if ((await metricsOf(address)).get(name) === 1) return at;
    }
    await sleep(50);
  }
  return undefined;
}

/** By how much counters rose since they were looked at last. */
export class Increases {
  private readonly counted = new Map<string, number>();

  of(name: string, value: number): number {
    const before = this.counted.get(name) ?? 0;
    this.counted.set(name, value);
    return value < before ? value : value - before;
  }
}
