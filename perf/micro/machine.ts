/**
 * Micro benchmark of the state machine on one core: codec, apply, memtable, freeze, snapshot.
 *
 * Prints operations per second of processor time (collection included) and nanoseconds per
 * operation; no assertion on time. Run the compiled file with node. Invariants: 1. Each part works
 * on rows that exist and on new ones, as named. 2. Results are used.
 */
import { NO_STAMP } from "../../src/base/hlc.js";
import { attempt, moveId, partitionId, rangeGeneration } from "../../src/base/ids.js";
import { decodeEntry, encodeEntry } from "../../src/machine/commands/codec.js";
import type { Command, Outcome } from "../../src/machine/commands/command.js";
import { KernelSorter } from "../../src/machine/store/kernel-sorter.js";
import { Machine } from "../../src/machine/machine.js";
import { Memtable } from "../../src/machine/store/memtable.js";
import type { StorePort } from "../../src/ports.js";
import { createKernels } from "../../src/wasm/kernels.js";

const BATCH = 64;

const emptyStore: StorePort = {
  get: () => null,
  scan: () => undefined,
  write: () => undefined,
  sizeBytes: () => 0,
  close: () => undefined,
};

const kernelSorter = new KernelSorter(createKernels({ mode: "wasm" }).compact);

function report(name: string, operations: number, elapsedMs: number): void {
  const perSecond = Math.round((operations / elapsedMs) * 1000);
  const nanoseconds = Math.round((elapsedMs * 1e6) / operations);
  console.log(
    `${name.padEnd(46)} ${String(perSecond).padStart(10)}/s ${String(nanoseconds).padStart(7)} ns`,
  );
}

/**
 * Processor time of this process so far (ms): unlike wall time it does not count what others do
 * meanwhile.
 */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Best of three: other work on the machine only ever adds time. */
function time(name: string, operations: number, work: () => void): void {
  let bestMs = Infinity;
  for (let round = 0; round < 3; round++) {
    const start = processorMs();
    work();
    bestMs = Math.min(bestMs, processorMs() - start);
  }
  report(name, operations, bestMs);
}

class Bench {
  readonly memtable = new Memtable({ store: emptyStore, sorter: kernelSorter });
  readonly machine = new Machine(this.memtable, partitionId(1));
  private index = 0;
  private outcomes: Outcome[] = [];

  flush(): void {
    this.memtable.freeze();
    this.memtable.dropImmutable();
  }

  apply(commands: readonly Command[]): void {
    this.index++;
    this.outcomes.length = 0;
    const entry = { index: this.index, term: 1, leaseMs: this.index, stamp: NO_STAMP };
    this.machine.apply(entry, commands, this.outcomes);
  }
}

function batches(count: number, make: (at: number) => Command): Command[][] {
  const list: Command[][] = [];
  for (let at = 0; at < count; at += BATCH) {
    list.push(Array.from({ length: BATCH }, (_, inner) => make(at + inner)));
  }
  return list;
}

/**
 * Times the second of two equal rounds. `flushRows`: rows at which the memtable is frozen and
 * dropped, 0 = never.
 */
function benchApply(
  name: string,
  operations: number,
  flushRows: number,
  make: (at: number) => Command,
  prepare: readonly Command[] = [],
): void {
  const bench = new Bench();
  bench.apply(prepare);
  const list = batches(operations, make);
  const run = (): void => {
    for (const batch of list) {
      bench.apply(batch);
      if (flushRows > 0 && bench.memtable.rows >= flushRows) bench.flush();
    }
  };
  run();
  time(name, operations, run);
}

const owner = new TextEncoder().encode("owner-0123456789abcdef");
const value = new Uint8Array(100).fill(7);

function lockOrUnlock(at: number, resources: number): Command {
  const resource = `jobs/mail-${(at >> 1) % resources}`;
  return at % 2 === 0
    ? { kind: "try-lock", resource, owner, expiresMs: 30_000 }
    : { kind: "try-unlock", resource, owner };
}

function set(at: number, keys: number, revisionsRetained = 16): Command {
  return {
    kind: "kv-set",
    key: `bench/key-${at % keys}`,
    value,
    compareValue: null,
    compareRevision: 0n,
    flags: 0,
    expiresMs: 0,
    revisionsRetained,
  };
}

