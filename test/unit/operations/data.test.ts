/**
 * Locks, sequences and key/value through the operations over the real host and machine: the
 * contract's tables.
 */
import t from "tap";
import {
  type Command,
  KvFlag,
  KvType,
  LockType,
  SequenceType,
} from "../../../src/machine/commands/command.js";
import type { AllocationAnswer, KvPageAnswer } from "../../../src/operations/api/answers.js";
import { TURN_VISITS } from "../../../src/operations/admission/slices.js";
import {
  Bench,
  create,
  deleteSequence,
  encode,
  get,
  getSequence,
  info,
  lock,
  next,
  range,
  reserve,
  scanAll,
  set,
  unlock,
  update,
} from "../../doubles/operations/fixture.js";

const text = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : new TextDecoder().decode(bytes);
const token = (answer: { fencingToken: { toString(): string } }): string =>
  answer.fencingToken.toString();

function values(answer: AllocationAnswer): string {
  const { allocation } = answer;
  if (allocation === null) return `type ${answer.type}`;
  const { start, end, count, revision } = allocation;
  return `${start}-${end} x${count} r${revision}`;
}

for (const durability of [1, 0]) {
  const label = durability === 1 ? "persistent" : "ephemeral";
  t.test(`L1 to L11, L13, L19, P-069, P-072: ${label} locks`, async (t) => {
    const bench = new Bench();
    const tryLock = (owner: string, ms = 1000) => bench.ask(lock("res", owner, ms, durability));
    const extend = (owner: string, ms: number) =>
      bench.ask({ ...lock("res", owner, ms, durability), kind: "try-extend" as const });
    const release = (owner: string) => bench.ask(unlock("res", owner, durability));
    const look = () => bench.ask(info("res", durability));
    t.equal(look().type, LockType.doesNotExist, "L11 never locked");
    t.equal(extend("a", 10).type, LockType.doesNotExist, "L6");
    t.equal(release("a").type, LockType.doesNotExist, "L9");
    const first = tryLock("a");
    t.equal(first.type, LockType.locked, "L1");
    const floor = first.fencingToken.toBigInt();
    t.equal(floor, 0n, "L13, L15: the first grant is 0, in the first term of ephemeral ones, too");
    bench.world.pass(100);
    t.match(tryLock("a", 9000), { type: LockType.locked }, "L2");
    t.equal(look().expiresInMs, 900, "L2 leaves the lease");
    const busy = tryLock("b");
    t.equal(busy.type, LockType.busy, "L3");
    t.equal(token(busy), "0");
    t.equal(extend("b", 10).type, LockType.invalidOwner, "L5");
    t.equal(release("b").type, LockType.invalidOwner, "L8");
    const extended = extend("a", 500);
    t.equal(extended.type, LockType.extended, "L4");
    t.equal(extended.fencingToken.toBigInt(), floor, "L4: same token");
    const got = look();
    t.equal(got.type, LockType.got, "L10");
    t.equal(text(got.owner), "a");
    t.equal(got.expiresInMs, 500, "L4 replaces the lease");
    t.equal(got.expires.l, bench.world.wallMs + 500, "T6");
    t.equal(got.fencingToken.toBigInt(), floor, "P-073");
    bench.world.pass(500);
    t.equal(look().type, LockType.doesNotExist, "T5: the lease has ended");
    t.equal(extend("a", 10).type, LockType.doesNotExist, "L6 after expiry");
    t.equal(release("b").type, LockType.invalidOwner, "L8 after expiry");
    const unlocked = release("a");
    t.equal(unlocked.type, LockType.unlocked, "L7 after expiry");
    t.equal(unlocked.fencingToken.toBigInt(), floor);
    t.equal(release("a").type, LockType.doesNotExist, "L9 already released");
    const second = tryLock("b");
    t.equal(second.fencingToken.toBigInt(), floor + 1n, "L12");
    t.equal(bench.ask(info("res", 1 - durability)).type, LockType.doesNotExist, "two locks");
  });
}

