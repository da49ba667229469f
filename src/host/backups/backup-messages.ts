/**
 * What nodes say to each other about a backup: questions with an answer each, words without one,
 * and pieces of images and logs.
 *
 * Pure codec. Questions, answers and words go on the lane "control", pieces on "bulk", in order.
 * Layout: mark u8, version u8, class u8, id u53, message. Invariants: 1. Strict: anything else than
 * one whole message is null. 2. Lists are bounded before anything is allocated (P-128). 3. What a
 * piece holds is checked by whoever uses it.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { Hlc } from "../../base/hlc.js";
import { PARTITIONS_PER_BACKUP_ASK, PARTITIONS_MAX } from "../../base/limits.js";
import {
  bigint64,
  boolean,
  bytes,
  hlc,
  int32,
  int53,
  list,
  nullable,
  oneOf,
  record,
  text,
  union,
} from "../../base/shape.js";
import type { EntryPosition } from "../../machine/machine.js";
import { ControlMark } from "../replication/control-marks.js";

const MARK = ControlMark.backup;
const VERSION = 1;

/** The leader of meta: which partitions there are. Proved by a round that begins after it came. */
export interface TopologyAsk {
  readonly kind: "topology";
}
/** A replica is to keep its log above `after`, or above what it has applied. */
export interface HoldAsk {
  readonly kind: "hold";
  readonly session: number;
  readonly partition: number;
  readonly after: EntryPosition | null;
}
/** The holds of these sessions are wanted still. */
export interface RenewAsk {
  readonly kind: "renew";
  readonly sessions: readonly number[];
}
/** Pieces of an image, of the state as it is now, are to be made. */
export interface ImageAsk {
  readonly kind: "image";
  readonly session: number;
  readonly stream: number;
}
/** Pieces of the log behind `after` up to the mark `last`. */
export interface LogAsk {
  readonly kind: "log";
  readonly session: number;
  readonly stream: number;
  readonly after: EntryPosition;
  readonly last: EntryPosition;
  readonly backupId: string;
}
/** Leaders are to put the mark of a backup into their logs, stamped as they like. */
export interface MarkAsk {
  readonly kind: "mark";
  readonly backupId: string;
  readonly round: number;
  readonly partitions: readonly number[];
}
/** Leaders tell where their stamps are. */
export interface PrepareAsk {
  readonly kind: "prepare";
  readonly partitions: readonly number[];
}
/** Leaders pause behind a mark stamped exactly `at`. */
export interface CloseAsk {
  readonly kind: "close";
  readonly epochTerm: number;
  readonly round: number;
  readonly at: Hlc;
  readonly backupId: string;
  readonly partitions: readonly number[];
}
/** Leaders prove that they lead, and that the pause has lasted. */
export interface VerifyAsk {
  readonly kind: "verify";
  readonly epochTerm: number;
  readonly round: number;
  readonly partitions: readonly number[];
}

export type BackupAsk =
  | TopologyAsk
  | HoldAsk
  | RenewAsk
  | ImageAsk
  | LogAsk
  | MarkAsk
  | PrepareAsk
  | CloseAsk
  | VerifyAsk;

