/**
 * What a restore has to know of the rows of a group: how large tokens and incarnations are, and
 * which sequences went on after the time that is restored.
 *
 * Invariants: 1. Rows are read in slices: no turn is longer than one. 2. A name counts as ahead
 * when both states have the sequence, and its reserved end at the chain's end is the larger one.
 */
import { compareText } from "../../base/bytes.js";
import type { PartitionId } from "../../base/ids.js";
import { topToken } from "../../machine/locks/lock-row.js";
import { decodeSequenceRow } from "../../machine/sequences/sequence-row.js";
import {
  type ByteKey,
  RowKind,
  byteKeyToText,
  generationPrefix,
  keySuccessor,
} from "../../machine/store/keys.js";
import type { Memtable } from "../../machine/store/memtable.js";
import type { TimerPort } from "../../ports.js";

const ROWS_PER_TURN = 2048;
const SEQUENCES_AHEAD_MAX = 1000;

/** The rows of one group: where they are. */
export interface GroupPlace {
  readonly memtable: Memtable;
  readonly partition: PartitionId;
  readonly generation: number;
}

export interface StateFacts {
  /** Of a lock; -1 = there is none. */
  readonly highestToken: bigint;
  readonly highestIncarnation: number;
}

/** Visits the rows of one kind; `done` in a later turn, unless there are few. */
function eachRow(
  { memtable, partition, generation }: GroupPlace,
  kind: number,
  timer: TimerPort,
  visit: (name: ByteKey, value: Uint8Array) => void,
  done: () => void,
): void {
  const prefix = generationPrefix(partition, generation) + String.fromCharCode(kind);
  const last = keySuccessor(prefix);
  const slice = (first: ByteKey): void => {
    let count = 0;
    let next: ByteKey | null = null;
    memtable.scan(first, last, (key, value) => {
      visit(key.slice(prefix.length), value);
      next = `${key}\0`;
      return ++count < ROWS_PER_TURN;
    });
    if (count < ROWS_PER_TURN || next === null) return done();
    const from: ByteKey = next;
    timer.soon(() => slice(from));
  };
  slice(prefix);
}

/** Tokens and incarnations of a group. */
export function readFacts(
  place: GroupPlace,
  timer: TimerPort,
  done: (facts: StateFacts) => void,
): void {
  let highestToken = -1n;
  let highestIncarnation = 0;
  const lockRow = (_name: ByteKey, value: Uint8Array): void => {
    const token = topToken(value);
    if (token > highestToken) highestToken = token;
  };
  const sequenceRow = (_name: ByteKey, value: Uint8Array): void => {
    const incarnation = decodeSequenceRow(value)?.incarnation ?? 0;
    highestIncarnation = Math.max(highestIncarnation, incarnation);
  };
  eachRow(place, RowKind.lock, timer, lockRow, () => {
    eachRow(place, RowKind.sequence, timer, sequenceRow, () => {
      done({ highestToken, highestIncarnation });
    });
  });
}

/** Sequences that are ahead, of all partitions: the first by name, and how many. */
export class SequencesAhead {
  private readonly first: string[] = [];
  count = 0;

  /** Compares the state at the chain's end with the one at the target. */
  compare(end: GroupPlace, target: GroupPlace, timer: TimerPort, done: () => void): void {
    const { memtable, partition, generation } = target;
    const prefix = generationPrefix(partition, generation) + String.fromCharCode(RowKind.sequence);
    const sequenceRow = (name: ByteKey, value: Uint8Array): void => {
      const bytes = memtable.get(prefix + name);
      const there = bytes === null ? null : decodeSequenceRow(bytes);
      const later = decodeSequenceRow(value);
      if (there === null || later === null) return;
      if (later.currentValue > there.currentValue) this.note(byteKeyToText(name));
    };
    eachRow(end, RowKind.sequence, timer, sequenceRow, done);
  }

  private note(name: string): void {
    this.count++;
    // Cut now and then only: names of a partition come in order, those of all of them do not.
    this.first.push(name);
    if (this.first.length >= 2 * SEQUENCES_AHEAD_MAX) this.cut();
  }

  private cut(): void {
    this.first.sort(compareText);
    this.first.length = Math.min(this.first.length, SEQUENCES_AHEAD_MAX);
  }

  names(): readonly string[] {
    this.cut();
    return [...this.first];
  }
}