t.test("P-051: what was seen ended stays ended, and the clock is committed first", async (t) => {
  const bench = new Bench();
  bench.ask(lock("res", "a", 100));
  const group = bench.world.group(bench.node, "res");
  const before = group.committedLeaseMs();
  bench.world.pass(250, 250);
  t.equal(bench.ask(info("res")).type, LockType.doesNotExist);
  t.ok(group.committedLeaseMs() >= before + 100, "the committed clock reached the lease end");
  bench.ask(set("k/a", "v", { expiresMs: 100 }));
  bench.world.pass(250, 250);
  t.equal(bench.ask(get("k/a")).type, KvType.doesNotExist);
  bench.ask(set("k/a", "v", { expiresMs: 100 }));
  bench.ask(set("k/b", "v", { expiresMs: 10_000 }));
  bench.world.pass(250, 250);
  const bucket = { kind: "kv-bucket" as const, bucket: "k", durability: 1, plain: true };
  t.same(
    bench.ask(bucket).items.map((item) => item.key),
    ["k/b"],
  );
  bench.ask(set("k/a", "v", { expiresMs: 100 }));
  bench.world.pass(250, 250);
  t.same(
    bench.ask(scanAll("k/")).items.map((item) => item.key),
    ["k/b"],
  );
  bench.ask(set("k/a", "v", { expiresMs: 100 }));
  bench.world.pass(250, 250);
  t.same(
    bench.ask(range("k")).items.map((item) => item.key),
    ["k/b"],
  );
});

t.test("S2, S3, S8, S9, S14, S15, P-081: a sequence from create to create", async (t) => {
  const bench = new Bench({ sequencerBlockSize: 3 });
  const created = bench.ask(create(" s\u2003", { initialValue: 10n, increment: 5n }));
  t.equal(created.type, SequenceType.success);
  t.equal(created.sequence?.name, "s", "S1: trimmed");
  t.equal(created.sequence?.currentValue.toString(), "10");
  t.match(created.sequence, { incarnation: 0, revision: 0, blockSize: null, maxValue: null });
  t.equal(created.revision, 0);
  const again = bench.ask(create("s"));
  t.match(again, { type: SequenceType.alreadyExists, revision: -1, sequence: null });
  const current = () => bench.ask(getSequence("s")).sequence?.currentValue.toString();
  t.equal(values(bench.ask(next("s"))), "15-15 x1 r1", "S3, S14");
  t.equal(current(), "15", "S9");
  t.equal(values(bench.ask(next("\ts"))), "20-20 x1 r1");
  t.equal(values(bench.ask(next("s"))), "25-25 x1 r1");
  t.equal(values(bench.ask(next("s"))), "30-30 x1 r2", "the next block is the next revision");
  t.equal(values(bench.ask(reserve("s", 4))), "35-50 x4 r3", "P-082: one contiguous range");
  t.equal(current(), "50");
  t.equal(values(bench.ask(next("s", "k1"))), "55-55 x1 r4", "S10");
  t.equal(values(bench.ask(reserve("s", 1, " k1 "))), "55-55 x1 r4", "S11, P-077: replay");
  t.equal(bench.ask(reserve("s", 2, "k1")).type, SequenceType.invalidInput, "S11: other count");
  t.equal(values(bench.ask(next("s"))), "60-60 x1 r5", "S7, P-075: above the keyed one");
  const view = bench.ask(getSequence("s"));
  t.match(view, { type: 0, revision: 5, sequence: { revision: 5, incarnation: 0 } });
  const deleted = bench.ask(deleteSequence("s"));
  t.match(deleted, { type: 0, revision: 0, sequence: null });
  for (const request of [next("s"), next("s", "k1"), reserve("s", 2)]) {
    t.match(bench.ask(request), { type: SequenceType.notFound, allocation: null }, "S17");
  }
  for (const request of [getSequence("s"), deleteSequence("s"), update("s", { increment: 2n })]) {
    t.match(bench.ask(request), { type: SequenceType.notFound, revision: -1 }, "S16, S17");
  }
  bench.ask(create("s"));
  t.equal(values(bench.ask(next("s", "k1"))), "1-1 x1 r1", "S16: no keys of the former life");
});

