/**
 * Operations of a node from which groups leave, and which does not host all of them.
 */
import t from "tap";
import { FOUNDING_INCARNATION, NO_PLACEMENT } from "../../../src/base/ids.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import { encodePartition } from "../../../src/machine/meta/meta-rows.js";
import { RowKind, uint32Key } from "../../../src/machine/store/keys.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { get, scanAll } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";
import { newMember } from "../../doubles/machine/members.js";
import type { Command, ReplicaRecord } from "../../../src/machine/commands/command.js";

t.test("P-042 what operations keep of a group goes with it", (t) => {
  const trio = new Trio();
  const [operations] = trio.nodes;
  const group = trio.groups[0]?.get(1);
  if (operations === undefined || group === undefined) throw new Error("there are three nodes");
  const { serving } = operations as unknown as {
    readonly serving: {
      readonly blocksByGroup: ReadonlyMap<number, unknown>;
      readonly placement: { here(group: unknown): unknown };
    };
  };
  const place = serving.placement.here(group);
  t.ok(serving.blocksByGroup.has(1));
  for (const hook of trio.left) hook(group);
  t.ok(serving.blocksByGroup.has(1), "answers of this turn may ask for them");
  trio.world.settle();
  t.notOk(serving.blocksByGroup.has(1));
  t.ok(serving.blocksByGroup.has(2), "others stay");
  t.not(serving.placement.here(group), place, "its place is found anew");
  t.end();
});

t.test("a node that hosts nothing of a partition asks those that have a replica of it", (t) => {
  const trio = new Trio();
  const meta = trio.host.metaGroup();
  const decide = (command: Command): void => {
    meta.propose(command, 500, 1e9, () => undefined);
    trio.world.settle();
  };
  for (const id of [2, 3, 4]) {
    decide({ kind: "add-member", ...newMember(id, `n${id}:8084`, `disk${id}`) });
    decide({ kind: "set-member-role", nodeId: id, role: "voter" });
  }
  const { leaders } = (trio.nodes[0] as unknown as { serving: { leaders: Asked } }).serving;
  trio.unhosted.add("1/2");
  const asked = (): number[] => [0, 1, 2, 3, 4, 5].map(() => leaders.other(2, () => true));
  t.same(new Set(asked()), new Set([2, 3, 4]), "in full replication all voters have one");
  const replicas = ([2, 3, 4] as const).map((nodeId): ReplicaRecord => {
    const role = nodeId === 2 ? "learner" : "voter";
    return { nodeId, role, incarnation: FOUNDING_INCARNATION, since: NO_PLACEMENT, replaces: 0 };
  });
  const record = { ...foundedPartition(2, [2, 3, 4], 3), replicas };
  trio.machine(0).rewrite(({ rows }) => {
    rows.put(RowKind.partition, uint32Key(2), encodePartition(record));
  });
  t.same(new Set(asked()), new Set([3, 4]), "a learner does not lead");
  t.end();
});

/**
 * Asks one of `nodes` nodes for what nobody leads; by how much the answer comes behind its deadline
 * (ms).
 */
function lateBy(request: DataRequest, requestTimeoutMs: number, nodes: number): number {
  const trio = new Trio({ requestTimeoutMs, leaderWaitMs: 5000 });
  for (let id = 2; id <= nodes; id++) {
    const add = { kind: "add-member", ...newMember(id, `n${id}:8084`, `disk${id}`) } as const;
    for (const command of [add, { kind: "set-member-role", nodeId: id, role: "voter" } as const]) {
      trio.host.metaGroup().propose(command, 500, 1e9, () => undefined);
      trio.world.settle();
    }
  }
  for (const partition of [1, 2, 3]) {
    trio.unhosted.add(`1/${partition}`);
    trio["leaders"].set(partition, 0);
  }
  // One has just said no, others are found unreachable, again and again.
  trio.fate = ({ to }) => (to >= 3 ? "refused" : "arrives");
  const { timer } = trio.world;
  const ends = trio.post(1, request);
  const startMs = timer.nowMs;
  while (ends.length === 0 && timer.nowMs < startMs + 5000) trio.world.pass(10);
  return timer.nowMs - startMs - requestTimeoutMs;
}

t.test("C9 whoever asks in turn for a partition that nobody leads ends at its deadline", (t) => {
  const late: string[] = [];
  for (const [request, nodes] of [
    [get("a"), 3],
    [scanAll("a"), 9],
  ] as const) {
    for (let timeoutMs = 200; timeoutMs < 2000; timeoutMs += 45) {
      const byMs = lateBy(request, timeoutMs, nodes);
      if (byMs > 50) late.push(`${request.kind}, ${timeoutMs} ms: ${byMs} ms late`);
    }
  }
  t.strictSame(late, []);
  t.end();
});

interface Asked {
  other(partition: number, isReachable: (node: number) => boolean): number;
}
