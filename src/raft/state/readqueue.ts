/**
 * Reads that wait for a leader's confirmation: those before the first commit of its term, and those
 * in rounds.
 *
 * Invariants:
 * 1. Round ids rise for as long as the core lives and are never used twice.
 * 2. A round's index was captured when the round began, so that a read never joins a round that
 *    began before it.
 * 3. The number of waiting reads is bounded by the caller through `count`.
 */
import type { LogIndex, NodeId } from "./types.js";

export interface ReadRequest {
  readonly from: NodeId;
  readonly context: number;
}

export interface ReadRound {
  readonly id: number;
  readonly index: LogIndex;
  readonly startedTick: number;
  readonly requests: readonly ReadRequest[];
}

export class ReadQueue {
  /** Requests from before the first commit of the term. */
  waiting: ReadRequest[] = [];
  rounds: ReadRound[] = [];
  /** Requests in `waiting` and `rounds`. */
  count = 0;
  private lastId = 0;

  /** The latest round that is not confirmed yet; 0 if there is none. */
  get latestRound(): number {
    return this.rounds.at(-1)?.id ?? 0;
  }

  begin(index: LogIndex, startedTick: number, requests: readonly ReadRequest[]): ReadRound {
    this.lastId++;
    const round: ReadRound = { id: this.lastId, index, startedTick, requests };
    this.rounds.push(round);
    return round;
  }

  /**
   * Takes out all rounds up to and including `id`: whoever confirmed a round confirmed the earlier
   * ones.
   */
  takeConfirmed(id: number): ReadRound[] {
    let count = 0;
    while (count < this.rounds.length && (this.rounds[count]?.id ?? Infinity) <= id) count++;
    const confirmed = this.rounds.splice(0, count);
    for (const round of confirmed) this.count -= round.requests.length;
    return confirmed;
  }

  takeWaiting(): ReadRequest[] {
    const waiting = this.waiting;
    this.waiting = [];
    return waiting;
  }

  /** Empties the queue; returns what was asked by `id` itself. */
  clear(id: NodeId): number[] {
    const contexts: number[] = [];
    const collect = (requests: readonly ReadRequest[]): void => {
      for (const request of requests) if (request.from === id) contexts.push(request.context);
    };
    for (const round of this.rounds) collect(round.requests);
    collect(this.waiting);
    this.waiting = [];
    this.rounds = [];
    this.count = 0;
    return contexts;
  }
}
