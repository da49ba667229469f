/** Plans of backups: who ships, what a parent is good for, and where a cut goes through. */
import t from "tap";
import { COUNTER_MAX } from "../../../src/base/hlc.js";
import { CUT_AHEAD_LEAST_MS } from "../../../src/base/limits.js";
import {
  type ParentFacts,
  type ShipperView,
  chooseCut,
  judgeParent,
  shippersInOrder,
} from "../../../src/control/backup-plan.js";

function view(change: Partial<ShipperView> = {}): ShipperView {
  const none = { isOut: () => false, load: () => 0 };
  return { self: 1, hosts: [1, 2, 3], leader: 2, ...none, ...change };
}

t.test("P-133 who has it ships it itself, then followers by their load, the leader last", (t) => {
  t.same(shippersInOrder(view()), [1, 3, 2]);
  t.same(shippersInOrder(view({ self: 9 })), [1, 3, 2]);
  const load = (node: number): number => (node === 1 ? 4 : 0);
  t.same(shippersInOrder(view({ self: 9, load })), [3, 1, 2]);
  t.same(shippersInOrder(view({ self: 2 })), [2, 1, 3], "also where it leads");
  t.same(shippersInOrder(view({ isOut: (node) => node !== 2 })), [2]);
  t.same(shippersInOrder(view({ leader: 0, self: 9 })), [1, 2, 3]);
  t.end();
});

const NOW = {
  clusterId: "prod",
  storageType: "lmdb",
  storageRevision: "v1",
  topologyVersion: 3,
  partitions: [0, 1, 2],
};

function parent(change: Partial<ParentFacts> = {}): ParentFacts {
  const { topologyVersion: topologyGeneration, partitions: coveredPartitions, ...of } = NOW;
  return { ...of, topologyGeneration, coveredPartitions, ...change };
}

t.test("P-135 a parent is continued where it was taken, and nowhere else", (t) => {
  t.equal(judgeParent(parent(), NOW), "continues");
  for (const change of [{ clusterId: "x" }, { storageType: "memory" }, { storageRevision: "v2" }]) {
    t.equal(judgeParent(parent(change), NOW), "needs-full");
  }
  t.equal(judgeParent(parent({ topologyGeneration: 4 }), NOW), "topology-changed");
  t.equal(judgeParent(parent({ coveredPartitions: [0, 1] }), NOW), "topology-changed");
  t.equal(judgeParent(parent({ coveredPartitions: [0, 1, 3] }), NOW), "topology-changed");
  t.end();
});

t.test("P-134 a cut is above every stamp and clock, by four times the slowest answer", (t) => {
  const cut = (toldMs: readonly number[], slowestAnswerMs = 0, wallMs = 1_000_000) =>
    chooseCut({ node: 7, wallMs, toldMs, slowestAnswerMs });
  t.same(cut([900_000, 1_000_100]).at, { n: 7, l: 1_000_100 + CUT_AHEAD_LEAST_MS, c: COUNTER_MAX });
  t.equal(cut([1_000_000], 30.2).at.l, 1_000_121);
  t.equal(cut([1_000_000]).verdict, "fits");
  t.equal(cut([1_061_000]).verdict, "is-ahead");
  t.equal(cut([1_000_000 + 25 * 3_600_000]).verdict, "too-far-ahead");
  t.end();
});
