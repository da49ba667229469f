/**
 * One transfer of a group's snapshot to this node: takes chunks in order into a fresh generation,
 * waits until its rows are durable, and then offers it to the core as a snapshot message.
 *
 * The core decides (P-038): it ignores a snapshot that it does not need, and otherwise orders the
 * install, which comes back as `install`. Then, in this order: the machine switches to the new
 * generation, everything derived from the old one goes, the switch is made durable, and only then
 * the log is reset (see snapshot-recovery.ts for a crash between the two).
 *
 * Invariants: 1. Nothing that readers see changes before `install` (P-041). 2. Every frame is
 * checked against session and sequence, the whole against digest, announced position and
 * membership, and the term again when it is offered and when it is stepped (P-040, P-130). 3.
 * What waits in memory is bounded; rows enter the memtable only while it has room (P-127, P-128).
 * 4. From the offer on it is not replaced: the core may have taken it.
 */
import { assert } from "../../base/assert.js";
import type { RestoreSink } from "../../machine/snapshot/restore.js";
import type { Message, SnapshotMeta } from "../../raft/state/types.js";
import { decodeMembership, encodeMembership } from "../replication/config-entries.js";
import { NO_BEAT_SIGN } from "../replication/raft-frames.js";
import type { BeginFrame, ChunkFrame, SnapshotCode } from "./snapshot-frames.js";
import { CHUNK_MAX_BYTES } from "./snapshot-frames.js";
import { isTooSlow } from "./snapshot-limits.js";
import type { InstallOrder, SnapshotGroup, SnapshotDeps } from "./snapshot-types.js";

type ReceiverState = "receiving" | "storing" | "offered" | "installing" | "ended";

/** Chunks that may wait for room, at most. */
const WAITING_CHUNKS_MAX = 16;
const WAITING_BYTES_MAX = 2 * CHUNK_MAX_BYTES;
/** Chunks taken in one go: each takes about a millisecond. */
const CHUNKS_PER_GO = 4;

export class SnapshotReceiver {
  private readonly sink: RestoreSink;
  private waiting: Uint8Array[] = [];
  private waitingBytes = 0;
  private takenBytes = 0;
  private state: ReceiverState = "receiving";
  private readonly startedMs: number;
  private progressAtMs: number;
  /** The chunk for which a gap was told, so that one gap is told once. */
  private gapTold = -1;

  /** `tell` sends an acknowledgement; `onEnd` is called once, with what the sender is told. */
  constructor(
    private readonly deps: SnapshotDeps,
    readonly group: SnapshotGroup,
    readonly from: number,
    readonly begin: BeginFrame,
    private readonly tell: (next: number, resend: boolean) => void,
    private readonly onEnd: (code: SnapshotCode) => void,
  ) {
    this.startedMs = deps.nowMs();
    this.progressAtMs = this.startedMs;
    this.sink = group.machine.beginRestore();
    this.tell(0, false);
  }

  /** The core may have it: nothing takes its place any more. */
  get isOffered(): boolean {
    return this.state === "offered" || this.state === "installing";
  }

  get chunks(): number {
    return this.sink.expectedSequence;
  }

  get waitingChunkBytes(): number {
    return this.waitingBytes;
  }

  private get expected(): number {
    return this.sink.expectedSequence + this.waiting.length;
  }

  take(frame: ChunkFrame, nowMs: number): void {
    if (this.state !== "receiving") return;
    if (frame.sequence !== this.expected) {
      const isGap = frame.sequence > this.expected;
      if (isGap && this.gapTold === this.expected) return;
      if (isGap) this.gapTold = this.expected;
      return this.tell(this.sink.expectedSequence, isGap);
    }
    const size = frame.bytes.length;
    const isFull =
      this.waiting.length >= WAITING_CHUNKS_MAX || this.waitingBytes + size > WAITING_BYTES_MAX;
    // It is not acknowledged, and will be asked for when there is room.
    if (this.waiting.length > 0 && isFull) return;
    if (size > CHUNK_MAX_BYTES) return this.end("damaged");
    this.waiting.push(frame.bytes);
    this.waitingBytes += size;
    this.fill(nowMs, 1);
  }

  /** The sender asks where it is. */
  query(): void {
    this.gapTold = -1;
    if (this.state === "receiving") this.tell(this.expected, true);
    else if (this.state !== "ended") this.tell(this.sink.expectedSequence, false);
  }

  tick(nowMs: number): void {
    const { settings } = this.deps;
    if (this.state === "receiving") {
      this.fill(nowMs, CHUNKS_PER_GO);
      const isLate = nowMs - this.progressAtMs >= settings.progressMs;
      if (this.state === "receiving" && isLate) return this.end("unknown");
    }
    if (this.state === "receiving" || this.state === "storing") {
      if (this.group.core.term > this.begin.term) return this.end("outdated");
      // What is stored waits for this node's own disk: the sender does not count that either.
      const isLate =
        this.state === "storing"
          ? nowMs - this.progressAtMs >= settings.totalMs
          : isTooSlow(settings, nowMs - this.startedMs, this.takenBytes);
      if (isLate) return this.end("unknown");
    }
    if (this.state === "offered") this.offer();
  }