t.test("S5, P-078, P-079: the top of the range", async (t) => {
  const bench = new Bench();
  bench.ask(create("m", { maxValue: 10n }));
  t.equal(bench.ask(reserve("m", 11)).type, SequenceType.maxValueExceeded);
  t.equal(bench.ask(reserve("m", 11, "k")).type, SequenceType.maxValueExceeded);
  t.equal(values(bench.ask(reserve("m", 8))), "1-8 x8 r1");
  t.equal(bench.ask(reserve("m", 3)).type, SequenceType.maxValueExceeded);
  t.equal(values(bench.ask(reserve("m", 2))), "9-10 x2 r1", "the exact rest");
  t.equal(bench.ask(next("m")).type, SequenceType.maxValueExceeded);
  const top = 9_223_372_036_854_775_807n;
  bench.ask(create("t", { initialValue: top - 3n, increment: 2n }));
  t.equal(values(bench.ask(next("t"))), `${top - 1n}-${top - 1n} x1 r1`);
  t.equal(bench.ask(next("t")).type, SequenceType.maxValueExceeded);
  bench.ask(create("w", { increment: top }));
  t.equal(values(bench.ask(next("w"))), `${top}-${top} x1 r1`);
  t.equal(bench.ask(reserve("w", 2_147_483_647)).type, SequenceType.maxValueExceeded);
  const mixed: AllocationAnswer[] = [];
  bench.ask(create("x", { maxValue: 10n }));
  for (const count of [4, 9, 4, 3, 2]) bench.send(reserve("x", count), mixed);
  bench.world.settle();
  t.same(mixed.map((answer) => answer.type).sort(), [0, 0, 0, 4, 4]);
  t.same(
    mixed.map(values).filter((one) => one.includes("-")),
    ["1-4 x4 r1", "5-8 x4 r1", "9-10 x2 r1"],
  );
});

t.test("S12, S13, P-076, P-080: updates", async (t) => {
  const bench = new Bench({ sequencerBlockSize: 100 });
  bench.ask(create("u", { maxValue: 1000n, blockSize: 50 }));
  bench.ask(reserve("u", 7));
  const kept = bench.ask(update("u", { increment: 10n }));
  t.equal(kept.sequence?.currentValue.toString(), "7", "S9: omitted keeps what was handed out");
  t.match(kept.sequence, { incarnation: 1, blockSize: 50 });
  t.equal(values(bench.ask(next("u"))), "17-17 x1 r3", "S13: the new increment from there");
  const moved = bench.ask(update("u", { currentValue: 500n, removeBlockSize: true }));
  t.match(moved.sequence, { incarnation: 2, blockSize: null });
  t.equal(values(bench.ask(next("u"))), "510-510 x1 r5");
  t.equal(bench.ask(update("u", { maxValue: 509n })).type, SequenceType.invalidInput, "merged");
  t.equal(bench.ask(update("u", { removeMaxValue: true })).sequence?.maxValue, null);
  const ends: number[] = [];
  for (const increment of [3n, 4n]) {
    const request = update("u", { increment });
    bench.operations.execute(request, bench.context(), (answer) => void ends.push(answer.type));
  }
  const during: AllocationAnswer[] = [];
  for (const request of [next("u"), next("u", "key"), reserve("u", 5)]) bench.send(request, during);
  bench.world.settle();
  t.same(ends, [SequenceType.mustRetry, SequenceType.success], "the second update must retry");
  t.same(new Set(during.map((answer) => answer.type)), new Set([SequenceType.mustRetry]));
  t.equal(during.length, 3);
});

