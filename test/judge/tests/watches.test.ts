/**
 * The checkers of watching: each fires on what breaks its property, passes what keeps it, and is
 * vacuous on too little.
 */
import t from "tap";
import { WatchEventType, WatchKind } from "../../../src/base/result-types.js";
import { type Change, Changes } from "../checkers/watches/changes.js";
import { ExpiryTrue, type LeaseLook } from "../checkers/watches/expiry-true.js";
import { type Mark, type ToldEvent, ToldWatch } from "../checkers/watches/told-watch.js";
import {
  type StreamBatch,
  type StreamEvent,
  ToldStream,
  checkToldStreams,
} from "../checkers/watches/told-streams.js";
import { NoWatchers, WatchBounded } from "../checkers/watches/watch-bounded.js";
import { WatchFindings } from "../checkers/watches/watch-findings.js";
import type { Findings } from "../checkers/verdict.js";
import { type Line, type Made, historyOf, lock } from "./hand-made.js";

const { set, deleted, expired, locked, unlocked } = WatchEventType;
const { sequenceReserved, sequenceDeleted } = WatchEventType;
const NONE = { order: {}, committed: {}, resume: {}, barrier: {}, newest: {} };

/** A world of one partition: the change number N is that of entry N, and was applied at N seconds. */
class World {
  readonly changes = new Changes();
  readonly findings = new WatchFindings(NONE);
  private index = 0;

  change(type: number, name: string, told: Partial<Change> = {}): ToldEvent {
    const index = ++this.index;
    const sort = type >= sequenceDeleted - 2 ? "sequence" : type >= locked ? "lock" : "key";
    const stamp = { l: index, c: 0, n: 0 };
    const none = { revision: 0, incarnation: 0, token: 0n, value: null };
    const made = { ...none, value: type === set ? `v${index}` : null, ...told };
    const change: Change = {
      ...{ sort, name, type, stamp, partition: 1, index, atMs: index * 1000 },
      ...made,
    };
    this.changes.add(change);
    return change;
  }

  watch(name: string, rest: Partial<ToldWatch["ask"]> = {}): ToldWatch {
    const none = { initial: false, noValues: false, only: 0, hasFrom: false };
    const ask = { kind: WatchKind.prefix, name, ...none, ...rest };
    return new ToldWatch("w", ask, this.changes, this.findings);
  }

  /** What of the verdicts is no pass. */
  get failed(): string[] {
    const names = ["order", "committed", "resume", "barrier", "newest"] as const;
    return names.filter((name) => this.findings[name].verdict().kind === "fail");
  }
}

function tell(
  watch: ToldWatch,
  events: readonly ToldEvent[],
  rest: Partial<Parameters<ToldWatch["told"]>[0]> = {},
): Mark | null {
  const none = { cursor: null, initial: false, merged: false, reset: false, sentMs: 0 };
  return watch.told({ ...none, events, ...rest });
}

/** Judges what `act` makes of a world in which a watch of "k" is asked for at no time, and stands. */
function judged(
  act: (world: World, watch: ToldWatch) => void,
  rest: Partial<ToldWatch["ask"]> = {},
): string[] {
  const world = new World();
  const watch = world.watch("k", rest);
  watch.begin(null, 0, false);
  watch.created(1);
  act(world, watch);
  return world.failed;
}

t.test("13 retained revisions are changes, though merged: one entry may hold two (W8)", (t) => {
  const told = (values: readonly string[]) => (world: World, watch: ToldWatch) => {
    const stamp = { l: 7, c: 0, n: 0 };
    const events = ["a", "b"].map((value, revision) => {
      return world.change(set, "k", { stamp, revision, value });
    });
    const named = events.map((event, at) => ({ ...event, value: values[at] ?? "" }));
    tell(watch, named, { merged: true, cursor: "c" });
  };
  const older = { kind: WatchKind.key, hasFrom: true };
  t.same(judged(told(["a", "b"]), older), []);
  t.same(judged(told(["a", "a"]), older), ["committed"], "never set");
  t.same(judged(told(["a", "b"])), ["committed"], "no state: not told so without FromRevision");
  t.end();
});

