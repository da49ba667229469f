/**
 * Reads that more than one range has keys of: buckets and pages across borders as one view, scans
 * that show every key once whichever range moves meanwhile.
 */
import t from "tap";
import { KvType } from "../../../src/machine/commands/command.js";
import type { KvPageAnswer } from "../../../src/operations/api/answers.js";
import { isTiled } from "../../../src/operations/kv/span-tiles.js";
import { textToByteKey } from "../../../src/machine/store/keys.js";
import { ByteWriter } from "../../../src/base/codec.js";
import { HeldWatches } from "../../../src/operations/kv/held-watches.js";
import { SpanWatch } from "../../../src/operations/kv/span-watch.js";
import { type CallRequest, writeCall } from "../../../src/operations/wire/calls.js";
import { Draft } from "../../../src/operations/wire/frames.js";
import { get, range, scanAll, set } from "../../doubles/operations/fixture.js";
import { own } from "../../doubles/operations/moving.js";
import { CUT, MovingTrio, SPACE } from "../../doubles/operations/moving-trio.js";
import type { Sent } from "../../doubles/operations/trio.js";

const bucket = (durability = 1) =>
  ({ kind: "kv-bucket", bucket: SPACE, durability, plain: true }) as const;
const keysOf = (answer: KvPageAnswer | undefined): readonly string[] | undefined =>
  answer?.items.map(({ key }) => key);
const isCall = ({ frame }: Sent, kind: string): boolean =>
  frame.direction === "calls" && frame.items.some(({ content }) => content?.request.kind === kind);

/** A key space in two ranges, of two partitions that two nodes lead. */
function split(settings: ConstructorParameters<typeof MovingTrio>[0] = {}): MovingTrio {
  const moving = new MovingTrio(settings);
  moving.move();
  for (const key of ["a", "b", "c", "o", "p", "q"]) moving.trio.ask(1, set(`m/${key}`, key));
  moving.trio.ask(1, set("m", "own"));
  moving.trio.ask(1, set(`${moving.besides("m/deeper")}/x`, "not of it"));
  return moving;
}
const ALL = ["m", "m/a", "m/b", "m/c", "m/o", "m/p", "m/q"];

t.test("K13 K16 a bucket in two ranges is one, whoever is asked", async (t) => {
  for (const durability of [1, 0]) {
    const moving = split();
    const { trio } = moving;
    if (durability === 0) {
      for (const key of ALL) trio.ask(2, set(key, key, { durability }));
    }
    for (const at of [1, 2, 3]) {
      const whole = trio.ask(at, bucket(durability));
      t.match(whole, { type: KvType.got, hasMore: false });
      t.strictSame(keysOf(whole), ALL, "sorted, nothing twice and nothing missing");
      const pages: (readonly string[] | undefined)[] = [];
      let cursor: string | null = null;
      do {
        const page: KvPageAnswer = trio.ask(at, range(SPACE, { limit: 2, cursor, durability }));
        t.equal(page.type, KvType.got);
        pages.push(keysOf(page));
        cursor = page.nextCursor;
      } while (cursor !== null);
      t.strictSame(pages.flat(), ALL);
      t.strictSame(
        pages.slice(0, 3).map((page) => page?.length),
        [2, 2, 2],
        "full across borders",
      );
      const across = range(SPACE, {
        startKey: "m/b",
        endKey: "m/p",
        endInclusive: false,
        durability,
      });
      t.strictSame(keysOf(trio.ask(at, across)), ["m/c", "m/o"]);
      const before = trio.sent.length;
      const half = range(SPACE, { startKey: CUT, startInclusive: true, durability });
      t.strictSame(keysOf(trio.ask(at, half)), ["m/o", "m/p", "m/q"]);
      const sent = trio.sent.slice(before);
      t.notOk(
        sent.some((one) => isCall(one, "span-part")),
        "what one range has is asked of it alone",
      );
    }
    t.equal(trio.open, 0);
  }
});

