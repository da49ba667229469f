/**
 * What the checkers of backups are told: backups as they lie in their directory, and what the groups
 * had applied. Plain data.
 */

/** A stamp of the clock of a cluster, or null for what has none. */
export interface SeenStamp {
  readonly n: number;
  readonly l: number;
  readonly c: number;
}

export interface SeenEntry {
  readonly index: number;
  readonly term: number;
  /** Over kind and payload. */
  readonly digest: string;
  readonly stamp: SeenStamp | null;
}

/** What a backup has of one partition. */
export interface SeenPart {
  readonly partition: number;
  /** The log goes on from here: the image, or the end of the parent. */
  readonly before: number;
  /** The mark. */
  readonly end: number;
  readonly endTerm: number;
  /** Digest over all entries up to the mark, as the backup tells it. */
  readonly chain: string;
  readonly entries: readonly Omit<SeenEntry, "stamp">[];
}

export interface SeenBackup {
  readonly id: string;
  /** What all of it ends at; null: the partitions are not aligned. */
  readonly at: SeenStamp | null;
  /** When the call came that it was taken for (ms of the world). */
  readonly askedMs: number;
  readonly parts: readonly SeenPart[];
  /** Partitions that were no more: whatever they had had lay in others by then. */
  readonly gone?: ReadonlySet<number>;
}

/** A write of a value that nobody else writes. */
export interface SeenWrite {
  readonly value: string;
  /** The first call for it (ms). */
  readonly calledMs: number;
  /** When anybody first knew of it: its own answer, or a read that showed it; Infinity: nobody did. */
  readonly seenMs: number;
  readonly partition: number;
  /** Of the first entry that set it. */
  readonly index: number;
}

export function compareStamps(one: SeenStamp, other: SeenStamp): number {
  return one.l - other.l || one.c - other.c || one.n - other.n;
}

/** Whether a backup has a write. */
export function isIn(write: SeenWrite, { parts, gone }: SeenBackup): boolean {
  const part = parts.find(({ partition }) => partition === write.partition);
  if (part === undefined) return gone?.has(write.partition) === true;
  return write.index <= part.end;
}