t.test("13 behind retained revisions a state that is compared may be the last one (W6)", (t) => {
  const again = (merged: boolean) => (world: World, watch: ToldWatch) => {
    const first = world.change(set, "k");
    const last = world.change(expired, "k");
    tell(watch, [first, last]);
    tell(watch, [last], { merged });
  };
  const older = { kind: WatchKind.key, hasFrom: true };
  t.same(judged(again(true), older), []);
  t.same(judged(again(false), older), ["order"], "each change comes once");
  t.end();
});

t.test(
  "13 what was gone when revisions were read is no gap; later ones are (seed 8501233)",
  (t) => {
    const told = (createdMs: number, merged: boolean) => (world: World, watch: ToldWatch) => {
      const first = world.change(set, "k");
      world.change(deleted, "k", { revision: 1 });
      const last = world.change(set, "k", { revision: 2 });
      watch.begin(null, 0, false);
      watch.created(createdMs);
      tell(watch, [first], { merged, cursor: "c" });
      tell(watch, [last], { cursor: "d" });
    };
    const older = { kind: WatchKind.key, hasFrom: true };
    t.same(judged(told(2000, true), older), []);
    t.same(judged(told(1999, true), older), ["resume"], "it is behind what it stood at");
    t.same(judged(told(2000, false), older), ["resume"], "nothing was said to be gone");
    t.end();
  },
);

t.test("13 ends of two lives of a key look alike, and have their stamps (seed 9380082)", (t) => {
  const missing = (of: number): string | null => {
    const world = new World();
    const sets: ToldEvent[] = [];
    for (let life = 0; life < 2; life++) {
      sets.push(world.change(set, "k"));
      world.change(expired, "k");
    }
    const watch = world.watch("k", { kind: WatchKind.key, hasFrom: true });
    watch.begin(null, 0, false);
    watch.created(4500);
    const { stamp } = sets[of] as ToldEvent;
    const none = { value: null, revision: 0, incarnation: 0, token: 0n };
    tell(watch, [{ ...none, type: expired, name: "k", stamp }], { cursor: "c" });
    return watch.missing(Infinity);
  };
  t.equal(missing(1), null);
  t.match(missing(0), /^expired k/, "only of the first one");
  t.end();
});

t.test("13 each change in its order (W2, W3)", (t) => {
  const three = (world: World): [ToldEvent, ToldEvent, ToldEvent] => [
    world.change(set, "k"),
    world.change(set, "k", { revision: 1 }),
    world.change(deleted, "k", { revision: 2 }),
  ];
  t.same(
    judged((world, watch) => void tell(watch, three(world))),
    [],
  );
  t.same(
    judged((world, watch) => {
      const [a, , c] = three(world);
      tell(watch, [a, c]);
    }),
    ["resume"],
    "one is left out",
  );
  t.same(
    judged((world, watch) => {
      const [, b] = three(world);
      tell(watch, [b]);
    }),
    ["resume"],
    "the first one is left out",
  );
  t.same(
    judged((world, watch) => {
      const [a, b] = three(world);
      tell(watch, [a, b, a]);
    }),
    ["order"],
    "one comes again",
  );
  t.same(
    judged((world, watch) => {
      const a = world.change(set, "k/a");
      const b = world.change(set, "k/b");
      tell(watch, [b, a]);
    }),
    ["order"],
    "not in the order of the log",
  );
  t.same(
    judged((world, watch) => void tell(watch, [world.change(set, "other")])),
    ["order"],
    "another name",
  );
  t.same(
    judged((world, watch) => void tell(watch, [world.change(set, "k")]), { noValues: true }),
    ["order"],
    "a value that nobody wants",
  );
  t.same(
    judged((world, watch) => void tell(watch, [world.change(set, "k")]), { only: 1 << deleted }),
    ["order"],
    "a type that nobody wants",
  );
  t.same(
    judged((world, watch) => {
      const old = world.change(set, "k");
      watch.begin(null, 5000, false);
      watch.created(5001);
      tell(watch, [old]);
    }),
    ["order"],
    "what was before it was asked for",
  );
  t.end();
});