t.test("K1, K3, K5, K7, K8, K9, K10: one key, both durabilities", async (t) => {
  for (const durability of [1, 0]) {
    const bench = new Bench();
    const put = (value: string | null, more = {}) =>
      bench.ask(set("b/k", value, { durability, ...more }));
    const look = (revision = -1n) => bench.ask(get("b/k", revision, durability));
    const exists = () => bench.ask({ ...get("b/k", -1n, durability), kind: "kv-exists" as const });
    const remove = () =>
      bench.ask({ kind: "kv-delete" as const, key: "b/k", durability, plain: true });
    const extend = (expiresMs: number) =>
      bench.ask({ kind: "kv-extend" as const, key: "b/k", expiresMs, durability, plain: true });
    t.match(look(), { type: KvType.doesNotExist, revision: 0, state: 0 });
    t.match(put("x", { flags: KvFlag.ifExists }), { type: KvType.notSet, revision: -1 });
    t.match(put("one", { flags: KvFlag.ifNotExists }), { type: KvType.set, revision: 0 });
    t.match(put("two", { flags: KvFlag.ifNotExists }), { type: KvType.notSet, revision: 0 });
    t.match(put("two", { flags: KvFlag.ifEqualToValue, compareValue: encode("one") }), {
      type: KvType.set,
      revision: 1,
    });
    t.match(put("x", { flags: KvFlag.ifEqualToRevision, compareRevision: 0n }), {
      type: KvType.notSet,
      revision: 1,
    });
    t.equal(text(look().value), "two");
    t.equal(text(look(0n).value), "one", "K2");
    t.match(look(7n), { type: KvType.doesNotExist });
    t.match(exists(), { type: KvType.exists, revision: 1, state: 1, value: null });
    t.match(put(null), { type: KvType.set, revision: 2 });
    t.match(look(), { type: KvType.got, value: null }, "K7");
    t.match(put(""), { type: KvType.set, revision: 3 });
    t.equal(look().value?.length, 0, "K7: empty is not null");
    t.match(extend(100), { type: KvType.extended, revision: 3 });
    t.equal(look().expires.l, bench.world.wallMs + 100);
    bench.world.pass(200);
    t.match(look(), { type: KvType.doesNotExist, revision: 0 }, "K8");
    t.match(extend(100), { type: KvType.doesNotExist });
    t.match(put("again"), { type: KvType.set, revision: 4 }, "K1");
    t.match(remove(), { type: KvType.deleted, revision: 5 });
    t.match(look(), { type: KvType.doesNotExist, state: 2 }, "K4");
    t.match(remove(), { type: KvType.doesNotExist, revision: 5 }, "K10");
    const other = bench.ask(get("b/k", -1n, 1 - durability));
    t.match(other, { type: KvType.doesNotExist, state: 0 }, "independent classes");
  }
});

t.test("K11: many-calls answer item by item, in order", async (t) => {
  const bench = new Bench();
  const items = ["a/1", "", "b/1", "__svc:x", "c|d/1"].map((key, at) =>
    set(key, `v${at}`, { durability: at === 2 ? 0 : 1 }),
  );
  const written = bench.ask({ kind: "kv-set-many", items });
  t.equal(written.type, KvType.set);
  t.same(
    written.items.map((item) => item.type),
    [0, 100, 0, 100, 0],
  );
  t.same(
    written.items.map((item) => item.key),
    items.map((item) => item.key),
  );
  t.equal(written.items[1]?.servedFrom, null);
  t.equal(written.items[1]?.routeIndex, 0);
  for (const item of written.items) {
    if (item.routeIndex === 0) continue;
    const bucket = item.key.slice(0, item.key.lastIndexOf("/")).split("|")[0] ?? "";
    t.equal(written.routes[item.routeIndex - 1]?.partitionId, bench.partitionOf(bucket));
  }
  const gets = items.map((item) => get(item.key, -1n, item.durability));
  const read = bench.ask({ kind: "kv-get-many", items: gets, plain: true });
  t.same(
    read.items.map((item) => text(item.value)),
    ["v0", null, "v2", null, "v4"],
  );
  t.equal(read.type, KvType.got);
  const seen = bench.ask({
    kind: "kv-exists-many",
    items: gets.map((item) => ({ ...item, kind: "kv-exists" as const })),
    plain: true,
  });
  t.same(
    seen.items.map((item) => item.type),
    [10, 100, 10, 100, 10],
  );
  const deletes = items.map(({ key, durability }) => {
    return { kind: "kv-delete" as const, key, durability, plain: true };
  });
  const gone = bench.ask({ kind: "kv-delete-many", items: deletes, plain: true });
  t.equal(gone.type, KvType.deleted);
  t.same(
    gone.items.map((item) => item.type),
    [4, 100, 4, 100, 4],
  );
  const refused = bench.ask({
    kind: "kv-set-many",
    items: [set("a", "1"), set("b", "1", { plain: false })],
  });
  t.equal(refused.type, KvType.invalidInput);
  t.same(
    refused.items.map((item) => item.type),
    [100, 100],
    "refused as a whole",
  );
  t.match(bench.ask(get("a")), { type: KvType.doesNotExist }, "and nothing was done");
  t.match(bench.ask({ kind: "kv-set-many", items: [] }), { type: 100, items: [] });
  const tooMany = Array.from({ length: 1025 }, (_, at) => set(`n${at}`, "1"));
  t.equal(bench.ask({ kind: "kv-set-many", items: tooMany }).type, 100);
});

