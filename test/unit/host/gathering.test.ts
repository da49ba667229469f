/** How a group waits for the callers of the entry before: for whom, and how long. */
import t from "tap";
import { GATHERING_MAX_MS } from "../../../src/base/limits.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import { Gathering } from "../../../src/host/requests/gathering.js";
import { type World, propose, setCommand, single } from "../../doubles/host/world.js";

t.test("P-071 the next entry waits for as many as there were, for one commit at most", (t) => {
  const gathering = new Gathering();
  t.notOk(gathering.isOn(1, 0), "for nobody before the first entry");
  t.equal(gathering.endOf(1), Infinity);
  gathering.begin(2, 2, 3, 100);
  t.ok(gathering.isOn(3, 102));
  t.notOk(gathering.isOn(4, 100), "all are there");
  t.equal(gathering.endOf(4), Infinity);
  t.notOk(gathering.isOn(2, 103), "as long as the entry before took");
  t.equal(gathering.endOf(2), 103);
  gathering.begin(2, 2, 60_000, 100);
  t.equal(gathering.endOf(2), 100 + GATHERING_MAX_MS, "a slow disk is no reason to wait long");
  gathering.end();
  t.notOk(gathering.isOn(1, 100));
  gathering.begin(1, 0, 3, 100);
  t.notOk(gathering.isOn(1, 100), "who is alone does not wait");
  gathering.begin(1, 1, 3, 100);
  t.notOk(gathering.isOn(1, 100), "nor does who came behind another one alone");
  t.equal(gathering.endOf(1), Infinity);
  t.end();
});

/** `count` callers that ask again a millisecond after each answer, for `ms` of a disk of 2 ms. */
function callers(world: World, group: Parameters<typeof propose>[0], count: number, ms: number) {
  let answered = 0;
  let asking = 0;
  const ask = (): void => {
    const done = ({ status }: ProposalResult): void => {
      if (status !== "applied") return;
      answered++;
      asking++;
    };
    group.propose(setCommand(`k${answered}`), 100, world.timer.nowMs + 10_000, done);
  };
  const half = count >> 1;
  world.log.automatic = false;
  for (let at = 0; at < half; at++) ask();
  world.settle();
  for (let at = half; at < count; at++) ask();
  for (let at = 0; at < ms; at++) {
    world.pass(1);
    if (at % 2 === 1) world.log.sync();
    const again = asking;
    asking = 0;
    world.settle();
    for (let each = 0; each < again; each++) ask();
    world.settle();
  }
  return answered;
}

t.test("P-071 callers in two halves come to share their entries, and are served no later", (t) => {
  const { world, group } = single();
  world.batches = [];
  const answered = callers(world, group, 4, 400);
  const [first, ...others] = world.batches;
  t.equal(first, 2, "they begin in two halves");
  const full = others.filter((commands) => commands === 4).length;
  t.ok(full >= others.length - 1, `${full} of ${others.length} entries hold all four`);
  t.ok(answered >= 350, `${answered} answers in 400 ms`);
  t.end();
});

t.test("P-071 one caller alone is never kept waiting, and who is left behind waits once", (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  for (let at = 0; at < 20; at++) {
    propose(group, `k${at}`, results);
    world.settle();
    t.equal(results.length, at + 1, "in the same millisecond");
    world.pass(1);
  }
  world.log.automatic = false;
  propose(group, "a", results);
  propose(group, "b", results);
  world.settle();
  world.pass(3);
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(results.length, 22);
  propose(group, "c", results);
  world.pass(2);
  t.equal(results.length, 22, "the other one might come");
  world.pass(1);
  t.equal(results.length, 23, "after the time of one commit it goes alone");
  propose(group, "d", results);
  world.settle();
  t.equal(results.length, 24, "and at once the next time");
  t.end();
});

t.test("P-071 a lock is let go at once behind a lone try of somebody else", (t) => {
  const { world, group } = single();
  const results: ProposalResult[] = [];
  world.log.automatic = false;
  world.batches = [];
  propose(group, "try", results);
  world.settle();
  propose(group, "release", results);
  world.settle();
  t.equal(world.batches.length, 1, "the release queues while the try is on its way");
  world.pass(3);
  world.log.automatic = true;
  world.log.sync();
  world.settle();
  t.equal(results.length, 2, "in the turn in which the try was applied");
  t.end();
});
