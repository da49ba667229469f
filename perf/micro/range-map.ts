/**
 * A map of many key ranges, in processor time: finding the range of a key, what one split costs each node that applies it,
 * and what the check of ownership costs a write in a partition where many ranges moved.
 *
 * Run: node dist/perf/micro/range-map.js [--tiny]
 */
import { pathToFileURL } from "node:url";
import { attempt, moveId, rangeGeneration } from "../../src/base/ids.js";
import { NO_STAMP } from "../../src/base/hlc.js";
import { findRange } from "../../src/control/ranges.js";
import type { Command, RangeDescriptor } from "../../src/machine/commands/command.js";
import { encodeRange } from "../../src/machine/meta/meta-rows.js";
import type { OwnershipRow } from "../../src/machine/ownership/ownership-row.js";
import {
  RowKind,
  generationPrefix,
  rangeKey,
  textToByteKey,
} from "../../src/machine/store/keys.js";
import type { Rows } from "../../src/machine/store/rows.js";
import { Bench } from "../../test/doubles/machine/bench.js";
import { RangeBench } from "../../test/doubles/machine/meta-ranges.js";

const SPACE = "users";
/** The partitions that the ranges lie on at first. */
const POOL = 64;
/** That a split is made of. */
const ENTRIES = 4;
const VALUE = new Uint8Array(100).fill(7);

function keyAt(at: number): string {
  return `${SPACE}/${String(at).padStart(7, "0")}`;
}

/** Every range holds ten keys. */
function descriptorsOf(ranges: number): readonly RangeDescriptor[] {
  return Array.from({ length: ranges }, (_, at) => ({
    startKey: at === 0 ? null : keyAt(at * 10),
    endKey: at === ranges - 1 ? null : keyAt((at + 1) * 10),
    partitionId: 1 + (at % POOL),
    generation: rangeGeneration(1),
  }));
}

/** A meta partition with so many ranges in one key space. */
function mapOf(ranges: number): RangeBench {
  const bench = new RangeBench(3, 0, POOL);
  const { machine, memtable } = bench;
  const rows = generationPrefix(machine.group, machine.record().generation);
  for (const descriptor of descriptorsOf(ranges)) {
    const { startKey } = descriptor;
    const start = startKey === null ? null : textToByteKey(startKey);
    const key = rangeKey(textToByteKey(SPACE), start);
    const row = encodeRange({ keySpace: SPACE, descriptor, changedLeaseMs: 1 });
    memtable.put(rows + String.fromCharCode(RowKind.range) + key, row);
  }
  return bench;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

export interface MapFigures {
  readonly ranges: number;
  /** After the splits. */
  readonly rangesAfter: number;
  /** Of one look-up, microseconds. */
  readonly lookUpUs: number;
  /** Of one entry of a split (there are four) as each node applies it, and of reading the map anew after it (ms). */
  readonly changeMs: number;
}

export function measuredMap(ranges: number, rounds: number, lookUps: number): MapFigures {
  const bench = mapOf(ranges);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = processorMs();
    split(bench, keyAt(round * 10 + 5));
    times.push((processorMs() - before) / ENTRIES);
  }
  const descriptors = bench.machine.meta.ranges(SPACE);
  const keys = Array.from({ length: 1000 }, (_, at) => keyAt((at * 7919) % (ranges * 10)));
  const before = processorMs();
  let found = 0;
  for (let at = 0; at < lookUps; at++) {
    found += findRange(descriptors, keys[at % keys.length] as string)?.partitionId ?? 0;
  }
  const lookUpUs = (1000 * (processorMs() - before)) / lookUps;
  if (found < lookUps) throw new Error("a key lies in no range");
  return { ranges, rangesAfter: descriptors.length, lookUpUs, changeMs: median(times) };
}

