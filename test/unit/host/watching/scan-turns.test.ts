/** Few watches of a node read the state of many names at a time, in the order they asked (W16). */
import t from "tap";
import { WATCH_SCANS_MAX } from "../../../../src/base/limits.js";
import { Prng } from "../../../../src/base/prng.js";
import { WatchKind } from "../../../../src/base/result-types.js";
import { ScanTurns, type Scanner } from "../../../../src/host/watching/scan-turns.js";
import { WatchBench } from "../../../doubles/host/watch-bench.js";
import { set } from "../../../doubles/machine/bench.js";
import type { WatchMessage } from "../../../../src/host/watching/messages.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

class Reader implements Scanner {
  isStuck = false;

  constructor(
    readonly id: number,
    private readonly told: (reader: Reader) => void,
  ) {}

  hasNews(): void {
    this.told(this);
  }

  isHeard(): boolean {
    return !this.isStuck;
  }
}

t.test("W16 turns against a list: never more than may be, first come, first served", (t) => {
  const random = new Prng(5);
  const turns = new ScanTurns();
  let reading: number[] = [];
  let waiting: number[] = [];
  const told: number[] = [];
  const readers = Array.from({ length: 12 }, (_, id) => new Reader(id, (who) => told.push(who.id)));
  const fill = (asking: number | null): number[] => {
    const heard: number[] = [];
    while (reading.length < WATCH_SCANS_MAX && waiting.length > 0) {
      const next = waiting.shift() as number;
      reading.push(next);
      if (next !== asking) heard.push(next);
    }
    return heard;
  };
  for (let step = 0; step < 20_000; step++) {
    const reader = readers[random.below(readers.length)] as Reader;
    const { id } = reader;
    told.length = 0;
    let expected: number[] = [];
    if (random.chance(1, 2)) {
      if (!reading.includes(id) && !waiting.includes(id)) waiting.push(id);
      expected = fill(id);
      const has = turns.ask(reader);
      if (has !== reading.includes(id)) t.fail(`step ${step}: ${id} has a turn: ${has}`);
    } else {
      waiting = waiting.filter((each) => each !== id);
      const had = reading.includes(id);
      reading = reading.filter((each) => each !== id);
      if (had) expected = fill(null);
      turns.leave(reader);
    }
    if (String(told) !== String(expected)) t.fail(`step ${step}: ${told} not ${expected}`);
    if (turns.count !== reading.length) t.fail(`step ${step}: ${turns.count} read`);
  }
  t.end();
});

t.test("P-185 who takes nothing more keeps no turn, and asks anew behind the others", (t) => {
  const turns = new ScanTurns();
  const told: number[] = [];
  const count = WATCH_SCANS_MAX + 3;
  const readers = Array.from({ length: count }, (_, id) => new Reader(id, () => told.push(id)));
  for (const reader of readers) turns.ask(reader);
  const [first, second] = readers as [Reader, Reader];
  const waits = readers[WATCH_SCANS_MAX] as Reader;
  for (const each of [first, second, waits]) each.isStuck = true;
  turns.freeStuck();
  t.same(told, [4, 5, 6], "of those who waited, the one that is full too goes as well");
  first.isStuck = false;
  t.equal(turns.ask(first), false);
  turns.leave(readers[2] as Reader);
  t.same(told, [4, 5, 6, 0]);
  t.end();
});

/** Each message takes so long that the turn of the loop is over. */
class SlowLoop extends WatchCaller {
  constructor(
    private readonly bench: WatchBench,
    private readonly seen: (reading: number) => void,
  ) {
    super(bench.watches);
  }

  override deliver(message: WatchMessage): void {
    super.deliver(message);
    this.bench.timer.nowMs += 3;
    this.seen(this.bench.hub.turns.count);
  }
}

/** So many keys below `p/` that a read of them takes several slices. */
function filled(): WatchBench {
  const bench = new WatchBench();
  const keys = Array.from({ length: 1100 }, (_, at) => set(`p/${at}`, "v"));
  bench.apply(1, ...keys);
  return bench;
}

t.test("W4 W16 of many that ask for the state of a prefix few read, and each gets all", (t) => {
  const bench = filled();
  let most = 0;
  const seen = (reading: number): void => void (most = Math.max(most, reading));
  const callers = Array.from({ length: 7 }, () => new SlowLoop(bench, seen));
  for (const caller of callers) {
    caller.room = 3;
    caller.stream.create(1, watchRequest(WatchKind.prefix, "p/", { initial: true }));
  }
  bench.settle();
  t.equal(most, WATCH_SCANS_MAX);
  t.ok(bench.hub.turns.count < WATCH_SCANS_MAX, "whoever is full keeps no turn");
  const isMarked = ({ messages }: WatchCaller): boolean => messages.at(-1)?.type === 2;
  const [slow, ...others] = callers as [SlowLoop, ...SlowLoop[]];
  for (const caller of others) caller.drain();
  bench.settle();
  t.ok(others.every(isMarked), "one that takes nothing holds up nobody");
  bench.apply(1, set("p/1", "w"));
  slow.drain();
  bench.settle();
  t.ok(isMarked(slow));
  for (const { messages } of callers) {
    const keys = messages.flatMap(({ events }) => events.map(({ name }) => name));
    if (new Set(keys).size !== 1100) t.fail(`${new Set(keys).size} keys`);
  }
  t.equal(bench.hub.turns.count, 0);
  t.end();
});

t.test("W16 a watch that ends while it reads, or waits for its turn, leaves no trace", (t) => {
  const bench = filled();
  let isCut = false;
  const seen = (reading: number): void => {
    if (isCut || reading < WATCH_SCANS_MAX) return;
    isCut = true;
    bench.timer.soon(() => {
      const [first, second, , , , sixth, seventh] = callers;
      first?.stream.close();
      second?.stream.cancel(1);
      sixth?.stream.cancel(1);
      seventh?.stream.close();
    });
  };
  const callers = Array.from({ length: 8 }, () => new SlowLoop(bench, seen));
  for (const caller of callers) {
    caller.stream.create(1, watchRequest(WatchKind.prefix, "p/", { initial: true }));
  }
  bench.settle();
  t.ok(isCut);
  const ends = callers.map(({ messages }) => messages.at(-1)?.type);
  t.same(ends.filter((type) => type === 2).length, 4, "the others read all");
  t.equal(bench.hub.turns.count, 0);
  t.end();
});
