/**
 * What nodes tell each other about requests: every kind of request and answer goes over the wire
 * and comes back the same, and nothing that is not one of them does harm.
 *
 * Seeded; SVC_FUZZ_INPUTS and SVC_FUZZ_SEED override number and seed. Invariants: 1. No input makes
 * a decoder throw, or a node that gets it. 2. What can be read is written back as the same bytes.
 */
import t from "tap";
import { ByteReader, ByteWriter } from "../../src/base/codec.js";
import { Prng } from "../../src/base/prng.js";
import {
  type CallAnswer,
  type CallRequest,
  CALL_SHAPES,
  writeAnswer,
  writeCall,
} from "../../src/operations/wire/calls.js";
import type { TraceParent } from "../../src/operations/api/tracing.js";
import { ofLockAnswer, ofLockCall } from "../../src/operations/wire/locks.js";
import { Draft, Inbox } from "../../src/operations/wire/frames.js";
import type { Shape } from "../../src/base/shape.js";
import { InventingReader } from "../doubles/base/inventing-reader.js";
import { Trio } from "../doubles/operations/trio.js";

const inputs = Number(process.env["SVC_FUZZ_INPUTS"] ?? 100_000);
const seed = Number(process.env["SVC_FUZZ_SEED"] ?? 20_260_101);
const random = new Prng(seed);

const pick = <T>(values: readonly T[]): T => values[random.below(values.length)] as T;
const flag = (): boolean => random.chance(1, 2);
const bytes = (): Uint8Array =>
  Uint8Array.from({ length: random.below(40) }, () => random.nextUint32() & 255);

/** A value of the kind that begins with `number`; null when none does. */
function invented<U>(shape: Shape<U>, number: number): U | null {
  for (let attempt = 0; attempt < 100; attempt++) {
    const reader = new InventingReader(random, [number]);
    const value = shape.read(reader);
    if (!reader.failed) return value;
  }
  return null;
}

/** The kinds of a union, each with a maker of its values. */
function makersOf<U extends { readonly kind: string }>(shape: Shape<U>): readonly (() => U)[] {
  const numbers = Array.from({ length: 256 }, (_, number) => number);
  return numbers
    .filter((number) => invented(shape, number) !== null)
    .map((number) => () => invented(shape, number) as U);
}

const requests = makersOf(CALL_SHAPES.request);
const answers = makersOf(CALL_SHAPES.answer);
const anyRequest = (): CallRequest => {
  const request = pick(requests)();
  return request.kind === "lock-call" ? ofLockCall(request) : request;
};
const anyAnswer = (): CallAnswer => {
  const answer = pick(answers)();
  return answer.kind === "lock" || answer.kind === "lock-answer" ? ofLockAnswer(answer) : answer;
};

function encode<T>(shape: Shape<T>, value: T): Uint8Array {
  const writer = new ByteWriter();
  shape.write(writer, value);
  return writer.finish();
}

function anyTrace(): TraceParent | null {
  if (flag()) return null;
  const digits = (count: number): string =>
    Array.from({ length: count }, () => random.below(16).toString(16)).join("");
  return { traceId: digits(32), spanId: digits(16), flags: random.below(256) };
}

/** A frame of some calls or answers, as a node would send it. */
function anyFrame(epoch = random.nextUint32()): Uint8Array {
  const calls = flag();
  const draft = new Draft(calls ? "calls" : "answers");
  const item = new ByteWriter();
  for (let count = 1 + random.below(3); count > 0; count--) {
    item.reset();
    const budgetMs = random.below(10_000);
    if (calls)
      writeCall(item, {
        budgetMs,
        requestId: pick(["", "a", "\u65e5\u672c"]),
        trace: anyTrace(),
        request: anyRequest(),
        knowsLocks: flag(),
      });
    else writeAnswer(item, anyAnswer(), flag());
    draft.add(epoch, 1 + random.below(50), item.finish());
  }
  return draft.take()[0]?.bytes ?? new Uint8Array();
}

/** A damaged form of `valid`. */
function damage(valid: Uint8Array): Uint8Array {
  const copy = valid.slice(0, random.chance(1, 5) ? random.below(valid.length + 1) : valid.length);
  for (let change = random.below(5); change > 0 && copy.length > 0; change--) {
    copy[random.below(copy.length)] = random.chance(1, 2)
      ? pick([0, 1, 2, 127, 128, 255])
      : random.nextUint32();
  }
  return copy;
}

