/**
 * The vocabulary floor: codecs round-trip at every capacity, byte order is byte order, int64 is
 * exact.
 */
import fc from "fast-check";
import t from "tap";
import { AssertionError, assert, present } from "../../../src/base/assert.js";
import {
  compareBytes,
  compareText,
  concatBytes,
  decodeText,
  encodeText,
  equalBytes,
  isWellFormedText,
  prefixSuccessor,
  startsWithBytes,
  textSizeBytes,
} from "../../../src/base/bytes.js";
import { ByteSlabs } from "../../../src/base/byte-slabs.js";
import { ByteReader, ByteWriter } from "../../../src/base/codec.js";
import {
  STAMP_JUMP_MAX_MS,
  compareHlc,
  StampClock,
  NO_STAMP,
  type Hlc,
} from "../../../src/base/hlc.js";
import { INT64_MAX, INT64_MIN, Int64, isInt32, isInt64 } from "../../../src/base/int64.js";
import { Prng } from "../../../src/base/prng.js";
import { xxh32, xxh32Of } from "../../../src/base/xxhash.js";

const anyText = fc.string({ unit: "binary", maxLength: 60 });
const int64 = fc.oneof(
  fc.bigInt(INT64_MIN, INT64_MAX),
  fc.constantFrom(INT64_MIN, INT64_MAX, 0n, -1n, 2n ** 31n, 2n ** 32n, 2n ** 53n, -(2n ** 53n)),
);

type Field =
  | {
      readonly kind: "uint8" | "uint32" | "int32" | "uint53" | "int53" | "length";
      readonly value: number;
    }
  | { readonly kind: "int64"; readonly value: bigint }
  | { readonly kind: "bytes"; readonly value: Uint8Array }
  | { readonly kind: "text"; readonly value: string };

const field: fc.Arbitrary<Field> = fc.oneof(
  fc.record({ kind: fc.constant("uint8" as const), value: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ kind: fc.constant("uint32" as const), value: fc.nat(0xffff_ffff) }),
  fc.record({ kind: fc.constant("length" as const), value: fc.nat(0xffff_ffff) }),
  fc.record({ kind: fc.constant("int32" as const), value: fc.integer() }),
  fc.record({ kind: fc.constant("uint53" as const), value: fc.maxSafeNat() }),
  fc.record({ kind: fc.constant("int53" as const), value: fc.maxSafeInteger() }),
  fc.record({ kind: fc.constant("int64" as const), value: int64 }),
  fc.record({ kind: fc.constant("bytes" as const), value: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({ kind: fc.constant("text" as const), value: anyText }),
);

function write(writer: ByteWriter, item: Field): void {
  switch (item.kind) {
    case "int64":
      writer.int64(item.value);
      break;
    case "bytes":
      writer.bytes(item.value);
      break;
    case "text":
      writer.text(item.value);
      break;
    default:
      writer[item.kind](item.value);
  }
}

function read(reader: ByteReader, item: Field): unknown {
  return reader[item.kind]();
}

t.test(
  "P-160 what is written is read, from any first capacity, and reuse leaves nothing behind",
  (t) => {
    fc.assert(
      fc.property(
        fc.array(field, { maxLength: 30 }),
        fc.integer({ min: 1, max: 64 }),
        (items, capacity) => {
          const writer = new ByteWriter(capacity);
          for (const item of items) write(writer, item);
          const first = writer.finish();
          writer.reset();
          for (const item of items) write(writer, item);
          if (!equalBytes(first, writer.finish())) throw new Error("reuse changes the bytes");
          if (!equalBytes(first, writer.handOver()))
            throw new Error("handed over is something else");
          if (writer.sizeBytes !== 0) throw new Error("what is handed over is still written to");
          const reader = new ByteReader(first);
          for (const item of items) {
            const value = read(reader, item);
            const same =
              item.kind === "bytes"
                ? equalBytes(value as Uint8Array, item.value)
                : Object.is(value, item.value) || value === item.value;
            if (!same)
              throw new Error(`${item.kind}: wrote ${String(item.value)}, read ${String(value)}`);
          }
          if (!reader.isComplete()) throw new Error("bytes are left over");
        },
      ),
      { numRuns: 2000 },
    );
    t.end();
  },
);

t.test("P-128 a reader never reads past its end and never throws", (t) => {
  const kinds = [
    "uint8",
    "uint32",
    "int32",
    "uint53",
    "int53",
    "int64",
    "length",
    "bytes",
    "bytesView",
    "text",
    "boolean",
  ] as const;
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.array(fc.constantFrom(...kinds), { maxLength: 20 }),
      (bytes, reads) => {
        const reader = new ByteReader(bytes);
        for (const kind of reads) reader[kind]();
        if (reader.position > bytes.length) throw new Error("read past the end");
        if (reader.failed && reader.isComplete()) throw new Error("failed and complete");
      },
    ),
    { numRuns: 20_000 },
  );
  const overLong = new ByteReader(Uint8Array.of(0x80, 0x00));
  overLong.length();
  t.ok(overLong.failed, "one encoding for one length");
  const huge = new ByteReader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f, 1));
  t.equal(huge.bytes().length, 0);
  t.ok(huge.failed, "a length beyond what remains allocates nothing");
  t.end();
});

