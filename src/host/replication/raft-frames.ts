/**
 * The bytes of Raft messages between nodes: frames that carry the messages of all groups of a turn
 * to one node, item by item.
 *
 * Pure codec. Layout of a frame: version u8, then items: size u32, group u32, message, and behind a
 * heartbeat the leader's lease clock and the latest digest of its replica. A message between lives
 * of replicas that are not both founding ones has the mark LIVES in its kind, and the incarnations
 * of sender and receiver behind that. Payloads lie in it as they lie in the log. Invariants: 1. A
 * bad item is left out and counted; it never spoils its neighbours (P-012). 2. Every length is
 * checked against what remains; nothing is allocated before (P-128). 3. The sender is who the link
 * says it is: no frame names it. 4. Payloads are copied out, so that no entry pins a frame (P-160).
 */
import { present } from "../../base/assert.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { LogEntry } from "../../ports.js";
import type {
  ConfigPosition,
  EntrySpan,
  Message,
  MessageKind,
  TermRun,
} from "../../raft/state/types.js";
import { entryKindOf } from "./config-entries.js";
import { type LeaseSign, NO_LEASE_SIGN } from "./heard-lease.js";
import { NO_REPLICA_DIGEST, type ReplicaDigest } from "./replica-digests.js";

const VERSION = 4;
export const FRAME_HEAD_BYTES = 1;
const ITEM_HEAD_BYTES = 8;
/** kind, term, logTerm, index, commit, reject, rejectHint, context, number of entries. */
const MESSAGE_BYTES = 1 + 4 * 8 + 1 + 2 * 8 + 4;
/** Mark of a kind: incarnations of sender and receiver follow. */
const LIVES = 0x80;
const LIVES_BYTES = 2 * 8;
/** Behind it in a heartbeat: lease clock, node clock, index and lanes of the replica's digest. */
const SIGN_BYTES = 2 * 8 + 8 + 2 * 4;

/** The kinds that travel in these frames; an index is the number on the wire. */
const KINDS: readonly MessageKind[] = [
  "append",
  "appendAnswer",
  "vote",
  "voteAnswer",
  "preVote",
  "preVoteAnswer",
  "heartbeat",
  "heartbeatAnswer",
  "timeoutNow",
];
const KIND_NUMBERS = new Map(KINDS.map((kind, number) => [kind, number]));

/** Which lives of the two replicas a message is between. */
export interface Lives {
  readonly fromLife: number;
  readonly toLife: number;
}

/** A message with the payloads of its entries. */
export interface RaftItem extends Lives {
  readonly group: number;
  readonly message: Message;
  /** Entries of an append, with their payloads; empty otherwise. */
  readonly entries: readonly LogEntry[];
  readonly sign: HeartbeatSign;
}

/** What a leader tells of itself with a heartbeat; zeros in every other message. */
export interface HeartbeatSign {
  readonly lease: LeaseSign;
  readonly digest: ReplicaDigest;
}

export const NO_BEAT_SIGN: HeartbeatSign = { lease: NO_LEASE_SIGN, digest: NO_REPLICA_DIGEST };

/** Bytes of an entry besides its payload. */
const ITEM_ENTRY_BYTES = 13;

/** Bytes that a message of `kind` with `entries`, between such lives (founding ones where none is said), takes in a frame. */
export function itemSizeBytes(
  kind: MessageKind,
  entries: readonly LogEntry[],
  fromLife = 0,
  toLife = 0,
): number {
  let sizeBytes = ITEM_HEAD_BYTES + MESSAGE_BYTES + (kind === "heartbeat" ? SIGN_BYTES : 0);
  if (fromLife + toLife > 0) sizeBytes += LIVES_BYTES;
  for (const entry of entries) sizeBytes += ITEM_ENTRY_BYTES + entry.payload.length;
  return sizeBytes;
}

/** Whether messages of this kind travel in these frames. */
export function isFramed(kind: MessageKind): boolean {
  return KIND_NUMBERS.has(kind);
}