function split(bench: RangeBench, splitKey: string): void {
  const { meta } = bench.machine;
  const range = findRange(meta.keySpaces()[0]?.descriptors ?? [], splitKey);
  if (range === null) throw new Error("the key lies in a range");
  const { endKey, partitionId: source, generation } = range;
  const of = { keySpace: SPACE, startKey: splitKey, endKey, source, target: 0, generation };
  follow(bench, { kind: "begin-move", move: "split", ...of });
  const id = meta.move(SPACE)?.moveId ?? moveId(0);
  const named = { keySpace: SPACE, moveId: id };
  follow(bench, { kind: "cut-range", ...named, attempt: attempt(1) });
  follow(bench, { kind: "finish-move", ...named, side: "target" });
  if (meta.move(SPACE) !== null) {
    follow(bench, { kind: "finish-move", ...named, side: "source" });
  }
}

/** Applied, and read by whoever routes, plans and works by it. */
function follow(bench: RangeBench, command: Command): void {
  const answer = bench.ask(command);
  if (!answer.startsWith("done")) throw new Error(`${command.kind}: ${answer}`);
  const { meta } = bench.machine;
  meta.allRanges();
  meta.keySpaces();
  meta.moves();
}

export interface OwnershipFigures {
  readonly rows: number;
  /** Of one set (µs). */
  readonly setUs: number;
}

/** Sets in a partition with so many rows of ownership, taking turns. */
export function measuredOwnership(
  counts: readonly number[],
  rounds: number,
  sets: number,
): readonly OwnershipFigures[] {
  const benches = counts.map((rows) => ({ rows, bench: owning(rows), times: [] as number[] }));
  const keys = Array.from({ length: 1000 }, (_, at) => keyAt(at * 20));
  for (let round = 0; round < rounds; round++) {
    for (const { bench, times } of benches) {
      const before = processorMs();
      for (let at = 0; at < sets; at += 50) bench.apply(1, ...setsFrom(keys, at));
      times.push((1000 * (processorMs() - before)) / sets);
    }
  }
  return benches.map(({ rows, times }) => ({ rows, setUs: median(times) }));
}

function setsFrom(keys: readonly string[], from: number): Command[] {
  return Array.from({ length: 50 }, (_, at) => ({
    ...{ kind: "kv-set", key: keys[(from + at) % keys.length] as string, value: VALUE },
    ...{ flags: 0, expiresMs: 0, compareValue: null, compareRevision: -1n },
  })) as Command[];
}

/** Every second interval of ten keys left; the keys of the others are here. */
function owning(count: number): Bench {
  const bench = new Bench();
  const none: Pick<Rows, "put" | "delete" | "insert"> = {
    put: () => undefined,
    delete: () => undefined,
    insert: () => undefined,
  };
  for (let at = 0; at < count; at++) {
    const row: OwnershipRow = {
      ...{ keySpace: SPACE, startKey: keyAt(at * 20 + 10), endKey: keyAt(at * 20 + 20) },
      ...{ state: "left", generation: rangeGeneration(2), moveId: moveId(1) },
      ...{ attempt: attempt(1), nextImport: 1, keys: 0, digestLow: 0, digestHigh: 0 },
      ...{ stamp: NO_STAMP, purgedTo: null, isPurged: true },
    };
    bench.machine.ownership.assign(none as Rows, row);
  }
  return bench;
}

function print(maps: readonly MapFigures[], owned: readonly OwnershipFigures[]): void {
  const lines = [
    "| ranges of one key space | look-up | one change on each node that applies it |",
    "|---:|---:|---:|",
    ...maps.map(({ ranges, lookUpUs, changeMs }) => {
      return `| ${ranges} | ${lookUpUs.toFixed(2)} µs | ${changeMs.toFixed(1)} ms |`;
    }),
    "",
    "| rows of ownership in the partition | a set |",
    "|---:|---:|",
    ...owned.map(({ rows, setUs }) => `| ${rows} | ${setUs.toFixed(2)} µs |`),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

const started = process.argv[1];
if (started !== undefined && pathToFileURL(started).href === import.meta.url) {
  const isTiny = process.argv.includes("--tiny");
  const maps = (isTiny ? [10, 20] : [10, 1000, 3900]).map((ranges) => {
    return measuredMap(ranges, isTiny ? 2 : 9, isTiny ? 100 : 1_000_000);
  });
  print(maps, measuredOwnership([0, 10, 1000], isTiny ? 1 : 9, isTiny ? 100 : 50_000));
}
