/**
 * Whether this replica of a group is what its leader's is: digests of everything applied, taken at
 * fixed indexes (contract C14).
 *
 * A leader names its latest in each heartbeat. Whoever has applied that index compares, or does so
 * when it gets there. The digests themselves are lanes of the group's record, so that they are as
 * durable as the state and travel in its snapshots.
 *
 * Pure. Invariants: 1. Two digests are compared only at the same index. 2. What is remembered is
 * bounded. 3. An index that one of both does not have says nothing.
 */

/** The digest over all entries up to `index`, two lanes of 32 bits; index 0 = none yet. */
export interface ReplicaDigest {
  readonly index: number;
  readonly low: number;
  readonly high: number;
}

export const NO_REPLICA_DIGEST: ReplicaDigest = { index: 0, low: 0, high: 0 };

/** Latest digests that are remembered of each side. */
const REMEMBERED_MAX = 8;

export class ReplicaDigests {
  private own: readonly ReplicaDigest[] = [];
  private heard: readonly ReplicaDigest[] = [];

  /** `differs` is told the index at which this replica is not what its leader's is. */
  constructor(private readonly differs: (index: number) => void) {}

  /** What a leader tells of itself. */
  get latest(): ReplicaDigest {
    return this.own.at(-1) ?? NO_REPLICA_DIGEST;
  }

  /** This replica has applied `digest.index`, one of the fixed ones. */
  reached(digest: ReplicaDigest): void {
    this.own = remembering(this.own, digest);
    const told = this.heard.find(({ index }) => index === digest.index);
    if (told !== undefined) this.compare(digest, told);
  }

  /** The leader says so of its own replica. */
  told(digest: ReplicaDigest): void {
    if (digest.index === 0 || this.heard.at(-1)?.index === digest.index) return;
    this.heard = remembering(this.heard, digest);
    const own = this.own.find(({ index }) => index === digest.index);
    if (own !== undefined) this.compare(own, digest);
  }

  /** A snapshot took the place of the state. */
  reset(): void {
    this.own = [];
    this.heard = [];
  }

  private compare(own: ReplicaDigest, leader: ReplicaDigest): void {
    if (own.low !== leader.low || own.high !== leader.high) this.differs(own.index);
  }
}

function remembering(
  list: readonly ReplicaDigest[],
  digest: ReplicaDigest,
): readonly ReplicaDigest[] {
  const from = list.length < REMEMBERED_MAX ? 0 : 1;
  return [...list.slice(from), digest];
}