t.test("K14 a bucket in two ranges beyond the limit is told, not cut", async (t) => {
  const moving = split({ responseMaxBytes: 300 });
  for (const at of [1, 2, 3]) {
    t.match(moving.trio.ask(at, bucket()), { type: KvType.errored, tooLarge: true, items: [] });
  }
});

t.test("K13 K16 no view of two instants: what changes between the rounds is seen", async (t) => {
  for (const at of [1, 2, 3]) {
    for (const request of [bucket(), range(SPACE)]) {
      const moving = split();
      const { trio, source, target } = moving;
      // A key of the first range is written when its part was read, then one of the second range,
      // and only then that part is read.
      let isWritten = false;
      const held: (() => void)[] = [];
      for (const groups of trio.groups) {
        const group = groups.get(target);
        const read = group?.read;
        if (group === undefined || read === undefined) continue;
        group.read = (deadlineMs, done) => {
          if (isWritten) read(deadlineMs, done);
          else held.push(() => read(deadlineMs, done));
        };
      }
      const machine = trio.machine(source);
      const watch = machine.watchValues.bind(machine);
      let rounds = 0;
      machine.watchValues = (span) => {
        if (rounds++ === 0) {
          moving.later(source, "m/a", "new", () => {
            moving.later(target, "m/o", "new", () => {
              isWritten = true;
              for (const go of held) go();
            });
          });
        }
        return watch(span);
      };
      const answers = trio.post(at, request);
      trio.world.pass(50, 5);
      const [answer] = answers;
      t.match(answer, { type: KvType.got });
      const value = (key: string): string => {
        const item = answer?.items.find((one) => one.key === key);
        return Buffer.from(item?.value ?? []).toString();
      };
      t.equal(rounds, 2, "read anew");
      t.strictSame([value("m/a"), value("m/o")], ["new", "new"]);
    }
  }
});

t.test("K13 a lease that ends between the rounds is a change", async (t) => {
  const moving = split();
  const { trio, target } = moving;
  trio.ask(1, set("m/p", "short", { expiresMs: 1000 }));
  const machine = trio.machine(target);
  const watch = machine.watchValues.bind(machine);
  let opened = 0;
  machine.watchValues = (span) => {
    if (opened++ === 0) trio.world.timer.soon(() => (trio.world.timer.nowMs += 2000));
    return watch(span);
  };
  const answers = trio.post(1, bucket());
  trio.world.pass(50, 5);
  t.strictSame(
    keysOf(answers[0]),
    ALL.filter((key) => key !== "m/p"),
  );
});

t.test("K13 who writes all the time does not keep a bucket from being read", async (t) => {
  const moving = split();
  const { trio, source, target } = moving;
  const groups = trio.host.groups().filter(({ partition }) => [source, target].includes(partition));
  let writes = 0;
  const write = (): void => {
    for (const group of groups) {
      const key = group.partition === source ? "m/a" : "m/o";
      const command = {
        ...({ kind: "kv-set", key, value: null, compareValue: null, compareRevision: 0n } as const),
        ...{ expiresMs: 0, flags: 0, revisionsRetained: 1 },
      };
      group.propose(command, 100, 1e9, () => void writes++);
    }
    if (trio.world.timer.nowMs < endMs) trio.world.timer.after(1, write);
  };
  const endMs = trio.world.timer.nowMs + 400;
  write();
  const answers = [1, 2, 3].map((at) => trio.post(at, bucket()));
  trio.world.pass(500, 1);
  for (const list of answers) t.match(list, [{ type: KvType.got }]);
  t.ok(writes > 200, "and the writers go on");
  t.equal(trio.open, 0);
});

