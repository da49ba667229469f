/**
 * A response whose body goes on while it lasts: text in pieces, with a count of what is unsent.
 *
 * Invariants: 1. What waits for the client is counted, here and for the node, until it left or the
 * response is closed. 2. It ends once. 3. The owner is told when what was unsent became less, and
 * once when the response is gone; never in the turn of a call of its own.
 */
import type { UnsentBytes } from "../../base/unsent.js";

/** The part of a response that takes a body in pieces. */
export interface PieceSink {
  write(text: string, sent?: () => void): unknown;
  end(): unknown;
  once(event: "close", listener: () => void): unknown;
}

export interface LastingOwner {
  /** Something left. */
  moved(sizeBytes: number): void;
  /** The response is closed, whoever did it. */
  gone(): void;
}

export class LastingResponse {
  private waiting = 0;
  private isClosed = false;
  private hasEnded = false;

  constructor(
    private readonly sink: PieceSink,
    private readonly unsent: UnsentBytes,
    private readonly owner: LastingOwner,
  ) {
    sink.once("close", () => {
      if (this.isClosed) return;
      this.isClosed = true;
      this.unsent.give(this.waiting);
      owner.moved(this.waiting);
      this.waiting = 0;
      owner.gone();
    });
  }

  /** Bytes that have not left. */
  get unsentBytes(): number {
    return this.waiting;
  }

  get isOpen(): boolean {
    return !this.isClosed && !this.hasEnded;
  }

  /** True when so much waits at the node that nothing is to be added to it. */
  get isNodeFull(): boolean {
    return this.unsent.isFull;
  }

  write(text: string): number {
    if (!this.isOpen) return 0;
    const sizeBytes = Buffer.byteLength(text);
    this.waiting += sizeBytes;
    this.unsent.take(sizeBytes);
    this.sink.write(text, () => {
      if (this.isClosed) return;
      this.waiting -= sizeBytes;
      this.unsent.give(sizeBytes);
      this.owner.moved(sizeBytes);
    });
    return sizeBytes;
  }

  end(): void {
    if (!this.isOpen) return;
    this.hasEnded = true;
    this.sink.end();
  }
}
