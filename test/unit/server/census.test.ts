/** Rows counted beside all else: when a count begins, how it goes on, who leaves meanwhile. */
import t from "tap";
import { type PartitionId, partitionId } from "../../../src/base/ids.js";
import type { RowCensus } from "../../../src/machine/census.js";
import { NodeCensus } from "../../../src/server/metrics/census.js";
import { Bench, lock } from "../../doubles/machine/bench.js";

type CountedGroup = ReturnType<ConstructorParameters<typeof NodeCensus>[0]["groups"]>[number];

/** Time and timers by hand; each look at the clock takes 0.1 ms. */
class Hand {
  ms = 0;
  private due: (() => void) | null = null;
  readonly ports = {
    nowMs: (): number => (this.ms += 0.1),
    after: (_delayMs: number, callback: () => void): { cancel(): void } => {
      this.due = callback;
      return { cancel: () => void (this.due = null) };
    },
  };

  /** False: nothing waits. */
  next(): boolean {
    const { due } = this;
    this.due = null;
    due?.();
    return due !== null;
  }

  rest(): number {
    let slices = 0;
    while (this.next()) slices++;
    return slices;
  }
}

function group(number: number, locks: number, isServing = true): CountedGroup {
  const bench = new Bench();
  for (let at = 0; at < locks; at++) bench.one(0, lock(`lock-${at}`, "a", 1000));
  const { machine } = bench;
  return {
    partition: partitionId(number),
    machine: { openCensus: (): RowCensus => machine.openCensus() },
    isServing: () => isServing,
  };
}

class Source {
  closing = false;
  readonly here: Map<PartitionId, CountedGroup>;

  constructor(...groups: readonly CountedGroup[]) {
    this.here = new Map(groups.map((each) => [each.partition, each]));
  }

  groups(): readonly CountedGroup[] {
    return [...this.here.values()];
  }

  group(partition: PartitionId): CountedGroup | null {
    return this.here.get(partition) ?? null;
  }
}

function shown(census: NodeCensus): readonly [held: number, locks: number] {
  const lines: string[] = [];
  census.lines(lines);
  const value = (series: string): number =>
    Number(lines.find((line) => line.startsWith(`${series} `))?.split(" ")[1]);
  return [value("svc_locks_held"), value('svc_rows{kind="lock"}')];
}

t.test("a count is made in slices, and shown when it is whole; locks only where led", (t) => {
  const hand = new Hand();
  const census = new NodeCensus(new Source(group(1, 3000), group(2, 500, false)), hand.ports);
  t.notOk(hand.next(), "nobody asked, nothing is counted");
  census.wanted();
  census.wanted();
  t.same(shown(census), [0, 0]);
  t.ok(hand.rest() >= 3);
  t.same(shown(census), [3000, 3500]);
  t.end();
});

t.test("the next count comes only when somebody asks, and not too soon", (t) => {
  const hand = new Hand();
  const source = new Source(group(1, 10));
  const census = new NodeCensus(source, hand.ports);
  census.wanted();
  t.same(shown(census), [10, 10], "what is little is counted at once");
  source.here.set(partitionId(2), group(2, 5));
  hand.ms += 29_000;
  census.wanted();
  t.same(shown(census), [10, 10]);
  hand.ms += 1001;
  census.wanted();
  t.same(shown(census), [15, 15]);
  t.end();
});

t.test("a group that leaves is not read on, a node that closes not at all", (t) => {
  const hand = new Hand();
  const source = new Source(group(1, 5000), group(2, 7));
  const census = new NodeCensus(source, hand.ports);
  census.wanted();
  source.here.delete(partitionId(1));
  hand.rest();
  t.same(shown(census), [7, 7]);
  source.here.set(partitionId(3), group(3, 5000));
  hand.ms += 1e9;
  census.wanted();
  source.closing = true;
  t.equal(hand.rest(), 1);
  t.same(shown(census), [7, 7]);
  census.wanted();
  t.notOk(hand.next());
  census.close();
  t.end();
});