/** So many rows of ownership in the key space of `set`, none of which has one of its keys. */
function moving(rows: number): Command[] {
  const bound = (at: number): string => `bench/a${String(at).padStart(5, "0")}`;
  return Array.from({ length: rows }, (_, at) => ({
    kind: "range-freeze",
    keySpace: "bench",
    startKey: bound(at),
    endKey: bound(at + 1),
    generation: rangeGeneration(1),
    moveId: moveId(at + 1),
    attempt: attempt(1),
  }));
}

/** A copy of 100,000 keys in slices, and their count. */
function benchCopy(): void {
  const keys = 100_000;
  const bench = new Bench();
  for (const batch of batches(keys, (at) => set(at, keys))) bench.apply(batch);
  const all = { keySpace: "bench", startKey: null, endKey: null };
  let read = 0;
  time("copy, 100,000 keys of 100 B, per key", keys, () => {
    const copy = bench.machine.openCopy(all, () => bench.machine.leaseMs);
    for (let isEnd = false; !isEnd;) {
      const slice = copy.next({ maxBytes: 256 * 1024, maxVisits: 2000 });
      if (slice === "overrun") break;
      read += slice.items.length;
      ({ isEnd } = slice);
    }
    copy.close();
  });
  time("count of what is copied, per key", keys, () => {
    const count = bench.machine.openCount(all);
    while (!count.next(2000));
    read += count.counted.keys;
    count.close();
  });
  console.log(`(read ${read})`);
}

function main(): void {
  const rows = 2000;
  benchApply("apply lock+unlock, 1 resource", 200_000, 0, (at) => lockOrUnlock(at, 1));
  benchApply("apply lock+unlock, 1,000 resources", 200_000, 0, (at) => lockOrUnlock(at, 1000));
  benchApply("  the same, flushed every 2,000 rows", 200_000, rows, (at) => lockOrUnlock(at, 1000));
  benchApply("apply set 100 B, 1 key", 200_000, 0, (at) => set(at, 1));
  benchApply("apply set 100 B, 1,000 keys", 200_000, 0, (at) => set(at, 1000));
  benchApply("  the same, flushed every 2,000 rows", 200_000, rows, (at) => set(at, 1000));
  const owned = moving(1000);
  benchApply("  the same, 1,000 rows of ownership", 200_000, 0, (at) => set(at, 1000), owned);
  benchCopy();
  benchApply("apply set 100 B, no history, 1,000 keys", 200_000, 0, (at) => set(at, 1000, 1));
  benchApply("apply set 100 B, all keys new", 50_000, 0, (at) => set(at, 50_000));

  const stamp = { leaseMs: 1, stamp: NO_STAMP };
  const locks = batches(200_000, (at) => lockOrUnlock(at, 1000));
  const sets = batches(200_000, (at) => set(at, 1000));
  time("encode lock+unlock, 64 per entry", 200_000, () =>
    locks.forEach((b) => encodeEntry(stamp, b)),
  );
  time("encode set 100 B, 64 per entry", 200_000, () => sets.forEach((b) => encodeEntry(stamp, b)));
  const lockBytes = locks.map((batch) => encodeEntry(stamp, batch));
  const setBytes = sets.map((batch) => encodeEntry(stamp, batch));
  time("decode lock+unlock", 200_000, () => lockBytes.forEach((b) => decodeEntry(b)));
  time("decode set 100 B", 200_000, () => setBytes.forEach((b) => decodeEntry(b)));

  const keys = Array.from(
    { length: 100_000 },
    (_, at) => `some-prefix/key-${(at * 7919) % 100_000}`,
  );
  const memtable = new Memtable({ store: emptyStore, sorter: kernelSorter });
  time("memtable put, 100,000 keys", 100_000, () =>
    keys.forEach((key) => memtable.put(key, value)),
  );
  let found = 0;
  time("memtable get, 100,000 keys", 100_000, () =>
    keys.forEach((key) => (found += memtable.get(key)?.length ?? 0)),
  );
  const freezeStart = processorMs();
  const frozen = memtable.freeze();
  report("memtable freeze, 100,000 rows", frozen.changes.length, processorMs() - freezeStart);
  console.log(`(checksum ${found})`);
}

main();