t.test("13 17 the state at the start, and the frontier (W4)", (t) => {
  const begun = (act: (world: World, watch: ToldWatch) => void): string[] => {
    return judged(act, { initial: true });
  };
  t.same(
    begun((world, watch) => {
      const a = world.change(set, "k/a");
      tell(watch, [a], { initial: true });
      tell(watch, [], { cursor: "c", sentMs: 1500 });
      tell(watch, [world.change(set, "k/a", { revision: 1 }), world.change(set, "k/b")]);
    }),
    [],
  );
  t.same(
    begun((world, watch) => {
      const a = world.change(set, "k/a");
      tell(watch, [a], { initial: true });
      tell(watch, [a]);
    }),
    ["order"],
    "planted 30: the event of a state that was read",
  );
  t.same(
    begun((world, watch) => {
      world.change(set, "k/a");
      tell(watch, [world.change(set, "k/a", { revision: 1 })]);
    }),
    ["resume"],
    "a state that was there is left out",
  );
  t.same(
    begun((world, watch) => {
      const a = world.change(set, "k/a");
      world.change(set, "k/a", { revision: 1 });
      watch.begin(null, 5000, false);
      watch.created(5001);
      tell(watch, [a], { initial: true });
    }),
    ["order"],
    "a state of before it was asked for",
  );
  t.same(
    begun((world, watch) => {
      const gone = world.change(deleted, "k/a");
      tell(watch, [gone], { initial: true });
    }),
    ["order"],
    "what is gone is no state to begin with",
  );
  t.end();
});

t.test("15 nothing that did not happen, or not yet (W1)", (t) => {
  t.same(
    judged((world, watch) => {
      const refused = { ...world.change(set, "k"), value: "another" };
      tell(watch, [refused]);
    }),
    ["committed"],
    "planted 25: what was asked for",
  );
  const early: ToldEvent = {
    ...{ type: set, name: "k", revision: 0, incarnation: 0, token: 0n, value: "v1" },
    stamp: { l: 1, c: 0, n: 0 },
  };
  t.same(
    judged((_world, watch) => void tell(watch, [early])),
    ["committed"],
    "planted 26",
  );
  t.same(
    judged((_world, watch) => void tell(watch, [early], { merged: true })),
    ["committed"],
  );
  t.end();
});

t.test("17 a cursor: nothing behind it is missing (W5, W6, W7)", (t) => {
  const gone = (act: (world: World, watch: ToldWatch, mark: Mark) => void): string[] => {
    return judged((world, watch) => {
      const mark = tell(watch, [world.change(set, "k", {})], { cursor: "c" });
      world.change(set, "k", { revision: 1 });
      world.change(deleted, "k", { revision: 2 });
      if (mark !== null) act(world, watch, mark);
    });
  };
  const all = (world: World): readonly Change[] => world.changes.of("key", "k");
  const on = (watch: ToldWatch, mark: Mark, owesEach = false): void => {
    watch.begin(mark, 4000, owesEach);
    watch.created(4001);
  };
  t.same(
    gone((world, watch, mark) => {
      on(watch, mark, true);
      tell(watch, all(world).slice(1));
    }),
    [],
    "exactly what is behind it",
  );
  t.same(
    gone((world, watch, mark) => {
      on(watch, mark);
      tell(watch, all(world).slice(2), { merged: true });
    }),
    [],
    "or merged",
  );
  t.same(
    gone((world, watch, mark) => {
      on(watch, mark);
      tell(watch, all(world).slice(2));
    }),
    ["resume"],
    "one is left out",
  );
  t.same(
    gone((world, watch, mark) => {
      on(watch, mark, true);
      tell(watch, all(world).slice(2), { merged: true });
    }),
    ["resume"],
    "planted 33: merged, where each is owed",
  );
  t.same(
    gone((world, watch, mark) => {
      tell(watch, all(world).slice(2), { merged: true });
      on(watch, mark);
      tell(watch, [], { reset: true, initial: true });
      tell(watch, [all(world)[1] as Change], { initial: true });
    }),
    ["order"],
    "an older state, after the newest was told",
  );
  t.same(
    gone((world, watch, mark) => {
      on(watch, mark);
      tell(watch, [], { reset: true, initial: true });
      tell(watch, [], { cursor: "d", sentMs: 9000 });
      t.equal(watch.missing(Infinity), null, "absence is told by a whole state");
      world.change(set, "k", { value: "new" });
      t.match(watch.missing(Infinity), /^set k/);
    }),
    [],
  );
  t.end();
});