/** Smaller frames share buffers: a buffer of its own costs more to make than to fill. */
const SMALL_FRAME_BYTES = 4096;
const ROOM_BYTES = 64 << 10;
const WRITER_BYTES = 512;

/** Room for small frames, one behind the other; no byte is used twice. */
export class FrameRoom {
  private buffer = new Uint8Array(ROOM_BYTES);
  private usedBytes = 0;

  take(sizeBytes: number): Uint8Array {
    if (this.usedBytes + sizeBytes > ROOM_BYTES) {
      this.buffer = new Uint8Array(ROOM_BYTES);
      this.usedBytes = 0;
    }
    const start = this.usedBytes;
    this.usedBytes += sizeBytes;
    return this.buffer.subarray(start, start + sizeBytes);
  }
}

/** Gathers the messages to one node on one lane. */
export class RaftFrameWriter {
  private writer = new ByteWriter(WRITER_BYTES);
  /** Groups whose entries or snapshots are in it: they want to know if it is dropped. */
  private readonly appended = new Set<number>();

  constructor(private readonly room: FrameRoom) {}

  get sizeBytes(): number {
    return this.writer.sizeBytes;
  }

  get groupsWithEntries(): ReadonlySet<number> {
    return this.appended;
  }

  /** `fromLife`, `toLife`: see `Lives`. `sizeBytes`: of the item. */
  add(
    group: number,
    message: Message,
    entries: readonly LogEntry[],
    sign: HeartbeatSign,
    fromLife = 0,
    toLife = 0,
    sizeBytes = itemSizeBytes(message.kind, entries, fromLife, toLife),
  ): void {
    const { writer } = this;
    const beats = message.kind === "heartbeat";
    if (writer.sizeBytes === 0) writer.uint8(VERSION);
    if (message.kind === "append") this.appended.add(group);
    writer.uint32(sizeBytes - ITEM_HEAD_BYTES).uint32(group);
    const kind = KIND_NUMBERS.get(message.kind) ?? KINDS.length;
    if (fromLife + toLife === 0) writer.uint8(kind);
    else
      writer
        .uint8(kind | LIVES)
        .uint53(fromLife)
        .uint53(toLife);
    writer.uint53(message.term).uint53(message.logTerm).uint53(message.index);
    writer.uint53(message.commit).boolean(message.reject).uint53(message.rejectHint);
    writer.uint53(message.context).uint32(entries.length);
    for (const entry of entries) {
      writer.uint53(entry.term).uint8(entry.kind).uint32(entry.payload.length).raw(entry.payload);
    }
    if (!beats) return;
    const { lease, digest } = sign;
    writer.uint53(lease.leaseMs).uint53(lease.nodeMs);
    writer.uint53(digest.index).int32(digest.low).int32(digest.high);
  }

  /** The frame is with the port, or its groups know that it is not. */
  forgetGroups(): void {
    if (this.appended.size > 0) this.appended.clear();
  }

  /** The frame, and an empty writer; null when nothing was added. */
  take(): Uint8Array | null {
    const { writer } = this;
    const sizeBytes = writer.sizeBytes;
    if (sizeBytes === 0) return null;
    if (sizeBytes > SMALL_FRAME_BYTES) {
      this.writer = new ByteWriter(WRITER_BYTES);
      return writer.finish();
    }
    const frame = this.room.take(sizeBytes);
    writer.copyTo(frame);
    writer.reset();
    return frame;
  }
}

/**
 * Visits the whole items of a frame from `from` to `to`. Returns how many were bad, or -1 when the
 * frame is none of this version.
 */