t.test("P-053: every kind comes back as it was sent", async (t) => {
  const rounds = Math.ceil(Math.min(inputs, 20_000) / 40);
  const same = <T>(shape: Shape<T>, value: T): boolean => {
    const encoded = encode(shape, value);
    const reader = new ByteReader(encoded);
    const decoded = shape.read(reader);
    if (!reader.isComplete()) return false;
    // Canonical: the same bytes again; and the same value, member by member.
    const again = encode(shape, decoded);
    return again.length === encoded.length && again.every((byte, at) => byte === encoded[at]);
  };
  let compared = 0;
  const check = <U extends { readonly kind: string }>(
    shape: Shape<U>,
    makers: readonly (() => U)[],
  ): number => {
    for (const make of makers) {
      const { kind } = make();
      for (let round = 0; round < 20; round++) {
        const value = make();
        t.strictSame(shape.read(new ByteReader(encode(shape, value))), value, kind);
      }
      for (let round = 0; round < rounds; round++, compared++) {
        if (!same(shape, make())) t.fail(kind);
      }
    }
    return new Set(makers.map((make) => make().kind)).size;
  };
  t.equal(check(CALL_SHAPES.request, requests), requests.length, "every kind has one number");
  t.equal(check(CALL_SHAPES.answer, answers), answers.length, "every kind has one number");
  t.ok(requests.length >= 27 && answers.length >= 10, "all kinds were found");
  t.ok(compared > 0, `${compared} values, seed ${seed}`);
});

t.test("P-128: damaged frames are read or refused, and never harm", async (t) => {
  let read = 0;
  let items = 0;
  const inbox = new Inbox(1000);
  for (let input = 0; input < inputs; input++) {
    const valid = anyFrame();
    const frame = random.chance(1, 4) ? Uint8Array.from(bytes()) : damage(valid);
    const decoded = inbox.open(frame);
    if (decoded === null) continue;
    read++;
    for (const { content } of decoded.items) if (content !== null) items++;
  }
  t.ok(read > inputs / 4 && items > inputs / 8, `${read} frames, ${items} items, seed ${seed}`);
  const head = [1, 2, 0, 0, 0, 0];
  const many = [1, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 15];
  const counts = inbox.open(Uint8Array.from([...head, many.length, ...many]));
  t.same(counts?.items, [{ id: 1, content: null }], "counts are bounded");
  // Parts: more than the bound, out of order, and of two items.
  const part = (id: number, number: number, size: number): Uint8Array => {
    const item = [id, 0, 0, 0, 0, 0, 0, 0, number, ...new Uint8Array(size)];
    return Uint8Array.from([...head, item.length, ...item]);
  };
  const parts = [part(1, 1, 90), part(2, 2, 90), part(1, 3, 9), part(1, 3, 9), part(3, 2, 1)];
  const opened = parts.map((frame) => inbox.open(frame)?.items.length);
  t.same(opened, [0, 0, 1, 0, 0], "an item ends with its last part");
  inbox.open(part(4, 1, 100));
  const sizes = Array.from({ length: 12 }, () => inbox.open(part(4, 2, 100))?.items.length);
  t.equal(sizes.filter((count) => count === 1).length, 1, "too large: told once, then dropped");
});

t.test("P-128: a node survives every frame and answers what it can read", async (t) => {
  const trio = new Trio({ requestTimeoutMs: 50 });
  trio.moveAll(2);
  let asked = 0;
  for (let input = 0; input < inputs / 50; input++) {
    const draft = new Draft("calls");
    const item = new ByteWriter();
    const count = 1 + random.below(3);
    for (let id = 1; id <= count; id++) {
      // Half of them with names and numbers that get past the checks of the input.
      const made = anyRequest();
      const request = flag() ? made : ({ ...made, ...ACCEPTABLE } as CallRequest);
      const knowsLocks = flag();
      writeCall(item.reset(), {
        budgetMs: 20,
        requestId: "f",
        request,
        knowsLocks,
        trace: anyTrace(),
      });
      draft.add(7, id, item.finish());
    }
    const frame = draft.take()[0]?.bytes ?? new Uint8Array();
    const intact = flag();
    trio.node(2).callFrame(1, intact ? frame : damage(frame));
    if (random.chance(1, 8)) trio.node(1).callFrame(2, damage(anyFrame()));
    trio.world.settle();
    trio.world.pass(100, 50);
    const replies = trio.sent
      .filter(({ from, frame }) => from === 2 && frame.direction === "answers")
      .reduce((sum, { frame }) => sum + frame.items.length, 0);
    if (intact) {
      asked += count;
      if (replies !== count) t.equal(replies, count, "every call is answered once");
    }
    trio.sent.length = 0;
  }
  t.ok(asked > inputs / 100, `${asked} calls were answered`);
  t.equal(trio.open, 0, "nothing is left open");
});

/** Members that most kinds of requests accept. */
const ACCEPTABLE: Readonly<Record<string, unknown>> = {
  resource: "r",
  owner: Uint8Array.of(1),
  name: "s",
  key: "b/k",
  bucket: "b",
  prefix: "b",
  keySpace: "space",
  partitionId: 1,
  partitions: [1, 2, 3],
  after: null,
  cursor: null,
  durability: 1,
  plain: true,
  expiresMs: 1000,
  flags: 0,
  limit: 10,
  count: 2,
  revision: -1n,
  idempotencyKey: null,
};
