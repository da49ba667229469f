/**
 * What the parts of a keeper need of the node and of each other, as types, and the state of each
 * partition of a backup that is being taken.
 */
import type { LogPlace } from "../../backup/log-file.js";
import type { StagedBackup } from "../../backup/publish.js";
import { type Failure, failure } from "../../base/result.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { ArchivePort, ArchiveSum, LoggerPort } from "../../ports.js";
import type { ArtifactOrigin } from "../../backup/origin.js";
import type { MarkPlace, StreamWord, TopologyAnswer } from "../backups/backup-messages.js";
import type { BackupLink } from "../backups/backup-link.js";
import type { TakingFaultCode } from "../backups/backup-taking.js";
import type { TakingTally } from "./taking-tally.js";
import type { Waits } from "../backups/waits.js";

export interface KeeperWorld {
  readonly nodeId: number;
  readonly link: BackupLink;
  readonly waits: Waits;
  readonly logger: LoggerPort;
  readonly tally: TakingTally;
  nowMs(): number;
  wallMs(): number;
  uint32(): number;
  metaReads(): MetaReads | null;
  /** Who leads a partition, as far as is known here; 0 = unknown. */
  leaderOf(partition: number): number;
  /** A number that no session of this node had before, as far as can be told. */
  nextSession(): number;
  /** Words of this stream are for `take` from now on; null: for nobody. */
  route(session: number, take: ((word: StreamWord) => void) | null): void;
}

/** What one backup is, once it is known. */
export interface Undertaking {
  readonly world: KeeperWorld;
  readonly archive: ArchivePort;
  readonly backupId: string;
  readonly staged: StagedBackup;
  readonly topology: TopologyAnswer;
  origin(partition: number): ArtifactOrigin;
  /** It was given up: nothing new begins. */
  isOver(): boolean;
  wrote(kind: "image" | "log", sizeBytes: number): void;
}

/** One partition of it. */
export interface Part {
  readonly partition: number;
  /** Which replica ships; 0 = none. */
  shipper: number;
  session: number;
  /** Of the streams of this session. */
  streams: number;
  /** Nodes that could not ship it. */
  readonly tried: Set<number>;
  /** Replicas that were lost. */
  lost: number;
  /** Where the image is, or the parent ends; null: there is no image yet. */
  before: LogPlace | null;
  /** At that place: see LogTrailer. */
  highestToken: bigint;
  highestIncarnation: number;
  image: ArchiveSum | null;
  mark: MarkPlace | null;
  log: ArchiveSum | null;
}

export function newPart(partition: number): Part {
  return {
    ...{ partition, shipper: 0, session: 0, streams: 0, tried: new Set<number>(), lost: 0 },
    ...{ before: null, highestToken: -1n, highestIncarnation: 0 },
    ...{ image: null, mark: null, log: null },
  };
}

export type TakingFailure = Failure<TakingFaultCode>;

/** How a step ends. */
export type Stepped = TakingFailure | null;

/** How a task for one partition ends; "again": it is to begin anew. */
export type PartEnd = Stepped | "again";

export function unavailable(message: string): TakingFailure {
  return failure("ExactCheckpointUnavailable", message);
}