export interface TopologyAnswer {
  readonly kind: "topology";
  /** In which meta is led there. */
  readonly term: number;
  readonly topologyVersion: number;
  readonly level: number;
  /** The id that the cluster gave itself. */
  readonly lineage: string;
  /** Ascending, meta included. */
  readonly partitions: readonly number[];
  /** A key range is on its way. */
  readonly isMoving: boolean;
}
export interface HeldAnswer {
  readonly kind: "held";
}
export interface RenewedAnswer {
  readonly kind: "renewed";
  /** Sessions whose hold is over. */
  readonly lost: readonly number[];
}
/** Where the state of the image is. */
export interface ImageAnswer {
  readonly kind: "image";
  readonly index: number;
  readonly term: number;
  readonly stamp: Hlc;
  readonly chain: string;
  readonly membership: Uint8Array | null;
}
export interface LogAnswer {
  readonly kind: "log";
  /** What this replica has at the mark. */
  readonly chain: string;
  readonly tokenFloor: bigint;
  readonly ephemeralFloor: bigint;
}
export interface MarkItem {
  readonly partition: number;
  /** null: there is no mark, or nobody knows. */
  readonly mark: MarkPlace | null;
  /** Why not. */
  readonly end: "marked" | "not-led" | "passed" | "failed";
}
export interface MarkPlace {
  readonly index: number;
  readonly term: number;
  readonly stamp: Hlc;
  readonly chain: string;
}
export interface MarksAnswer {
  readonly kind: "marks";
  readonly wallMs: number;
  readonly items: readonly MarkItem[];
}
export interface PreparedAnswer {
  readonly kind: "prepared";
  readonly wallMs: number;
  /** The largest of the partitions' last stamps; -1: one is not led there. */
  readonly stampMs: number;
}
export interface VerifiedAnswer {
  readonly kind: "verified";
  readonly isProved: boolean;
}

const REFUSALS = [
  /** There is no replica here. */
  "unhosted",
  /** Not now. */
  "busy",
  /** The log does not reach back so far. */
  "compacted",
  /** The log has something else there. */
  "other-history",
  /** Not applied here yet. */
  "behind",
  /** No such session, or its hold is over. */
  "unknown",
  /** This node does not lead. */
  "not-leader",
] as const;
export type ShipRefusal = (typeof REFUSALS)[number];
export interface NoAnswer {
  readonly kind: "no";
  readonly why: ShipRefusal;
}

export type BackupAnswer =
  | TopologyAnswer
  | HeldAnswer
  | RenewedAnswer
  | ImageAnswer
  | LogAnswer
  | MarksAnswer
  | PreparedAnswer
  | VerifiedAnswer
  | NoAnswer;

/** The pauses of a cut are over. */
export interface ReleaseWord {
  readonly kind: "release";
  readonly epochTerm: number;
  readonly round: number;
  readonly partitions: readonly number[];
}
/** A session is not wanted any more. */
export interface LeaveWord {
  readonly kind: "leave";
  readonly session: number;
}
/** Pieces below `next` have been taken, those below `upTo` may come. */
export interface PullWord {
  readonly kind: "pull";
  readonly session: number;
  readonly stream: number;
  readonly next: number;
  readonly upTo: number;
  /** Something is missing: from `next` on again. */
  readonly resend: boolean;
}
export interface PieceWord {
  readonly kind: "piece";
  readonly session: number;
  readonly stream: number;
  readonly sequence: number;
  readonly bytes: Uint8Array;
}
/** All pieces have been made. */
export interface EndWord {
  readonly kind: "end";
  readonly session: number;
  readonly stream: number;
  readonly pieces: number;
  /** Of an image: largest token of a lock, -1 = none; largest incarnation of a sequence. */
  readonly highestToken: bigint;
  readonly highestIncarnation: number;
}
/** No more pieces come; `isOverrun`: because too much changed meanwhile. */
export interface BrokenWord {
  readonly kind: "broken";
  readonly session: number;
  readonly stream: number;
  readonly isOverrun: boolean;
}
export type StreamWord = PieceWord | EndWord | BrokenWord;
export type BackupWord = ReleaseWord | LeaveWord | PullWord | StreamWord;

const position = record<EntryPosition>({ index: int53, term: int53 });
const partitions = list(int32, PARTITIONS_PER_BACKUP_ASK);
const stream = { session: int53, stream: int32 };
const epoch = { epochTerm: int53, round: int32 };
const place = record<MarkPlace>({ index: int53, term: int53, stamp: hlc, chain: text });
const markItem = record<MarkItem>({
  partition: int32,
  mark: nullable(place),
  end: oneOf<MarkItem["end"]>("marked", "not-led", "passed", "failed"),
});

