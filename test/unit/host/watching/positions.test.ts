/** Cursors of watches: what they say, and what is none (W5, W7). */
import t from "tap";
import { WATCH_CURSOR_MAX_BYTES } from "../../../../src/base/limits.js";
import { ByteWriter } from "../../../../src/base/codec.js";
import { Prng } from "../../../../src/base/prng.js";
import { sealCursor } from "../../../../src/machine/kv/cursor.js";
import {
  type Position,
  clusterMark,
  decodePositions,
  encodePositions,
  isBehind,
} from "../../../../src/host/watching/positions.js";

const mark = clusterMark("cluster-a");
const QUERY = "watch/1/k";

function positions(count: number, step = 1): Map<number, Position> {
  const map = new Map<number, Position>();
  for (let at = 0; at < count; at++) {
    map.set(1 + at * step, { l: 1_700_000_000_000 + at, c: at * 7, leaseMs: 5000 + at });
  }
  return map;
}

t.test("W5 what a cursor says is what it was made of", (t) => {
  for (const count of [0, 1, 2, 50, 200]) {
    const made = positions(count, 3);
    const text = encodePositions(QUERY, mark, made);
    t.match(text, /^[\w-]+$/, "text that any wire takes");
    t.same(decodePositions(QUERY, mark, text, []), made);
  }
  const wide = new Map([[7, { l: Number.MAX_SAFE_INTEGER, c: 0xffff_ffff, leaseMs: 0 }]]);
  t.same(decodePositions(QUERY, mark, encodePositions(QUERY, mark, wide), []), wide);
  t.end();
});

t.test("W5 of many partitions neighbours share a position: it fits, and nothing is lost", (t) => {
  for (const [count, step] of [
    [1000, 1],
    [4096, 2],
    [201, 7919],
    [4096, 10_007],
  ] as const) {
    const made = positions(count, step);
    const text = encodePositions(QUERY, mark, made);
    t.ok(text.length <= WATCH_CURSOR_MAX_BYTES, `${count} in ${text.length} characters`);
    const read = decodePositions(QUERY, mark, text, [0, ...made.keys(), 2 ** 31]);
    if (read === null || read === "foreign") return t.fail("it is read");
    t.equal(read.size, count, "and no partition that there is not");
    for (const [partition, at] of made) {
      const then = read.get(partition);
      const isSafe = then !== undefined && !isBehind(then, at) && then.leaseMs <= at.leaseMs;
      if (!isSafe) t.fail(`partition ${partition} would lose something`);
    }
  }
  t.end();
});

t.test("W5 W7 a cursor of another name is none; one of another cluster is known as such", (t) => {
  const text = encodePositions(QUERY, mark, positions(2));
  t.equal(decodePositions("watch/1/j", mark, text, [1]), null);
  t.equal(decodePositions("watch/2/k", mark, text, [1]), null);
  t.equal(decodePositions(QUERY, clusterMark("cluster-b"), text, [1]), "foreign");
  t.end();
});

t.test("W5 a damaged cursor is none", (t) => {
  const random = new Prng(1);
  const text = encodePositions(QUERY, mark, positions(3));
  for (let cut = 0; cut < text.length; cut++) {
    if (decodePositions(QUERY, mark, text.slice(0, cut), [1]) !== null) t.fail(`cut at ${cut}`);
  }
  for (let round = 0; round < 2000; round++) {
    const at = random.below(text.length);
    const letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh0123456789-_=/ é"[random.below(50)] ?? "A";
    if (letter === text[at]) continue;
    const damaged = text.slice(0, at) + letter + text.slice(at + 1);
    if (decodePositions(QUERY, mark, damaged, [1]) !== null) t.fail(damaged);
  }
  for (const other of ["", "A", "AAAA", `${text}A`, text + text]) {
    t.equal(decodePositions(QUERY, mark, other, [1]), null);
  }
  t.end();
});

t.test("W5 P-185 a made-up cursor of hundreds of wide parts fills no memory", (t) => {
  const writer = new ByteWriter(64).uint32(mark.low).uint32(mark.high).length(200);
  for (let part = 0; part < 200; part++) {
    writer
      .uint32(part << 16)
      .length(0xffff)
      .uint53(1)
      .uint32(0)
      .uint53(0);
  }
  const read = decodePositions(QUERY, mark, sealCursor(QUERY, writer.finish()), [1, 2, 3]);
  t.same(read instanceof Map ? [...read.keys()] : read, [1, 2, 3], "of partitions that there are");
  t.end();
});