export function readRaftFrame(
  bytes: Uint8Array,
  from: number,
  to: number,
  visit: (item: RaftItem) => void,
): number {
  if (bytes.length < FRAME_HEAD_BYTES || bytes[0] !== VERSION) return -1;
  let at = FRAME_HEAD_BYTES;
  let bad = 0;
  while (at < bytes.length) {
    const head = new ByteReader(bytes, at);
    const sizeBytes = head.uint32();
    const group = head.uint32();
    if (head.failed || sizeBytes > head.remainingBytes) return bad + 1;
    const start = at + ITEM_HEAD_BYTES;
    const item = readItem(new ByteReader(bytes, start, start + sizeBytes), group, from, to);
    if (item === null) bad++;
    else visit(item);
    at = start + sizeBytes;
  }
  return bad;
}

function readItem(reader: ByteReader, group: number, from: number, to: number): RaftItem | null {
  const mark = reader.uint8();
  const kind = KINDS[mark & ~LIVES];
  const hasLives = mark >= LIVES;
  const fromLife = hasLives ? reader.uint53() : 0;
  const toLife = hasLives ? reader.uint53() : 0;
  // One encoding for one item.
  if (hasLives && fromLife + toLife === 0) return null;
  const term = reader.uint53();
  const logTerm = reader.uint53();
  const index = reader.uint53();
  const commit = reader.uint53();
  const reject = reader.boolean();
  const rejectHint = reader.uint53();
  const context = reader.uint53();
  const count = reader.uint32();
  if (reader.failed || kind === undefined) return null;
  if (count > 0 && kind !== "append") return null;
  if (count > reader.remainingBytes / ITEM_ENTRY_BYTES) return null;
  const entries = readEntries(reader, index + 1, count, logTerm);
  const sign = kind === "heartbeat" ? readSign(reader) : NO_BEAT_SIGN;
  if (entries === null || !reader.isComplete() || entriesAbove(entries, term)) return null;
  const message: Message = {
    kind,
    from,
    to,
    term,
    logTerm,
    index,
    commit,
    reject,
    rejectHint,
    context,
    entries: spanOf(entries),
    snapshot: null,
    proposal: null,
  };
  return { group, fromLife, toLife, message, entries, sign };
}

function readSign(reader: ByteReader): HeartbeatSign {
  const lease = { leaseMs: reader.uint53(), nodeMs: reader.uint53() };
  const digest = { index: reader.uint53(), low: reader.int32(), high: reader.int32() };
  return { lease, digest };
}

/** Entries of a term that their leader has not reached do not exist. */
function entriesAbove(entries: readonly LogEntry[], term: number): boolean {
  return entries.length > 0 && present(entries.at(-1), "it is not empty").term > term;
}

function readEntries(
  reader: ByteReader,
  first: number,
  count: number,
  previousTerm: number,
): LogEntry[] | null {
  const entries: LogEntry[] = [];
  let least = previousTerm;
  for (let at = 0; at < count; at++) {
    const term = reader.uint53();
    const kind = reader.uint8();
    const payload = reader.raw(reader.uint32());
    if (reader.failed || term < least || term === 0 || entryKindOf(kind) === null) return null;
    least = term;
    entries.push({ index: first + at, term, kind, payload });
  }
  return entries;
}

/** What the core wants to know of entries; null for none. */
export function spanOf(entries: readonly LogEntry[]): EntrySpan | null {
  const first = entries[0];
  if (first === undefined) return null;
  const termRuns: TermRun[] = [];
  const configChanges: ConfigPosition[] = [];
  const sizesBytes: number[] = [];
  let sizeBytes = 0;
  for (const entry of entries) {
    if (termRuns.length === 0 || termRuns.at(-1)?.term !== entry.term) {
      termRuns.push({ first: entry.index, term: entry.term });
    }
    const kind = entryKindOf(entry.kind);
    if (kind !== null && kind !== "normal") configChanges.push({ index: entry.index, kind });
    sizesBytes.push(entry.payload.length);
    sizeBytes += entry.payload.length;
  }
  const last = first.index + entries.length - 1;
  return { first: first.index, last, termRuns, configChanges, sizeBytes, sizesBytes };
}

/** Entry kinds as bytes, for those who send. */
