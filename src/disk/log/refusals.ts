/**
 * Why a log is refused, and the checks that come before any record is read: names, sizes, headers.
 *
 * Invariants: 1. Every refusal names file, offset where there is one, and remedy.
 */
import { type Failure, type Result, failure, ok } from "../../base/result.js";
import type { FilesPort } from "../../ports.js";
import type { SegmentScanner } from "../../wasm/kernels.js";
import type { GroupIndex } from "./groupindex.js";
import {
  LOG_FORMAT_VERSION,
  type LogIdentity,
  SECTOR_BYTES,
  UNFINISHED_SUFFIX,
  decodeHeader,
  logKind,
  segmentName,
  segmentSequence,
} from "./records.js";
import type { LogOptions, Segment } from "./segment.js";

/**
 * "log-damaged": a record that was durable is not whole. "log-incomplete": a segment or entries are
 * missing. "log-newer": written by a newer version. "log-foreign": belongs to another node or
 * cluster. "log-unreadable": the system refused. "log-no-space": no room for the first segment.
 */
export type LogOpenCode =
  | "log-damaged"
  | "log-incomplete"
  | "log-newer"
  | "log-foreign"
  | "log-unreadable"
  | "log-no-space";

export type Refusal = Failure<LogOpenCode>;

/** What an operator can do about lost data. */
export const RESTORE = "restore the file from a copy, or start this node empty and let it catch up";

/** The sequences of all segments, ascending and without a gap. Removes drafts that a crash left. */
export function findSegments(
  options: LogOptions,
  files: FilesPort,
  done: (result: Result<readonly number[], LogOpenCode>) => void,
): void {
  const { directory, segmentBytes } = options;
  const removeDrafts = (paths: string[], next: () => void): void => {
    const path = paths.pop();
    if (path === undefined) return next();
    files.remove(path, (removed) => {
      if (!removed.ok) return done(failure("log-unreadable", removed.message));
      removeDrafts(paths, next);
    });
  };
  files.list(directory, (listed) => {
    if (!listed.ok) return done(failure("log-unreadable", listed.message));
    const sequences: number[] = [];
    for (const file of listed.value) {
      const sequence = segmentSequence(file.name);
      if (sequence === null) continue;
      sequences.push(sequence);
      if (file.sizeBytes === segmentBytes) continue;
      const sizes = `${String(file.sizeBytes)} bytes instead of ${String(segmentBytes)}`;
      return done(damage(`${directory}/${file.name}`, 0, `it has ${sizes}`));
    }
    sequences.sort((a, b) => a - b);
    for (const [at, sequence] of sequences.entries()) {
      const expected = (sequences[0] ?? 0) + at;
      if (sequence === expected) continue;
      const message = `the log segment ${directory}/${segmentName(expected)} is missing`;
      return done(failure("log-incomplete", `${message}: ${RESTORE}`));
    }
    const drafts = listed.value.filter((file) => file.name.endsWith(UNFINISHED_SUFFIX));
    removeDrafts(
      drafts.map((file) => `${directory}/${file.name}`),
      () => done(ok(sequences)),
    );
  });
}

/** Checks the first sector of a segment, which is in the scan window, and takes over its end. */
export function checkHeader(
  segment: Segment,
  scanner: SegmentScanner,
  own: LogIdentity,
): Refusal | null {
  const place = { segmentId: 0, salt: 0, offset: 0, previousChecksum: 0, last: true };
  const found = scanner.scan(SECTOR_BYTES, place);
  const header = found.records > 0 ? decodeHeader(scanner.payload(0)) : null;
  if (header === null || scanner.record(0).kind !== logKind.header) {
    return damage(segment.path, 0, "the header of the segment is not whole");
  }
  if (header.version > LOG_FORMAT_VERSION) {
    const known = `this program knows ${String(LOG_FORMAT_VERSION)}: use a newer one`;
    const message = `${segment.path} has format version ${String(header.version)}, ${known}`;
    return failure("log-newer", message);
  }
  if (!sameIdentity(header.identity, own)) {
    const text = describeIdentity(header.identity);
    const owner = `${segment.path} belongs to ${text}`;
    const message = `${owner}, not to ${describeIdentity(own)}: check the log path`;
    return failure("log-foreign", message);
  }
  if (scanner.record(0).index !== segment.sequence) {
    return damage(segment.path, 0, "the file was renamed: its header names another segment");
  }
  segment.endOffset = found.nextOffset;
  segment.checksum = found.checksum;
  return null;
}

/** Every group must be whole, and hold what it says is committed (P-024). */
export function checkGroups(groups: Iterable<GroupIndex>, directory: string): Refusal | null {
  for (const index of groups) {
    const group = `group ${String(index.group)}`;
    const hole = index.firstHole();
    if (hole !== null) {
      const message = `${group} lacks entry ${String(hole)} in ${directory}: ${RESTORE}`;
      return failure("log-incomplete", message);
    }
    if (index.hardState.commit > index.lastIndex) {
      const committed = `${group} committed ${String(index.hardState.commit)}`;
      const end = `its log in ${directory} ends at ${String(index.lastIndex)}`;
      return failure("log-incomplete", `${committed}, but ${end}: ${RESTORE}`);
    }
  }
  return null;
}

export function damage(path: string, offset: number, what: string): Refusal {
  const message = `${path} is damaged at offset ${String(offset)}: ${what}; ${RESTORE}`;
  return failure("log-damaged", message);
}

function sameIdentity(a: LogIdentity, b: LogIdentity): boolean {
  return a.storageId === b.storageId && a.clusterId === b.clusterId && a.nodeId === b.nodeId;
}

function describeIdentity(identity: LogIdentity): string {
  const { storageId, clusterId, nodeId } = identity;
  return `node ${String(nodeId)} of cluster ${clusterId} (storage ${storageId})`;
}
