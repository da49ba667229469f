/**
 * How far the log of a group may be let go: what is flushed is not needed here any more, but
 * perhaps by others, who would need a snapshot of the whole group without it.
 *
 * Owns what is counted as kept for others. Invariants: 1. Entries that a transfer under way will be
 * joined to, and those that a linked follower lacks, stay (P-037, P-194), as long as what all
 * groups keep is within the bound. 2. Beyond the bound, whoever keeps more than an equal share of
 * it loses that; on a full disk everybody does. 3. What backups keep is theirs to bound (see
 * backup-floors.ts), and takes no room from the others.
 */
import type { LogPort } from "../../ports.js";
import type { RaftCore } from "../../raft/core.js";
import type { BackupFloors } from "./backup-floors.js";
import { type FlooredGroup, weightAbove } from "./floored-group.js";

export type { FlooredGroup } from "./floored-group.js";

export class LogFloors {
  private readonly kept = new Map<FlooredGroup, number>();
  private keptBytes = 0;
  /** Times that a log was let go although another node wanted it. */
  cutCount = 0;

  constructor(
    private readonly log: Pick<LogPort, "space">,
    /** What the log may keep for others, all groups together (bytes). */
    private readonly keepBytesMax: () => number,
    private readonly backups: Pick<BackupFloors, "limit" | "removed">,
  ) {}

  /** Lets go of the entries of `group` up to `index`, as far as nobody wants them. */
  raise(group: FlooredGroup, index: number): void {
    if (index <= group.floorIndex) return this.note(group, 0);
    const wanted = Math.max(group.floorIndex, Math.min(group.keepFrom, group.followersFrom));
    let floor = Math.min(index, wanted);
    this.note(group, weightAbove(group, floor, index));
    if (floor < index && this.isOver(group)) {
      floor = index;
      this.cutCount++;
      this.note(group, 0);
    }
    floor = this.backups.limit(group, floor);
    if (floor > group.floorIndex) group.compact(floor);
  }

  /** The group left this node. */
  removed(group: FlooredGroup): void {
    this.note(group, 0);
    this.backups.removed(group);
  }

  private isOver(group: FlooredGroup): boolean {
    if (this.log.space() === "full") return true;
    const maxBytes = this.keepBytesMax();
    const share = maxBytes / Math.max(1, this.kept.size);
    return this.keptBytes > maxBytes && (this.kept.get(group) ?? 0) > share;
  }

  private note(group: FlooredGroup, bytes: number): void {
    this.keptBytes += bytes - (this.kept.get(group) ?? 0);
    if (bytes === 0) this.kept.delete(group);
    else this.kept.set(group, bytes);
  }
}

/**
 * Entries of a leader above this are not known to be on every follower that `isUp`; Infinity when
 * all are, and where another node leads. A follower that gets a snapshot is counted elsewhere.
 */
export function followersFrom(core: RaftCore, isUp: (node: number) => boolean): number {
  if (core.role !== "leader") return Infinity;
  let from = Infinity;
  for (const { id, state, match } of core.status().progress) {
    if (id !== core.id && state !== "snapshot" && isUp(id)) from = Math.min(from, match);
  }
  return from;
}
