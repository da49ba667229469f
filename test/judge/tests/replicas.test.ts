/**
 * The checkers of replicas that come and go: each passes, fires, and is vacuous where it saw too
 * little.
 */
import t from "tap";
import { incarnation, placementGeneration } from "../../../src/base/ids.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import { type Heard, AcksOfOneLife } from "../checkers/replicas/acks-of-one-life.js";
import { BornOfMap } from "../checkers/replicas/born-of-map.js";
import { DroppedAfterRemoval } from "../checkers/replicas/dropped-after-removal.js";
import { OneVotePerTerm } from "../checkers/replicas/one-vote-per-term.js";
import { SnapshotFirst } from "../checkers/replicas/snapshot-first.js";
import { message } from "../../doubles/raft/fresh.js";

/** A record of partition 1 with these replicas: [node, life]. */
function record(generation: number, ...lives: readonly [number, number][]): PartitionRecord {
  const replicas = lives.map(([nodeId, life]) => {
    const lived = { incarnation: incarnation(life), since: placementGeneration(life) };
    return { nodeId, role: "voter", ...lived, replaces: 0 } as const;
  });
  const founded = foundedPartition(1, [1, 2], 2);
  return { ...founded, generation: placementGeneration(generation), replicas };
}

t.test("replicas are born of the map", (t) => {
  const born = new BornOfMap({ replicas: 2, "later lives": 1 });
  born.replica(9, 0, 0);
  t.equal(born.verdict().kind, "vacuous", "the meta partition is everywhere");
  born.record(record(1, [1, 0], [2, 0]));
  born.record(record(4, [1, 0], [3, 4]));
  born.replica(2, 1, 0);
  born.replica(3, 1, 4);
  t.equal(born.verdict().kind, "pass");
  born.replica(3, 1, 0);
  born.replica(3, 1, 0);
  t.match(born.verdict(), { kind: "fail", violationCount: 1 });
  const full = new BornOfMap({ replicas: 1 });
  full.record(foundedPartition(1, [1, 2], 0));
  full.replica(7, 1, 0);
  t.equal(full.verdict().kind, "pass");
  full.replica(7, 2, 0);
  t.equal(full.verdict().kind, "fail", "of that partition there is no record");
  t.end();
});

t.test("replicas go after their removal", (t) => {
  const drops = new DroppedAfterRemoval({ drops: 1 });
  drops.record(record(1, [1, 0], [2, 0]));
  drops.replica(2, 1, 0);
  drops.dropped(3, 1);
  t.equal(drops.verdict().kind, "vacuous", "nobody saw that replica");
  drops.record(record(3, [1, 0]));
  drops.dropped(2, 1);
  t.equal(drops.verdict().kind, "pass");
  drops.record(record(6, [1, 0], [2, 6]));
  drops.replica(2, 1, 6);
  drops.dropped(2, 1);
  t.match(drops.verdict(), { kind: "fail", violationCount: 1 }, "the record without it is older");
  drops.left(3, 1, "rows");
  t.equal(drops.verdict().violationCount, 2);
  const full = new DroppedAfterRemoval({ drops: 1 });
  full.record(foundedPartition(1, [1, 2], 0));
  full.replica(2, 1, 0);
  full.dropped(2, 1);
  t.equal(full.verdict().kind, "fail", "in full mode nobody goes");
  t.end();
});

t.test("answers count for one life", (t) => {
  const lives = { fromLife: 4, toLife: 0, ownLife: 0, knownLife: 4, term: 7, ownTerm: 7 };
  const answer: Heard = { node: 1, from: 2, group: 1, kind: "appendAnswer", ...lives };
  const acks = new AcksOfOneLife({ answers: 1, "of later lives": 1 });
  acks.heard({ ...answer, fromLife: 0, knownLife: 0 });
  t.equal(acks.verdict().kind, "vacuous");
  acks.heard(answer);
  acks.heard({ ...answer, kind: "vote", knownLife: 0 });
  acks.heard({ ...answer, fromLife: 6, term: 6 });
  t.equal(acks.verdict().kind, "pass", "a request of a life that is news, a late answer");
  for (const bad of [{ knownLife: 5 }, { knownLife: 3 }, { ownLife: 2 }, { toLife: 1 }]) {
    const broken = new AcksOfOneLife();
    broken.heard({ ...answer, ...bad });
    t.equal(broken.verdict().kind, "fail", JSON.stringify(bad));
  }
  t.end();
});

t.test("one vote per term", (t) => {
  const votes = new OneVotePerTerm({ votes: 2 });
  const grant = message("voteAnswer", { term: 5, to: 1 });
  votes.sent(3, 1, grant);
  votes.sent(3, 1, grant);
  t.equal(votes.verdict().kind, "vacuous");
  votes.sent(3, 1, { ...grant, to: 2, reject: true });
  votes.sent(3, 2, { ...grant, to: 2 });
  votes.sent(3, 1, { ...grant, to: 2, term: 6 });
  t.equal(votes.verdict().kind, "pass");
  votes.sent(3, 1, message("vote", { term: 6, to: 1 }));
  t.equal(votes.verdict().kind, "pass", "its own vote may not be on the disk yet");
  votes.sent(3, 1, message("append", { term: 6, to: 1 }));
  t.match(votes.verdict(), { kind: "fail", violationCount: 1 }, "for itself, and for another");
  votes.forgot(4);
  votes.sent(4, 1, grant);
  votes.forgot(4);
  votes.sent(4, 1, { ...grant, to: 2 });
  t.equal(votes.verdict().violationCount, 1, "an emptied disk knows no vote");
  t.end();
});

t.test("a snapshot comes first", (t) => {
  const begun = { node: 3, group: 1, incarnation: 4, applied: 0, installed: 0, leading: false };
  const first = new SnapshotFirst({ "later lives that applied": 1 });
  first.observe(begun);
  first.observe({ ...begun, incarnation: 0, applied: 7 });
  t.equal(first.verdict().kind, "vacuous");
  first.observe({ ...begun, applied: 9, installed: 8 });
  t.equal(first.verdict().kind, "pass");
  first.observe({ ...begun, applied: 1 });
  first.observe({ ...begun, leading: true });
  t.match(first.verdict(), { kind: "fail", violationCount: 2 });
  first.votes(3, 1, 4);
  first.votes(3, 1, 0);
  t.equal(first.verdict().violationCount, 2, "it has one by now");
  first.votes(3, 1, 6);
  t.equal(first.verdict().violationCount, 3, "a voter without any");
  t.end();
});
