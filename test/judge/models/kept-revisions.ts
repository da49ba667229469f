/**
 * Older revisions of a key in the model: a shared list, newest first, in which equal lists are one object.
 *
 * Invariant: only revisions that were kept as history are in it: no tombstones, none set with SET_NO_REVISION, none that
 * had expired when it was superseded.
 */
import { type Lease, leaseKey } from "./lease-time.js";

export interface KeptRevision {
  readonly number: number;
  readonly older: KeptRevision | null;
  readonly revision: bigint;
  readonly value: string | null;
  readonly lease: Lease | null;
  /** False when it may have expired before it was superseded, or been collected: then it need not be kept. */
  readonly isSure: boolean;
}

const LOOKED_AT_MAX = 1024;

export class KeptRevisions {
  private readonly known = new Map<string, KeptRevision>();
  private count = 0;

  add(older: KeptRevision | null, entry: Omit<KeptRevision, "number" | "older">): KeptRevision {
    const { revision, value, lease } = entry;
    const sure = `${entry.isSure} ${leaseKey(lease)}`;
    const text = `${older?.number ?? 0} ${revision} ${sure} ${JSON.stringify(value)}`;
    let made = this.known.get(text);
    if (made === undefined) {
      made = { ...entry, older, number: ++this.count };
      this.known.set(text, made);
    }
    return made;
  }

  /** The same revisions, none of which need be there any more. */
  unsure(newest: KeptRevision | null): KeptRevision | null {
    const all: KeptRevision[] = [];
    for (let entry = newest; entry !== null && all.length < LOOKED_AT_MAX; entry = entry.older) {
      all.push(entry);
    }
    if (all.every((entry) => !entry.isSure)) return newest;
    let list: KeptRevision | null = null;
    for (const { revision, value, lease } of all.reverse()) {
      list = this.add(list, { revision, value, lease, isSure: false });
    }
    return list;
  }
}

/** The entry of `revision`, and how many newer ones are kept; null when it is not among them. */
export function findRevision(
  newest: KeptRevision | null,
  revision: bigint,
): { readonly entry: KeptRevision; readonly newer: number } | null {
  let newer = 0;
  for (let entry = newest; entry !== null && newer < LOOKED_AT_MAX; entry = entry.older) {
    if (entry.revision === revision) return { entry, newer };
    newer++;
  }
  return null;
}