t.test("K12 to K18, P-054: buckets, ranges and scans against a naive filter", async (t) => {
  const bench = new Bench({ pageBytes: 700 });
  const parts = ["a", "b", "a/b", "a|x", "é", "a/b/c", "z"];
  const keys: string[] = [];
  for (const part of parts) {
    for (const tail of ["", "/", "/1", "/2", "/\u{10000}", "/\uffff", "0"]) keys.push(part + tail);
  }
  for (const key of keys) bench.ask(set(key, `v ${key}`));
  for (const key of keys.filter((_, at) => at % 5 === 2)) {
    bench.ask({ kind: "kv-delete", key, durability: 1, plain: true });
  }
  const live = keys.filter((_, at) => at % 5 !== 2);
  const sorted = (list: string[]) =>
    list.sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)));
  const bucketOf = (key: string) => (key.includes("/") ? key.slice(0, key.lastIndexOf("/")) : key);
  for (const bucket of [...new Set(live.map(bucketOf)), "nothing"]) {
    if (bucket === "") continue;
    const expected = sorted(live.filter((key) => bucketOf(key) === bucket));
    const answer = bench.ask({ kind: "kv-bucket", bucket, durability: 1, plain: true });
    t.equal(answer.type, KvType.got);
    t.same(
      answer.items.map((item) => item.key),
      expected,
      `bucket ${bucket}`,
    );
    for (const limit of [0, 1, 2, 100]) {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const page: KvPageAnswer = bench.ask(range(bucket, { limit, cursor }));
        t.equal(page.hasMore, page.nextCursor !== null);
        if (limit > 0) t.ok(page.items.length <= limit);
        found.push(...page.items.map((item) => item.key));
        cursor = page.nextCursor;
      } while (cursor !== null);
      t.same(found, expected, `range ${bucket} by ${limit}`);
    }
  }
  for (const prefix of ["a", "a/", "a/b", "é", "z", "q"]) {
    const expected = sorted(live.filter((key) => key.startsWith(prefix)));
    for (const kind of ["kv-scan-all", "kv-scan-local"] as const) {
      for (const limit of [0, 1, 3]) {
        const found: string[] = [];
        let cursor: string | null = null;
        do {
          const page: KvPageAnswer = bench.ask(scanAll(prefix, { kind, limit, cursor }));
          t.equal(page.type, KvType.got);
          if (limit > 0)
            t.ok(
              page.items.length <= limit &&
                page.items.length > 0 === found.length < expected.length,
            );
          found.push(...page.items.map((item) => item.key));
          cursor = page.nextCursor;
        } while (cursor !== null);
        t.same(found, expected, `${kind} ${prefix} by ${limit}`);
      }
    }
  }
  const some = bench.ask(scanAll("a", { limit: 1 }));
  t.match(bench.ask(scanAll("b", { cursor: some.nextCursor })), { type: 100 }, "another query's");
  t.match(bench.ask(range("a", { cursor: some.nextCursor })), { type: 100 });
  t.match(bench.ask(scanAll("a", { cursor: "???" })), { type: 100 });
  const stones = bench.ask(
    scanAll("a", { kind: "kv-scan-local", includeTombstones: true, limit: 9999 }),
  );
  t.ok(
    stones.items.some((item) => item.state === 2),
    "K17: tombstones",
  );
  const edges = bench.ask(
    range("a", { startKey: "a/1", startInclusive: false, endKey: "a/2", endInclusive: true }),
  );
  t.ok(edges.items.every((item) => item.key > "a/1" && item.key <= "a/2"));
});

