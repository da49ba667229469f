/** Leaderships: who gives what to whom, by what nodes report; and that it comes to an end. */
import t from "tap";
import { Prng } from "../../../src/base/prng.js";
import {
  type LedGroup,
  type LeaderBalanceFacts,
  type LeadingNode,
  planLeaderMoves,
} from "../../../src/control/leader-balance.js";

function led(
  partition: number,
  candidates: readonly number[],
  more: Partial<LedGroup> = {},
): LedGroup {
  return { partition, candidates, ledForMs: 30_000, isChanging: false, ...more };
}

function nodes(leads: Readonly<Record<number, number>>): LeadingNode[] {
  return Object.entries(leads).map(([nodeId, count]) => ({ nodeId: Number(nodeId), leads: count }));
}

function says(
  leads: Readonly<Record<number, number>>,
  groups: readonly LedGroup[],
  more: Partial<LeaderBalanceFacts> = {},
): string {
  const facts = { self: 1, isLeaving: false, nodes: nodes(leads), groups, ...more };
  return planLeaderMoves(facts)
    .map(({ partition, to }) => `${partition} to ${to}`)
    .join(", ");
}

t.test("P-106 a node gives what it has too much, to who leads fewest of all groups", (t) => {
  const both = [led(1, [1, 2, 3]), led(2, [1, 2, 3])];
  t.equal(says({ 1: 2, 2: 0, 3: 0 }, both), "1 to 2");
  t.equal(says({ 1: 2, 2: 1, 3: 1 }, both), "", "a difference of one");
  t.equal(says({ 1: 2, 2: 9, 3: 0 }, both), "1 to 3", "groups that have no replica here count");
  t.equal(says({ 1: 2, 2: 9, 3: 9 }, both), "");
  t.equal(says({ 1: 2, 3: 1 }, both), "", "who did not tell, leaves or has a bad disk gets none");
  t.equal(says({ 1: 9, 2: 0 }, [led(1, [1])]), "", "nobody else has it");
  t.equal(says({ 1: 5, 2: 0 }, [led(1, [1, 2], { ledForMs: 29_999 })]), "", "it has just come");
  t.equal(says({ 1: 5, 2: 0 }, [led(1, [1, 2], { isChanging: true })]), "", "its members change");
  t.end();
});

t.test("four in a pass, or a quarter of the surplus", (t) => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => led(at + 1, [1, 2]));
  const moved = (count: number): number => says({ 1: count, 2: 0 }, many(count)).split(",").length;
  t.equal(moved(20), 4);
  t.equal(moved(200), 25);
  t.end();
});

t.test("P-096 who leaves gives everything at once", (t) => {
  const young = [led(1, [1, 2, 3], { ledForMs: 0 }), led(2, [1, 2, 3], { isChanging: true })];
  const all = [
    ...young,
    ...Array.from({ length: 10 }, (_, at) => led(at + 3, [1, 2, 3])),
    led(99, [1]),
  ];
  const said = says({ 2: 6, 3: 0 }, all, { isLeaving: true });
  t.equal(said.split(",").length, 12, "all that somebody can take");
  t.equal(said.split(" to 3").length - 1, 9, "to who leads fewest");
  t.end();
});

t.test("P-106 it ends, whoever hosts what, with reports that are late", (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const prng = new Prng(seed);
    const size = 3 + prng.below(6);
    const ids = Array.from({ length: size }, (_, at) => at + 1);
    const factor = Math.min(3, size);
    const groups = Array.from({ length: 5 + prng.below(60) }, (_, at) => {
      const voters = Array.from({ length: factor }, (_, k) => ((at + k) % size) + 1);
      return { voters, leader: voters[prng.chance(2, 3) ? 0 : prng.below(factor)] as number };
    });
    const counts = () => ids.map((id) => groups.filter(({ leader }) => leader === id).length);
    // Reports are as old as the last pass of the node, or fresh.
    const told = new Map(ids.map((id, at) => [id, counts()[at] as number]));
    let quiet = 0;
    let passes = 0;
    for (; quiet < 2 && passes < 200; passes++) {
      let moved = 0;
      for (const self of ids) {
        const own = groups.flatMap(({ voters, leader }, at) => {
          return leader === self ? [led(at, voters)] : [];
        });
        const now = counts();
        const leads = ids.map((nodeId, at) => {
          const isKnown = nodeId === self || prng.chance(2, 3);
          return { nodeId, leads: isKnown ? (now[at] as number) : (told.get(nodeId) as number) };
        });
        for (const one of planLeaderMoves({ self, isLeaving: false, nodes: leads, groups: own })) {
          (groups[one.partition] as { leader: number }).leader = one.to;
          moved++;
        }
      }
      for (const [at, id] of ids.entries()) told.set(id, counts()[at] as number);
      quiet = moved === 0 ? quiet + 1 : 0;
    }
    if (quiet < 2) t.fail(`seed ${seed} does not end: ${counts().join(" ")}`);
    // Nobody leads two more than another that could lead as many of its groups.
    for (const { voters, leader } of groups) {
      const leads = counts();
      const fewest = Math.min(...voters.map((id) => leads[id - 1] as number));
      if ((leads[leader - 1] as number) - fewest >= 2) t.fail(`seed ${seed}: ${leads.join(" ")}`);
    }
    if (passes > 40) t.fail(`seed ${seed}: ${passes} passes`);
  }
  t.end();
});