  /** The group left this node: nothing comes of it any more, and nobody is told. */
  close(): void {
    this.state = "ended";
    this.waiting = [];
    this.waitingBytes = 0;
  }

  private get isClosed(): boolean {
    return this.state === "ended";
  }

  /** Gives up; only before the offer. */
  abandon(code: SnapshotCode): void {
    assert(!this.isOffered, "what the core may have taken is not given up");
    if (this.state !== "ended") this.end(code);
  }

  /** Whether this is the snapshot that the core wants installed. */
  isFor(meta: SnapshotMeta): boolean {
    const own = this.begin.meta;
    return this.state === "offered" && own.index === meta.index && own.term === meta.term;
  }

  /** The core ordered the install; inside the group's turn. `done` when all of it is durable. */
  install(order: InstallOrder): void {
    assert(this.isFor(order.meta), "the snapshot that was offered is the one installed");
    this.state = "installing";
    const { machine, partition } = this.group;
    const { index, term } = order.meta;
    machine.install(this.sink);
    this.group.replaced(index);
    this.deps.flushSoon(() => {
      if (this.isClosed) return;
      this.deps.log.resetGroup(partition, { index, term }, order.hardState, () => {
        if (this.isClosed) return;
        order.done();
        this.end("installed");
      });
    });
  }

  private fill(nowMs: number, chunksMax: number): void {
    for (let count = 0; count < chunksMax && this.deps.mayFill(); count++) {
      const bytes = this.waiting.shift();
      if (bytes === undefined) return;
      this.waitingBytes -= bytes.length;
      this.takenBytes += bytes.length;
      const taken = this.sink.take(bytes);
      if (!taken.ok) return this.end("damaged");
      // The first chunk says of which level the rows are: none of them is durable yet.
      const { announced, expectedSequence } = this.sink;
      const isNews = expectedSequence === 1 && announced !== null;
      if (isNews && !this.deps.mayHold(announced.level)) return this.end("busy");
      this.progressAtMs = nowMs;
      this.tell(this.sink.expectedSequence, false);
      if (taken.value === "done") return this.store();
    }
  }

  /** All of it is here: its rows are made durable before anybody counts on them. */
  private store(): void {
    if (!this.isAsAnnounced() || this.waiting.length > 0) return this.end("damaged");
    this.state = "storing";
    this.deps.flushSoon(() => {
      if (this.state === "storing") this.offer();
    });
  }

  private isAsAnnounced(): boolean {
    const record = this.sink.announced;
    const { meta } = this.begin;
    if (record === null) return false;
    if (record.appliedIndex !== meta.index || record.appliedTerm !== meta.term) return false;
    // A group whose members never changed has those that it was founded with.
    const blob = record.membership;
    const membership = blob === null ? this.group.members.membership : decodeMembership(blob);
    if (membership === null) return false;
    const announced = encodeMembership(meta.membership);
    const own = encodeMembership(membership);
    return own.length === announced.length && own.every((byte, at) => byte === announced[at]);
  }

  /** Hands the snapshot message to the core; again at each tick, for its inbox may be full. */
  private offer(): void {
    this.state = "offered";
    if (this.settle()) return;
    const { group, begin } = this;
    const message = snapshotMessage(this.from, this.deps.nodeId, begin.term, begin.meta);
    const { fromLife, toLife } = begin;
    const item = { group: group.partition, fromLife, toLife, message };
    group.receive({ ...item, entries: [], sign: NO_BEAT_SIGN });
  }

  /** Whether the core has decided without an install. */
  private settle(): boolean {
    const { core } = this.group;
    if (core.commitIndex >= this.begin.meta.index) this.end("not-needed");
    else if (core.term > this.begin.term) this.end("outdated");
    return this.state === "ended";
  }

  private end(code: SnapshotCode): void {
    assert(this.state !== "ended", "a transfer ends once");
    if (code !== "installed") this.group.machine.abandonRestore();
    this.state = "ended";
    this.waiting = [];
    this.waitingBytes = 0;
    this.onEnd(code);
  }
}

function snapshotMessage(from: number, to: number, term: number, meta: SnapshotMeta): Message {
  return {
    kind: "snapshot",
    from,
    to,
    term,
    logTerm: 0,
    index: 0,
    commit: 0,
    reject: false,
    rejectHint: 0,
    context: 0,
    entries: null,
    snapshot: meta,
    proposal: null,
  };
}