t.test(
  "K11, P-163: the values of a many-read are bounded, however often a key is named",
  async (t) => {
    const bench = new Bench({ responseMaxBytes: 1000 });
    bench.ask(set("k/big", "x".repeat(400)));
    bench.ask(set("k/none", null));
    const items = ["k/big", "k/none", "k/big", "k/big", "k/big"].map((key) => get(key));
    const answer = bench.ask({ kind: "kv-get-many", items, plain: true });
    const { got, errored } = KvType;
    t.equal(answer.type, got, "the call ran");
    const types = answer.items.map((item) => item.type);
    t.same(types, [got, got, got, errored, errored], "what fits is there, the rest says so");
    const ended = ["k/a", "k/b"].map((key) => set(key, "y".repeat(400), { expiresMs: 10 }));
    for (const request of ended) bench.ask(request);
    bench.world.timer.nowMs += 20;
    const later = ["k/a", "k/b", "k/big", "k/big", "k/big"].map((key) => get(key));
    const again = bench.ask({ kind: "kv-get-many", items: later, plain: true });
    t.equal(again.items.filter((item) => item.type === errored).length, 1, "counted once");
  },
);

/** Whoever gives the loop back waits until the test lets it go on, by what is returned. */
function holdBack({ world }: Bench): () => void {
  const held: (() => void)[] = [];
  const after = world.timer.after.bind(world.timer);
  world.timer.after = (delayMs, callback) => {
    if (delayMs > 0) return after(delayMs, callback);
    held.push(callback);
    return { cancel: () => undefined };
  };
  return () => {
    for (let callback = held.shift(); callback !== undefined; callback = held.shift()) {
      callback();
      world.settle();
    }
  };
}

t.test("P-155 K15: a large scan is read in slices, each partition as at its begin", async (t) => {
  const bench = new Bench();
  const keys: string[] = [];
  for (let at = 0; at < 5000; at++) keys.push(`s/${at % 40}/${String(at).padStart(4, "0")}`);
  for (let at = 0; at < keys.length; at += 1000) {
    const items = keys.slice(at, at + 1000).map((key) => set(key, "old"));
    bench.send({ kind: "kv-set-many", items });
    bench.world.settle();
  }
  const goOn = holdBack(bench);
  const read = bench.send(scanAll("s/", { limit: 10_000 }));
  bench.world.settle();
  t.equal(read.length, 0, "the first slice does not reach the end");
  for (const key of keys.slice(-100)) bench.send(set(key, "new"));
  for (let at = 0; at < 40; at++) bench.send(set(`s/${at}/more`, "new"));
  bench.world.settle();
  goOn();
  const [answer] = read;
  const sorted = [...keys].sort();
  t.equal(answer?.items.map((item) => item.key).join(), sorted.join());
  t.ok(answer?.items.every((item) => text(item.value) === "old"));
  t.equal(answer?.hasMore, false);
  const late = bench.send(scanAll("s/", { limit: 10_000 }), [], 3);
  bench.world.settle();
  bench.world.timer.nowMs += 5;
  goOn();
  t.match(late, [{ type: KvType.mustRetry }], "C9: its deadline ends it");
  const stopped = bench.send(scanAll("s/", { limit: 10_000 }));
  bench.world.settle();
  bench.node.stop(bench.nowMs + 1000, () => undefined);
  bench.world.settle();
  goOn();
  t.match(stopped, [{ type: KvType.aborted }], "a stop ends it");
});

