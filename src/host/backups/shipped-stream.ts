/**
 * One image, or one stretch of a log, as it leaves a replica for whoever keeps the backup: piece by
 * piece, as those that came before are taken.
 *
 * Invariants: 1. Pieces that are made and not taken are bounded by the window: who does not take
 * them stops the making. 2. A piece is made once, and sent again as often as it is asked for until
 * it was taken. 3. A log ends as broken when it was let go: what was sent is of no use.
 */
import { ByteWriter } from "../../base/codec.js";
import { assert } from "../../base/assert.js";
import { BACKUP_PIECE_BYTES, BACKUP_WINDOW_PIECES } from "../../base/limits.js";
import { topToken } from "../../machine/locks/lock-row.js";
import type { Machine } from "../../machine/machine.js";
import { decodeSequenceRow } from "../../machine/sequences/sequence-row.js";
import type { SnapshotSource } from "../../machine/snapshot/source.js";
import { RowKind } from "../../machine/store/keys.js";
import type { LogEntry } from "../../ports.js";
import type { LogStretch } from "../storage/log-stretch.js";
import type { EndWord, PullWord, StreamWord } from "./backup-messages.js";

type Made = "piece" | "last" | "broken" | "overrun";

/** Makes the pieces of a stream, one at a time. `done` may come at once. */
export interface PieceMaker {
  /** Its making takes the loop's time: one at a time is enough. */
  readonly isImage: boolean;
  make(done: (made: Made, bytes: Uint8Array) => void): void;
  readonly summary: Pick<EndWord, "highestToken" | "highestIncarnation">;
  close(): void;
}

const NONE = new Uint8Array(0);

/** The state of a group as it was when this was made. */
export class ImageMaker implements PieceMaker {
  readonly isImage = true;
  readonly source: SnapshotSource;
  private highestToken = -1n;
  private highestIncarnation = 0;

  constructor(machine: Machine, heldBytesMax: number) {
    this.source = machine.openSnapshot(heldBytesMax, (kind, value) => this.row(kind, value));
  }

  private row(kind: number, value: Uint8Array): void {
    if (kind === RowKind.lock) {
      const token = topToken(value);
      if (token > this.highestToken) this.highestToken = token;
    } else if (kind === RowKind.sequence) {
      const incarnation = decodeSequenceRow(value)?.incarnation ?? 0;
      if (incarnation > this.highestIncarnation) this.highestIncarnation = incarnation;
    }
  }

  make(done: (made: Made, bytes: Uint8Array) => void): void {
    const chunk = this.source.next(BACKUP_PIECE_BYTES);
    if (chunk === "overrun") return done("overrun", NONE);
    done(chunk.last ? "last" : "piece", chunk.bytes);
  }

  get summary(): Pick<EndWord, "highestToken" | "highestIncarnation"> {
    return { highestToken: this.highestToken, highestIncarnation: this.highestIncarnation };
  }

  close(): void {
    this.source.close();
  }
}

/** Entries as a piece holds them. */
function writeEntries(entries: readonly LogEntry[]): Uint8Array {
  let sizeBytes = 8;
  for (const { payload } of entries) sizeBytes += payload.length + 24;
  const writer = new ByteWriter(sizeBytes).length(entries.length);
  for (const { index, term, kind, payload } of entries) {
    writer.uint53(index).uint53(term).uint8(kind).bytes(payload);
  }
  return writer.handOver();
}

/** A stretch of a log, of one entry at least. */
export class LogMaker implements PieceMaker {
  readonly isImage = false;
  readonly summary = { highestToken: -1n, highestIncarnation: 0 };

  constructor(private readonly stretch: LogStretch) {}

  make(done: (made: Made, bytes: Uint8Array) => void): void {
    this.stretch.next((slice) => {
      if (slice.status !== "entries") return done("broken", NONE);
      done(slice.isLast ? "last" : "piece", writeEntries(slice.entries));
    });
  }

  close(): void {
    // A read that is under way answers nobody.
  }
}

interface KeptPiece {
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

export interface StreamDeps {
  /** False: it was dropped. */
  tell(word: StreamWord): boolean;
  /** Something may go on that did not. */
  wake(): void;
  /** So many bytes were made in the loop's time from `beganMs` to now. */
  made(sizeBytes: number, beganMs: number): void;
  nowMs(): number;
}

export class ShippedStream {
  private kept: KeptPiece[] = [];
  private made = 0;
  private sendFrom = 0;
  private allowed = 0;
  private isMaking = false;
  private end: StreamWord | null = null;
  private endIsSent = false;
  private isClosed = false;

  constructor(
    private readonly deps: StreamDeps,
    readonly session: number,
    readonly stream: number,
    private readonly maker: PieceMaker,
  ) {}

  get heldBytes(): number {
    return this.kept.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** A piece is to be made, as far as the window goes. */
  get wantsMore(): boolean {
    const mayMake = !this.isMaking && this.end === null && !this.isClosed;
    return mayMake && this.made < this.allowed && this.kept.length < BACKUP_WINDOW_PIECES;
  }

  /** An image that is not done yet. */
  get isImage(): boolean {
    return this.maker.isImage && this.end === null && !this.isClosed;
  }

  pull({ next, upTo, resend }: PullWord): void {
    if (next > this.made) return;
    this.kept = this.kept.filter(({ sequence }) => sequence >= next);
    this.allowed = Math.max(this.allowed, Math.min(upTo, next + BACKUP_WINDOW_PIECES));
    if (resend) {
      this.sendFrom = Math.min(this.sendFrom, next);
      this.endIsSent = false;
    }
    this.sendFrom = Math.max(this.sendFrom, next);
    this.send();
    this.deps.wake();
  }

  make(): void {
    assert(this.wantsMore, "a piece is made where one may be");
    this.isMaking = true;
    const { deps } = this;
    let beganMs: number | null = deps.nowMs();
    this.maker.make((made, bytes) => {
      // What was read meanwhile took none of the loop's time.
      deps.made(bytes.length, beganMs ?? deps.nowMs());
      this.isMaking = false;
      if (!this.isClosed) this.take(made, bytes);
    });
    beganMs = null;
  }

  private take(made: Made, bytes: Uint8Array): void {
    const { session, stream } = this;
    if (made === "broken" || made === "overrun") {
      this.kept = [];
      this.end = { kind: "broken", session, stream, isOverrun: made === "overrun" };
    } else {
      this.kept.push({ sequence: this.made, bytes });
      this.made++;
    }
    if (made === "last") {
      this.end = { kind: "end", session, stream, pieces: this.made, ...this.maker.summary };
    }
    this.send();
    this.deps.wake();
  }

  /** Sends what is made and not sent, as far as there is room. */
  send(): void {
    for (const { sequence, bytes } of this.kept) {
      if (sequence < this.sendFrom) continue;
      const { session, stream } = this;
      if (!this.deps.tell({ kind: "piece", session, stream, sequence, bytes })) return;
      this.sendFrom = sequence + 1;
    }
    if (this.end !== null && !this.endIsSent) this.endIsSent = this.deps.tell(this.end);
  }

  close(): void {
    this.isClosed = true;
    this.kept = [];
    this.maker.close();
  }
}