t.test("K13 C12 nor do they while the partitions rest from being held for others", async (t) => {
  const moving = split();
  const { trio } = moving;
  // Proofs take so long that somebody always writes between two rounds, except while entries are held.
  for (const groups of trio.groups) {
    for (const group of groups.values()) {
      const { read } = group;
      group.read = (deadlineMs, done) => trio.world.timer.after(20, () => read(deadlineMs, done));
    }
  }
  const endMs = trio.world.timer.nowMs + 6000;
  let writes = 0;
  const write = (): void => {
    moving.later(moving.source, "m/a", "", () => void writes++);
    moving.later(moving.target, "m/o", "", () => void writes++);
    if (trio.world.timer.nowMs < endMs) trio.world.timer.after(1, write);
  };
  write();
  const answers: KvPageAnswer[][] = [];
  for (let at = 0; at < 20; at++) {
    answers.push(trio.post(1 + (at % 3), bucket()));
    trio.world.pass(30, 1);
  }
  trio.world.pass(6000, 1);
  for (const list of answers) t.match(list, [{ type: KvType.got }]);
  t.ok(writes > 500, `and the writers go on: ${writes}`);
  t.equal(trio.open, 0);
});

t.test("P-101 a part that was refused is no end of the data", async (t) => {
  const moving = split();
  const { trio } = moving;
  // Every node refuses one part, or does not lead any more when it is asked again.
  for (const at of [1, 2, 3]) {
    let refused = 0;
    trio.read = (node) => (node !== at && refused++ === 0 ? { status: "retry" } : null);
    const answers = [trio.post(at, bucket()), trio.post(at, scanAll("m"))];
    trio.world.pass(300, 5);
    t.match(answers[0], [{ type: KvType.got }]);
    t.strictSame(keysOf(answers[0]?.[0]), ALL);
    t.strictSame(keysOf(answers[1]?.[0]), [
      ...ALL.slice(0, 4),
      `${moving.besides("m/deeper")}/x`,
      ...ALL.slice(4),
    ]);
  }
});

t.test("K15 a scan shows every key once at every step of a move", async (t) => {
  for (const at of [1, 2, 3]) {
    const moving = new MovingTrio();
    const { trio } = moving;
    const keys = ["a", "b", "o", "p"].map((name) => `m/${name}`);
    for (const key of keys) trio.ask(at, set(key, key));
    const other = `${moving.besides("mm")}/x`;
    trio.ask(at, set(other, "of another space"));
    for (const key of ["m/o", "m/p"]) moving.copy(key, key);
    moving.close();
    const all = [...keys, other];
    const paged = (): readonly string[] | null => {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const answers: KvPageAnswer[] = trio.post(at, scanAll("m", { limit: 1, cursor }));
        trio.world.pass(30, 5);
        const [page] = answers;
        if (page === undefined) return null;
        seen.push(...page.items.map(({ key }) => key));
        cursor = page.nextCursor;
      } while (cursor !== null);
      return seen;
    };
    t.strictSame(paged(), all, "before");
    const steps = ["freeze", "cut", "adopt", "release"] as const;
    for (const step of steps) {
      moving[step]();
      const answers = trio.post(at, scanAll("m"));
      trio.world.pass(30, 5);
      if (step === "freeze" || step === "cut") {
        t.equal(answers.length, 0, `${step}: nobody has the keys`);
        t.equal(paged(), null, "a page that ends before them is all there is");
      } else t.strictSame(keysOf(answers[0]), all, step);
    }
    trio.world.pass(1000, 5);
    t.strictSame(paged(), all, "after");
    t.equal(trio.open, 0);
    // The rows that the source still has are left-overs.
    const local = { ...scanAll("m"), kind: "kv-scan-local", includeTombstones: true } as const;
    t.strictSame(
      [1, 2, 3].flatMap((node) => keysOf(trio.ask(node, local)) ?? []).sort(),
      all,
      "K17 shows what is owned",
    );
  }
});

t.test("K15 a node that closes while it scans shows no page of what it still knows", (t) => {
  for (const read of [scanAll("m"), range(SPACE), bucket()]) {
    const moving = new MovingTrio();
    const { trio } = moving;
    for (const name of ["a", "o"]) trio.ask(1, set(`m/${name}`, name));
    moving.copy("m/o", "o");
    moving.close();
    moving.freeze();
    const answers = trio.post(1, read);
    trio.world.pass(30, 5);
    t.strictSame(answers, [], "nobody has all the keys");
    trio.stopping.add(1);
    trio.closing.add(1);
    trio.world.pass(1000, 5);
    t.match(answers, [{ type: KvType.mustRetry, refusal: "shutting-down", items: [] }]);
    t.equal(trio.open, 0);
  }
  t.end();
});

