/** What the list of ranges says beyond routing: keys where known, moves under way, leaving spaces. */
import t from "tap";
import type { Command, Outcome } from "../../../src/machine/commands/command.js";
import { rangeGeneration } from "../../../src/base/ids.js";
import { listedSpaces } from "../../../src/operations/cluster/range-list.js";
import type { NodeAccess } from "../../../src/operations/api/host-view.js";
import type { ProposalResult } from "../../../src/host/group/group.js";
import { Bench } from "../../doubles/operations/fixture.js";

function propose(bench: Bench, command: Command): Outcome | null {
  const results: ProposalResult[] = [];
  const meta = bench.node.metaGroup();
  meta.propose(command, 100, bench.nowMs + 1000, (result) => results.push(result));
  bench.world.settle();
  const [result] = results;
  return result?.status === "applied" ? result.outcome : null;
}

t.test("6.3 a move is listed while it is under way, with its phase and its attempt", (t) => {
  const bench = new Bench();
  // Steps are taken here, one by one.
  bench.holdMoves();
  const keySpace = "orders";
  const source = bench.partitionOf(keySpace);
  const generation = rangeGeneration(1);
  const view = { keySpace, routingMode: "KeyRange", ranges: [] } as const;
  const list = (node: NodeAccess = bench.node) => listedSpaces(node, [view])[0];
  t.match(propose(bench, { kind: "register-range", keySpace, partitionId: source }), {
    status: "done",
  });
  const interval = { startKey: "orders/5", endKey: null };
  const begun = propose(bench, {
    ...{ kind: "begin-move", move: "split", keySpace, source, target: 0, generation },
    ...interval,
  });
  t.match(begun, { status: "done" });
  const move = { kind: "split", ...interval, source, target: 4, attempt: 1, reason: "none" };
  t.match(list(), { moves: [{ ...move, phase: "copying" }], leaving: false });
  const moveId = list()?.moves[0]?.moveId;
  t.match(begun, { generation: moveId }, "the id by which commands name it");
  t.same(listedSpaces(bench.node, [{ ...view, keySpace: "other" }])[0]?.moves, []);
  const [running] = bench.node.metaGroup().machine.meta.moves();
  if (running === undefined) throw new Error("a move is under way");
  const abort = { kind: "abort-move", keySpace, moveId: running.moveId } as const;
  propose(bench, { ...abort, reason: "no-target" });
  t.match(list(), { moves: [{ ...move, phase: "aborting", reason: "no-target" }] });
  t.end();
});

t.test("6.3 keys are told where they are known, and null is no zero", (t) => {
  const bench = new Bench();
  const ranges = [
    { startKey: null, endKey: "m", partitionId: 1, generation: rangeGeneration(2) },
    { startKey: "m", endKey: null, partitionId: 2, generation: rangeGeneration(2) },
  ];
  const view = { keySpace: "s", routingMode: "KeyRange", ranges } as const;
  const keysOf = (node: NodeAccess) =>
    listedSpaces(node, [view])[0]?.descriptors.map(({ keys }) => keys);
  t.same(keysOf(bench.node), [null, null]);
  const asked: unknown[] = [];
  const counting = Object.create(bench.node, {
    knownRangeKeys: {
      value: (range: { readonly partitionId: number }) => {
        asked.push(range);
        return range.partitionId === 1 ? null : 0;
      },
    },
  }) as NodeAccess;
  t.same(keysOf(counting), [null, 0]);
  t.same(asked[0], { keySpace: "s", partitionId: 1, startKey: null, endKey: "m" });
  t.end();
});
