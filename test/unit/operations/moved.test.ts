/**
 * Requests that meet a range on its way from one partition to another: they wait and are carried
 * out where the keys are then, and nobody hears of it.
 */
import t from "tap";
import { KvType } from "../../../src/machine/commands/command.js";
import type { DataAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { get, range, set } from "../../doubles/operations/fixture.js";
import { own } from "../../doubles/operations/moving.js";
import { CUT, MovingTrio, SPACE } from "../../doubles/operations/moving-trio.js";
import type { Trio } from "../../doubles/operations/trio.js";

const bucket = (durability = 1) =>
  ({ kind: "kv-bucket", bucket: SPACE, durability, plain: true }) as const;

function calls(trio: Trio): readonly number[] {
  return trio.sent.filter(({ frame }) => frame.direction === "calls").map(({ from }) => from);
}

/** What a client asks about keys that move, and what it is told in the end. */
const asked: readonly (readonly [DataRequest, object])[] = [
  [set("m/w", "new"), { type: KvType.set, revision: 0 }],
  [get("m/x"), { type: KvType.got, revision: 0 }],
  [
    { kind: "kv-exists", key: "m/x", revision: -1n, durability: 1, plain: true },
    { type: KvType.exists },
  ],
  [{ kind: "kv-delete", key: "m/y", durability: 1, plain: true }, { type: KvType.deleted }],
  [
    { kind: "kv-extend", key: "m/z", expiresMs: 60_000, durability: 1, plain: true },
    { type: KvType.extended },
  ],
  [
    { kind: "kv-get-many", items: [get("m/a"), get("m/x")], plain: true },
    { items: [{ type: KvType.got }, { type: KvType.got }] },
  ],
  [
    { kind: "kv-set-many", items: [set("m/b", "2"), set("m/v", "2")] },
    { items: [{ type: KvType.set }, { type: KvType.set }] },
  ],
  [
    range(SPACE, { startKey: "m/o", startInclusive: true }),
    { type: KvType.got, items: [{ key: "m/o" }] },
  ],
  [set("m/q", "memory", { durability: 0 }), { type: KvType.set }],
  [get("m/never", -1n, 0), { type: KvType.doesNotExist }],
] as readonly (readonly [DataRequest, object])[];

for (const at of [1, 2, 3]) {
  t.test(`P-100 C12 at node ${at}: frozen, cut and adopted, callers see a pause`, async (t) => {
    const moving = new MovingTrio();
    const { trio } = moving;
    for (const key of ["a", "o", "x", "y", "z"]) trio.ask(at, set(`m/${key}`, key));
    for (const key of ["o", "x", "y", "z"]) moving.copy(`m/${key}`, key);
    moving.freeze();
    moving.close();
    const before = trio.proposals.length;
    const answers: DataAnswer[][] = asked.map(([request]) => trio.post(at, request));
    const whole = trio.post(at, bucket());
    const other = trio.post(at, get("m/a"));
    trio.world.settle();
    t.match(other, [{ type: KvType.got }], "the half that stays is served");
    const answered = (): number => answers.filter((list) => list.length > 0).length;
    const span = (step: string): void => {
      trio.world.pass(100, 5);
      t.equal(answered(), 0, `${step}: nobody reads or writes the half that moves`);
      t.equal(whole.length, 0, `${step}: nor a bucket that it is part of`);
    };
    span("frozen");
    const proposed = trio.proposals.slice(before).filter(([, kind]) => kind !== "kv-set");
    t.equal(proposed.length, 0, "no log is asked for what it would refuse");
    moving.cut();
    span("cut");
    moving.adopt();
    trio.world.pass(100, 5);
    moving.release();
    trio.world.pass(100, 5);
    asked.forEach(([request, end], number) => {
      t.match(answers[number], [end], `${request.kind} is carried out once`);
    });
    t.match(whole, [{ type: KvType.got }]);
    t.ok(trio.node(at).refusedMoved >= asked.length, "and it is counted where it was taken in");
    t.equal(trio.open, 0, "nothing is left open");
    t.ok(
      calls(trio).every((from) => from === at),
      "P-109 who is asked asks nobody",
    );
    t.match(trio.ask(at, get("m/x")), {
      type: KvType.got,
      route: { partitionId: moving.target, generation: 2 },
    });
  });
}

t.test(
  "P-162 who waits for a move at a node that stops is told so, and that nothing was done",
  (t) => {
    const moving = new MovingTrio();
    const { trio } = moving;
    trio.move(moving.source, 1);
    moving.freeze();
    const write = trio.post(1, set("m/x", "new"));
    const items = [set("m/a", "1"), set("m/x", "1")];
    const many = trio.post(1, { kind: "kv-set-many", items });
    trio.world.pass(100, 5);
    t.equal(write.length + many.length, 0, "the half that moves is nobody's");
    trio.closing.add(1);
    trio.world.pass(20, 5);
    t.match(write, [{ type: KvType.mustRetry, refusal: "shutting-down" }]);
    t.match(many, [{ items: [{ type: KvType.set }, { type: KvType.mustRetry }] }]);
    t.equal(trio.open, 0, "nothing is left open");
    t.end();
  },
);

t.test(
  "P-100 a write that was queued before the freeze and applied after it moves on",
  async (t) => {
    const moving = new MovingTrio();
    const { trio } = moving;
    trio.propose = (command) => {
      if (command.kind === "kv-set" && command.key === "m/x") moving.freeze();
      return null;
    };
    moving.close();
    const many = trio.post(1, { kind: "kv-set-many", items: [set("m/a", "1"), set("m/x", "1")] });
    const single = trio.post(2, set("m/x", "2"));
    trio.world.pass(50, 5);
    t.equal(many.length + single.length, 0, "nothing was done for it");
    moving.cut();
    moving.release();
    moving.adopt();
    trio.world.pass(100, 5);
    t.match(many, [{ items: [{ type: KvType.set, revision: 0 }, { type: KvType.set }] }]);
    t.match(single, [{ type: KvType.set }]);
    const found = trio.ask(3, get("m/x"));
    t.match(found, { type: KvType.got, revision: 1 }, "each of them once");
  },
);

t.test("P-100 what is read is owned in the turn of the read, also after the clock", async (t) => {
  const moving = new MovingTrio();
  const { trio } = moving;
  trio.ask(1, set("m/x", "old", { expiresMs: 50 }));
  trio.world.timer.nowMs += 60;
  trio.move(moving.source, 1);
  const group = trio.groups[0]?.get(moving.source);
  const advance = group?.advanceClock;
  if (group !== undefined && advance !== undefined) {
    group.advanceClock = (leaseMs, deadlineMs, done) => {
      moving.freeze();
      advance(leaseMs, deadlineMs, done);
    };
  }
  moving.close();
  const read = trio.post(1, get("m/x"));
  trio.world.pass(50, 5);
  t.equal(read.length, 0, "it froze while the clock was committed");
  moving.copy("m/none", "");
  moving.cut();
  moving.adopt();
  trio.world.pass(100, 5);
  t.match(read, [{ type: KvType.doesNotExist }]);
});

t.test("C12 a move is waited for until the deadline, and by no shorter bound", async (t) => {
  const moving = new MovingTrio({ leaderWaitMs: 200, requestTimeoutMs: 3000 });
  const { trio } = moving;
  moving.freeze();
  const ends = [1, 2, 3].flatMap((at) => [trio.post(at, set("m/x", "1")), trio.post(at, bucket())]);
  const many = trio.post(2, { kind: "kv-get-many", items: [get("m/x")], plain: true });
  trio.world.pass(2800, 5);
  t.ok(
    ends.every((list) => list.length === 0),
    "nobody is turned away before",
  );
  t.ok(calls(trio).length < 600, "and nobody asks without a pause");
  trio.world.pass(400, 5);
  for (const list of ends) t.match(list, [{ type: KvType.mustRetry }]);
  t.match(many, [{ items: [{ type: KvType.mustRetry }] }]);
  t.equal(trio.open, 0);
});

t.test("a move that was given up: the map stays, and the source serves again", async (t) => {
  const moving = new MovingTrio();
  const { trio } = moving;
  moving.freeze();
  const ends = [1, 2, 3].map((at) => trio.post(at, set("m/x", "1")));
  trio.world.pass(100, 5);
  own(trio.machine(moving.source), SPACE, CUT, null, "default");
  trio.world.pass(100, 5);
  for (const list of ends) t.match(list, [{ type: KvType.set }]);
});

t.test(
  "P-107 P-109 a node with an old map asks the partition that has the keys by then",
  async (t) => {
    const moving = new MovingTrio();
    const { trio } = moving;
    moving.move();
    for (const at of [1, 2, 3]) {
      // What is marked as forwarded is not passed on: whoever sent it knows more, or learns more.
      const partition = at === trio.leaderOf(moving.target) ? moving.target : 0;
      const end = trio.ask(at, set("m/x", "1"), 1);
      t.equal(end.type, partition === 0 ? KvType.mustRetry : KvType.set, `node ${at}`);
    }
    // Ahead of the map: the source does not own any more what every map still says it does.
    moving.map.set(SPACE, [[null, null, moving.source]]);
    const ends = [1, 2, 3].map((at) => trio.post(at, get("m/x")));
    const marked = trio.post(trio.leaderOf(moving.source), get("m/x"), { hops: 1 });
    trio.world.pass(60, 5);
    t.equal(ends.flat().length, 0);
    t.match(marked, [{ type: KvType.mustRetry }], "a request that may not wait goes back");
    moving.cut();
    trio.world.pass(30, 5);
    for (const list of ends) t.match(list, [{ type: KvType.got }]);
  },
);

t.test(
  "C12 P-109 who asks by an old map finds the keys where they are, at itself too",
  async (t) => {
    for (const toSelf of [true, false]) {
      const moving = new MovingTrio({ leaderWaitMs: 200 });
      const { trio } = moving;
      const owner = trio.leaderOf(moving.target);
      const third = [1, 2, 3].find((id) => id !== owner && id !== trio.leaderOf(moving.source));
      const at = toSelf ? owner : (third ?? 0);
      const see = moving.blind(at);
      moving.move();
      const ends = [trio.post(at, set("m/x", "1")), trio.post(at, get("m/never"))];
      const bucketEnd = trio.post(at, range(SPACE, { startKey: "m/o", startInclusive: true }));
      const many = { kind: "kv-set-many", items: [set("m/y", "1"), set("m/z", "1")] } as const;
      const manyEnd = trio.post(at, many);
      trio.world.pass(60, 5);
      see();
      trio.world.pass(100, 5);
      t.match(ends, [[{ type: KvType.set }], [{ type: KvType.doesNotExist }]], `at node ${at}`);
      t.match(bucketEnd, [{ type: KvType.got }]);
      t.match(manyEnd, [{ items: [{ type: KvType.set }, { type: KvType.set }] }]);
      t.match(trio.ask(at, get("m/x")), { type: KvType.got, revision: 0 }, "once");
      t.equal(trio.open, 0);
    }
  },
);

t.test("K11 C12 items of one call that an old map sends to one node", async (t) => {
  for (const kind of ["kv-set-many", "kv-get-many"] as const) {
    const moving = new MovingTrio();
    const { trio } = moving;
    const owner = trio.leaderOf(moving.target);
    const source = trio.leaderOf(moving.source);
    const third = [1, 2, 3].find((id) => id !== owner && id !== source) ?? 0;
    for (const at of [owner, third]) {
      const see = moving.blind(at);
      moving.move();
      const keys = ["m/a", "m/x", "m/b"];
      const answers =
        kind === "kv-set-many"
          ? trio.post(at, { kind, items: keys.map((key) => set(key, "1")) })
          : trio.post(at, { kind, items: keys.map((key) => get(key)), plain: true });
      trio.world.pass(30, 5);
      see();
      trio.world.pass(100, 5);
      const types = answers.flatMap(({ items }) => items.map(({ type }) => type));
      const type = kind === "kv-set-many" ? KvType.set : KvType.doesNotExist;
      t.strictSame(types, [type, type, type], `${kind} at node ${at}: nobody is turned away`);
      t.equal(trio.open, 0);
      // Back again, for the next one.
      moving.map.set(SPACE, [[null, null, moving.source]]);
      own(trio.machine(moving.target), SPACE, CUT, null, "left");
      own(trio.machine(moving.source), SPACE, CUT, null, "default");
    }
  }
});

t.test("K11 of a call that was passed on, items whose keys moved are placed anew", async (t) => {
  for (const kind of ["kv-set-many", "kv-get-many"] as const) {
    const moving = new MovingTrio();
    const { trio, source } = moving;
    trio.ask(1, set("m/a", "old"));
    const leader = trio.leaderOf(source);
    const at = (leader % 3) + 1;
    // The range freezes when the call has been taken in by the leader of its source.
    const freeze = (): null => {
      moving.freeze();
      return null;
    };
    trio.propose = freeze;
    trio.read = freeze;
    const answers =
      kind === "kv-set-many"
        ? trio.post(at, { kind, items: [set("m/a", "1"), set("m/x", "1"), set("m/b", "1")] })
        : trio.post(at, { kind, items: [get("m/a"), get("m/x"), get("m/b")], plain: true });
    trio.world.pass(50, 5);
    t.equal(answers.length, 0, "one item waits");
    moving.cut();
    moving.adopt();
    moving.release();
    trio.propose = trio.read = null;
    trio.world.pass(100, 5);
    const types = answers.flatMap(({ items }) => items.map(({ type }) => type));
    const { got, doesNotExist } = KvType;
    t.strictSame(
      types,
      kind === "kv-set-many"
        ? [KvType.set, KvType.set, KvType.set]
        : [got, doesNotExist, doesNotExist],
    );
    if (kind === "kv-set-many")
      t.match(trio.ask(2, get("m/x")), { type: got, revision: 0 }, "once");
    t.equal(trio.open, 0);
  }
});