t.test("K15 a node that has not heard of the level yet is told no half of a moved range", (t) => {
  const moving = split();
  const { trio, source, target } = moving;
  trio.moveAll(3);
  const ask = (partitions: readonly number[], prefix: string): readonly unknown[] => {
    const writer = new ByteWriter(256);
    const part = { partitions, prefix, after: null, limit: 0, whole: true, durability: 1 };
    const request = { kind: "scan-part", ...part } as const;
    writeCall(writer, { budgetMs: 1000, requestId: "t", request, knowsLocks: true, trace: null });
    const draft = new Draft("calls");
    draft.add(7, 1, writer.finish());
    const before = trio.sent.length;
    for (const { bytes } of draft.take()) trio.node(3).callFrame(2, bytes);
    trio.world.settle();
    const frames = trio.sent.slice(before).map(({ frame }) => frame);
    return frames.flatMap(({ items }) => items.map(({ content }): unknown => content));
  };
  for (const partition of [source, target]) {
    t.match(ask([partition], "m"), [{ kind: "not-taken", unreadable: false }]);
    t.match(ask([partition], "other"), [{ kind: "scan-part", end: "page" }], "nothing of it moved");
  }
  t.end();
});

t.test("K15 a page is refused when a range was read at both of its partitions, or at none", (t) => {
  const query = { prefix: "m", range: null };
  const span = (first: string, last: string) => {
    return { first: textToByteKey(first), last: textToByteKey(last) };
  };
  const left = span("m", "m/n");
  const right = span("m/n", "m0");
  const spaces = (...tiles: readonly { first: string; last: string }[]) => [
    { keySpace: "m", tiles },
  ];
  const tiled = (...tiles: readonly { first: string; last: string }[]): boolean =>
    isTiled(spaces(...tiles), query, null, null);
  t.ok(tiled(left, right) && tiled(right, left));
  t.notOk(tiled(left), "a gap at the end");
  t.notOk(tiled(right), "at the start");
  t.notOk(tiled(left, right, right), "twice");
  t.notOk(tiled(left, span("m/m", "m0")), "overlapping");
  t.notOk(tiled(left, span("m/o", "m0")), "a gap between");
  const upTo = (next: string): boolean =>
    isTiled(spaces(left), query, null, new TextEncoder().encode(next));
  t.ok(upTo("m/a"), "behind the end of the page nothing counts");
  t.ok(upTo("m/mmm"));
  t.notOk(upTo("m/n"), "the last key of the page does");
  const after = new TextEncoder().encode("m/x");
  t.ok(isTiled(spaces(right), query, after, null), "before its start nothing does");
  t.ok(isTiled([], query, null, null), "nobody names a key space: it is at home");
  const whole = { bucket: "m", startKey: null, startInclusive: true, endKey: null };
  const bucketQuery = { prefix: "m", range: { ...whole, endInclusive: true } };
  t.notOk(isTiled([], bucketQuery, null, null), "a bucket that is asked for has to be named");
  t.end();
});

t.test("K13 a bucket is placed anew when its ranges moved while it was read", async (t) => {
  const moving = split();
  const { trio, source, target } = moving;
  // The second range goes on to the third partition, which no map names yet.
  const third = 6 - source - target;
  own(trio.machine(target), SPACE, CUT, null, "left");
  own(trio.machine(third), SPACE, CUT, null, "here");
  for (const key of ["m/o", "m/p", "m/q"]) moving.write(third, key, key);
  const answers = [1, 2, 3].map((at) => trio.post(at, bucket()));
  trio.world.pass(100, 5);
  t.equal(answers.flat().length, 0, "nobody shows half of it");
  moving.map.set(SPACE, [
    [null, CUT, source],
    [CUT, null, third],
  ]);
  trio.world.pass(100, 5);
  for (const list of answers) t.strictSame(keysOf(list[0]), ALL);
  t.match(trio.ask(1, get("m/o")), { type: KvType.got });
  // And back into one range, which the source has before the map says so: that is enough.
  own(trio.machine(third), SPACE, CUT, null, "left");
  own(trio.machine(source), SPACE, CUT, null, "default");
  const early = trio.ask(2, bucket());
  t.match(early, { type: KvType.got, route: null }, "read from all that the map names");
  moving.map.set(SPACE, [[null, null, source]]);
  t.match(trio.ask(2, bucket()), { type: KvType.got, route: { partitionId: source } });
});

