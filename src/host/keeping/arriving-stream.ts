/**
 * One image, or one stretch of a log, as it comes to the keeper: pieces in order, those used
 * together that came while others were being used.
 *
 * Invariants: 1. What is held is bounded: no piece comes beyond the window behind those that were
 * used. 2. It ends once. 3. Silence while a piece is waited for ends it; how long using some
 * takes does not matter.
 */
import { BACKUP_WINDOW_PIECES } from "../../base/limits.js";
import type { EndWord, PieceWord, PullWord, StreamWord } from "../backups/backup-messages.js";

/** A piece that is missing is asked for again after this, and given up after that (ms). */
const ASK_AGAIN_MS = 1000;
const SILENCE_MS = 10_000;

export type StreamEnd =
  | { readonly status: "whole"; readonly end: EndWord }
  /** The replica is not to be had any more, or lost its hold. */
  | { readonly status: "lost" }
  /** Too much changed meanwhile. */
  | { readonly status: "overrun" }
  /** Whoever uses the pieces wants no more. */
  | { readonly status: "refused" };

export interface ArrivingDeps {
  nowMs(): number;
  tell(word: PullWord): void;
  /** Uses pieces, one at least; false ends it. */
  use(pieces: readonly Uint8Array[], done: (goesOn: boolean) => void): void;
  done(end: StreamEnd): void;
}

export class ArrivingStream {
  private waiting: Uint8Array[] = [];
  /** The next piece that is to come, and those that were used. */
  private next = 0;
  private used = 0;
  private end: EndWord | null = null;
  private isUsing = false;
  private isOver = false;
  private heardMs: number;
  private askedMs: number;

  constructor(
    private readonly deps: ArrivingDeps,
    readonly session: number,
    readonly stream: number,
  ) {
    this.heardMs = deps.nowMs();
    this.askedMs = this.heardMs;
    this.pull(false);
  }

  take(word: StreamWord): void {
    if (this.isOver) return;
    this.heardMs = this.deps.nowMs();
    if (word.kind === "broken") return this.finish({ status: word.isOverrun ? "overrun" : "lost" });
    if (word.kind === "end") {
      if (word.pieces === this.next) this.end = word;
      else this.pull(true);
    } else this.piece(word);
    this.go();
  }

  private piece({ sequence, bytes }: PieceWord): void {
    if (sequence > this.next) return this.pull(true);
    const mayCome = sequence === this.next && this.waiting.length < 2 * BACKUP_WINDOW_PIECES;
    if (!mayCome) return;
    this.waiting.push(bytes);
    this.next++;
  }

  private go(): void {
    if (this.isUsing || this.isOver) return;
    const pieces = this.waiting;
    if (pieces.length === 0) {
      if (this.end !== null) this.finish({ status: "whole", end: this.end });
      return;
    }
    this.waiting = [];
    this.isUsing = true;
    this.deps.use(pieces, (goesOn) => {
      this.isUsing = false;
      this.used += pieces.length;
      if (this.isOver) return;
      if (!goesOn) return this.finish({ status: "refused" });
      this.heardMs = this.deps.nowMs();
      this.pull(false);
      this.go();
    });
  }

  private pull(resend: boolean): void {
    const nowMs = this.deps.nowMs();
    // Every piece that arrives early would ask for the one that is missing.
    if (resend && nowMs < this.askedMs + ASK_AGAIN_MS) return;
    if (resend) this.askedMs = nowMs;
    const { session, stream, next } = this;
    const upTo = this.used + BACKUP_WINDOW_PIECES;
    this.deps.tell({ kind: "pull", session, stream, next, upTo, resend });
  }

  /** Once per tick. */
  tick(nowMs: number): void {
    if (this.isOver || this.isUsing || this.waiting.length > 0) return;
    if (nowMs >= this.heardMs + SILENCE_MS) return this.finish({ status: "lost" });
    if (nowMs >= Math.max(this.heardMs, this.askedMs) + ASK_AGAIN_MS) this.pull(true);
  }

  /** Its replica is lost, or it is not wanted. What is being used is used. */
  lose(): void {
    if (!this.isOver) this.finish({ status: "lost" });
  }

  private finish(end: StreamEnd): void {
    this.isOver = true;
    this.waiting = [];
    this.deps.done(end);
  }
}