t.test("P-155 K13: a large bucket is read in slices, as one view", async (t) => {
  const bench = new Bench();
  const { world } = bench;
  const count = 2 * TURN_VISITS + 10;
  const keyAt = (at: number): string => `wide/${String(at).padStart(5, "0")}`;
  for (let at = 0; at < count; at += 1000) {
    const keys = Array.from({ length: Math.min(1000, count - at) }, (_, more) => keyAt(at + more));
    const items = keys.map((key) => set(key, "old"));
    bench.send({ kind: "kv-set-many", items });
    world.settle();
  }
  const bucket = { kind: "kv-bucket" as const, bucket: "wide", durability: 1, plain: true };
  const goOn = holdBack(bench);
  const read = bench.send(bucket);
  world.settle();
  t.equal(read.length, 0, "the first slice does not reach the end");
  t.match(bench.ask(set(keyAt(count - 1), "new")), { type: KvType.set });
  t.match(bench.ask(set("wide/more", "new")), { type: KvType.set });
  goOn();
  const [answer] = read;
  t.equal(answer?.items.length, count, "everything of the moment it began, and nothing later");
  t.equal(new TextDecoder().decode(answer?.items[count - 1]?.value ?? undefined), "old");
  const late = bench.send(bucket, [], 3);
  world.settle();
  world.timer.nowMs += 5;
  goOn();
  t.match(late, [{ type: KvType.mustRetry }], "C9: its deadline ends it");
  const stopped = bench.send(bucket);
  world.settle();
  bench.node.stop(bench.nowMs + 1000, () => undefined);
  world.settle();
  goOn();
  t.match(stopped, [{ type: KvType.aborted }], "a stop ends it");
});

t.test("P-104 a registered bucket is one range, whatever is registered again", async (t) => {
  const bench = new Bench();
  const { world, node } = bench;
  t.match(bench.ask(set("b/1", "one")), { type: KvType.set });
  t.match(bench.ask(set("b/2", "two")), { type: KvType.set });
  const home = bench.partitionOf("b");
  const meta = node.metaGroup();
  const change = (command: Command): void => {
    meta.propose(command, 100, bench.nowMs + 10_000, () => undefined);
    world.settle();
  };
  const bucket = { kind: "kv-bucket" as const, bucket: "b", durability: 1, plain: true };
  const register = { kind: "register-range", keySpace: "b" } as const;
  for (const id of [home, 1, 2, 3]) change({ ...register, partitionId: id });
  const whole = { startKey: null, endKey: null, partitionId: home };
  t.match(meta.machine.meta.ranges("b"), [whole], "no command gives it a second range");
  t.strictSame(
    bench.ask(bucket).items.map(({ key }) => key),
    ["b/1", "b/2"],
  );
});

t.test("K14: a bucket beyond the response limit is told, not cut", async (t) => {
  const bench = new Bench({ responseMaxBytes: 1000 });
  for (let at = 0; at < 10; at++) bench.ask(set(`big/${at}`, "x".repeat(150)));
  const answer = bench.ask({ kind: "kv-bucket", bucket: "big", durability: 1, plain: true });
  t.match(answer, { type: KvType.errored, tooLarge: true, items: [] });
});

t.test(
  "a restart keeps what is durable, skips or returns blocks, and drops what is ephemeral",
  async (t) => {
    const bench = new Bench({ sequencerBlockSize: 100 });
    bench.ask(create("s"));
    t.equal(values(bench.ask(next("s"))), "1-1 x1 r1");
    bench.ask(lock("e", "a", 60_000, 0));
    const held = bench.ask(lock("e", "a", 60_000, 0)).fencingToken.toBigInt();
    bench.world.crash();
    const second = new Bench({ sequencerBlockSize: 100 }, bench.world);
    t.equal(second.ask(getSequence("s")).sequence?.currentValue.toString(), "100", "S9: block end");
    t.equal(values(second.ask(next("s"))), "101-101 x1 r2", "P-074");
    t.equal(second.ask(info("e", 0)).type, LockType.doesNotExist, "L15");
    t.ok(second.ask(lock("e", "b", 1000, 0)).fencingToken.toBigInt() > held, "L15: tokens rise");
    let stopped = false;
    second.node.stop(second.nowMs + 5000, () => (stopped = true));
    second.world.settle();
    second.world.pass(100);
    t.ok(stopped);
    bench.world.crash();
    const third = new Bench({ sequencerBlockSize: 100 }, bench.world);
    t.equal(third.ask(getSequence("s")).sequence?.currentValue.toString(), "101", "handed back");
    t.equal(values(third.ask(next("s"))), "102-102 x1 r3", "S8: a graceful stop skips nothing");
  },
);

