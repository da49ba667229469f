/**
 * What the workers of crash tests work on: sequences and locks that all share, and keys of which each worker has two of
 * its own.
 */
import { Prng } from "../../../src/base/prng.js";
import {
  type Findings,
  KeyOracle,
  LockOracle,
  type Send,
  SequenceOracle,
} from "./crash-workload.js";

export interface Objects {
  readonly sequences: readonly SequenceOracle[];
  readonly locks: readonly LockOracle[];
  readonly keys: readonly KeyOracle[];
}

/** One step of a worker: something with one of the objects, drawn. */
export function step(
  worker: number,
  serial: number,
  draw: Prng,
  objects: Objects,
  send: Send,
): Promise<void> {
  const sequence = objects.sequences[draw.below(objects.sequences.length)] as SequenceOracle;
  const lock = objects.locks[draw.below(objects.locks.length)] as LockOracle;
  // Keys belong to one worker each: a single writer makes "the last acknowledged write" a plain fact.
  const key = objects.keys[worker * 2 + draw.below(2)] as KeyOracle;
  const who = `w${worker}.${serial}`;
  switch (draw.below(10)) {
    case 0:
    case 1:
      return sequence.next(send, 1, who);
    case 2:
      return sequence.next(send, 1 + draw.below(20), who);
    case 3:
      return sequence.keyedNext(send, who, who);
    case 4:
    case 5:
      return lock.cycle(send, who, draw);
    case 6:
      return key.verify(send);
    case 7:
      return draw.chance(1, 4) ? key.remove(send) : key.set(send);
    default:
      return key.set(send);
  }
}

export function makeObjects(workers: number, findings: Findings): Objects {
  const many = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
  return {
    sequences: many(6).map((at) => new SequenceOracle(`orders-${at}`, findings)),
    locks: many(24).map((at) => new LockOracle(`jobs/${at}`, findings)),
    keys: many(workers * 2).map((at) => new KeyOracle(`data/${at % 7}/${at}`, findings)),
  };
}

/** Small and large blocks: the small ones reserve often, size 1 reserves each time. */
export async function createSequences({ sequences }: Objects, send: Send): Promise<void> {
  for (const [at, { name }] of sequences.entries()) {
    await send({ op: "create", name, blockSize: [1, 5, 100, null][at % 4] ?? null });
  }
}

/** Looks at everything: what was acknowledged is there. */
export async function verifyAll(objects: Objects, send: Send): Promise<void> {
  await Promise.all([
    ...objects.sequences.map((sequence) => sequence.verify(send)),
    ...objects.keys.map((key) => key.verify(send)),
  ]);
}