t.test("14 16 what is missing by a barrier, and in the end (W6, W9)", (t) => {
  const world = new World();
  const watch = world.watch("k");
  watch.begin(null, 0, false);
  watch.created(1);
  const a = world.change(set, "k");
  world.change(expired, "k");
  tell(watch, [a]);
  t.equal(watch.missing(1500), null, "what came behind the barrier is not owed");
  t.match(watch.missing(Infinity), /^expired k/, "planted 28 and 29: absence is not told");
  const locks = world.watch("l", { kind: WatchKind.lockPrefix });
  locks.begin(null, 2500, false);
  locks.created(2501);
  world.change(locked, "l", { token: 1n });
  t.match(locks.missing(Infinity), /^locked l f1/, "planted 31: nothing came yet");
  t.equal(locks.missing(3000), null);
  world.change(unlocked, "l", { token: 1n });
  const absent = { ...world.change(locked, "other", { token: 1n }), name: "l", token: 0n };
  tell(locks, [{ ...absent, type: unlocked }], { merged: true, sentMs: 9000 });
  t.equal(locks.missing(Infinity), null, "a lock without a row is free");
  const sequences = world.watch("s", { kind: WatchKind.sequence });
  sequences.begin(null, 0, false);
  sequences.created(1);
  tell(sequences, [world.change(sequenceReserved, "s", { revision: 1 })]);
  t.equal(sequences.missing(Infinity), null);
  t.same(world.failed, []);
  t.end();
});

t.test("18 the end of a watched lease is committed in time (W11)", (t) => {
  const judge = (...looks: readonly Partial<LeaseLook>[]): string => {
    const expiry = new ExpiryTrue({ "ends that are watched": 1 });
    const plain = { name: "k", partition: 1, sinceMs: 1, isAble: true, boundMs: 200 };
    for (const look of looks) expiry.look({ atMs: 0, ...plain, ...look });
    return expiry.verdict().kind;
  };
  t.equal(judge(), "vacuous");
  t.equal(judge({ sinceMs: -1 }), "vacuous", "none is due");
  t.equal(judge({ atMs: 0 }, { atMs: 200 }), "pass");
  t.equal(judge({ atMs: 0 }, { atMs: 250 }), "fail");
  t.equal(judge({ atMs: 0 }, { atMs: 100, isAble: false }, { atMs: 250 }), "pass");
  const expiry = new ExpiryTrue({ "ends that were committed": 1 });
  expiry.committed("k", 1);
  t.equal(expiry.verdict().kind, "pass");
  t.end();
});

