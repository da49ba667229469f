/**
 * The note in a data directory that replicas of it were found to differ from their leaders'.
 *
 * The process ends in the moment in which one is found: whoever scrapes the node would not see it,
 * and after a start nothing would tell of it. Invariants: 1. A note is durable when `add` returns,
 * for the process ends after that; so it is written synchronously. 2. It is of one size, however
 * many differed. 3. Nothing removes it: it goes with the directory. 4. It decides nothing, so that
 * one that cannot be read counts as one replica and keeps no node from starting.
 */
import type { PartitionId } from "../base/ids.js";
import type { LoggerPort } from "../ports.js";
import { readSmallFile, replaceFile } from "./data-directory.js";
import { DIFFERED_NAME } from "./names.js";

const KIND = "svc-differed";
const VERSION = 1;

/** Where a node keeps its data. */
export interface DifferedPlace {
  readonly storage: "lmdb" | "memory";
  readonly storagePath: string;
  readonly storageRevision: string;
}

/** How many the note tells of; null: there is none. */
function countOf(text: string | null): number {
  if (text === null) return 0;
  try {
    const { kind, count } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isCount = kind === KIND && Number.isSafeInteger(count) && (count as number) > 0;
    return isCount ? (count as number) : 1;
  } catch {
    return 1;
  }
}

export class DifferedFile {
  private constructor(
    /** null: nothing outlives the process. */
    private readonly path: string | null,
    private readonly logger: LoggerPort,
    private found: number,
  ) {}

  /** Reads the note, if there is one. */
  static of(place: DifferedPlace, logger: LoggerPort): DifferedFile {
    if (place.storage === "memory") return new DifferedFile(null, logger, 0);
    const path = `${place.storagePath}/${place.storageRevision}/${DIFFERED_NAME}`;
    const read = readSmallFile(path);
    const count = read.ok ? countOf(read.value) : 1;
    if (count > 0) {
      const event = "Replicas of this data directory differed from their leaders': replace it.";
      logger.log("error", event, { count, path });
    }
    return new DifferedFile(path, logger, count);
  }

  /** Replicas that were found to differ, since the directory was made. */
  get count(): number {
    return this.found;
  }

  /** One more. What cannot be kept is logged: the process ends in either case. */
  add(partition: PartitionId, index: number): void {
    this.found++;
    if (this.path === null) return;
    const note = { kind: KIND, version: VERSION, count: this.found, partition, index };
    const written = replaceFile(this.path, `${JSON.stringify(note)}\n`);
    if (written.ok) return;
    this.logger.log("error", "That a replica differs could not be noted.", {
      why: written.message,
    });
  }
}