t.test("counted bytes are read as a copy or as a view", (t) => {
  const written = new ByteWriter().bytes(Uint8Array.of(1, 2, 3)).finish();
  const copy = new ByteReader(written).bytes();
  const view = new ByteReader(written).bytesView();
  t.same([...copy], [...view]);
  written[1] = 9;
  t.same([...copy], [1, 2, 3]);
  t.same([...view], [9, 2, 3]);
  t.end();
});

t.test("P-146 byte order, text order and sizes agree with UTF-8", (t) => {
  fc.assert(
    fc.property(anyText, anyText, (a, b) => {
      t.equal(isWellFormedText(a), a.isWellFormed());
      if (!a.isWellFormed() || !b.isWellFormed()) return;
      const [left, right] = [Buffer.from(a), Buffer.from(b)];
      if (Math.sign(compareText(a, b)) !== Buffer.compare(left, right))
        throw new Error("text order");
      if (Math.sign(compareBytes(left, right)) !== Buffer.compare(left, right))
        throw new Error("byte order");
      if (textSizeBytes(a) !== left.length) throw new Error("size");
      if (decodeText(encodeText(a)) !== a) throw new Error("round trip");
    }),
    { numRuns: 5000 },
  );
  t.ok(compareText("\uffff", "\u{10000}") < 0, "astral comes after everything else");
  t.notOk(isWellFormedText("a\ud800"));
  t.notOk(isWellFormedText("\udc00a"));
  t.equal(decodeText(Uint8Array.of(0xed, 0xa0, 0x80)), null, "a surrogate is not UTF-8");
  t.throws(() => encodeText("\ud800"), AssertionError);
  t.end();
});

t.test("P-054 the successor of a prefix bounds exactly what begins with it", (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5 }), fc.uint8Array({ maxLength: 7 }), (prefix, key) => {
      const end = prefixSuccessor(prefix);
      const inside = compareBytes(key, prefix) >= 0 && (end === null || compareBytes(key, end) < 0);
      if (inside !== startsWithBytes(key, prefix)) throw new Error(`${prefix} ${key}`);
    }),
    { numRuns: 5000 },
  );
  t.equal(prefixSuccessor(Uint8Array.of(0xff, 0xff)), null);
  t.same(prefixSuccessor(Uint8Array.of(1, 0xff)), Uint8Array.of(2));
  t.same(
    concatBytes(Uint8Array.of(1), Uint8Array.of(), Uint8Array.of(2, 3)),
    Uint8Array.of(1, 2, 3),
  );
  t.end();
});

t.test("bytes of a slab are nobody else's, zero at first, and as large as asked for", (t) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 90 }), { maxLength: 60 }), (values) => {
      const slabs = new ByteSlabs(256, 64);
      const copies = values.map((value) => {
        t.ok(slabs.take(value.length).every((byte) => byte === 0));
        return slabs.copy(value);
      });
      for (const [at, value] of values.entries()) {
        t.ok(equalBytes(copies[at] ?? new Uint8Array(1), value), "as it was copied");
        copies[at]?.fill(at);
      }
      for (const [at, copy] of copies.entries()) t.ok(copy.every((byte) => byte === (at & 255)));
    }),
  );
  t.end();
});

t.test("P-144 int64 is exact both ways", (t) => {
  fc.assert(
    fc.property(int64, (value) => {
      const halves = Int64.fromBigInt(value);
      if (halves.toBigInt() !== value || halves.toString() !== value.toString())
        throw new Error(String(value));
      const safe =
        value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
      if (halves.isSafe() !== safe) throw new Error(`safe ${value}`);
      if (safe && !Int64.fromNumber(Number(value)).equals(halves))
        throw new Error(`number ${value}`);
    }),
    { numRuns: 5000 },
  );
  t.throws(() => Int64.fromBigInt(INT64_MAX + 1n), AssertionError);
  t.throws(() => Int64.fromNumber(2 ** 53), AssertionError);
  t.ok(isInt64(INT64_MIN) && !isInt64(INT64_MIN - 1n));
  t.ok(isInt32(2 ** 31 - 1) && !isInt32(2 ** 31) && !isInt32(0.5));
  t.end();
});