t.test("19 20 what is kept is bounded, and nothing without watches (W13, W15, W16)", (t) => {
  const judge = (act: (bounded: WatchBounded) => void): string => {
    const bounded = new WatchBounded({ "looks at nodes": 1 });
    act(bounded);
    return bounded.verdict().kind;
  };
  const sizes = {
    ...{ node: 1, historyBytes: 10, historyMaxBytes: 10, watches: 1, streams: 1 },
    ...{ watchesMost: 1, streamsMost: 1 },
  };
  t.equal(
    judge(() => undefined),
    "vacuous",
  );
  t.equal(
    judge((bounded) => bounded.look(sizes)),
    "pass",
  );
  for (const more of [{ historyBytes: 11 }, { watches: 2 }, { streams: 2 }]) {
    t.equal(
      judge((bounded) => bounded.look({ ...sizes, ...more })),
      "fail",
    );
  }
  const given = (isFull: boolean, isEnd: boolean, sizeBytes: number): string =>
    judge((bounded) => {
      bounded.look(sizes);
      bounded.delivered("w", isFull, isEnd, sizeBytes, 100);
    });
  t.equal(given(true, true, 1), "pass", "ends come to a full one too");
  t.equal(given(true, false, 1), "fail");
  t.equal(given(false, false, 101), "fail");
  const unwatched = (kept: object): string => {
    const nobody = new NoWatchers();
    const none = { node: 1, filters: 0, leases: 0, historyBytes: 0, taps: 0, events: 0 };
    nobody.look({ ...none, ...kept });
    return nobody.verdict().kind;
  };
  t.equal(unwatched({}), "pass");
  for (const kept of [{ filters: 1 }, { leases: 1 }, { historyBytes: 1 }, { taps: 1 }]) {
    t.equal(unwatched(kept), "fail");
  }
  t.equal(new NoWatchers().verdict().kind, "vacuous");
  t.end();
});

t.test("P-166 too little is vacuous", (t) => {
  const verdicts = new WatchFindings().verdicts();
  t.ok(verdicts.every(({ kind }) => kind === "vacuous"));
  const of = (findings: Findings): string => findings.verdict().kind;
  t.equal(of(new WatchFindings(NONE).barrier), "pass");
  t.end();
});

type Told = readonly [what: string, how?: keyof StreamBatch];

/** "set k 1" as an event: the number is a revision, and of locks a token; each set has a value of its own. */
function streamEvent(what: string): StreamEvent {
  const [type = "", name = "", number = "0"] = what.split(" ");
  const text = type === "set" ? `${name}${number}` : null;
  return { type, name, text, revision: BigInt(number), fencingToken: BigInt(number) };
}

function write(type: "set" | "delete", key: string, number: number): Made {
  const plain = { key, ephemeral: false, expiresMs: 0 };
  const result = { type: type === "set" ? "Set" : "Deleted", value: null } as const;
  const condition = { compareValue: null, compareRevision: 0n, flags: 0 };
  const set = { kind: "kv-set", ...plain, ...condition, value: `${key}${number}` } as const;
  const remove = { kind: "kv-delete", ...plain, revision: -1n } as const;
  return {
    operation: type === "set" ? set : remove,
    result: { ...result, revision: BigInt(number) },
  };
}

/** What a watch of "k" since 5 ms, level at 1000 ms, is found to be; `told` a batch each. */
function judgeStream(
  told: readonly Told[],
  lines: readonly Line[],
  kind: number = WatchKind.key,
): string {
  const stream = new ToldStream("w", { kind, name: "k" }, false);
  stream.startedMs = 5;
  stream.levelMs = 1000;
  for (const [what, how] of told) {
    const plain = { cursor: "c", initial: false, merged: false, reset: false };
    const batch = { ...plain, ...(how === undefined ? {} : { [how]: true }) };
    stream.told({ ...batch, events: what === "" ? [] : [streamEvent(what)] }, 500);
  }
  const least = { "answered changes that were told": 1 };
  return checkToldStreams([stream], historyOf(lines), [], least).kind;
}

