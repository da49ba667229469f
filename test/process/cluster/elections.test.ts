/** What the tests that start processes excuse by elections is itself held here: nodes are tables of metrics. */
import t from "tap";
import { ElectionTally, unplanned } from "./elections.js";

const term = (partition: number): string => `svc_raft_term{partition="${partition}"}`;
const MOVED = 'svc_leader_transfers_total{result="moved"}';

function tallyOf(tables: Map<string, number>[]): ElectionTally {
  const ids = tables.map((_, at) => at + 1);
  return new ElectionTally({ ids, metrics: async (id) => tables[id - 1] ?? new Map() });
}

t.test(
  "P-147 elections that nobody ordered are those of all terms without the moves",
  async (t) => {
    const one = new Map([
      [term(0), 3],
      [MOVED, 5],
    ]);
    const other = new Map([[term(0), 3]]);
    const tally = tallyOf([one, other]);
    t.equal(unplanned(await tally.take()), 0, "the first look only begins");
    one.set(term(0), 5).set(MOVED, 6);
    other.set(term(0), 4);
    t.equal(unplanned(await tally.take()), 1, "two terms, one of them ordered");
    t.equal(unplanned(await tally.take()), 0, "each is told once");
  },
);

t.test("P-147 a partition that was made meanwhile counts from its first term on", async (t) => {
  const one = new Map([
    [term(0), 3],
    [MOVED, 0],
  ]);
  const tally = tallyOf([one]);
  await tally.take();
  one.set(term(9), 1);
  t.equal(unplanned(await tally.take()), 0, "it began with an election");
  one.set(term(10), 3).set(MOVED, 1);
  t.equal(unplanned(await tally.take()), 1, "one was ordered, and one was not");
});
