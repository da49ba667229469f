/** The decoded map of key ranges, kept from change to change, against one that is read anew each time. */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import { attempt, moveId } from "../../../src/base/ids.js";
import type { Command, RangeDescriptor } from "../../../src/machine/commands/command.js";
import { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import {
  encodeCluster,
  encodeMember,
  encodePartition,
  encodeRange,
} from "../../../src/machine/meta/meta-rows.js";
import { RowKind, rangeKey, textToByteKey, uint32Key } from "../../../src/machine/store/keys.js";
import { RangeBench } from "../../doubles/machine/meta-ranges.js";

/** Of different lengths: rows lie by length first, key spaces are listed by bytes. */
const SPACES = ["e", "é", "long", "z", "lo", "a/deeper"];

/** All that is read of the map. */
function seen(meta: MetaReads): object {
  const ids = Array.from({ length: 30 }, (_, at) => at);
  return {
    cluster: meta.cluster(),
    members: ids.map((id) => meta.member(id)),
    // Before the list is asked for, and after it.
    single: ids.map((id) => meta.partition(id)),
    all: meta.allRanges(),
    spaces: meta.keySpaces(),
    ranges: [...SPACES, "unknown", "", "\ud800"].map((space) => meta.ranges(space)),
    moves: meta.moves(),
    partitions: meta.partitions().map(({ partitionId, state }) => `${partitionId} ${state}`),
    again: ids.map((id) => meta.partition(id)),
  };
}

function anew(bench: RangeBench): MetaReads {
  return new MetaReads(bench.machine.meta["rows"]);
}

/** Who changes a list that was given out throws. */
function freeze(meta: MetaReads): void {
  for (const list of [meta.allRanges(), meta.keySpaces(), meta.moves(), meta.partitions()]) {
    Object.freeze(list);
  }
  for (const { descriptors } of meta.keySpaces()) Object.freeze(descriptors);
}

function drawn(prng: Prng, bench: RangeBench): Command | null {
  const keySpace = SPACES[prng.below(SPACES.length)] as string;
  const { meta } = bench.machine;
  const move = meta.move(keySpace);
  const ranges = meta.ranges(keySpace);
  if (ranges.length === 0) {
    return { kind: "register-range", keySpace, partitionId: bench.home(keySpace) };
  }
  if (move !== null) {
    const of = { keySpace, moveId: moveId(move.moveId) };
    if (move.phase !== "copying") {
      return { kind: "finish-move", ...of, side: prng.chance(1, 2) ? "source" : "target" };
    }
    if (prng.chance(1, 8)) return { kind: "abort-move", ...of, reason: "deadline" };
    if (prng.chance(1, 8)) return { kind: "retry-move", ...of, attempt: move.attempt };
    return { kind: "cut-range", ...of, attempt: attempt(move.attempt) };
  }
  const at = prng.below(ranges.length);
  const { startKey, endKey, partitionId: source, generation } = ranges[at] as RangeDescriptor;
  const of = { kind: "begin-move", keySpace, endKey, source, generation } as const;
  if (ranges.length > 12 || prng.chance(1, 4)) {
    const target = ranges[prng.chance(1, 2) ? at - 1 : at + 1]?.partitionId ?? bench.home(keySpace);
    const kind = prng.chance(1, 10) ? "home" : "merge";
    return { ...of, move: kind, startKey, target: kind === "home" ? bench.home(keySpace) : target };
  }
  if (prng.chance(1, 30)) return { kind: "unregister-range", keySpace };
  const splitKey = `${keySpace}/${["", "é", "k"][prng.below(3)] as string}${prng.below(500)}`;
  return { ...of, move: "split", startKey: splitKey, target: 0 };
}

t.test(
  "P-042 what is kept is what is read anew, after any commands, however many at a time",
  (t) => {
    const kept = { descriptors: 0, most: 0, spacesGone: 0 };
    for (let seed = 1; seed <= 6; seed++) {
      const prng = new Prng(seed);
      const bench = new RangeBench(3, 0, 1 + prng.below(3));
      for (let at = 0; at < 160; at++) {
        const { meta } = bench.machine;
        const before = new Set(meta.keySpaces().flatMap(({ descriptors }) => descriptors));
        const spaces = meta.keySpaces().length;
        freeze(meta);
        const commands = Array.from({ length: 1 + prng.below(3) }, () => drawn(prng, bench));
        bench.apply(at, ...commands.filter((command) => command !== null));
        if (prng.chance(1, 20)) bench.flush();
        // Changes gather while nobody looks.
        if (prng.chance(1, 3)) continue;
        if (JSON.stringify(seen(meta)) !== JSON.stringify(seen(anew(bench)))) {
          t.strictSame(seen(meta), seen(anew(bench)), `seed ${seed}, step ${at}`);
          return t.end();
        }
        const now = meta.keySpaces().flatMap(({ descriptors }) => descriptors);
        kept.descriptors += now.filter((descriptor) => before.has(descriptor)).length;
        kept.most = Math.max(kept.most, now.length);
        if (meta.keySpaces().length < spaces) kept.spacesGone++;
      }
    }
    t.comment(JSON.stringify(kept));
    t.ok(kept.descriptors > 4000 && kept.most > 20 && kept.spacesGone > 2, "and much was kept");
    t.end();
  },
);

t.test(
  "P-042 the cluster, members and partitions that are asked for one by one are their rows now",
  (t) => {
    const bench = new RangeBench(3, 0, 2);
    const { meta } = bench.machine;
    const rows = bench.machine["groupRows"];
    const cluster = meta.cluster();
    const member = meta.member(1);
    const record = meta.partition(1);
    if (cluster === null || member === null || record === null) throw new Error("it is founded");
    t.equal(meta.cluster(), cluster, "nothing is decoded twice");
    t.equal(meta.member(1), member);
    t.equal(meta.partitions()[0], meta.partition(1));
    t.equal(meta.member(9), null);
    rows.put(RowKind.cluster, "", encodeCluster({ ...cluster, replicationFactor: 3 }));
    rows.put(RowKind.member, uint32Key(9), encodeMember({ ...member, nodeId: 9 }));
    rows.put(RowKind.partition, uint32Key(1), encodePartition({ ...record, state: "Removed" }));
    t.equal(meta.cluster()?.replicationFactor, 3);
    t.equal(meta.member(9)?.nodeId, 9, "who was none is a member");
    t.equal(meta.partition(1)?.state, "Removed", "in the middle of a command too");
    t.equal(meta.partitions()[0]?.state, "Removed");
    rows.delete(RowKind.member, uint32Key(9));
    rows.delete(RowKind.partition, uint32Key(1));
    t.equal(meta.member(9), null);
    t.equal(meta.partition(1), null);
    t.not(meta.partitions()[0]?.partitionId, 1);
    t.equal(meta.partition(1), null);
    t.equal(meta.partition(2)?.partitionId, 2, "others are still there");
    t.end();
  },
);

t.test("one change of a map of many ranges decodes what it wrote, and nothing else", (t) => {
  const bench = new RangeBench(3, 0, 2);
  bench.register("e");
  bench.register("m");
  for (let at = 10; at < 40; at++) bench.moved("e", "split", `e/${at}`);
  const { meta } = bench.machine;
  const before = meta.allRanges();
  const other = meta.ranges("m");
  t.equal(meta.allRanges(), before, "nothing changed");
  t.equal(bench.split("e", "e/205").split(" ")[0], "done");
  t.equal(meta.allRanges(), before, "a move that begins changes no range");
  t.equal(meta.moves().length, 1);
  bench.cut("e");
  const after = meta.allRanges();
  t.strictSame(after, anew(bench).allRanges());
  const fresh = after.filter((row) => !before.includes(row));
  t.strictSame(
    fresh.map(({ descriptor }) => descriptor.startKey),
    ["e/20", "e/205"],
  );
  t.equal(meta.ranges("m"), other, "the list of another key space is the same");
  t.equal(before.length, 32, "a list that was given out stays as it was");
  t.end();
});

t.test("more changes than are remembered: all is read", (t) => {
  const bench = new RangeBench(3, 0, 1);
  bench.register("e");
  const { meta } = bench.machine;
  const [first] = meta.allRanges();
  if (first === undefined) throw new Error("it is registered");
  const rows = bench.machine["groupRows"];
  for (let at = 0; at < 5000; at++) {
    const startKey = `e/${10_000 + at}`;
    const descriptor = { ...first.descriptor, startKey };
    const row = encodeRange({ keySpace: "e", descriptor, changedLeaseMs: 1 });
    rows.put(RowKind.range, rangeKey("e", textToByteKey(startKey)), row);
  }
  t.equal(meta.allRanges().length, 5001);
  t.equal(meta.ranges("e").length, 5001);
  rows.delete(RowKind.range, rangeKey("e", "e/10007"));
  t.equal(meta.ranges("e").length, 5000, "and from then on again what changed");
  t.strictSame(meta.allRanges(), anew(bench).allRanges());
  t.end();
});