t.test(
  "W1 W2 W6 W9 what watchers of real nodes are told, beside what clients are answered",
  (t) => {
    const lines: readonly Line[] = [
      [0, 1, "a", write("set", "k", 0)],
      [10, 11, "a", write("set", "k", 1)],
      [20, 21, "a", write("delete", "k", 2)],
      [30, 31, "a", write("set", "k", 3)],
    ];
    const [one, two, three]: [Told, Told, Told] = [["set k 1"], ["deleted k 2"], ["set k 3"]];
    t.equal(judgeStream([one, two, three], lines), "pass");
    t.equal(judgeStream([], []), "vacuous");
    t.equal(judgeStream([one, two], lines), "fail", "the newest is missing");
    t.equal(judgeStream([two, three], lines), "fail", "the first is missing");
    t.equal(judgeStream([one, three], lines), "fail", "one in the middle is missing");
    t.equal(judgeStream([one, ["set k 3", "merged"]], lines), "pass", "it is merged over");
    t.equal(judgeStream([one, ["", "reset"], ["set k 3", "initial"]], lines), "pass", "told anew");
    const anew = (wholeMs: number): string => {
      const stream = new ToldStream("w", { kind: WatchKind.key, name: "k" }, false);
      stream.startedMs = 5;
      stream.levelMs = 1000;
      const batch = { events: [], cursor: "c", initial: false, merged: false, reset: false };
      stream.told({ ...batch, events: [streamEvent("set k 1")] }, 12);
      stream.told({ ...batch, cursor: null, initial: true, reset: true }, 15);
      stream.told({ ...batch, initial: true }, wholeMs);
      stream.told({ ...batch, events: [streamEvent("set k 3")] }, 35);
      const least = { "answered changes that were told": 1 };
      return checkToldStreams([stream], historyOf(lines), [], least).kind;
    };
    t.equal(anew(25), "pass", "it may have been gone when the state was read");
    t.equal(anew(18), "fail", "the state was told whole before");
    t.equal(judgeStream([one, two, three, three], lines), "fail", "one comes twice");
    t.equal(judgeStream([one, two, three, ["set k 1", "merged"]], lines), "fail", "it goes back");
    t.equal(judgeStream([one, two, three, ["set k 4"]], lines), "fail", "nobody set that");
    t.equal(judgeStream([one, two, three, ["set other 0"]], lines), "fail", "it is not watched");
    t.equal(judgeStream([one, two, three, ["expired k 3"]], lines), "pass", "a lease ends");
    const unsure: Line = [40, 41, "a", { ...write("set", "k", 4), result: "unknown" }];
    t.equal(judgeStream([one, two, three, ["set k 4"]], [...lines, unsure]), "pass", "or not");
    const no: Line = [40, 41, "a", { ...write("set", "k", 4), result: "refused" }];
    t.equal(judgeStream([one, two, three, ["set k 4"]], [...lines, no]), "fail", "it was refused");

    const held: readonly Line[] = [10, 20].map((atMs, at): Line => {
      const made = lock("try-lock", `o${at}`, `Locked ${at}`, 1000, { resource: "k" });
      return [atMs, atMs + 1, "a", made];
    });
    const [granted, over, next]: Told[] = [
      ["locked k 0"],
      ["unlocked k 0"],
      ["locked k 1"],
    ] as const;
    const grants = (...told: (Told | undefined)[]): string =>
      judgeStream(told as Told[], held, WatchKind.lock);
    t.equal(grants(granted, over, next), "pass");
    t.equal(grants(granted, next, granted), "fail", "tokens go back");
    t.equal(grants(granted, over), "fail", "the next one is missing");
    t.equal(grants(granted, next), "fail", "an end is missing");
    const absent: Told = ["unlocked k 0", "merged"];
    t.equal(grants(absent, granted, over, next), "pass", "it had no row before");

    const cut = new ToldStream("w", { kind: WatchKind.key, name: "k" }, true);
    const part = { cursor: null, initial: false, merged: true, reset: false };
    cut.told({ ...part, events: [streamEvent("set k 1")] }, 1);
    t.equal(cut.stateOf("k"), 1n, "known as long as it does not go on");
    cut.goesOn("behind it");
    t.same([cut.batches, cut.cursor, cut.stateOf("k")], [[], null, null], "void without a cursor");
    t.end();
  },
);
