/**
 * The image of a partition in a backup: its whole state at one index, as snapshots have it.
 *
 * Pure codec. A head, the chunks of `machine/snapshot/`, a trailer with their number. Invariants:
 * 1. The state is where the head says: index, term, stamp and configuration are those of the
 * state's own record; a record without configuration leaves that to the head. 2. Everything is
 * checked that can be without keeping it: order, rows, digest. 3. Nothing lies behind the trailer.
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import { type Hlc, compareHlc } from "../base/hlc.js";
import { failure, ok } from "../base/result.js";
import { type GroupRecord, readStamp, writeStamp } from "../machine/commands/group-record.js";
import { topToken } from "../machine/locks/lock-row.js";
import { decodeSequenceRow } from "../machine/sequences/sequence-row.js";
import { type RowVisitor, SnapshotCheck } from "../machine/snapshot/check.js";
import type { ChunkRow } from "../machine/snapshot/chunk-row.js";
import { StateDigest } from "../machine/store/digest.js";
import { RowKind } from "../machine/store/keys.js";
import { type BackupFault, type BackupResult, damage } from "./faults.js";
import { FrameDecoder, FrameEncoder, FrameKind, frameSeed } from "./frames.js";
import {
  ARTIFACT_VERSION,
  type ArtifactOrigin,
  readMembership,
  readOrigin,
  sameMembership,
  writeMembership,
  writeOrigin,
} from "./origin.js";

const FILE_KIND = "svc image";

export interface ImageHead {
  readonly origin: ArtifactOrigin;
  readonly index: number;
  readonly term: number;
  readonly stamp: Hlc;
  /**
   * The group's configuration: as its record has it, and before the first change who the group
   * began with. null: whoever made the image did not tell.
   */
  readonly membership: Uint8Array | null;
}

/** What a whole image holds, in short. */
export interface ImageSummary {
  readonly head: ImageHead;
  readonly record: GroupRecord;
  /** Digest over all entries up to the image's: 16 hexadecimal digits. */
  readonly chain: string;
  readonly rows: number;
  /** Largest token of a lock, and what no token without a lock reaches; -1 for none. */
  readonly highestToken: bigint;
  /** Largest incarnation of a sequence; 0 for none. */
  readonly highestIncarnation: number;
}

/** Makes the pieces of an image file, in order. */
export class ImageEncoder {
  private readonly frames = new FrameEncoder(frameSeed(FILE_KIND));
  private chunks = 0;

  head({ origin, index, term, stamp, membership }: ImageHead): Uint8Array {
    const writer = new ByteWriter(512).text(FILE_KIND).uint8(ARTIFACT_VERSION);
    writeOrigin(writer, origin);
    writer.uint53(index).uint53(term);
    writeStamp(writer, stamp);
    writeMembership(writer, membership);
    return this.frames.frame(FrameKind.head, writer.finish());
  }

  /** A chunk as a snapshot source gives it. */
  chunk(bytes: Uint8Array): Uint8Array {
    this.chunks++;
    return this.frames.frame(FrameKind.content, bytes);
  }

  trailer(): Uint8Array {
    const writer = new ByteWriter(8).uint32(this.chunks);
    return this.frames.frame(FrameKind.trailer, writer.finish());
  }
}

/** Follows the chunks of a partition's image, and shows its rows. */
export type ChunkFollower = (partition: number, visit: RowVisitor) => SnapshotCheck;

/**
 * Reads an image from its bytes, slice after slice. `take`: gets each chunk that is whole.
 * `follow`: makes what chunks are checked by, for whoever fills something with their rows.
 */
export class ImageDecoder {
  private readonly frames: FrameDecoder;
  private head: ImageHead | null = null;
  private check: SnapshotCheck | null = null;
  private hasEnded = false;
  private highestToken = -1n;
  private highestIncarnation = 0;