t.test("P-128 what no node asks for is not carried out", async (t) => {
  const moving = split();
  const { trio } = moving;
  let id = 0;
  const ask = (request: CallRequest): unknown => {
    const writer = new ByteWriter(256);
    writeCall(writer, { budgetMs: 1000, requestId: "t", request, knowsLocks: true, trace: null });
    const draft = new Draft("calls");
    draft.add(7, ++id, writer.finish());
    const before = trio.sent.length;
    for (const { bytes } of draft.take()) trio.node(3).callFrame(2, bytes);
    trio.world.settle();
    const frames = trio.sent.slice(before).map(({ frame }) => frame);
    return frames.flatMap(({ items }) => items.map(({ content }): unknown => content));
  };
  trio.moveAll(3);
  const bounds = { startKey: null, startInclusive: true, endKey: null, endInclusive: true };
  const part = {
    ...({ kind: "span-part", partitions: [moving.source], prefix: SPACE, bounds } as const),
    ...{ after: null, limit: 0, whole: true, durability: 1, isWatched: false, holdMs: 0 },
  };
  t.match(ask(part), [{ kind: "span-part", end: "page" }]);
  const unreadable = [{ kind: "not-taken", unreadable: true }];
  const long = "k".repeat(1025);
  t.match(ask({ ...part, bounds: { ...bounds, startKey: long } }), unreadable);
  t.match(ask({ ...part, bounds: { ...bounds, endKey: long } }), unreadable);
  t.match(ask({ ...part, prefix: "" }), unreadable);
  t.match(ask({ ...part, durability: 2 }), unreadable);
  t.match(ask({ ...part, partitions: [] }), unreadable);
  t.match(ask({ ...part, partitions: [1, 1] }), unreadable);
  t.match(ask({ ...part, holdMs: -5 }), [{ kind: "span-part", end: "page" }], "no pause");
  t.match(ask({ kind: "span-stands", watch: 99 }), [{ kind: "span-stands", stands: false }]);
  t.match(ask({ ...part, isWatched: true }), [{ kind: "span-part", watch: 1 }]);
  t.match(ask({ kind: "span-stands", watch: 1 }), [{ stands: true }]);
  t.match(ask({ kind: "span-stands", watch: 1 }), [{ stands: false }], "it is asked about once");
});

t.test("P-193 watches for other nodes are bounded in number and time", (t) => {
  const moving = split();
  const { trio, source } = moving;
  const { timer } = trio.world;
  const clock = { monotonicMs: () => timer.nowMs } as never;
  const watches = new HeldWatches({ clock, timer });
  const group = trio.groups[0]?.get(source);
  if (group === undefined) return t.fail("the group is there");
  let open = 0;
  const machine = trio.machine(source);
  const watch = machine.watchValues.bind(machine);
  machine.watchValues = (span) => {
    const opened = watch(span);
    const close = opened.close.bind(opened);
    open++;
    opened.close = () => {
      open--;
      close();
    };
    return opened;
  };
  const span = { first: "m", last: "m0" };
  const ids = Array.from({ length: 200 }, () => watches.keep(new SpanWatch([group], 1, span)));
  t.equal(ids.filter((id) => id > 0).length, watches.count);
  t.equal(open, watches.count, "what found no room is closed");
  t.ok(watches.count < 200);
  t.equal(watches.take(ids[0] ?? 0)?.stands, true);
  trio.world.pass(2000, 50);
  t.equal(watches.count, 0, "nobody came");
  t.equal(open, 1, "but for the one that was taken");
  t.end();
});