t.test("K19, C10: pages of ephemeral entries", async (t) => {
  const bench = new Bench();
  const durability = 0;
  for (const key of ["e/1", "e/2", "e/3"]) bench.ask(set(key, "v", { durability }));
  bench.ask(set("e/4", "v", { durability, expiresMs: 50 }));
  bench.ask(set("e/5", "durable"));
  bench.ask({ kind: "kv-delete", key: "e/2", durability, plain: true });
  const keysOf = (answer: { items: readonly { key: string }[] }) => {
    return answer.items.map((item) => item.key);
  };
  const bucket = { kind: "kv-bucket" as const, bucket: "e", durability, plain: true };
  t.same(keysOf(bench.ask(bucket)), ["e/1", "e/3", "e/4"]);
  bench.world.pass(60);
  t.same(keysOf(bench.ask(bucket)), ["e/1", "e/3"]);
  t.same(keysOf(bench.ask(range("e", { durability }))), ["e/1", "e/3"]);
  t.same(keysOf(bench.ask(scanAll("e", { durability }))), ["e/1", "e/3"]);
  t.same(keysOf(bench.ask(scanAll("e"))), ["e/5"]);
});

t.test("P-054, C5: a page of dead rows is not the end of a scan", async (t) => {
  const bench = new Bench();
  const items = Array.from({ length: 1000 }, (_, at) => set(`d/${1000 + at}`, "v"));
  bench.ask({ kind: "kv-set-many", items });
  bench.ask(set("d/9", "last"));
  const deletes = items.map(({ key }) => {
    return { kind: "kv-delete" as const, key, durability: 1, plain: true };
  });
  bench.ask({ kind: "kv-delete-many", items: deletes, plain: true });
  for (const limit of [0, 1]) {
    const found = bench.ask(scanAll("d/", { limit }));
    t.same([found.items.map((item) => item.key), found.hasMore], [["d/9"], false]);
    t.same(
      bench.ask(range("d", { limit })).items.map((item) => item.key),
      ["d/9"],
    );
  }
});

t.test("S6, S7 through the door: mixed allocations of many callers", async (t) => {
  const bench = new Bench({ sequencerBlockSize: 7 });
  bench.ask(create("mix"));
  const answers: AllocationAnswer[] = [];
  let highest = 0n;
  for (let round = 0; round < 200; round++) {
    const before = answers.length;
    for (let at = 0; at < 1 + (round % 5); at++) {
      const key = (round + at) % 3 === 0 ? `k${round}-${at}` : null;
      const count = ((round * 7 + at * 3) % 9) + 1;
      bench.send(count === 1 ? next("mix", key) : reserve("mix", count, key), answers);
    }
    bench.world.settle();
    for (const { allocation } of answers.slice(before)) {
      t.ok(allocation !== null && allocation.start.toBigInt() > highest, "S7");
    }
    for (const { allocation } of answers.slice(before)) {
      const end = allocation?.end.toBigInt() ?? 0n;
      if (end > highest) highest = end;
    }
  }
  const ranges = answers
    .map(({ allocation }) => [allocation?.start.toBigInt() ?? 0n, allocation?.end.toBigInt() ?? 0n])
    .sort(([a], [b]) => ((a as bigint) < (b as bigint) ? -1 : 1));
  let last = 0n;
  for (const [start, end] of ranges) {
    t.ok((start as bigint) > last, "S6");
    last = end as bigint;
  }
  t.equal(last, bench.ask(getSequence("mix")).sequence?.currentValue.toBigInt(), "S9");
  t.equal(bench.ask(next("mix")).allocation?.start.toBigInt(), last + 1n, "nothing is skipped");
});