  constructor(
    private readonly path: string,
    private readonly take: (chunk: Uint8Array) => void = () => undefined,
    private readonly follow: ChunkFollower = (partition, visit) =>
      new SnapshotCheck(partition, visit),
  ) {
    this.frames = new FrameDecoder(path, frameSeed(FILE_KIND), (kind, body, offset) =>
      this.frame(kind, body, offset),
    );
  }

  push(slice: Uint8Array): BackupFault | null {
    return this.frames.push(slice);
  }

  end(): BackupResult<ImageSummary> {
    const fault = this.frames.end();
    if (fault !== null) return fault;
    const { head, check } = this;
    const record = check?.finished() ?? null;
    if (head === null || check === null || record === null || !this.hasEnded) {
      return failure("CorruptArtifact", `"${this.path}" ends too early`);
    }
    const chain = new StateDigest(record.chainLow, record.chainHigh).toString();
    const { highestIncarnation } = this;
    const { tokenFloor } = record;
    const highestToken = tokenFloor > this.highestToken ? tokenFloor : this.highestToken;
    return ok({ head, record, chain, rows: check.rows, highestToken, highestIncarnation });
  }

  private frame(kind: number, body: Uint8Array, offset: number): BackupFault | null {
    if (this.hasEnded) return damage(this.path, offset, "there is something behind the end");
    if (this.head === null) return this.readHead(kind, body, offset);
    if (kind === FrameKind.content) return this.readChunk(body, offset);
    if (kind === FrameKind.trailer) return this.readTrailer(body, offset);
    return damage(this.path, offset, "a record that has no place here");
  }

  private readHead(kind: number, body: Uint8Array, offset: number): BackupFault | null {
    const reader = new ByteReader(body);
    if (kind !== FrameKind.head || reader.text() !== FILE_KIND) {
      return damage(this.path, offset, "this is no image");
    }
    const version = reader.uint8();
    if (version !== ARTIFACT_VERSION) {
      return failure("UnsupportedFormat", `"${this.path}" has version ${version}`);
    }
    const head = {
      origin: readOrigin(reader),
      index: reader.uint53(),
      term: reader.uint53(),
      stamp: readStamp(reader),
      membership: readMembership(reader),
    };
    if (!reader.isComplete()) return damage(this.path, offset, "the head is malformed");
    this.head = head;
    this.check = this.follow(head.origin.partition, (row) => this.row(row));
    return null;
  }

  private row(row: ChunkRow): void {
    if (row.kind === RowKind.lock) {
      const token = topToken(row.value);
      if (token > this.highestToken) this.highestToken = token;
    } else if (row.kind === RowKind.sequence) {
      const incarnation = decodeSequenceRow(row.value)?.incarnation ?? 0;
      if (incarnation > this.highestIncarnation) this.highestIncarnation = incarnation;
    }
  }

  private readChunk(body: Uint8Array, offset: number): BackupFault | null {
    const { head, check } = this;
    if (head === null || check === null) return null;
    const number = check.expectedSequence;
    if (check.take(body) === "damaged") {
      return damage(this.path, offset, `chunk ${number} of the state is damaged`);
    }
    if (number === 0 && !isOf(check.announced, head)) {
      return damage(this.path, offset, "the state is not the one that the head tells");
    }
    this.take(body);
    return null;
  }

  private readTrailer(body: Uint8Array, offset: number): BackupFault | null {
    const reader = new ByteReader(body);
    const chunks = reader.uint32();
    const { check } = this;
    if (!reader.isComplete() || check === null || check.expectedSequence !== chunks) {
      return damage(this.path, offset, "the trailer does not fit the chunks");
    }
    this.hasEnded = true;
    return null;
  }
}

function isOf(record: GroupRecord | null, head: ImageHead): boolean {
  return (
    record !== null &&
    record.appliedIndex === head.index &&
    record.appliedTerm === head.term &&
    compareHlc(record.stamp, head.stamp) === 0 &&
    (record.membership === null || sameMembership(record.membership, head.membership))
  );
}
