/**
 * Counts the bytes of snapshots that travel: to whoever comes to a group, and to voters that fell
 * behind.
 *
 * Invariant: repeats count, and what was refused or given up: it travelled.
 */
import type { Membership } from "../../raft/state/types.js";

const DIRECTIONS = ["out", "in"] as const;
type Direction = (typeof DIRECTIONS)[number];

/** What the receiver is in its group; "learner" also where it is not in the group yet. */
const RECEIVERS = ["learner", "voter"] as const;
type Receiver = (typeof RECEIVERS)[number];

export interface SnapshotBytes {
  readonly direction: Direction;
  readonly class: Receiver;
  readonly bytes: number;
}

export class SnapshotTally {
  private readonly bytes = {
    out: { learner: 0, voter: 0 },
    in: { learner: 0, voter: 0 },
  };

  count(direction: Direction, { voters }: Membership, receiver: number, bytes: number): void {
    this.bytes[direction][voters.includes(receiver) ? "voter" : "learner"] += bytes;
  }

  /** Every pair, zeros too. */
  all(): readonly SnapshotBytes[] {
    return DIRECTIONS.flatMap((direction) =>
      RECEIVERS.map((kind) => {
        return { direction, class: kind, bytes: this.bytes[direction][kind] };
      }),
    );
  }
}
