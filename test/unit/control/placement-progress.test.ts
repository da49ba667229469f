/** How far moves are, as one leadership of meta sees it: since when, and when they got on last. */
import t from "tap";
import { incarnation } from "../../../src/base/ids.js";
import { MoveProgress } from "../../../src/control/placement-progress.js";
import { placed } from "../../doubles/control/placement-view.js";

t.test("P-093 the longest move: from the first look at it until all are voters", (t) => {
  const progress = new MoveProgress();
  t.equal(progress.oldestMs(50), 0);
  progress.note([placed(1, "1, 2"), placed(2, "1, 2, 3 learner for 1")], true, 100);
  t.notOk(progress.takeMoved(), "a first look is no movement");
  progress.note([placed(1, "1, 2 removing"), placed(2, "1 removing, 2, 3")], false, 400);
  t.ok(progress.takeMoved());
  t.notOk(progress.takeMoved(), "told once");
  t.equal(progress.oldestMs(1000), 900, "a move is one from its learner to its last report");
  progress.note([placed(1, "1, 2 removing"), placed(2, "2, 3")], false, 1100);
  t.equal(progress.oldestMs(1200), 800);
  progress.note([placed(1, "1, 2 removing", { state: "Removed" })], false, 1300);
  t.equal(progress.oldestMs(1400), 0, "a partition that is no more waits for nothing");
  t.end();
});

t.test("P-093 a replica gets on by bytes or entries, and never backwards", (t) => {
  const progress = new MoveProgress();
  const life = { nodeId: 3, incarnation: incarnation(2) };
  const at = (nowMs: number, matchIndex?: number, snapshotChunks = 0, learner = life): number => {
    const told = matchIndex === undefined ? undefined : { matchIndex, snapshotChunks };
    return progress.advanced(1, learner, told, nowMs);
  };
  t.equal(at(100), 100, "it counts from the first look");
  t.equal(at(200), 100);
  t.equal(at(300, 0, 1), 300);
  t.ok(progress.takeMoved());
  t.equal(at(400), 300, "an untold leader says nothing");
  t.equal(at(500, 0, 1), 300);
  t.equal(at(600, 7, 0), 600);
  t.equal(at(700, 5, 1), 600, "another leader measures anew");
  t.equal(at(800, 5, 1, { nodeId: 3, incarnation: incarnation(6) }), 800, "another life");
  progress.note([placed(1, "1, 2")], false, 900);
  t.equal(at(950), 950, "forgotten with its end");
  t.end();
});
