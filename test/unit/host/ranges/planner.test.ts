/** The planner of key ranges on the leader of meta: what it comes back to by itself. */
import t from "tap";
import { mapVersion } from "../../../../src/base/ids.js";
import { hashPartition, keySpaceHashText } from "../../../../src/base/routing.js";
import type { MetaProposal, MetaResult } from "../../../../src/host/cluster/meta-proposals.js";
import { RangePlanner } from "../../../../src/host/ranges/range-planner.js";
import { RangeTally } from "../../../../src/host/requests/range-tally.js";
import type { MetaReads } from "../../../../src/machine/meta/meta-reads.js";
import { DEFAULT_HOST_SETTINGS } from "../../../doubles/default-settings.js";

/** A key space that leaves, and lies beside its home. */
function records(): MetaReads {
  const home = hashPartition(keySpaceHashText("room"), 2);
  const active = { state: "Active", generation: 1, replicas: [] };
  const range = { startKey: null, endKey: null, partitionId: 3 - home, generation: 1 };
  return {
    cluster: () => ({ dataPartitions: 2, mapVersion: mapVersion(1) }),
    partitions: () => [1, 2].map((partitionId) => ({ ...active, partitionId })),
    allRanges: () => [{ keySpace: "room", descriptor: range, changedLeaseMs: 0 }],
    leavingKeySpaces: () => ["room"],
    moves: () => [],
    isPlannerHeld: () => false,
  } as unknown as MetaReads;
}

function leaving() {
  const reads = records();
  const asked: MetaProposal[] = [];
  const state = { nowMs: 0, leader: 1, answer: null as MetaResult | null };
  const planner = new RangePlanner({
    settings: DEFAULT_HOST_SETTINGS.ranges,
    nowMs: () => state.nowMs,
    tally: new RangeTally(),
    metaReads: () => reads,
    mapVersion: () => mapVersion(1),
    meta: () => ({ isServing: () => true, term: () => 1, leaseNowMs: () => state.nowMs }),
    leader: () => state.leader,
    sizeOf: () => undefined,
    proposeOnMeta: (command, _deadlineMs, done) => {
      asked.push(command);
      if (state.answer !== null) done(state.answer);
    },
  });
  /** As a node does: no tick without work. */
  const pass = (ms: number): void => {
    for (const endMs = state.nowMs + ms; state.nowMs < endMs; state.nowMs += 50) {
      if (state.nowMs === 0 || planner.hasWork) planner.tick(state.nowMs);
    }
  };
  return { state, asked, planner, pass };
}

void t.test("a key space leaves although its partition had no leader at first", (t) => {
  const { state, asked, planner, pass } = leaving();
  state.leader = 0;
  pass(1000);
  t.same(asked, [], "nobody could move anything");
  t.ok(planner.hasWork, "it is not forgotten");
  state.leader = 1;
  pass(1000);
  t.match(asked[0], { kind: "begin-move", move: "home", keySpace: "room" });
  t.end();
});

void t.test("a key space leaves although nobody answered at first", (t) => {
  const { state, asked, planner, pass } = leaving();
  state.answer = { status: "unknown" };
  pass(3000);
  t.ok(asked.length >= 4 && asked.length <= 8, `asked again, and not at once: ${asked.length}`);
  t.ok(planner.hasWork);
  t.end();
});