const ask = union<BackupAsk>({
  topology: [1, {}],
  hold: [2, { session: int53, partition: int32, after: nullable(position) }],
  renew: [3, { sessions: list(int53, PARTITIONS_MAX + 1) }],
  image: [4, stream],
  log: [5, { ...stream, after: position, last: position, backupId: text }],
  mark: [6, { backupId: text, round: int32, partitions }],
  prepare: [7, { partitions }],
  close: [8, { ...epoch, at: hlc, backupId: text, partitions }],
  verify: [9, { ...epoch, partitions }],
});

const answer = union<BackupAnswer>({
  topology: [
    1,
    {
      ...{ term: int53, topologyVersion: int53, level: int32, lineage: text },
      ...{ partitions: list(int32, PARTITIONS_MAX + 1), isMoving: boolean },
    },
  ],
  held: [2, {}],
  renewed: [3, { lost: list(int53, PARTITIONS_MAX + 1) }],
  image: [4, { index: int53, term: int53, stamp: hlc, chain: text, membership: nullable(bytes) }],
  log: [5, { chain: text, tokenFloor: bigint64, ephemeralFloor: bigint64 }],
  marks: [6, { wallMs: int53, items: list(markItem, PARTITIONS_PER_BACKUP_ASK) }],
  prepared: [7, { wallMs: int53, stampMs: int53 }],
  verified: [9, { isProved: boolean }],
  no: [10, { why: oneOf<ShipRefusal>(...REFUSALS) }],
});

const word = union<BackupWord>({
  release: [1, { ...epoch, partitions }],
  leave: [2, { session: int53 }],
  pull: [3, { ...stream, next: int53, upTo: int53, resend: boolean }],
  piece: [4, { ...stream, sequence: int53, bytes }],
  end: [5, { ...stream, pieces: int53, highestToken: bigint64, highestIncarnation: int53 }],
  broken: [6, { ...stream, isOverrun: boolean }],
});

export type BackupFrame =
  | { readonly class: "ask"; readonly id: number; readonly waitMs: number; readonly ask: BackupAsk }
  | { readonly class: "answer"; readonly id: number; readonly answer: BackupAnswer }
  | { readonly class: "word"; readonly word: BackupWord };

const Class = { ask: 1, answer: 2, word: 3 } as const;

/** Whether `bytes`, from the lane "control" or "bulk", are of these. */
export function isBackupFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

export function encodeBackupFrame(frame: BackupFrame): Uint8Array {
  const isPiece = frame.class === "word" && frame.word.kind === "piece";
  const sizeBytes = isPiece ? (frame.word as PieceWord).bytes.length + 64 : 256;
  const writer = new ByteWriter(sizeBytes).uint8(MARK).uint8(VERSION).uint8(Class[frame.class]);
  switch (frame.class) {
    case "ask":
      writer.uint53(frame.id).uint32(frame.waitMs);
      ask.write(writer, frame.ask);
      return writer.finish();
    case "answer":
      writer.uint53(frame.id);
      answer.write(writer, frame.answer);
      return writer.finish();
    case "word":
      word.write(writer, frame.word);
      return isPiece ? writer.handOver() : writer.finish();
  }
}

/** Null when the bytes are no frame of this version. */
export function decodeBackupFrame(source: Uint8Array): BackupFrame | null {
  const reader = new ByteReader(source);
  const isOurs = reader.uint8() === MARK && reader.uint8() === VERSION;
  const frame = isOurs ? readFrame(reader) : null;
  return frame !== null && reader.isComplete() ? frame : null;
}

function readFrame(reader: ByteReader): BackupFrame | null {
  switch (reader.uint8()) {
    case Class.ask: {
      const [id, waitMs] = [reader.uint53(), reader.uint32()];
      return { class: "ask", id, waitMs, ask: ask.read(reader) };
    }
    case Class.answer: {
      const id = reader.uint53();
      return { class: "answer", id, answer: answer.read(reader) };
    }
    case Class.word:
      return { class: "word", word: word.read(reader) };
    default:
      return null;
  }
}