t.test("P-063 stamps never go back, and a wild clock moves them only so far", (t) => {
  const step = fc.record({
    wall: fc.integer({ min: -1000, max: 4_000_000_000_000 }),
    passedMs: fc.integer({ min: 0, max: 3 * STAMP_JUMP_MAX_MS }),
    other: fc.option(fc.integer({ min: 1, max: 2_000_000_000_000 }), { nil: null }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const stamps = new StampClock(3);
      let last: Hlc = NO_STAMP;
      let nowMs = 5;
      let boundMs = Infinity;
      for (const { wall, passedMs, other } of steps) {
        nowMs += passedMs;
        boundMs += passedMs;
        if (other !== null) {
          stamps.seen({ n: 1, l: other, c: 0 }, nowMs);
          if (other > last.l) {
            last = { n: 1, l: other, c: 0 };
            boundMs = other + STAMP_JUMP_MAX_MS;
          }
        }
        const next = stamps.next(wall, nowMs, null);
        if (compareHlc(next, last) <= 0) throw new Error("went back");
        if (next.l > Math.max(boundMs, last.l + 1)) throw new Error("jumped");
        if (boundMs === Infinity && next.l > 0) boundMs = next.l + STAMP_JUMP_MAX_MS;
        last = next;
      }
    }),
    { numRuns: 5000 },
  );
  const full = new StampClock(2);
  full.seen({ n: 1, l: 50, c: 0xffff_ffff }, 0);
  t.same(full.next(10, 0, null), { n: 2, l: 51, c: 0 });
  const start = 1_700_000_000_000;
  const wild = new StampClock(2);
  wild.seen({ n: 1, l: start, c: 0 }, 0);
  for (let batch = 0; batch < 100; batch++) wild.next(4_000_000_000_000, batch, null);
  const { l } = wild.next(4_000_000_000_000, 100, null);
  t.equal(l - start, STAMP_JUMP_MAX_MS + 100, "a day and the time that passed, for all batches");
  t.equal(wild.heldBack, 101, "and it is told");
  t.end();
});

t.test("P-063 stamps of a group that was idle for days are those of the wall clock", (t) => {
  const start = 1_700_000_000_000;
  const idle = new StampClock(2);
  idle.seen({ n: 1, l: start, c: 0 }, 1000);
  const daysMs = 10 * STAMP_JUMP_MAX_MS;
  t.same(idle.next(start + daysMs, 1000 + daysMs, null), { n: 2, l: start + daysMs, c: 0 });
  const leading = new StampClock(2);
  leading.next(start, 1000, null);
  t.equal(
    leading.next(start + daysMs, 1000 + daysMs, null).l,
    start + daysMs,
    "its leader's own, too",
  );
  const started = new StampClock(2);
  started.seen({ n: 1, l: start, c: 0 }, 5);
  const wallMs = start + daysMs;
  t.equal(started.next(wallMs, 6, wallMs - 500).l, wallMs, "after a stop of days, too");
  const alone = new StampClock(2);
  alone.seen({ n: 1, l: start, c: 0 }, 5);
  t.equal(alone.next(wallMs, 6, Infinity).l, wallMs, "and on a node that is alone");
  t.equal(idle.heldBack + leading.heldBack + started.heldBack + alone.heldBack, 0);
  const ahead = alone.next(wallMs + daysMs, 7, wallMs).l;
  t.equal(ahead, wallMs + STAMP_JUMP_MAX_MS, "the bound is that of the other nodes' clocks");
  t.equal(alone.next(wallMs, 8, start).l, ahead, "and stamps never go back for it");
  t.end();
});

t.test("xxh32 of bytes is the same wherever they lie and however they are read", (t) => {
  const prng = new Prng(9);
  const bytes = Uint8Array.from({ length: 700 }, () => prng.below(256));
  const view = new DataView(bytes.buffer);
  for (let size = 0; size < 600; size++) {
    const whole = xxh32(bytes, 5, 0, size);
    const moved = new Uint8Array(size + 8);
    for (const at of [1, 4, 7]) {
      moved.set(bytes.subarray(0, size), at);
      if (xxh32(moved, 5, at, at + size) !== whole) t.fail(`${size} bytes at ${at}`);
    }
    if (xxh32Of(view, 5, 0, size) !== whole) t.fail(`${size} bytes by words`);
  }
  const text = new TextEncoder().encode("Nobody inspects the spammish repetition");
  t.equal(xxh32(text, 0), 0xe2293b2f, "as its specification has it");
  t.end();
});

t.test("the generator is a function of its seed, and forks do not disturb it", (t) => {
  const [a, b] = [new Prng(7), new Prng(7)];
  t.same(
    Array.from({ length: 50 }, () => a.nextUint32()),
    Array.from({ length: 50 }, () => b.nextUint32()),
  );
  const draws = Array.from({ length: 4000 }, () => a.below(8));
  for (let face = 0; face < 8; face++) {
    const share = draws.filter((draw) => draw === face).length;
    t.ok(share > 400 && share < 600, `face ${face}: ${share}`);
  }
  t.not(new Prng(1).fork("x").nextUint32(), new Prng(1).fork("y").nextUint32());
  t.throws(() => a.below(0), AssertionError);
  t.end();
});

t.test("assertions throw with their message", (t) => {
  t.throws(() => assert(false, "why"), { message: "why", code: "assertion-failed" });
  t.equal(present(0, "zero is present"), 0);
  t.throws(() => present(null, "gone"), AssertionError);
  t.end();
});
